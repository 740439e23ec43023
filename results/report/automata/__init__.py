"""The parts of reports that are of studies on automata."""

from results.report.automata.page import drawings
from results.report.automata.paper_shows import SHOWS
from results.report.family import ReportFamily

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(drawings,),
    key_figures=("depth", "depth-needed", "revealed", "accuracy-length", "accuracy-ones", "accuracy-p_one"),
    hidden_axes={"automaton": ("position",)},
    errors={"automaton": "a position where the most probable answer is not the (observed) state after its token"},
    task_options=("automaton", "law", "p_one", "ones", "observe", "p_reveal"),
)
