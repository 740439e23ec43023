"""The parts of reports that are of studies on generation with a verifier."""

from results.report.citations import LI_THESIS
from results.report.family import ReportFamily
from results.report.generation import page
from results.report.generation.paper_shows import SHOWS

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(page.drawings,),
    key_figures=("errors-beside", "error-by-queries"),
    references={"verified_generation": (LI_THESIS,)},
)
