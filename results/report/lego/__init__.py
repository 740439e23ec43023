"""What reports say of chains of actions beside what they say of every study."""

from results.report.family import ReportFamily
from results.report.lego.page import drawings

FAMILY = ReportFamily(sections=(drawings,), key_figures=("accuracy-length",))
