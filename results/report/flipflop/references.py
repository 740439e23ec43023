"""The papers on flip-flop language modelling. A field stands here only where the paper, or the references of Liu's thesis, have it."""

from results.report.citations import Reference, entry

FFLM = Reference(
    "B. Liu, J. T. Ash, S. Goel, A. Krishnamurthy and C. Zhang. Exposing Attention Glitches with Flip-Flop Language Modeling. "
    "NeurIPS 2023. arXiv:2306.00946.",
    entry(
        "inproceedings",
        "liu2023exposing",
        author="Liu, B. and Ash, J. T. and Goel, S. and Krishnamurthy, A. and Zhang, C.",
        title="Exposing Attention Glitches with Flip-Flop Language Modeling",
        booktitle="Neural Information Processing Systems",
        year="2023",
        eprint="2306.00946",
        archiveprefix="arXiv",
    ),
)
THESIS = Reference(
    "B. Liu. Guiding Machine Learning Design with Insights from Simple Sandboxes. PhD thesis, Carnegie Mellon University, "
    "CMU-ML-24-110, August 2024.",
    entry(
        "phdthesis",
        "liu2024guiding",
        author="Liu, Bingbin",
        title="Guiding Machine Learning Design with Insights from Simple Sandboxes",
        school="Carnegie Mellon University",
        number="CMU-ML-24-110",
        month="aug",
        year="2024",
    ),
)
