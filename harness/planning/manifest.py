"""The manifest of a run: everything a plan followed from, immutable, written before its packs start.

JSON (which is YAML too) under manifests/<hash of the content>.yaml, so that a machine without omegaconf can run it. The plan's own
parts come back as dataclasses; nothing is unpickled.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict

import pyarrow as pa

from harness.planning.plan import Part, Plan, PlannedPack, replicates_of, sets_of, signature
from harness.study.config import Condition, EvaluationSet, Metric, Study, Watch, from_dict, name_of, refuse_unknown, to_dict
from harness.study.identity import describe
from harness.study.slot_kinds import parse as parse_kinds
from harness.study.stages import link_of
from results.errors import DamagedFile, StudyError
from results.plain_values import Options, Tree
from results.store.filesystem import public, public_override
from results.store.manifest import FOLDER, MOST_BYTES, checked, manifest_bytes, manifest_files, newest_manifest, write_manifest
from results.store.manifest_fields import Manifest, PackFields
from results.store.manifest_schema import problem
from results.store.tables import Store
from tasks.task import Task


def build(
    plan: Plan, numerics: Options, versions: Mapping[str, str], git: str | None = None, dirty: bool | None = None
) -> dict[str, object]:
    """The manifest of a plan as plain containers. StudyError where it would be larger than readers take."""
    study = plan.study
    signatures = [signature(condition, study.sets) for condition in study.conditions]
    size = sum(12 * len(pack.replicates) + 100 for pack in plan.packs) + 100 * len(plan.replicates) + sum(map(len, signatures))
    if size > MOST_BYTES:
        raise StudyError(
            f"the plan of {study.name}, {len(plan.replicates):,} replicates in {len(plan.packs):,} packs, takes about "
            f"{size / 1e6:,.0f} MB, and at most {MOST_BYTES / 1e6:,.0f} MB are read: write a larger pack.size, or several studies"
        )
    counts = [0] * len(study.conditions)
    for replicate in plan.replicates:
        counts[replicate.condition] += 1
    return {
        "study": study.name,
        "question": study.question,
        "source": dict(study.source),
        "scale": study.scale,
        "reductions": list(study.reductions),
        "overrides": [public_override(override) for override in study.overrides],
        "wandb": study.wandb,
        **({"wandb_runs": study.wandb_runs} if study.wandb_runs != "study" else {}),
        "claims": dict(study.claims),
        **({} if study.adaptive is None else {"adaptive": dict(study.adaptive)}),
        **({"slots": [kind.as_dict() for kind in study.slots]} if study.slots else {}),
        **({"parts": {name: [asdict(part) for part in parts] for name, parts in plan.parts.items()}} if plan.parts else {}),
        "keep": study.keep,
        "device": study.device,
        "executor": study.executor,
        "store": public(study.store),
        "pack_size": study.pack_size,
        "curve_every": study.curve_every,
        **({} if study.watch is None else {"watch": asdict(study.watch)}),
        "sets": study.set_entries(),
        **({"metrics": {name: asdict(metric) for name, metric in study.metrics.items()}} if study.metrics else {}),
        "conditions": [
            to_dict(condition) | {"sets": _sets(study, condition), "replicates": count, "signature": name} | _about(condition)
            for condition, count, name in zip(study.conditions, counts, signatures, strict=True)
        ],
        "replicates": [replicate.entry() for replicate in plan.replicates],
        "packs": [
            {"id": pack.id, "stage": pack.stage, "replicates": list(pack.replicates)}
            | ({"kind": pack.kind} if pack.kind else {})
            for pack in plan.packs
        ],
        "numerics": dict(numerics),
        "versions": dict(versions),
        "git": git,
        "dirty": dirty,
    }


def to_bytes(manifest: Mapping[str, object]) -> bytes:
    """JSON with a line for each part, and for each entry of a list such as that of the packs."""
    lines = []
    for name, part in manifest.items():
        entries = [f"\n  {_json(entry)}" for entry in part] if isinstance(part, list) else []
        lines.append(f" {_json(name)}: " + (f"[{','.join(entries)}\n ]" if entries else _json(part)))
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def refuse_unreadable(content: bytes) -> None:
    """StudyError, before it is written, for a manifest that no reader would take."""
    if wrong := problem(json.loads(content)):
        raise StudyError(
            f"the study can't be kept in a store, since nothing could read its manifest: {wrong}; change that setting, or what it is called"
        )


def read(content: bytes, where: str = "the manifest") -> Manifest:
    """The manifest that `to_bytes` wrote. ValueError where the content is something else."""
    manifest = checked(content, where)
    refuse_unknown(manifest, Manifest.__annotations__, where)
    missing = [name for name in Manifest.__annotations__ if name in Manifest.__required_keys__ and name not in manifest]
    if any("signature" not in pack for pack in manifest.get("packs", ())):
        missing += [f"the signature of {entry['name']}" for entry in manifest["conditions"] if "signature" not in entry]
    if missing:
        raise DamagedFile(f"{where} is not a manifest: it lacks {', '.join(missing)}; move it away")
    return manifest


def read_all(store: Store) -> list[Manifest]:
    """The manifests of a study's earlier plans. DamagedFile where one of them is something else."""
    return [read(manifest_bytes(store, file), store.path(FOLDER, file)) for file in manifest_files(store).values()]


