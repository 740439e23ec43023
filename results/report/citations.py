"""What a study's `source` cites: BibTeX and one line for the papers that this code has studies of, and BibTeX of the harness itself.

A field stands here only where the paper's own text, or the list of references of Liu's thesis, has it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.rows.summary import latex_escape
from results.version import VERSION

HARNESS = "manyseeds"


@dataclass(frozen=True)
class Reference:
    """One entry: `line` to read, `bibtex` to paste."""

    line: str
    bibtex: str


def entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    """A BibTeX entry, its fields as they are given: what is not LaTeX already goes through `results.rows.summary.latex_escape` first."""
    width = max(map(len, fields))
    body = "".join(f"  {name:<{width}} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{body}}}\n"


FFLM = Reference(
    "B. Liu, J. T. Ash, S. Goel, A. Krishnamurthy and C. Zhang. Exposing Attention Glitches with Flip-Flop Language Modeling. "
    "NeurIPS 2023. arXiv:2306.00946.",
    entry(
        "inproceedings",
        "liu2023exposing",
        {
            "author": "Liu, B. and Ash, J. T. and Goel, S. and Krishnamurthy, A. and Zhang, C.",
            "title": "Exposing Attention Glitches with Flip-Flop Language Modeling",
            "booktitle": "Neural Information Processing Systems",
            "year": "2023",
            "eprint": "2306.00946",
            "archiveprefix": "arXiv",
        },
    ),
)
THESIS = Reference(
    "B. Liu. Guiding Machine Learning Design with Insights from Simple Sandboxes. PhD thesis, Carnegie Mellon University, "
    "CMU-ML-24-110, August 2024.",
    entry(
        "phdthesis",
        "liu2024guiding",
        {
            "author": "Liu, Bingbin",
            "title": "Guiding Machine Learning Design with Insights from Simple Sandboxes",
            "school": "Carnegie Mellon University",
            "number": "CMU-ML-24-110",
            "month": "aug",
            "year": "2024",
        },
    ),
)
PAPERS: dict[str, tuple[Reference, ...]] = {"fflm": (FFLM, THESIS)}


def references(source: Any) -> tuple[Reference, ...]:
    """The entries of a study's section `source`; () where it names no paper, or one that this code does not know."""
    paper = source.get("paper") if isinstance(source, Mapping) else None
    return PAPERS.get(paper, ()) if isinstance(paper, str) else ()


def harness(commits: Sequence[str] = ()) -> Reference:
    """The version of this harness, with the git commits that the rows were made by. It names no author."""
    title = f"{HARNESS}: replicate studies of small sequence models"
    fields = {"title": latex_escape(title), "version": latex_escape(VERSION)}
    if commits:
        fields["note"] = latex_escape(f"git {', '.join(commits)}")
    return Reference(f"{title}, version {VERSION}.", entry("misc", HARNESS, fields))
