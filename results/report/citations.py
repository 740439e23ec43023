"""The references of a study: one line and BibTeX for the papers that its `source` names, and for the harness itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.rows.latex import latex_escape
from results.version import VERSION

HARNESS = "manyseeds"


@dataclass(frozen=True)
class Reference:
    """One entry: `line` to read, `bibtex` to paste."""

    line: str
    bibtex: str


def entry(kind: str, key: str, /, **fields: str) -> str:
    """A BibTeX entry with its fields as given: escape what is not LaTeX already (`results.rows.latex.latex_escape`)."""
    width = max(map(len, fields))
    body = "".join(f"  {name:<{width}} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{body}}}\n"


LI_THESIS = Reference(
    "Y. Li. Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling. PhD thesis, Carnegie Mellon "
    "University, CMU-ML-25-120, 2025.",
    entry(
        "phdthesis",
        "li2025mathematical",
        author="Li, Yuchen",
        title="Mathematical Foundations of Data-Training-Inference Interaction in Language Modeling",
        school="Carnegie Mellon University",
        number="CMU-ML-25-120",
        year="2025",
    ),
)  # of several families


def references(source: Any, papers: Mapping[str, tuple[Reference, ...]]) -> tuple[Reference, ...]:
    """The entries of a study's section `source`; () where it names no paper, or one that is not among `papers`."""
    paper = source.get("paper") if isinstance(source, Mapping) else None
    return papers.get(paper, ()) if isinstance(paper, str) else ()


def harness(commits: Sequence[str] = ()) -> Reference:
    """The version of this harness, with the git commits that the rows were made by. It names no author."""
    title = f"{HARNESS}: replicate studies of small sequence models"
    fields = {"title": latex_escape(title), "version": latex_escape(VERSION)}
    if commits:
        fields["note"] = latex_escape(f"git {', '.join(commits)}")
    return Reference(f"{title}, version {VERSION}.", entry("misc", HARNESS, **fields))