def plan_of(manifest: Manifest) -> Plan:
    """The plan that a manifest was made from; ValueError where this code gives its replicates other keys.

    The keys that were done or failed when it was written are not in a manifest: `done` and `failed` are empty.
    """
    study = study_of(manifest)
    expected = {
        (planned.condition, planned.init_seed, planned.data_seed): planned for planned in replicates_of(study.conditions)
    }
    replicates = tuple(expected[condition, init, data] for _, condition, init, data in manifest["replicates"])
    for (key, *_), planned in zip(manifest["replicates"], replicates, strict=True):
        if planned.key != key:
            raise StudyError(
                f"replicate {key} of {manifest['study']} has the key {planned.key} in this code: use the version of the code that "
                "wrote the manifest"
            )
    packs = tuple(
        PlannedPack(
            pack["id"],
            pack.get("stage", replicates[pack["replicates"][0]].stage),
            tuple(pack["replicates"]),
            signature_of(pack, manifest),
            pack.get("kind", ""),
        )
        for pack in manifest["packs"]
    )
    return Plan(study, replicates, packs, frozenset(), frozenset(), parts_of(manifest))


def signature_of(pack: PackFields, manifest: Manifest) -> str:
    """The signature of a planned pack: that of its replicates' condition, or its own in manifests of before 24 November 2026."""
    if "signature" in pack:
        return pack["signature"]
    _, condition, *_ = manifest["replicates"][pack["replicates"][0]]
    return manifest["conditions"][condition]["signature"]


def sets_by_key(scored: pa.Table) -> dict[str, int]:
    """{key: on how many sets it is scored}; scored: key and sets of committed rows, of which the one with most sets counts."""
    most: dict[str, int] = {}
    for key, sets in zip(scored["key"].to_pylist(), scored["sets"].to_pylist(), strict=True):
        most[key] = max(most.get(key, 0), len(sets))
    return most


def is_committed(pack: PackFields, manifest: Manifest, sets: Mapping[str, int]) -> bool:
    """Whether all replicates of a planned pack are committed on as many evaluation sets as it scores; sets: of `sets_by_key`."""
    keys = (manifest["replicates"][index][0] for index in pack["replicates"])
    return all(sets.get(key, -1) >= sets_of(pack["id"]) for key in keys)


