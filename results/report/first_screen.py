"""The first screen of a report: the answer in one sentence, and in one line how the study is smaller than the paper's."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from results.grouping import grouped
from results.plain_values import Options, Row
from results.report.page_template import format_rate, format_real, format_shares
from results.rows.plural import counted, distinct
from results.rows.summary import QUANTILES
from results.statistics.bootstrap import replicates_to_bound
from results.store.manifest import Manifest, label, reductions_of

MOST_NAMED = 3  # most conditions for which the answer gives a number each; of more it names the best and the worst
MOST_CHANGES = 6  # most changes in the line; the others are folded away
_CHANGE = re.compile(r"(?P<path>[^:]+): (?P<values>.+)")
_OF_SET = re.compile(r"evaluate\.sets\.(?P<set>[^.:]+)\.(?P<field>[^:]+): (?P<values>.+)")
_ARROW = re.compile(r"(?P<old>\S+) -> (?P<new>\S+?)(?=,? |,?$)")
_ALONE = re.compile(r"\S+?(,? of .+| \(.+\))?")  # one value, and the condition it belongs to
_NO_SIZE = re.compile(r"(conditions\.[^.:]+\.)?(keep|seeds|claims)[.:]")
_NUMBER = re.compile(r"\b\d{4,15}\b")
_LONGEST = 40  # a longer value is left to the details
_COUNTS = {"layers": "layer", "heads": "head", "steps": "step", "replicates": "replicate"}
_OPERATIONAL = ("store", "wandb", "executor", "device", "scale", "pack.", "keep", "leases", "slots")


@dataclass(frozen=True)
class Changes:
    """The changes of a study: a heading and the first few for one line, `every` one as it is written, `overrides` of the command line."""

    heading: str
    line: Sequence[str]
    every: Sequence[str]
    overrides: Sequence[str]


def changes(manifest: Manifest) -> Changes | None:
    """How the study differs from what it was written as; None where no change affects its numbers."""
    reductions = reductions_of(manifest)
    smaller = _ordered(reductions)
    overrides = [override for override in manifest.get("overrides") or () if not str(override).startswith(_OPERATIONAL)]
    if not smaller and not overrides:
        return None
    written = [text for reduction in _sets_together(smaller) if (text := change_in_words(reduction)) is not None]
    return Changes(
        _heading(manifest.get("source") or {}) if smaller else "Set on the command line",
        written[:MOST_CHANGES],
        reductions,
        overrides,
    )


def smaller_than(source: Options, reductions: Sequence[str]) -> str:
    """All reductions of a study in one line; those without words are counted. Empty where nothing is smaller."""
    words = [change_in_words(reduction) for reduction in _sets_together(_ordered(reductions))]
    untold = words.count(None)
    told = [text for text in words if text is not None] + ([f"{untold} more in the report"] if untold else [])
    return f"{_heading(source)}: {', '.join(told)}" if told else ""


def _heading(source: Options) -> str:
    """The heading of the changes; it names no paper for a user's own study, which repeats none."""
    return "Smaller than the paper" if source.get("paper") else "Smaller than the study as written"


