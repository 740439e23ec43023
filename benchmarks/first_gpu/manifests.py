"""Resolved manifests of two studies for a GPU, made on a machine without one: nothing is measured."""

from collections.abc import Iterator
from pathlib import Path

import harness.planning.manifest as manifests
from harness.machine.device import planned_numerics
from harness.machine.provenance import code_state, versions
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study

# the whole way in a minute, then the baseline in bf16 as far as ten minutes go; name: study, size of pack, overrides
_STUDIES: dict[str, tuple[str, int, list[str]]] = {
    "path": ("flipflop/quick", 4, []),
    "baseline": ("flipflop/baseline", 8, ["scale=bf16", "evaluate.sets.sparse_online.every=1000"]),
}
_WHOLE = {"path": ["device=cuda"], "baseline": ["device=cuda", "replicates=24"]}
_TINY = {
    "path": ["conditions.transformer.train.steps=20", "conditions.lstm.train.steps=20"],
    "baseline": [
        "train.steps=20",
        "model.layers=1",
        "model.width=16",
        "model.heads=2",
    ],
}
_TINY_SETS = [f"evaluate.sets.{name}.sequences=20" for name in ("in_distribution", "sparse", "dense", "sparse_online")]


def write(folder: Path, tiny: bool) -> Iterator[Path]:
    """Write one manifest a study into `folder`. tiny: of a second on a CPU."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (study_name, size, overrides) in _STUDIES.items():
        study = load(find_study(*study_name.split("/")), [*overrides, *(_rehearsal(name) if tiny else _WHOLE[name])])
        numerics = planned_numerics("cpu" if tiny else "cuda", study.compile)
        made = manifests.build(plan(study, None, size, numerics=numerics), numerics, versions(), *code_state())
        path = folder / f"{name}.json"
        path.write_bytes(manifests.to_bytes(made))
        yield path


def _rehearsal(name: str) -> list[str]:
    """Overrides that make a study one of a second on a CPU."""
    return [*_TINY[name], *_TINY_SETS, "task.length=16", "replicates=2", "device=cpu"]
