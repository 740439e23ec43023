"""What the studies that come with manyseeds cost, for `manyseeds studies`: launch/studies/costs.json.

After a change of a study file:

    python -m launch.study_costs

Studies that have an entry for their present file keep it; the others are priced again. Nothing is measured. A condition that was run for
docs/studies takes as long as its committed rows say, if it was scored on the same sets; else they say what its training takes. What no
row says is modelled: 6 operations per parameter and training token, and 2 per evaluated token, at the rate that the committed rows show for
one core. That is rough, and far too little for very narrow models: `manyseeds plan` measures.
"""

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from launch.families import STUDIES, named_studies
from results.errors import StudyError

if TYPE_CHECKING:  # they take torch
    from harness.study.config import Condition, Study

COSTS = STUDIES / "costs.json"
_COMMITTED = STUDIES.parents[1] / "docs" / "studies"
# as the 1,100 transformers and LSTMs of docs/studies trained, on cores that other work shared
_RATE = 50e9  # operations a second
_STEP_S = 5e-4  # seconds of a step, however small
_LOOP_STEP_S = 1e-5  # seconds of a step of the compiled loop


class Cost(TypedDict):
    """What one scale of a study costs. seconds: on one core, None where nothing says it."""

    replicates: int
    seconds: float | None


class Taken(NamedTuple):
    """Medians of committed replicates, in seconds of one core; sets: hashes of the evaluation sets that they were scored on."""

    train_s: float
    evaluate_s: float
    sets: frozenset[str]


class Entry(TypedDict):
    """digest: of the study file. scales: by name, `paper` first; none where the file can't be loaded here, as it needs a corpus."""

    digest: str
    question: str
    scales: dict[str, Cost]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def entries(paths: Mapping[str, Path]) -> dict[str, Entry]:
    """{family/name: entry} of costs.json, of those files alone that have not changed since."""
    stored = json.loads(COSTS.read_bytes())
    return {name: stored[name] for name, path in paths.items() if name in stored and stored[name]["digest"] == digest(path)}


def table(paths: Mapping[str, Path]) -> list[str]:
    """One line per study: its name, replicates, about how long it takes on the cores of this machine and at scale=laptop, its question."""
    from results.cores import cores

    stored, here = entries(paths), cores()
    rows: list[tuple[str, ...]] = [("study", "replicates", "about", "laptop", "question")]
    for name, path in paths.items():
        entry = stored.get(name)
        scales = entry["scales"] if entry else {}
        replicates = f"{scales['paper']['replicates']:,}" if "paper" in scales else "?"
        times = (_time(scales, scale, here) for scale in ("paper", "laptop"))
        rows.append((name, replicates, *times, entry["question"] if entry else _question(path)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3)), row[4]]) for row in rows]
    plural = "s" if here > 1 else ""
    return [
        *lines,
        f"Times are rough estimates for the {here} core{plural} of this machine; manyseeds plan STUDY measures here.",
    ]


def _question(path: Path) -> str:
    from harness.study.tree import read_file

    return str(read_file(path)["question"])


def _time(scales: Mapping[str, Cost], scale: str, here: int) -> str:
    from harness.planning.amounts import duration

    if scale not in scales:
        return "–" if scale == "laptop" else "?"
    seconds = scales[scale]["seconds"]
    return "?" if seconds is None else duration(seconds / here)


def price(path: Path, committed: Mapping[str, list[Taken]]) -> Entry:
    """The entry of a study file. committed: what replicates took, by the canonical JSON of their configuration."""
    from harness.study.load import load
    from harness.study.tree import read_file

    tree = read_file(path)
    scales = ["paper", *(name for name in tree.get("scales", {}) if name == "laptop")]
    entry: Entry = {"digest": digest(path), "question": tree["question"], "scales": {}}
    for scale in scales:
        try:
            study = load(path, [f"scale={scale}"])
        except StudyError as error:
            if "is no folder here" not in str(error):
                raise
            continue
        entry["scales"][scale] = _cost(study, committed)
    return entry