def change_in_words(change: str) -> str | None:
    """A reduction in words, None where its values are too long for a line.

    >>> change_in_words("model.layers: 6 -> 2")
    '2 layers (6)'
    >>> change_in_words("evaluate.sets.sparse.sequences: 100000 -> 8000")
    '8,000 sequences in sparse (100,000)'
    >>> change_in_words("model.width: 512 -> 32 (transformer), 128 -> 64 (LSTM)")
    'width 32 (512) for transformer, 64 (128) for LSTM'
    >>> change_in_words("model.layers: 1 … 16 -> 1, 2, 4, 8")
    'layers 1, 2, 4, 8 (1 … 16)'
    """
    matched = _CHANGE.fullmatch(change)
    arrows = list(_ARROW.finditer(matched["values"])) if matched else []
    if not matched or not arrows or any(max(len(arrow["old"]), len(arrow["new"])) > _LONGEST for arrow in arrows):
        return None
    *parents, name = matched["path"].split(".")
    before, _, after = matched["values"].partition(" -> ")
    several = len(arrows) == 1 and (" " in before or not _ALONE.fullmatch(after))
    if several:
        values = _NUMBER.sub(lambda number: _grouped(number[0]), f"{after} ({before})")
    else:
        values = re.sub(r"(\)) \(([^()]+)\)", r"\1 for \2", _ARROW.sub(_new_and_old, matched["values"]))
    if len(values) > 2 * _LONGEST or "{" in values or "[" in values:
        return None
    where = f" in {parents[-1]}" if parents[:2] == ["evaluate", "sets"] else ""
    where = f" of {parents[1]}" if parents[:1] == ["conditions"] and len(parents) > 1 else where
    if not several and len(arrows) == 1 and arrows[0]["new"].isdigit() and (name in _COUNTS or name == "sequences"):
        new, _, old = values.partition(" ")
        noun = _COUNTS.get(name, "sequence") + ("" if new == "1" else "s")
        return f"{new} {noun}{where} {old}"
    return f"looks every {values} steps{where}" if name == "every" else f"{name.replace('_', ' ')} {values}{where}"


def _sets_together(reductions: Iterable[str]) -> list[str]:
    """The same change of several evaluation sets as one, at the place of the first."""
    sets: dict[tuple[str, ...], list[str]] = {}
    for reduction in reductions:
        matched = _OF_SET.fullmatch(reduction)
        sets.setdefault((matched["field"], matched["values"]) if matched else (reduction,), []).append(
            matched["set"] if matched else ""
        )
    return [
        change[0] if len(change) == 1 else f"evaluate.sets.{_first_of(names)}.{change[0]}: {change[1]}"
        for change, names in sets.items()
    ]


