"""The parts of reports that are of studies on flip-flop language modelling."""

import os

from results.claims.evidence import Evidence
from results.claims.flipflop.read_sets import baseline, dense_set, sparse_set
from results.plain_values import Options
from results.report.family import Links, ReportFamily
from results.report.flipflop.glitch_page import write_glitch_page
from results.report.flipflop.glitches import sets_of
from results.report.flipflop.paper_shows import SHOWS
from results.report.flipflop.references import FFLM, THESIS
from results.store.tables import Store


def even(task: Options) -> str | None:
    """A phrase for tasks whose writes and reads are equally probable, as they are by default; else None."""
    plain = task.get("name") == "flipflop" and task.get("p_write", 0) is None and task.get("p_read", 0) is None
    return "writes and reads equally likely" if plain else None


def glitch_links(store: Store, key: str, out: str | os.PathLike[str] | None) -> Links:
    """Pages of the replicate's glitches, one a set."""
    pages = {f"on {name}": write_glitch_page(store, key, name, out).name for name in sets_of(store, key)}
    return {"Its glitches": pages} if pages else {}


def sparse_and_dense(evidence: Evidence) -> tuple[str, str]:
    """The sets of sparse and of dense strings, one of which gets better where the other gets worse."""
    return sparse_set(evidence), dense_set(evidence)


FAMILY = ReportFamily(
    paper_shows=SHOWS,
    axes={
        "since_write": ("Error by distance to the last write", "instructions since the last write"),
        "since_event": (
            "Error by distance to the last instruction that is not ignored",
            "instructions since the last write or read",
        ),
    },
    errors={
        "flipflop": "a read (the position after an “r”) where the most probable token of the whole vocabulary is not the bit of the "
        "last write",
        "flipflop_simulation": "a position where the more probable state is not the state after its input",
    },
    references={"fflm": (FFLM, THESIS)},
    task_options=("p_ignore", "mode", "symbols"),
    task_phrase=even,
    replicate_links=glitch_links,
    baseline=baseline,
    trade_off=sparse_and_dense,
)
