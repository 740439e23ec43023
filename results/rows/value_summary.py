"""The numbers of experiments: one line for each condition and metric, and one for each replicate."""

import math
from collections.abc import Sequence

import pyarrow as pa

from results.grouping import grouped
from results.plain_values import Row
from results.rows.measures import Measure
from results.rows.summary import ENDINGS, QUANTILES, Replicate, errors_of
from results.statistics.intervals import Interval, clopper_pearson, quantile, quantile_bounds, quantile_interval
from results.statistics.real_values import interquartile_mean, interquartile_mean_interval, share_below_largest

VALUES = pa.schema(
    [
        ("condition", pa.string()),
        ("metric", pa.string()),
        ("better", pa.string()),  # lower | higher
        ("kind", pa.string()),  # number | flag
        ("planned", pa.int64()),
        *((name, pa.int64()) for name in ENDINGS),
        ("values", pa.int64()),  # replicates with a value or diverged
        *((name, pa.float64()) for name in QUANTILES),  # of the values; a diverged replicate is the worst infinity
        ("median_low", pa.float64()),  # 95 % over replicates, distribution-free
        ("median_high", pa.float64()),
        ("median_if_missing_best", pa.float64()),
        ("median_if_missing_worst", pa.float64()),
        ("iqm", pa.float64()),  # interquartile mean
        ("iqm_low", pa.float64()),  # 95 %, bootstrap
        ("iqm_high", pa.float64()),
        ("worst_covers", pa.float64()),  # the share of all seeds that is no worse than the worst one here, at least, with 95 %
        ("true", pa.int64()),  # of a flag
        ("true_share", pa.float64()),
        ("true_low", pa.float64()),  # Clopper–Pearson, 95 %; a diverged replicate is not true
        ("true_high", pa.float64()),
    ]
)


def summarise_values(replicates: Sequence[Replicate], measures: Sequence[Measure]) -> pa.Table:
    """One row per condition and metric (schema `VALUES`), in the study's order."""
    groups = grouped((replicate.condition, replicate) for replicate in replicates)
    rows = [
        {"condition": name, "metric": measure.label, "better": measure.better, "kind": measure.kind, **_line(members, measure)}
        for name, members in groups.items()
        for measure in measures
    ]
    return pa.Table.from_pylist(rows, schema=VALUES)


def returned(summary: pa.Table) -> list[Row]:
    """The rows of `summarise_values` without those of metrics that a condition does not have: no replicate of it returned a value, though
    some returned values of other metrics."""
    rows = summary.to_pylist()
    ended = {row["condition"] for row in rows if row["values"]}
    return [row for row in rows if row["values"] or row["condition"] not in ended]


def column_of(measure: Measure) -> str:
    """The metric's column in the table of replicates: its name, or `metric.key` where another column has that name."""
    return (
        f"metric.{measure.label}" if measure.label in ("condition", "seed", "status", "diverged_at", "key") else measure.label
    )


def value_rows(replicates: Sequence[Replicate], measures: Sequence[Measure]) -> pa.Table:
    """One row per replicate: condition, seed, status, and its last value of every metric."""
    fields = [("condition", pa.string()), ("seed", pa.int64()), ("status", pa.string()), ("diverged_at", pa.int64())]
    fields += [(column_of(measure), pa.float64()) for measure in measures]
    rows = []
    for replicate in replicates:
        row: Row = {"condition": replicate.condition, "seed": replicate.init_seed, "status": replicate.status}
        row |= {"diverged_at": replicate.diverged_at, "key": replicate.key}
        for measure in measures:
            if measure.label in replicate.scores and math.isfinite(replicate.scores[measure.label].rate):
                row[column_of(measure)] = value(replicate.scores[measure.label].rate, measure)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, ("key", pa.string())]))


def value(cost: float, measure: Measure) -> float:
    """Turn a cost back into the value."""
    return measure.sign * cost + 0.0


def ends(interval: Interval, measure: Measure) -> tuple[float, float]:
    """Turn an interval of costs back into one of values."""
    low, high = sorted(value(end, measure) for end in (interval.low, interval.high))
    return low, high


def _line(members: Sequence[Replicate], measure: Measure) -> Row:
    endings = [replicate.ending(measure.label) for replicate in members]
    numbers = errors_of(members, measure.label)
    line: Row = {"planned": len(members), **{name: endings.count(name) for name in ENDINGS}, "values": numbers.size}
    line["worst_covers"] = share_below_largest(numbers.size)
    if not numbers.size:
        return line
    higher = measure.better == "higher"
    line |= {name: value(quantile(numbers, 1 - q if higher else q), measure) for name, q in QUANTILES.items()}
    unknown = len(members) - numbers.size
    median = quantile_interval(numbers, 0.5, least=-math.inf)
    bounds = quantile_bounds(numbers, unknown, 0.5, least=-math.inf)
    line["median_low"], line["median_high"] = ends(median, measure)
    line |= {"median_if_missing_best": value(bounds.low, measure), "median_if_missing_worst": value(bounds.high, measure)}
    line["iqm"] = value(interquartile_mean(numbers), measure)
    line["iqm_low"], line["iqm_high"] = ends(interquartile_mean_interval(numbers), measure)
    if measure.kind == "flag":
        true = int((numbers == value(1.0, measure)).sum())
        share = clopper_pearson(true, numbers.size)
        line |= {"true": true, "true_share": true / numbers.size, "true_low": share.low, "true_high": share.high}
    return line
