"""The parts of reports that are of studies on subsequences."""

from results.report.family import ReportFamily
from results.report.subsequences import page, tracing_page
from results.report.subsequences.paper_shows import SHOWS

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(page.drawings, tracing_page.drawings),
    key_figures=("subsequence-depth", "pairs-learned", "pairs-held", "gradient-order", "alignment", "traced"),
    errors={"associations": "a string whose most probable answer is not the one that was drawn for it"},
)
