"""Resolved manifests of two studies for a GPU, made on a machine without one: nothing is measured."""

from collections.abc import Iterator
from pathlib import Path

import harness.planning.manifest as manifests
from harness.machine.device import planned_numerics
from harness.machine.provenance import code_state, versions
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study

# the whole way in a minute, then two conditions of the verdicts at the paper's size, the transformer in bf16; name: study, size of pack,
# overrides. Looks at the training every 500 steps, since those of every 100 take a third of the time
_LOOKS = [f"evaluate.sets.{name}.every=500" for name in ("sparse_online", "trained_online")]
_STUDIES: dict[str, tuple[str, int, list[str]]] = {
    "path": ("flipflop/quick", 4, []),
    "lstm": ("flipflop/verdicts", 100, ["only=[lstm]", "keep=none", *_LOOKS]),
    "baseline": ("flipflop/verdicts", 6, ["only=[baseline]", "keep=none", "train.precision=bf16", *_LOOKS]),
}
_WHOLE = {"path": [], "lstm": [], "baseline": ["replicates=18", "pack.compile=true"]}
_TINY = {
    "path": ["replicates=2", "conditions.transformer.train.steps=20", "conditions.lstm.train.steps=20"],
    "lstm": ["conditions.lstm.train.steps=2", "conditions.lstm.model.width=16", "conditions.lstm.replicates=2"],
    "baseline": ["replicates=2", "train.steps=20", "model.layers=1", "model.width=16", "model.heads=2"],
}
_TINY_SETS = ("in_distribution", "sparse", "dense", "sparse_online")
_TINY_MORE = ("trained_online", "ignore_90")


def write(folder: Path, tiny: bool) -> Iterator[Path]:
    """Write one manifest per study into `folder`. tiny: make each study one of a second on a CPU."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (study_name, size, overrides) in _STUDIES.items():
        study = load(
            find_study(*study_name.split("/")), [*overrides, *(_rehearsal(name) if tiny else ["device=cuda", *_WHOLE[name]])]
        )
        numerics = planned_numerics("cpu" if tiny else "cuda", study.compile)
        made = manifests.build(plan(study, None, size, numerics=numerics), numerics, versions(), *code_state())
        path = folder / f"{name}.json"
        path.write_bytes(manifests.to_bytes(made))
        yield path


def _rehearsal(name: str) -> list[str]:
    """Overrides that make a study one of a second on a CPU."""
    sets = _TINY_SETS if name == "path" else (*_TINY_SETS, *_TINY_MORE)
    few = [f"evaluate.sets.{each}.sequences=20" for each in sets]
    return [*_TINY[name], *few, "task.length=16", "device=cpu"]