def _cost(study: "Study", committed: Mapping[str, list[Taken]]) -> Cost:
    from collections import Counter

    from harness.planning.plan import replicates_of
    from harness.study.identity import canonical

    counts = Counter({replicate.key: replicate.condition for replicate in replicates_of(study.conditions)}.values())
    total: float | None = 0.0
    for index, count in counts.items():
        condition = study.conditions[index]
        seconds = _seconds(study, condition, committed.get(canonical(condition.config()), []))
        total = None if total is None or seconds is None else total + count * seconds
    return {"replicates": counts.total(), "seconds": None if total is None else float(f"{total:.2g}")}


def _seconds(study: "Study", condition: "Condition", rows: list[Taken]) -> float | None:
    """Seconds of a replicate on one core; None for an experiment that was never run."""
    sets = set(study.set_hashes(condition).values())
    for row in rows:
        if sets <= row.sets:
            return row.train_s + row.evaluate_s
    if condition.experiment is not None:
        return None
    return (rows[0].train_s if rows else _training(condition)) + _evaluation(study, condition)


def _training(condition: "Condition") -> float:
    from harness.training.sgd_loop import fits

    train = condition.train
    operations = 6 * _parameters(condition) * train.batch * condition.task.tokens
    return train.steps * (_LOOP_STEP_S if fits(condition) else _STEP_S + operations / _RATE)


def _evaluation(study: "Study", condition: "Condition") -> float:
    tokens = 0
    for scored in study.sets:
        looks = 1 + (condition.train.steps - 1) // scored.every if scored.every else 1
        tokens += scored.sequences * looks * condition.task.tokens
    return 2 * _parameters(condition) * tokens / _RATE


_counted: dict[str, int] = {}


def _parameters(condition: "Condition") -> int:
    """How many parameters a replicate has. No memory is taken and nothing is drawn."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from harness.draw import Draw
    from harness.study.identity import describe

    class Undrawn(Draw):
        def words(self, shape: Sequence[int], site: int = 0) -> torch.Tensor:
            return torch.zeros((self.replicates, *shape), dtype=torch.int64)

        def normal(self, shape: Sequence[int], site: int = 0) -> torch.Tensor:
            return torch.zeros((self.replicates, *shape))

    model, task = condition.model, condition.task
    name = json.dumps([describe(model, type(model).__name__), task.vocabulary, task.tokens, task.outputs], default=str)
    if name not in _counted:
        with FakeTensorMode():
            built = model.make(Undrawn(torch.zeros(1, dtype=torch.int64), "init"), task.vocabulary, task.tokens, task.outputs)
            _counted[name] = sum(each.numel() for each in built.parameters())
    return _counted[name]


def committed_times(root: Path = _COMMITTED) -> dict[str, list[Taken]]:
    """What the replicates of docs/studies took on a CPU, by the canonical JSON of their configuration; an entry per choice of sets."""
    import pyarrow.parquet as parquet

    rows: dict[str, dict[frozenset[str], list[tuple[float, float]]]] = {}
    for path in sorted(root.glob("**/replicates/*.parquet")):
        for row in parquet.read_table(path, columns=["config", "sets", "train_s", "evaluate_s", "device"]).to_pylist():
            if not row["device"].startswith("cpu"):
                continue
            by_sets = rows.setdefault(row["config"], {})
            by_sets.setdefault(frozenset(row["sets"] or ()), []).append((row["train_s"] or 0.0, row["evaluate_s"] or 0.0))
    return {
        config: [
            Taken(statistics.median(train for train, _ in times), statistics.median(evaluate for _, evaluate in times), sets)
            for sets, times in by_sets.items()
        ]
        for config, by_sets in rows.items()
    }


def write() -> None:
    """Bring costs.json up to date."""
    paths = named_studies()
    kept = entries(paths)
    committed = committed_times() if kept.keys() != paths.keys() else {}
    priced = {name: kept.get(name) or price(path, committed) for name, path in paths.items()}
    COSTS.write_text(json.dumps(priced, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write()
