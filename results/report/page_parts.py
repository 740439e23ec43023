"""The parts that every report has: failures, what ran where, and the figures of a page."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup
from matplotlib.figure import Figure

from results import second_process
from results.names import slug
from results.plain_values import Options, Row, Tree
from results.report.family import ReportFamily
from results.report.first_screen import changes, paper_shows
from results.report.interactive import inline, plot
from results.report.page_template import plain
from results.report.plots import figure_files
from results.rows.options import split
from results.rows.summary import ENDINGS, QUANTILES, Replicate
from results.store.json_columns import entries
from results.store.manifest import Manifest
from results.store.tables import Store

MAX_FAILURES, MAX_OPEN_ROWS = 20, 200  # most failures that are listed; most rows of a table that is not folded


@dataclass(frozen=True)
class Drawing:
    """A figure of the page, or the call that makes it: figures of many replicates are only made when they are drawn."""

    name: str  # of its files
    title: str
    caption: str
    figure: Figure | partial[Figure]

    def made(self) -> Figure:
        return self.figure if isinstance(self.figure, Figure) else self.figure()


Drawn = tuple[dict[str, bytes], list[tuple[Drawing, Markup]]]


def drawn_files(drawings: Sequence[Drawing]) -> Drawn:
    """Draw figures: their files by path in the report's folder, and the element that the page shows for each."""
    return begin_drawing(drawings, shared=False)()


def begin_drawing(drawings: Sequence[Drawing], shared: bool) -> Callable[[], Drawn]:
    """Begin to draw figures; the function that is returned ends it and returns what `drawn_files` does.

    shared: whether a second process draws some of the figures, beginning now, while this one may do something else.
    """
    started: dict[int, tuple[str, bytes, Markup | None]] = {}
    waiting = deque(range(len(drawings)))

    def next_from(end: Callable[[], int]) -> int | None:
        try:
            return end()
        except IndexError:  # the other one took the last
            return None

    def draw_there() -> None:
        while (index := next_from(waiting.popleft)) is not None:
            started[index] = second_process.submit(_drawn, drawings[index]).result()

    def rest() -> Drawn:
        while (index := next_from(waiting.pop)) is not None:
            started[index] = _drawn(drawings[index])
        if other is not None:
            other.result()
            thread.shutdown()
        files: dict[str, bytes] = {}
        shown = []
        for index, drawing in enumerate(drawings):
            document, picture, plotted = started[index]
            drawing = replace(drawing, name=slug(drawing.name))  # it may hold names from rows
            files[f"figures/{drawing.name}.svg"] = document.encode()
            files[f"figures/{drawing.name}.png"] = picture
            shown.append((drawing, plotted or inline(document, drawing.name, drawing.title)))
        return files, shown

    thread = ThreadPoolExecutor(1)
    other = thread.submit(draw_there) if shared else None
    return rest


def _drawn(drawing: Drawing) -> tuple[str, bytes, Markup | None]:
    """A figure's name, its SVG and PNG files, and the element that a page draws again."""
    figure = drawing.made()
    return figure_files.svg(figure), figure_files.png(figure), plot(figure)


def family_drawings(
    store: Store, manifest: Manifest, known: Sequence[Replicate], replicates: pa.Table, families: Sequence[ReportFamily]
) -> list[Drawing]:
    """The figures of the families' sections."""
    sections = [section for family in families for section in family.sections]
    return [Drawing(*drawn) for section in sections for drawn in section(store, manifest, known, replicates)]


def every_study(
    manifest: Manifest,
    known: Sequence[Replicate],
    replicates: pa.Table,
    failures: pa.Table,
    families: Sequence[ReportFamily],
) -> Tree:
    """The values of `study_page.html`, whatever the study measures."""
    keys, statuses = {replicate.key for replicate in known}, [replicate.status for replicate in known]
    own = replicates.filter(pc.field("key").isin(pa.array(list(keys), pa.string())))
    return {
        "manifest": manifest,
        "title": manifest.get("question") or manifest["study"],
        "paper_shows": paper_shows(manifest, (family.paper_shows for family in families)),
        "changes": changes(manifest),
        "counts": {ending: statuses.count(ending) for ending in ENDINGS},
        "ended": sum(status in ("finished", "diverged", "no_transition") for status in statuses),
        "planned": len(known),
        "left_out": replicates.num_rows - own.num_rows,
        "quantiles": list(QUANTILES),
        "many": len(known) > MAX_OPEN_ROWS,
        "failures": newest_failures(failures, keys),
        "provenance": provenance(own, manifest),
    }


def newest_failures(failures: pa.Table, keys: set[str]) -> list[Row]:
    """The newest failures that concern this plan."""
    rows = [row for row in failures.to_pylist() if keys & set(row["keys"])]
    return sorted(rows, key=lambda row: row["at"], reverse=True)[:MAX_FAILURES]


def provenance(replicates: pa.Table, manifest: Manifest) -> Tree:
    """Where and how replicates ran: every distinct value with its number of replicates."""
    named = {
        column: [({k: plain(v) for k, v in entries(text).items()}, count) for text, count in counted(replicates[column])]
        for column in ("versions", "numerics")
    }
    named["versions"] = [(values, count) for values, count in named["versions"] if values]  # imported runs have none
    return {
        "devices": counted(replicates["device"]),
        **named,
        "pack_sizes": counted(replicates["pack_size"]),
        "commits": commits(replicates, "git", "dirty"),
        "hosts": len(replicates["host"].unique()),
        **{name: pc.sum(replicates[name]).as_py() or 0.0 for name in ("train_s", "evaluate_s")},
        "started": pc.min(replicates["started"]).as_py(),
        "ended": pc.max(replicates["ended"]).as_py(),
        "plan": {"git": manifest.get("git"), "dirty": manifest.get("dirty")},
    }


def commits(replicates: pa.Table, git: str, dirty: str) -> list[tuple[str, int]]:
    """The commits that two columns name, with the replicates of each."""
    return list(Counter(map(commit, replicates[git].to_pylist(), replicates[dirty].to_pylist())).items())


def commit(git: str | None, dirty: bool | None) -> str:
    """A commit as pages name it."""
    return "not in a git repository" if git is None else git + (" with uncommitted changes" if dirty else "")


def settings_table(labels: Sequence[str], settings: Sequence[Options]) -> Tree:
    """The settings that all conditions share, the names of the others, and these by condition; of flat options."""
    shared, varied = split(settings)
    values = [
        {"name": label, "values": [own.get(name) for name in varied]} for label, own in zip(labels, settings, strict=True)
    ]
    return {"shared": shared, "varied": varied, "conditions": values}


def counted(column: pa.ChunkedArray) -> list[tuple[Any, int]]:
    counts = sorted(column.value_counts().to_pylist(), key=lambda row: -row["counts"])
    return [(row["values"], row["counts"]) for row in counts]
