"""How much of the spread of error rates is between replicates: the beta-binomial split of every condition and reported set, as a table."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from results.errors import StudyError
from results.markdown_table import table_lines
from results.report.family import scored_answers
from results.report.family_sections import FAMILIES
from results.report.page_template import format_share
from results.rows.measures import is_experimental
from results.rows.plural import distinct, p_value
from results.rows.shared_seeds import share_seeds
from results.rows.study_rows import read_study
from results.rows.summary import at_last_step, reported_sets
from results.statistics.variance import effective, icc_interval, split
from results.store.manifest import label, manifest_of
from results.store.tables import Store

_COLUMNS = ("condition", "set", "replicates", "left out", "mean error", "correlation [95 %]", "share between", "p", "outcome")
_COUNTS = ("errors", "count", "sequences", "errors_sq", "errors_x_count", "count_sq")


def show_spread(store: Store, say: Callable[[str], None]) -> None:
    """Print the table as Markdown. ValueError where the store holds no such study."""
    manifest = manifest_of(store)
    if is_experimental(manifest):
        raise StudyError(f"{store.study} has values and no counts of errors, whose spread could be split: see its report")
    study = read_study(store, manifest)
    counts = _last(study.committed, study.evaluations)
    answers = scored_answers(manifest["conditions"], FAMILIES)
    say(
        f"{store.study}: correlation between two {answers} of one replicate, and share of the variance of error rates that lies between "
        "replicates."
    )
    say("p: how probable so wide a spread would be if all replicates had the same error probability.")
    say("Counts are first reduced for errors in bursts within a string. Left out: replicates without a number, or diverged.")
    say("")
    rows = []
    for condition, stage in dict.fromkeys((replicate.condition, replicate.stage) for replicate in study.replicates):
        members = [replicate for replicate in study.replicates if (replicate.condition, replicate.stage) == (condition, stage)]
        for name in reported_sets(manifest):
            ended = [member for member in members if name in member.scores and member.status == "finished"]
            scored = [counts[replicate.key, replicate.stage, name] for replicate in ended]
            shared = share_seeds([member.seeds for member in members])
            rows.append((label(condition, stage), name, *_cells(scored, len(members), shared)))
    for line in table_lines(_COLUMNS, rows):
        say(line)


def _last(replicates: pa.Table, rows: pa.Table) -> dict[tuple[str, int, str], tuple[int, ...]]:
    """The counts of the raw weights' last step by key, stage and set."""
    raw = at_last_step(rows.filter(pc.field("weights") == "raw"), replicates).select(["key", "stage", "set", *_COUNTS])
    return {(row["key"], row["stage"], row["set"]): tuple(row[name] for name in _COUNTS) for row in raw.to_pylist()}


def _cells(scored: list[tuple[int, ...]], planned: int, shared: bool) -> list[str]:
    left_out = str(planned - len(scored))
    if shared:
        return [str(len(scored)), left_out, *("–",) * 4, "replicates share seeds: no independent sample"]
    if len(scored) < 2:
        return [str(len(scored)), left_out, *("–",) * 4, "needs at least 2 replicates"]
    if min(row[_COUNTS.index("sequences")] for row in scored) < 2:
        return [str(len(scored)), left_out, *("–",) * 4, "needs at least 2 strings"]
    errors, reads = effective(*map(list, zip(*scored, strict=True)))
    spread, interval = split(errors, reads), icc_interval(errors, reads)
    total = spread.between + spread.within
    return [
        str(spread.replicates),
        left_out,
        _near_1(spread.mean),
        "–"
        if spread.icc is None or interval is None
        else f"{_near_1(spread.icc)} [{_near_1(interval.low)}, {_near_1(interval.high)}]",
        format_share(spread.between / total) if total else "–",
        "–" if spread.p is None else p_value(spread.p, 2),
        spread.outcome,
    ]


def _near_1(number: float) -> str:
    return distinct(number, 3, "g", 1)
