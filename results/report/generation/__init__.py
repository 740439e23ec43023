"""What reports say of generation with a verifier beside what they say of every study."""

from results.report.citations import Reference, entry
from results.report.family import ReportFamily
from results.report.generation import page
from results.report.generation.paper_shows import SHOWS

LI = Reference(
    "Y. Li. Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling. PhD thesis, Carnegie Mellon "
    "University, CMU-ML-25-120, 2025.",
    entry(
        "phdthesis",
        "li2025mathematical",
        {
            "author": "Li, Yuchen",
            "title": "Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling",
            "school": "Carnegie Mellon University",
            "number": "CMU-ML-25-120",
            "year": "2025",
        },
    ),
)

FAMILY = ReportFamily(
    paper_shows=SHOWS,
    sections=(page.drawings,),
    key_figures=("errors-beside", "error-by-queries"),
    references={"verified_generation": (LI,)},
)