def shorten(store: Store) -> None:
    """Rewrite the newest manifest, if signatures stand with its packs, so that they stand with its conditions.

    Left as it is where packs of one condition have several, as versions that planned otherwise may have written it.
    """
    newest = newest_manifest(store)
    if newest is None or not any("signature" in pack for pack in newest[1].get("packs", ())):
        return
    manifest = newest[1]
    for pack in manifest["packs"]:
        name = signature_of(pack, manifest)
        for place in pack["replicates"]:
            condition = manifest["conditions"][manifest["replicates"][place][1]]
            if condition.setdefault("signature", name) != name:
                return
        pack.pop("signature", None)
    content = to_bytes(manifest)
    write_manifest(store, content)


def parts_of(manifest: Manifest) -> dict[str, tuple[Part, ...]]:
    """What each kind of slot takes, by signature; {} where the manifest has one kind."""
    return {name: tuple(Part(**part) for part in parts) for name, parts in manifest.get("parts", {}).items()}


def study_of(manifest: Manifest) -> Study:
    """The study of a manifest, its conditions with the seeds of the planned replicates."""
    return Study(
        name=manifest["study"],
        question=manifest["question"],
        conditions=conditions_of(manifest),
        sets=tuple(
            EvaluationSet(name, scored["definition"], scored["sequences"], scored.get("every"))
            for name, scored in manifest["sets"].items()
        ),
        source=manifest["source"],
        scale=manifest["scale"],
        reductions=tuple(manifest["reductions"]),
        overrides=tuple(manifest["overrides"]),
        evaluate_seed=next((scored.get("seed", 0) for scored in manifest["sets"].values()), 0),
        curve_every=manifest["curve_every"],
        watch=Watch(**manifest["watch"]) if "watch" in manifest else None,
        keep=manifest["keep"],
        pack_size=manifest["pack_size"],
        compile=manifest["numerics"].get("compile", False),
        device=manifest["device"],
        executor=manifest["executor"],
        store=manifest["store"],
        wandb=manifest["wandb"],
        wandb_runs=manifest.get("wandb_runs", "study"),
        metrics={name: Metric(**metric) for name, metric in manifest.get("metrics", {}).items()},
        claims=manifest.get("claims", {}),
        adaptive=manifest.get("adaptive"),
        slots=parse_kinds(manifest["slots"]) if "slots" in manifest else (),
    )


def conditions_of(manifest: Manifest) -> tuple[Condition, ...]:
    seeds: list[list[tuple[int, int]]] = [[] for _ in manifest["conditions"]]
    for _, condition, init, data in manifest["replicates"]:
        seeds[condition].append((init, data))
    return tuple(from_dict(entry, seeds[index]) for index, entry in enumerate(manifest["conditions"]))


def _about(condition: Condition) -> Tree:
    """What readers must know of a condition beside its configuration: all its settings, and how a training is scored."""
    if condition.experiment is not None:
        return {"settings": settings_of(condition)}
    scored, scoring = condition.task.scored_positions(), _scoring(condition.task)
    return {"settings": settings_of(condition), "scored": scored, "scoring": scoring}


def settings_of(condition: Condition) -> Tree:
    """Every option of a condition, defaults included: what a methods section says."""
    if condition.experiment is not None:
        config = condition.experiment.config()
        parts = {name: value for name, value in config.items() if name not in ("settings", "rev")}
        return {"experiment": parts | condition.experiment.all_settings}
    link = link_of(condition)
    return {
        "task": {"name": name_of(condition.task)} | asdict(condition.task),
        "model": {"name": name_of(condition.model)} | asdict(condition.model),
        "train": asdict(condition.train),
        **({} if link is None else {"stage": {"number": condition.stage} | asdict(link)}),
    }


def _scoring(task: Task) -> Tree:
    """What a reader of the rows must know of a task (`results.store.manifest.Scoring`)."""
    return {
        "metrics": list(task.metrics),
        "direction": "lower",
        "error": task.error,
        "tokens": task.tokens,
        "outputs": task.outputs,
    }


def _sets(study: Study, condition: Condition) -> Tree:
    out = {}
    for scored in study.sets:
        task = scored.task(condition.task)
        out[scored.name] = {"hash": scored.hash(condition.task, study.evaluate_seed), "task": describe(task, name_of(task))}
    return out
