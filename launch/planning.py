"""`manyseeds plan` and `estimate`: what studies will cost, or what a store already holds of one."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.announce import announce
from harness.executor import Executor
from harness.planning.manifest import read_all
from harness.planning.plan import plan, replicates_of, shape, signature
from harness.prepare import planned_manifest, planner_of, prepare, store_uri
from harness.study.config import Condition, Study
from harness.study.identity import canonical
from harness.study.load import load, reductions_of, sources_of
from harness.study.tree import read_file
from launch.families import find_family
from results.errors import StudyError, output_errors
from results.rows.plural import counted, significant
from results.store.tables import open_store, refuse_folder_of_study, scored


def show_plan(
    study: Study,
    write: str | None,
    say: Callable[[str], None],
    fresh: bool = False,
    on: str | None = None,
    gpus: int = 1,
) -> None:
    """Measure the shapes of a study and print its cost; `write` a manifest for a machine that has only torch and pyarrow.

    fresh: measure also what an earlier command has measured; on: model so many GPUs of this kind and measure nothing.
    """
    if write and study.adaptive is not None:
        raise StudyError(
            f"{study.name} is adaptive, so there is no manifest of the whole of it: give replicates=<number>, or run it"
        )
    if on is not None and study.is_experimental:
        raise StudyError(f"--on {on} models trainings, and {study.name} has experiments: leave it out")
    executor: Executor = planner_of(study, say) if on is None else _modelled(on, gpus)
    try:
        prepared = prepare(study, executor, say=say, fresh=fresh)
    finally:
        executor.close()
    announce(prepared, say)
    if on is not None:
        say(f"  by a {executor.machine()}, nothing is measured there: docs/reference/training.md says what it assumes")
    kinds = [kind.name for kind in study.slots] or [""]
    for name, rate in prepared.rates.items() if not study.is_experimental else ():
        conditions = [c for c in study.conditions if name in {shape(signature(c, study.sets), kind) for kind in kinds}]
        names, steps = [c.label for c in conditions], conditions[0].steps
        shown = "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        where = f" on {name.partition(' {')[0]}" if study.slots else ""
        seconds = significant(rate.pack_seconds(steps) / rate.size)
        scoring = significant(rate.evaluate_s / rate.size, 2)
        error = f" ± {rate.precision:.0%}" if on is None else ""
        say(f"  {shown}{where}: packs of {rate.size}, {seconds} s a replicate{error}, {scoring} s of it evaluation")
    if prepared.rates and not prepared.measured and not study.is_experimental:
        say("  as an earlier command measured it: --fresh measures again")
    if write:
        with output_errors(write):
            Path(write).write_bytes(planned_manifest(prepared))
        say(f"manifest: {write}")


def _modelled(on: str, gpus: int) -> Executor:
    from harness.planning.gpu_model import Modelled
    from harness.planning.gpus import GPUS

    return Modelled(GPUS[on], gpus)


def show_diff(study: Study, say: Callable[[str], None]) -> None:
    """Per condition: replicates planned, held with every evaluation set, held without some set, missing.

    StudyError where the study can't go on in this store, as of a run.
    """
    uri = store_uri(study.store)
    refuse_folder_of_study(uri)
    store = open_store(uri, study.name)
    rows = scored(store)
    plan(study, rows, 1, numerics={}, manifests=read_all(store))  # for what it refuses
    sets_by_key = {row["key"]: set(row["sets"]) for row in rows.select(["key", "sets"]).to_pylist()}
    counts: dict[int, Counter[str]] = {index: Counter() for index in range(len(study.conditions))}
    wanted = [set(study.set_hashes(condition).values()) for condition in study.conditions]
    planned = set()
    for replicate in replicates_of(study.conditions):
        planned.add(replicate.key)
        sets = sets_by_key.get(replicate.key)
        state = "missing" if sets is None else "held" if sets >= wanted[replicate.condition] else "lacks a set"
        counts[replicate.condition][state] += 1
    for index, condition in enumerate(study.conditions):
        count = counts[index]
        lack = "lacks a set" if count["lacks a set"] == 1 else "lack a set"
        missing = "missing" if study.adaptive is None else "more at most"  # its rule decides how many
        parts = [
            f"{count[state]} {said}"
            for state, said in (("held", "held"), ("lacks a set", lack), ("missing", missing))
            if count[state]
        ]
        least = "" if study.adaptive is None else f"{study.adaptive['minimum']} to "
        say(f"{condition.label}: {least}{len(condition.seeds)} planned, {', '.join(parts)}")
    extra = len(set(sets_by_key) - planned)
    if extra:
        stays = "is not of this study file: it stays" if extra == 1 else "are not of this study file: they stay"
        say(f"{counted(extra, 'replicate')} in the store {stays}")


def campaign(family: str, overrides: Sequence[str]) -> list[Study]:
    """The studies of a family that are at the paper's own settings in their file, at the scale that `overrides` asks for.

    StudyError naming the study that can't be loaded with these overrides.
    """
    files = find_family(family)
    # not loaded: without the overrides a file may name what is not here, such as the folder of a corpus
    own = [path for path in files if not reductions_of(sources_of(read_file(path), where=str(path)))]
    studies = []
    for path in own:
        try:
            studies.append(load(path, overrides))
        except StudyError as error:
            raise StudyError(f"{path.parent.name}/{path.stem}: {error}") from error
    return studies


def show_estimate(studies: Sequence[Study], seconds: float, say: Callable[[str], None]) -> None:
    """Replicates of several studies, those that they share counted once, and hours at a stated rate; measures nothing.

    seconds: what one replicate of the condition with the most replicates takes. The others are taken in proportion to the tokens that
    they train on, whatever the size of their model. ValueError where it is not above 0.
    """
    if not 0 < seconds < math.inf:
        raise StudyError(f"--seconds {seconds:g} must be above 0, and finite")
    if experiments := [study.name for study in studies if study.is_experimental]:
        raise StudyError(f"{experiments[0]} trains nothing, so its hours do not follow from tokens: use manyseeds plan")
    seen: set[str] = set()
    shared = Counter[str]()
    tokens: dict[str, int] = {}
    for study in studies:
        before, replicates = len(seen), replicates_of(study.conditions)
        names = [canonical(condition.config()) for condition in study.conditions]
        tokens |= {name: _tokens(condition) for name, condition in zip(names, study.conditions, strict=True)}
        for replicate in replicates:
            if replicate.key not in seen:
                shared[names[replicate.condition]] += 1
            seen.add(replicate.key)
        conditions = counted(len(study.conditions), "condition")
        say(f"{study.name}: {counted(len(replicates), 'replicate')} of {conditions}, {len(seen) - before:,} of them new")
    commonest = max(shared, key=lambda name: shared[name])
    hours = sum(count * tokens[name] for name, count in shared.items()) / tokens[commonest] * seconds / 3600
    together = f"{counted(len(seen), 'replicate')} of {counted(len(shared), 'condition')}"
    say(f"together: {together}; {significant(hours, 2)} hours of one device at {seconds:g} s for")
    say(f"  each of the {shared[commonest]:,} replicates of the commonest condition, the others by the tokens they train on")


def _tokens(condition: Condition) -> int:
    """Tokens that a replicate trains on."""
    return condition.train.steps * condition.train.batch * condition.task.tokens