def _first_of(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"


def _ordered(reductions: Iterable[str]) -> list[str]:
    """Order changes: those of the training, then those of what is scored and when. Changes that make nothing smaller are left out."""
    smaller = [change for change in reductions if not _NO_SIZE.match(change) and not _adds_replicates(change)]
    return sorted(smaller, key=lambda change: change.startswith(("evaluate.", "train.monitor.")))


def _adds_replicates(change: str) -> bool:
    matched = re.fullmatch(r"(?:.*\.)?replicates: (\d+) -> (\d+)", change)
    return matched is not None and int(matched[2]) > int(matched[1])


def _new_and_old(arrow: re.Match[str]) -> str:
    old = "not set" if arrow["old"] == "unset" else _grouped(arrow["old"])
    return f"{_grouped(arrow['new'])} ({old})"


def _grouped(value: str) -> str:
    return f"{int(value):,}" if value.isdigit() and len(value) < 16 else value


def paper_shows(manifest: Manifest, shown: Iterable[Mapping[tuple[str, str], str]]) -> str | None:
    """The families' text on what the paper shows for this study's question; None where there is none."""
    source = manifest.get("source") or {}
    place = (str(source.get("paper")), str(source.get("card")))
    return next((texts[place] for texts in shown if place in texts), None)


def answer(summary: pa.Table, reported: Sequence[str], answers: str = "answers") -> str:
    """The finding in one sentence with its number and interval, from the rows of `results.rows.summary.summarise`.

    answers: what the study calls the answers that it scores, such as "closing brackets".

    It is how many replicates make no error at all, where the intervals separate conditions; else the median error on the set where they
    differ most. Of a single condition it is the median error on the set where that is largest.
    """
    rows = [row for row in summary.to_pylist() if row["set"] in reported]
    having = [_name(row) for row in rows if row["zero_error_of"]]
    return " ".join(filter(None, (_only(having, map(_name, rows)), _finding(rows, reported, answers))))


def _only(having: Iterable[str], planned: Iterable[str]) -> str:
    """The sentence on how many of the planned conditions have numbers; empty where all of them have, or none."""
    names, total = list(dict.fromkeys(having)), len(set(planned))
    if len(names) in (0, total):
        return ""
    return (
        f"Only {names[0]}, of {total} conditions, has numbers yet."
        if len(names) == 1
        else f"Only {len(names)} of {total} conditions have numbers yet."
    )


def _finding(rows: Sequence[Row], reported: Sequence[str], answers: str) -> str:
    by_set = {name: [row for row in rows if row["set"] == name and row["zero_error_of"]] for name in reported}
    first = max(by_set.values(), key=len, default=[])
    if not first:
        return "No replicate has a number yet."
    if len(first) == 1:
        return _alone(max((lines[0] for lines in by_set.values() if lines), key=_median_and_worst), len(reported), answers)
    conditions = "both conditions" if len(first) == 2 else f"each of {len(first)} conditions"
    if all(math.isinf(row["error_min"]) for row in first):  # on every set
        ended = "" if all(row["zero_error_of"] == row["planned"] for row in first) else " that has ended"
        return f"In {conditions}, every replicate{ended} diverged."
    joint = [row for row in first if row["jointly_zero_of"]]
    apart = [lines for lines in by_set.values() if _reach(lines) > 0]
    if _told_apart(joint) or (not apart and len({_share(row) for row in joint}) > 1):
        return _without_error(joint, len(reported))
    if not apart:
        if without := [row for row in first if not row["jointly_zero_of"]]:
            whose = f" of {_name(without[0]) if len(without) == 1 else counted(len(without), 'condition')}" if joint else ""
            return f"The medians of all conditions are equal; no replicate{whose} has a number on every set yet."
        every = _zeros(joint[0], " replicates") if _as_many(joint) else f"{_per_cent(joint[0])} of the replicates"
        return f"In {conditions}, {every} make no error{_where(len(reported))}."
    widest = max(map(_reach, apart))
    return _medians([lines for lines in apart if math.isclose(_reach(lines), widest)], len(reported))


def answer_of_values(summary: pa.Table) -> str:
    """The finding about experiments, from the rows of `results.rows.value_summary.summarise_values`.

    It is the best and the worst median of the first metric that is a number; where all metrics are flags, for how many replicates the
    first one is true. Where some conditions do not return that metric, it says how many do. Conditions whose replicates are all alike, and
    two that are alike, are named after it.
    """
    planned = summary.to_pylist()
    rows = [row for row in planned if row["values"]]
    if not rows:
        return "No replicate has a number yet."
    only = _only((row["condition"] for row in rows), (row["condition"] for row in planned))
    return " ".join(filter(None, (only, _best_and_worst(rows), _alike(rows), _same(rows))))


def _alike(rows: Sequence[Row]) -> str:
    """A question about conditions of which at least three replicates have the same numbers, as of code that takes no notice of its seed.

    0, 1 and 100, at which a share or a count ends, are no sign of that.
    """
    numbers = grouped((row["condition"], row) for row in rows if row["kind"] == "number")
    names = [
        name
        for name, own in numbers.items()
        if all(row["values"] >= 3 and row["min"] == row["max"] and math.isfinite(row["min"]) for row in own)
        and any(row["min"] not in (0, 1, 100) for row in own)
    ]
    if not names:
        return ""
    if len(names) == 1:
        whose = f"All {max(row['values'] for row in numbers[names[0]])} replicates of {names[0]}"
    else:
        whose = f"Within {_and_others(names[0], len(names) - 1)}, all replicates"
    return f"{whose} have the same numbers: does the code use its seed?"


def _same(rows: Sequence[Row]) -> str:
    """A question about two conditions with equal numbers that differ from seed to seed, as of a setting that the code does not read.

    Whole numbers are often equal, and are no sign of that.
    """
    found: dict[tuple[object, ...], str] = {}
    for name, own in grouped((row["condition"], row) for row in rows if row["kind"] == "number").items():
        numbers = tuple((row["metric"], row["values"], *(row[each] for each in (*QUANTILES, "iqm"))) for row in own)
        if not any(row["values"] >= 3 and row["min"] < row["max"] and not float(row["iqm"]).is_integer() for row in own):
            continue
        if numbers in found:
            return f"{found[numbers]} and {name} have the same numbers: does the code use the setting that tells them apart?"
        found[numbers] = name
    return ""


def _best_and_worst(rows: Sequence[Row]) -> str:
    metric, flag = next(((row["metric"], False) for row in rows if row["kind"] == "number"), (rows[0]["metric"], True))
    name, show = ("true_share", _times_true) if flag else ("median", _median_value)
    own = [row for row in rows if row["metric"] == metric]
    higher = flag or own[0]["better"] == "higher"
    best, *others = sorted(own, key=lambda row: row[name], reverse=higher)
    returning, total = len(own), len({row["condition"] for row in rows})
    some = f", which {returning} of {total} conditions return{'s' if returning == 1 else ''}," if returning < total else ""
    what, ends = (
        (f"{metric}{some} is true", ("most", "least")) if flag else (f"The median {metric}{some} is", ("highest", "lowest"))
    )
    if not others:
        return f"{what} {show(best)}."
    if best[name] == others[-1][name]:
        conditions = "both" if len(others) == 1 else f"all {len(others) + 1}"
        whose = conditions if some else f"{conditions} conditions"
        return f"{what} the same for {whose}: {show(best)}."
    first, last = ends if higher else ends[::-1]
    worst = others[-1]
    high, low = (_and_others(row["condition"], sum(row[name] == other[name] for other in own) - 1) for row in (best, worst))
    return f"{what} {first}, {show(best)}, for {high}, and {last}, {show(worst)}, for {low}."


def _and_others(condition: str, tied: int) -> str:
    return condition if tied == 0 else f"{condition} and {counted(tied, 'other')}"


def _median_value(row: Row) -> str:
    return f"{'diverged' if math.isinf(row['median']) else format_real(row['median'])} {_between(row, format_real)}"


def _times_true(row: Row) -> str:
    share = format_shares(row["true_low"], row["true_high"])
    return f"in {row['true']:,} of {counted(row['values'], 'replicate')} (95 %: {share})"


def _median_and_worst(row: Row) -> tuple[float, float]:
    return row["error_median"], row["error_max"]


def _alone(row: Row, sets: int, answers: str) -> str:
    """The median and the worst replicate of the only condition, and how many make no error."""
    of, zeros, where = row["zero_error_of"], _zeros(row), _where(sets)
    joint = f"Replicates without an error{where}: {zeros}." if row["jointly_zero_of"] else ""
    if joint and row["error_max"] == 0:
        return f"{_zeros(row, ' replicates')} make no error{where}."
    if math.isinf(row["error_min"]):  # on every set
        return f"{'The only replicate' if of == 1 else f'All {of:,} replicates'} diverged."
    median, worst = ("diverged" if math.isinf(rate) else f"errs on {_part(rate)}" for rate in _median_and_worst(row))
    share = "" if math.isinf(row["error_median"]) else f" of the {answers}"
    start = f"On {row['set']} the errors are most frequent:" if sets > 1 else f"On {row['set']},"
    if of == 1:
        return f"{start} the only replicate {median}{share}."
    return f"{start} the median of {of:,} replicates {median}{share} {_interval(row)}, the worst {worst}. {joint}".rstrip()


def _part(rate: float) -> str:
    """An error rate as a part of the answers: "1 of the reads" would be a single one."""
    return "all" if rate == 1 else format_rate(rate)


def _without_error(rows: Sequence[Row], sets: int) -> str:
    first, *others = sorted(rows, key=_share, reverse=True)
    if len(rows) > MOST_NAMED:
        leading, trailing = ([row for row in rows if _share(row) == _share(end)] for end in (first, others[-1]))
        most, fewest = ("most", "fewest") if _as_many(rows) else ("largest share of", "smallest")
        best = f"{len(leading)} have" if len(leading) > 1 else f"{_name(first)} has"
        worst = f"{len(trailing)} others have" if len(trailing) > 1 else f"{_name(trailing[0])} has"
        return (
            f"Of {len(rows)} conditions, {best} the {most} replicates without an error{_where(sets)}, {_zeros_of_each(leading)}; "
            f"{worst} the {fewest}, {_zeros_of_each(trailing)}."
        )
    rest = "; ".join(f"{_name(row)}: {_zeros(row)}" for row in others)
    return f"Replicates without an error{_where(sets)}: {_name(first)} has {_zeros(first)}; {rest}."


def _told_apart(rows: Sequence[Row]) -> bool:
    """Whether two conditions have shares without an error whose intervals do not overlap."""
    return bool(rows) and max(row["jointly_zero_low"] for row in rows) > min(row["jointly_zero_high"] for row in rows)


def _reach(rows: Sequence[Row]) -> float:
    """How far apart the medians of the conditions are; a diverged one is infinitely far."""
    medians = [row["error_median"] for row in rows]
    return 0.0 if len(set(medians)) < 2 else float(max(medians) - min(medians))


def _medians(tied: Sequence[Sequence[Row]], sets: int) -> str:
    """The lowest and the highest median on the first of the sets where they are equally far apart."""
    rows, reach = tied[0], _reach(tied[0])
    low, high = (end(row["error_median"] for row in rows) for end in (min, max))
    best, worst = ([row for row in rows if row["error_median"] == median] for median in (low, high))
    most, names = " most" if sets > 1 else "", _first_of([lines[0]["set"] for lines in tied])
    by = "" if math.isinf(reach) else f", by {format_rate(reach)}"
    there = f"on {rows[0]['set']} " if len(tied) > 1 else ""
    return (
        f"Conditions differ{most} on {names}{by}: {there}the median error is lowest, {format_rate(low)}{_whose(best)}, and highest, "
        f"{format_rate(high)}{_whose(worst)}."
    )


def _whose(rows: Sequence[Row]) -> str:
    """The conditions of one median, and their interval, or an interval each."""
    names, intervals = [_name(row) for row in rows], [_interval(row) for row in rows]
    if len(set(intervals)) == 1:
        return f" {intervals[0]}, for {_first_of(names)}"
    return f", for {_first_of([' '.join(pair) for pair in zip(names, intervals, strict=True)])}"


def _as_many(rows: Sequence[Row]) -> bool:
    """Whether as many replicates of each condition have a number on every set."""
    return len({row["jointly_zero_of"] for row in rows}) == 1


def _zeros_of_each(rows: Sequence[Row]) -> str:
    """How many replicates of each of these conditions, which have the same share, make no error."""
    numbers = _zeros(rows[0]) if _as_many(rows) else _per_cent(rows[0])
    return f"{numbers} each" if len(rows) > 1 else numbers


def _per_cent(row: Row) -> str:
    return f"{distinct(100 * _share(row), 3, 'g', 100)} %"


def _share(row: Row) -> float:
    return float(row["jointly_zero"] / row["jointly_zero_of"])


def _zeros(row: Row, what: str = "") -> str:
    share = format_shares(row["jointly_zero_low"], row["jointly_zero_high"])
    return f"{row['jointly_zero']:,} of {row['jointly_zero_of']:,}{what} (95 %: {share})"


def _interval(row: Row) -> str:
    return _between(row, format_rate, least=0.0)


def _between(row: Row, show: Callable[[float], str], least: float = -math.inf) -> str:
    """The interval of a median in parentheses. An end that is infinite, or the `least` possible value, is no bound and is left out."""
    low, high = row["median_low"], row["median_high"]
    if low == high and math.isinf(low):
        return "(95 %: diverged)"
    if low <= least and math.isinf(high):
        if math.isfinite(least) and row["zero_error_of"] >= replicates_to_bound(0.5):  # both ends are rates of replicates
            return f"(95 %: {show(low)} to diverged)"
        return "(too few replicates for an interval)"
    if math.isinf(high):
        return f"(95 %: at least {show(low)})"
    if math.isinf(low):
        return f"(95 %: at most {show(high)})"
    return f"(95 %: {show(low)} to {show(high)})"


def _where(sets: int) -> str:
    return {1: "", 2: " on either set"}.get(sets, f" on any of {sets} sets")


def _name(row: Row) -> str:
    return label(row["condition"], row["stage"])
