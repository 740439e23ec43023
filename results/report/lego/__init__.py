"""The parts of reports that are of studies on chains of actions."""

from results.report.family import ReportFamily
from results.report.lego.page import drawings
from results.report.lego.paper_shows import SHOWS

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(drawings,),
    key_figures=("accuracy-length",),
    errors={"lego": "an answer whose most probable value is not the true value of its variable"},
)
