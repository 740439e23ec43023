"""The last lines that a run prints: the summary as a plain-text table, and the answer in one sentence."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from results.report.family import scored_answers
from results.report.family_sections import FAMILIES
from results.report.first_screen import answer, answer_of_values
from results.report.page_template import format_rate
from results.rows.measures import is_experimental
from results.rows.plural import counted
from results.rows.shared_seeds import caution
from results.rows.summary import reported_sets
from results.rows.value_summary import returned
from results.store.manifest import label, newest_manifest
from results.store.tables import Store

MOST_ROWS = 24
_WIDEST = 40  # characters of a name


def run_ending(store: Store, report: Path) -> list[str]:
    """The lines, from the summary that `results.report.report.write_report` wrote beside its page."""
    newest = newest_manifest(store)
    if newest is None:
        return []
    summary = pa.parquet.read_table(report.parent / "summary.parquet")
    if is_experimental(newest[1]):
        return [*_values(summary), *filter(None, (answer_of_values(summary), caution(newest[1])))]
    reported = reported_sets(newest[1])
    found = answer(summary, reported, scored_answers(newest[1]["conditions"], FAMILIES))
    return [*_errors(summary, reported), *filter(None, (found, caution(newest[1])))]


def _errors(summary: pa.Table, reported: Sequence[str]) -> list[str]:
    """One row per condition and reported set: how many replicates ended and had no error, and their error rates."""
    cells = [("condition", "set", "finished", "diverged", "zero error", "min", "median", "max")]
    for row in (row for row in summary.to_pylist() if row["set"] in reported):
        ended, zero = f"{row['finished']}/{row['planned']}", f"{row['zero_error']}/{row['zero_error_of']}"
        rates = (format_rate(row[f"error_{name}"]) for name in ("min", "median", "max"))
        cells.append((label(row["condition"], row["stage"]), row["set"], ended, str(row["diverged"]), zero, *rates))
    return _aligned(cells)


def _values(summary: pa.Table) -> list[str]:
    """One row per condition and metric of experiments; of a flag how many replicates have it true."""
    cells = [("condition", "metric", "finished", "diverged", "true", "min", "median", "max")]
    for row in returned(summary):
        flag = row["kind"] == "flag"
        ended, true = f"{row['finished']}/{row['planned']}", f"{row['true']}/{row['values']}" if flag else "–"
        numbers = ("–" if flag or row[name] is None else _number(row[name]) for name in ("min", "median", "max"))
        cells.append((row["condition"], row["metric"], ended, str(row["diverged"]), true, *numbers))
    return _aligned(cells)


def _number(value: float) -> str:
    return f"{value:.4g}".replace("inf", "∞")


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """The first rows as columns, words to the left and numbers to the right."""
    shown = [[cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 1]}…" for cell in line] for line in cells[: MOST_ROWS + 1]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in shown
    ]
    more = len(cells) - 1 - MOST_ROWS
    return [f"  {line.rstrip()}" for line in lines] + ([f"  and {counted(more, 'more row')} in the report"] if more > 0 else [])
