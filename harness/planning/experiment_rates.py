"""How long experiments take, which nobody knows of a person's own function until some of its replicates have run.

So the first replicates run alone, as real ones, and their rows say how long the others will take; a later command reads it from the store.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from harness.planning.plan import Plan, PlannedPack, pack_id, signature
from harness.planning.throughput import Rate
from harness.study.config import Condition, Metric, Study
from harness.study.experiment import Experiment
from harness.study.identity import canonical
from results.plain_values import Options
from results.store.tables import Store, read

PACK_S = 10.0  # seconds that a pack should take: losing it costs little, and so do its files
_MOST = 512  # replicates of a pack
_PACKED_TRIAL = 8  # seeds of the first pack of a function that takes many at once


def rates(
    study: Study,
    first: Plan,
    committed: pa.Table,
    guesses: Mapping[str, float],
    slots: int,
) -> dict[str, Rate]:
    """A rate for every signature with missing replicates whose seconds are known: from its own committed rows, else from those of the same
    function or command with other settings, else from `guesses`, seconds by function or command."""
    own, alike = _seconds(committed)
    counts = Counter(signature(study.conditions[replicate.condition]) for replicate in first.replicates)
    measured = {}
    for name, condition in _missing(study, first).items():
        words = _words(condition)
        seconds = own.get(name, alike.get(words, guesses.get(words)))
        if seconds is not None:
            size = study.pack_size or _size(seconds)
            size = min(size, -(-counts[name] // slots))
            measured[name] = Rate(size, seconds * size, 0.0)
    return measured


def first_packs(study: Study, first: Plan, rates: Mapping[str, Rate], numerics: Options) -> list[PlannedPack]:
    """A pack for each function or command whose seconds are not known: its first missing replicate, or the first few at once."""
    chosen: dict[str, PlannedPack] = {}
    for pack in first.packs:
        condition = study.conditions[first.replicates[pack.replicates[0]].condition]
        words = _words(condition)
        if pack.signature in rates or words in chosen:
            continue
        members = pack.replicates[:1]
        if condition.experiment is not None and condition.experiment.packed:
            same = [index for other in first.packs if other.signature == pack.signature for index in other.replicates]
            members = tuple(same[:_PACKED_TRIAL])
        keys = [first.replicates[index].key for index in members]
        chosen[words] = replace(pack, id=pack_id(keys, 0, numerics, 0), replicates=members)
    return list(chosen.values())


def kinds_of(store: Store, planned: Plan) -> pa.Table:
    """(metric, kind) of the rows of planned replicates; those of older code may have had others."""
    keys = pa.array([replicate.key for replicate in planned.replicates], pa.string())
    return read(store, "evaluations", ["metric", "kind"], pc.field("key").isin(keys))


def metrics_of(study: Study, evaluations: pa.Table) -> dict[str, Metric]:
    """The study's metrics with those that committed rows have, each with its kind: the declared ones first, then by name."""
    rows = evaluations.filter(pc.field("kind").is_valid()).group_by(["metric", "kind"]).aggregate([]).to_pylist()
    kinds = {row["metric"]: row["kind"] for row in sorted(rows, key=lambda row: (row["metric"], row["kind"]))}
    names = [*study.metrics, *(name for name in kinds if name not in study.metrics)]
    return {name: replace(study.metrics.get(name, Metric()), kind=kinds.get(name, "")) for name in names}


def _size(seconds: float) -> int:
    """Replicates of a pack: a power of two, so that the next command, whose mean is a little different, mostly makes the same packs."""
    return int(max(1, min(_MOST, 2 ** math.floor(math.log2(PACK_S / max(seconds, 1e-3))))))


def _missing(study: Study, first: Plan) -> dict[str, Condition]:
    """{signature: its first condition}, of those with missing replicates."""
    conditions: dict[str, Condition] = {}
    for pack in first.packs:
        conditions.setdefault(pack.signature, study.conditions[first.replicates[pack.replicates[0]].condition])
    return conditions


def _words(condition: Condition) -> str:
    return "" if condition.experiment is None else condition.experiment.words


def _seconds(committed: pa.Table) -> tuple[dict[str, float], dict[str, float]]:
    """Mean seconds of a replicate by signature, and by function or command, from rows of `replicates`."""
    own, sums = dict[str, float](), dict[str, tuple[float, int]]()
    by = committed.select(["config", "train_s"]).group_by("config").aggregate([("train_s", "sum"), ("train_s", "count")])
    for row in by.to_pylist():
        config = json.loads(row["config"])
        if "experiment" in config:
            own[canonical(config)] = row["train_s_sum"] / row["train_s_count"]
            words = _words_of(config["experiment"])
            total, count = sums.get(words, (0.0, 0))
            sums[words] = (total + row["train_s_sum"], count + row["train_s_count"])
    return own, {words: total / count for words, (total, count) in sums.items()}


def _words_of(config: Options) -> str:
    return Experiment(name=config.get("name", ""), command=tuple(config.get("command", ()))).words


def unseen_metrics(study: Study, evaluations: pa.Table) -> list[str]:
    """A sentence for each metric that `evaluate.metrics` names and no row has; the built-in experiments' own are none of them."""
    known = metrics_of(study, evaluations)
    built_in = [condition.experiment.built_in for condition in study.conditions if condition.experiment is not None]
    theirs = {name for kind in built_in if kind is not None for name in kind.metrics}
    seen = ", ".join(name for name, metric in known.items() if metric.kind)
    unseen = [name for name, metric in known.items() if not metric.kind and name not in theirs]
    return [f"evaluate.metrics names {name}, and no result has it; the results have {seen}" for name in unseen] if seen else []
