"""The parts of reports that are of studies on distillation."""

from results.report.distillation import growth_page, heads_page, page, pcfg_page
from results.report.distillation.paper_shows import SHOWS
from results.report.family import ReportFamily

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(growth_page.drawings, heads_page.drawings, page.drawings, pcfg_page.drawings),
    key_figures=("steps-by-length", "steps-by-heads", "students-and-teachers", "strategies"),
    axes={
        "level": (
            "Error by level of the span that ends at the token",
            "level of the highest span that ends there",
        ),
    },
    errors={
        "sparse_parity": "a string whose most probable class is not the sign of the product of its support",
        "hierarchical_parity": "a string whose most probable class is not the leaf that its parities lead to",
        "pcfg": "a predicted position where the most probable token of the whole vocabulary is not the string's own",
    },
)
