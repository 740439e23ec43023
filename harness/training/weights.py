"""Weights that a study keeps: one safetensors file a replicate and step, <store>/artifacts/<key>/<stage>/<step>.safetensors.

Tensors are named as in the model, without the replicate axis; the metadata holds the configuration and seeds as JSON, the pack that
trained them, and a digest of the file (`results.store.seal`), which every reader checks.
"""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from harness.planning.pack import Pack, Replicate
from harness.study.identity import canonical
from results.errors import DamagedFile, store_errors
from results.store.filesystem import content as read_file
from results.store.filesystem import folders, info_of, names
from results.store.manifest import as_planned, manifest_of, newest_manifest, reported
from results.store.seal import BLANK, seal, state
from results.store.tables import Store, committed, read, write_file


def path(store: Store, key: str, stage: int, step: int) -> str:
    """Inside the store's filesystem; artifacts are shared by the studies of a store."""
    return store.shared("artifacts", key, str(stage), f"{step}.safetensors")


def steps_of(store: Store, key: str, stage: int) -> list[int]:
    """Steps of a stage whose weights are there, ascending."""
    folder = store.shared("artifacts", key, str(stage))
    matches = (re.fullmatch(r"([0-9]{1,18})\.safetensors", name) for name in names(store.filesystem, folder))
    return sorted(int(match[1]) for match in matches if match)


def stages_of(store: Store, key: str) -> list[int]:
    """Stages of a replicate whose weights of some step are there, ascending."""
    folders = names(store.filesystem, store.shared("artifacts", key))
    stages = sorted(int(name) for name in folders if re.fullmatch(r"[0-9]{1,18}", name))
    return [stage for stage in stages if steps_of(store, key, stage)]


def without(store: Store, keys: Collection[str]) -> list[str]:
    """The replicates among these that have no kept weights, sorted."""
    return sorted(set(keys) - set(folders(store.filesystem, store.shared("artifacts"))))


def write(store: Store, pack: Pack, model: nn.Module, step: int) -> None:
    """Keep the weights of every replicate of a pack, before its rows are committed."""
    for slot, replicate in enumerate(pack.replicates):
        write_file(store, path(store, replicate.key, pack.stage, step), content(pack, model, slot))


def data(store: Store, key: str, stage: int, step: int) -> bytes:
    """The file of the weights of a replicate. ValueError naming it where it is not there or is another replicate's."""
    where = path(store, key, stage, step)
    if not info_of(store.filesystem, where).is_file:
        raise DamagedFile(f"{where}, the weights that stage {stage + 1} begins from, is not in the store")
    content = undamaged(store, where)
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        own = header["__metadata__"]["key"]
        load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFile(
            f"{where} holds no whole weights ({type(error).__name__}): move it away and run the study again"
        ) from error
    if own != key:
        raise DamagedFile(f"{where} holds the weights of another replicate than {key}: move it away")
    return content


def undamaged(store: Store, where: str) -> bytes:
    """A file of weights. DamagedFile where its bytes are not those that were written; of one without a digest nothing is known."""
    content = read_file(store.filesystem, where)
    if state(content) == "damaged":
        raise DamagedFile(
            f"{where} is damaged: delete it, and manyseeds rerun {store.shell_word} {where.split('/')[-3][:12]} --keep weights "
            "makes it again"
        )
    return content


def content(pack: Pack, model: nn.Module, slot: int) -> bytes:
    """The file of the weights of the replicate in `slot`."""
    tensors = {name: parameter[slot].detach().cpu().contiguous() for name, parameter in model.named_parameters()}
    return seal(save(tensors, origin(pack, pack.replicates[slot])))


def origin(pack: Pack, replicate: Replicate) -> dict[str, str]:
    """Metadata of a file of the replicate's: whose it is, with a blank for the digest that `seal` fills in."""
    return {
        "key": replicate.key,
        "config": canonical(replicate.condition.config()),
        "seeds": json.dumps({"init": replicate.init_seed, "data": replicate.data_seed}),
        "pack": pack.id,
        "digest": BLANK,
    }


def needed_elsewhere(store: Store, others: Iterable[str]) -> set[str]:
    """Keys that other studies of the store plan or begin from. Weights are shared by all studies. DamagedFile for a bad manifest."""
    keys: set[str] = set()
    for name in others:
        other = replace(store, study=name)
        if newest := newest_manifest(other):
            keys.update(row[0] for row in newest[1]["replicates"])
        keys.update(key for row in committed(other).select(["key", "parent_key"]).to_pylist() for key in row.values() if key)
    return keys


def keep_worst(store: Store, count: int, planned: Collection[str], needed: Collection[str | None] = ()) -> int:
    """Remove the weights of all but the `count` worst replicates of every condition; returns how many were removed.

    planned: keys of this study that are looked at. needed: keys that later stages or other studies begin from, which stay. Worst: diverged,
    else the largest error rate on any set scored at the end.
    """
    rows = as_planned(store, committed(store)).select(["key", "stage", "condition", "status", "steps"]).to_pylist()
    rows = [row for row in rows if row["key"] in planned]
    scores = read(store, "evaluations", ["key", "stage", "step", "errors", "count"], reported(manifest_of(store))).to_pylist()
    worst: dict[tuple[str, int], float] = {}
    last = {(row["key"], row["stage"]): row["steps"] for row in rows}
    for score in scores:
        name = (score["key"], score["stage"])
        if score["count"] and score["step"] == last.get(name):
            worst[name] = max(worst.get(name, 0.0), score["errors"] / score["count"])
    by_condition: dict[tuple[str, int], list[tuple[float, str, int, int]]] = {}
    for row in rows:
        error = float("inf") if row["status"] == "diverged" else worst.get((row["key"], row["stage"]), 0.0)
        by_condition.setdefault((row["condition"], row["stage"]), []).append((error, row["key"], row["stage"], row["steps"]))
    removed = 0
    for members in by_condition.values():
        members.sort(key=lambda member: (-member[0], member[1]))
        for _, key, stage, step in members[count:]:
            if key not in needed and info_of(store.filesystem, path(store, key, stage, step)).is_file:
                # all steps: readers take the last file that is there for the end of the training
                for earlier in steps_of(store, key, stage):
                    with store_errors(where := path(store, key, stage, earlier)):
                        store.filesystem.delete_file(where)
                removed += 1
    return removed
