"""From rows to numbers: one line per replicate, and one line per condition and evaluation set.

Both are made of the newest manifest (what was planned) and the committed rows (what is known), so that what is missing is
counted beside every number. Errors are those of the metric that a condition's task reports, at a
replicate's last step, with the raw weights.
"""

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from results.errors import DamagedFile
from results.grouping import grouped
from results.plain_values import Row
from results.rows.measures import is_experimental, last_values, measures_of
from results.statistics.intervals import (
    Floats,
    Interval,
    clopper_pearson,
    clopper_pearsons,
    clustered_rates,
    quantile,
    quantile_bounds,
    quantile_interval,
    zero_error_bound,
)
from results.store.manifest import ConditionFields, Manifest, Planned, reported, stage_of
from results.store.manifest import label as stage_label
from results.store.schema import STATUSES
from results.store.tables import Store, read

QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1.0}
_FORMULA = r"^([=+\-@\t\r\n])"  # what a spreadsheet takes for the beginning of a formula
ENDINGS = ("finished", "diverged", "no_transition", "failed", "missing")
_ENDED = ["key", "stage", "status", "loss", "diverged_at"]  # columns of `replicates` that say how one ended
Held = TypeVar("Held")

SUMMARY = pa.schema(
    [
        ("condition", pa.string()),
        ("stage", pa.int32()),
        ("set", pa.string()),
        ("planned", pa.int64()),
        *((name, pa.int64()) for name in ENDINGS),
        ("sequences", pa.int64()),
        ("reads", pa.int64()),  # per replicate: every replicate is scored on the same strings
        *((f"error_{name}", pa.float64()) for name in QUANTILES),  # rates; infinity is a diverged replicate
        ("median_low", pa.float64()),  # 95 % over replicates, distribution-free
        ("median_high", pa.float64()),
        ("median_if_missing_zero", pa.float64()),
        ("median_if_missing_diverge", pa.float64()),
        ("zero_error", pa.int64()),
        ("zero_error_of", pa.int64()),  # finished + diverged
        ("zero_error_low", pa.float64()),  # Clopper–Pearson, 95 %
        ("zero_error_high", pa.float64()),
        ("zero_error_least", pa.int64()),  # of planned, if no missing replicate turned out to be without error
        ("zero_error_most", pa.int64()),  # of planned, if all of them did
        ("zero_rate_bound", pa.float64()),  # what 0 errors in `reads` excludes at 95 % (one-sided), were reads independent
        ("zero_rate_bound_by_sequence", pa.float64()),  # the same with whole sequences as the trials
        ("jointly_zero", pa.int64()),  # without error on every reported set
        ("jointly_zero_of", pa.int64()),
        ("jointly_zero_low", pa.float64()),
        ("jointly_zero_high", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Score:
    """A replicate's last-step numbers on one evaluation set. `low` and `high` are 95 %, clustered by sequence.

    sequences_wrong: sequences with an error, and `wrong` the exact interval of their share; None where the rows do not say.
    """

    errors: int
    reads: int
    sequences: int
    rate: float
    low: float
    high: float
    sequences_wrong: int | None = None
    wrong: Interval | None = None


@dataclass(frozen=True)
class Replicate:
    """One planned (replicate, stage) with its results so far. `scores` leaves out the sets without a number."""

    condition: str
    stage: int
    key: str
    init_seed: int
    data_seed: int
    status: str  # one of ENDINGS
    loss: float | None
    diverged_at: int | None
    scores: dict[str, Score]

    @property
    def seeds(self) -> tuple[int, int]:
        return self.init_seed, self.data_seed

    @property
    def label(self) -> str:
        """The name of its condition and, after the first stage, of its stage."""
        return stage_label(self.condition, self.stage)

    def ending(self, name: str) -> str:
        """Its ending with respect to one set: a finished replicate that was not scored on the set is missing there."""
        return "missing" if self.status == "finished" and name not in self.scores else self.status

    def error(self, name: str) -> float | None:
        """Error rate on a set; infinity once diverged; None where there is no number."""
        if self.status == "diverged":
            return math.inf
        return self.scores[name].rate if name in self.scores else None

    def jointly_zero(self, names: Iterable[str]) -> bool | None:
        """Whether it has no error on any of the sets; None until all of them are known, since partial answers would favour errors."""
        errors = [self.error(name) for name in names]
        return None if None in errors or not errors else not any(errors)


def errors_of(replicates: Iterable[Replicate], name: str) -> Floats:
    """Error rates on a set, or costs of a metric, of the replicates that have a number; infinity for those that diverged."""
    return np.array([error for replicate in replicates if (error := replicate.error(name)) is not None], dtype=np.float64)


def of_replicates(replicates: Iterable[Replicate], by_key: Mapping[str, Held]) -> list[Held]:
    """The entries of these replicates, in their order; a replicate without an entry is left out."""
    return [by_key[replicate.key] for replicate in replicates if replicate.key in by_key]


def set_names(manifest: Manifest) -> list[str]:
    """Every evaluation set of the study, in its order."""
    return list(manifest["sets"])


def reported_sets(manifest: Manifest) -> list[str]:
    """The sets scored at the end only; where every set is also scored on the way, all of them."""
    online = online_sets(manifest)
    return [name for name in manifest["sets"] if name not in online] or set_names(manifest)


def online_sets(manifest: Planned) -> list[str]:
    """The sets that are scored during training."""
    return [name for name, value in manifest["sets"].items() if value.get("every") is not None]


def replicates_of(manifest: Planned, replicates: pa.Table, evaluations: pa.Table, failures: pa.Table) -> list[Replicate]:
    """Every planned replicate, in the plan's order; rows of other replicates in the tables are left out.

    A set counts only with the `set_hash` that the manifest has for the replicate's condition. Of experiments the scores are costs
    (`results.rows.measures`), by the label of their metric.
    """
    ended = {(row["key"], row["stage"]): row for row in replicates.select(_ENDED).to_pylist()}
    failed = {(key, row["stage"]) for row in failures.select(["keys", "stage"]).to_pylist() for key in row["keys"]}
    scores = _scores(replicates, evaluations, reported(manifest))
    conditions = [(condition, stage_of(condition)) for condition in manifest["conditions"]]
    planned = [
        _replicate(conditions[index][0], (key, conditions[index][1]), init_seed, data_seed, ended, failed, scores)
        for key, index, init_seed, data_seed in manifest["replicates"]
    ]
    if not is_experimental(manifest):
        return planned
    costs = last_values(measures_of(manifest, evaluations), evaluations)
    return [replace(replicate, scores=_costs(costs.get((replicate.key, replicate.stage), {}))) for replicate in planned]


def _costs(values: Mapping[str, tuple[float, int | None]]) -> dict[str, Score]:
    return {label: Score(0, count or 0, 0, cost, math.nan, math.nan) for label, (cost, count) in values.items()}


def summarise(manifest: Manifest, replicates: Sequence[Replicate]) -> pa.Table:
    """One row per condition, stage and set (schema `SUMMARY`), in the study's order."""
    groups = grouped(((replicate.condition, replicate.stage), replicate) for replicate in replicates)
    rows = []
    for (condition, stage), members in groups.items():
        joint = _jointly(members, reported_sets(manifest))
        rows += [
            {"condition": condition, "stage": stage, "set": name, **_line(members, name), **joint}
            for name in set_names(manifest)
        ]
    return pa.Table.from_pylist(rows, schema=SUMMARY)


def raw_rows(manifest: Manifest, replicates: Sequence[Replicate]) -> pa.Table:
    """One row per replicate: seeds, status, loss, and for each set `<set>.errors`, `.reads`, `.error`, `.low`, `.high`, then
    `.sequences_wrong`, `.sequences` and the exact interval of their share, `.wrong_low` and `.wrong_high`."""
    about = [
        ("condition", pa.string()),
        ("stage", pa.int32()),
        ("init_seed", pa.int64()),
        ("data_seed", pa.int64()),
        ("status", pa.string()),
        ("diverged_at", pa.int64()),
        ("loss", pa.float64()),
    ]
    columns = {name: pa.array([getattr(r, name) for r in replicates], kind) for name, kind in about}
    unscored = [math.inf if r.status == "diverged" else None for r in replicates]
    for name in set_names(manifest):
        scores = [r.scores.get(name) for r in replicates]
        for column, kind, value in _RAW:
            columns[f"{name}.{column}"] = pa.array([score and value(score) for score in scores], kind)
        errors = [score.rate if score else lost for score, lost in zip(scores, unscored, strict=True)]
        columns[f"{name}.error"] = pa.array(errors, pa.float64())
    return pa.table(columns | {"key": pa.array([r.key for r in replicates], pa.string())})


_RAW: tuple[tuple[str, pa.DataType, Callable[[Score], float | None]], ...] = (
    ("errors", pa.int64(), lambda score: score.errors),
    ("reads", pa.int64(), lambda score: score.reads),
    ("error", pa.float64(), lambda score: score.rate),
    ("low", pa.float64(), lambda score: score.low),
    ("high", pa.float64(), lambda score: score.high),
    ("sequences_wrong", pa.int64(), lambda score: score.sequences_wrong),
    ("sequences", pa.int64(), lambda score: score.sequences),
    ("wrong_low", pa.float64(), lambda score: score.wrong.low if score.wrong else None),
    ("wrong_high", pa.float64(), lambda score: score.wrong.high if score.wrong else None),
)


def to_csv(table: pa.Table) -> bytes:
    """Comma-separated with a header; infinity is `inf`, an absent value is empty.

    Spreadsheets execute text that begins like a formula, so it gets an apostrophe in front; Parquet keeps it as it is.
    """
    texts = [index for index, field in enumerate(table.schema) if pa.types.is_string(field.type)]
    for index in texts:
        safe = pc.replace_substring_regex(table.column(index), _FORMULA, r"'\1")
        table = table.set_column(index, table.schema.field(index), safe)
    table = table.rename_columns([re.sub(_FORMULA, r"'\1", name) for name in table.column_names])
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(quoting_style="needed"))
    return sink.getvalue()


def copy_of(store: Store, table: str, winning: pa.Table) -> bytes:
    """A Parquet file with the rows of a table that count."""
    return to_parquet(read(store, table, winning=winning))


def to_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def _replicate(
    condition: ConditionFields,
    row: tuple[str, int],
    init_seed: int,
    data_seed: int,
    ended: dict[tuple[str, int], Row],
    failed: set[tuple[str, int]],
    scores: dict[tuple[str, int], dict[tuple[str, str], Score]],
) -> Replicate:
    ending = ended.get(row)
    hashes = {name: value["hash"] for name, value in condition["sets"].items()}
    own = {name: score for (name, set_hash), score in scores.get(row, {}).items() if hashes.get(name) == set_hash}
    status = ending["status"] if ending else "failed" if row in failed else "missing"
    if status not in ENDINGS:
        raise DamagedFile(
            f"a row of replicates/ has the status {status[:60]!r} for {row[0][:60]}, and there are {', '.join(STATUSES)}: "
            "move its pack out of the store, or read it with the version that wrote it"
        )
    loss = None if ending is None or math.isnan(ending["loss"]) else ending["loss"]
    diverged_at = ending["diverged_at"] if ending else None
    return Replicate(condition["name"], row[1], row[0], init_seed, data_seed, status, loss, diverged_at, own)


def at_last_step(rows: pa.Table, replicates: pa.Table) -> pa.Table:
    """The rows of a table at the last steps of these committed replicates."""
    by = ["key", "stage", "pack", "step"]
    last = replicates.select(["key", "stage", "pack", "steps"]).rename_columns(by)
    return rows.join(last, keys=by, join_type="left semi")


def _scores(
    replicates: pa.Table, evaluations: pa.Table, counts: pc.Expression
) -> dict[tuple[str, int], dict[tuple[str, str], Score]]:
    """Scores at the last step by (key, stage), then by (set, set_hash), of the rows that count. Lengths of one set are pooled."""
    ends = pc.field("step").isin(replicates["steps"].unique())  # first: of the other rows no string is compared
    chosen = evaluations.filter(ends).filter(counts & (pc.field("weights") == "raw") & pc.field("errors").is_valid())
    chosen = at_last_step(chosen, replicates)
    by = ["key", "stage", "set", "set_hash"]
    sums = ["errors", "count", "sequences", "errors_sq", "errors_x_count", "count_sq"]
    whole = pc.ScalarAggregateOptions(skip_nulls=False)  # a sum with a null is unknown
    added = [*((name, "sum") for name in sums), ("sequences_wrong", "sum", whole)]
    pooled = chosen.group_by(by, use_threads=False).aggregate(added)
    # without the sums of squares (null) the interval is unknown: null becomes NaN
    columns = [pooled[f"{name}_sum"].cast(pa.float64()).to_numpy() for name in sums]
    rates = clustered_rates(*columns)
    low, high = clopper_pearsons(
        *(pooled[f"{name}_sum"].cast(pa.float64()).to_numpy() for name in ("sequences_wrong", "sequences"))
    )
    scores: dict[tuple[str, int], dict[tuple[str, str], Score]] = {}
    for i, row in enumerate(pooled.to_pylist()):
        if row["count_sum"]:
            score = Score(
                row["errors_sum"],
                row["count_sum"],
                row["sequences_sum"],
                float(rates.value[i]),
                float(rates.low[i]),
                float(rates.high[i]),
                row["sequences_wrong_sum"],
                None if math.isnan(low[i]) else Interval(float(low[i]), float(high[i])),
            )
            scores.setdefault((row["key"], row["stage"]), {})[row["set"], row["set_hash"]] = score
    return scores


def _line(members: list[Replicate], name: str) -> Row:
    endings = [replicate.ending(name) for replicate in members]
    counts = {ending: endings.count(ending) for ending in ENDINGS}
    errors = errors_of(members, name)
    scores = [replicate.scores[name] for replicate in members if name in replicate.scores]
    line: Row = {"planned": len(members), **counts}
    if scores:
        reads, sequences = min(score.reads for score in scores), min(score.sequences for score in scores)
        line |= {"reads": reads, "sequences": sequences}
        line |= {"zero_rate_bound": zero_error_bound(reads), "zero_rate_bound_by_sequence": zero_error_bound(sequences)}
    unknown = len(members) - errors.size - counts["no_transition"]
    if errors.size:
        median, bounds = quantile_interval(errors, 0.5), quantile_bounds(errors, unknown, 0.5)
        line |= {f"error_{label}": quantile(errors, q) for label, q in QUANTILES.items()}
        line |= {"median_low": median.low, "median_high": median.high}
        line |= {"median_if_missing_zero": bounds.low, "median_if_missing_diverge": bounds.high}
    zero = int((errors == 0).sum())
    interval = clopper_pearson(zero, errors.size)
    line |= {"zero_error": zero, "zero_error_of": errors.size, "zero_error_low": interval.low, "zero_error_high": interval.high}
    return line | {"zero_error_least": zero, "zero_error_most": zero + unknown}


def _jointly(members: list[Replicate], names: list[str]) -> Row:
    answers = [answer for replicate in members if (answer := replicate.jointly_zero(names)) is not None]
    interval = clopper_pearson(sum(answers), len(answers))
    return {
        "jointly_zero": sum(answers),
        "jointly_zero_of": len(answers),
        "jointly_zero_low": interval.low,
        "jointly_zero_high": interval.high,
    }
