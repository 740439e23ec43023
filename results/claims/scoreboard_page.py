"""The scoreboard of all claims as a page of Markdown: a table for each family, with links to the studies that decide them."""

import html
from collections.abc import Mapping, Sequence
from types import ModuleType

import pyarrow.fs

from results.claims import FAMILIES, reductions, scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, REPRODUCED, SCALED, VERDICTS, Claim, Verdict
from results.grouping import grouped
from results.markdown_table import markdown_table
from results.store.manifest import Manifest, manifest_of
from results.store.tables import Store

_Row = tuple[str, Verdict, Manifest]  # a study's folder, what it says of a claim, its manifest
OPEN, DIFFERS = "open", "differs by study"
_OUTCOMES = (REPRODUCED, NOT_REPRODUCED, DIFFERS, OPEN, NOT_RUN)
_SEEN = 250  # most characters of what was measured; `manyseeds claims` prints all of it
_HEAD = """# Studies that were run

Every claim on a paper that this project states, and what the committed studies say of it. This page is made
from the tables beside it by `manyseeds claims docs/studies --markdown`. Without `--markdown` that command
prints all that was measured, and why.

How many claims came out how. *Open* is a precondition that is not met, or too few replicates:
"""
_NOTES = """## How to read the tables

- A verdict is *(scaled)* where anything is smaller than in the paper; the command prints what.
  Where no paper has the experiment, *scaled* is measured against the study file.
- *Precondition not met*: something that the claim takes for granted does not hold. Mostly, a compared
  condition has not learned what it was trained on.
- *Too few replicates*: the numbers decide neither for the claim nor against it.
- *Not run*: no committed study has the rows that the claim asks for; the study or command in the last
  column makes them.
- *replicates*: the smallest and the largest number that a condition of the study has.
- Studies of a claim at the paper's own size are listed first. If there are any, only they count in the table
  above. Within each group, decided verdicts come first.
- A ratio of two medians is – where both are 0, and ∞ where only the second is.
- Every verdict is by the criterion as it is now. Some were corrected after rows for them were there; the
  pages of the families and the changelog say which.
- The pages of the families tell what was seen and what it means.
- `manyseeds report docs/studies/<folder>` makes a study's report from its tables.
"""


def markdown(stores: Mapping[str, Store]) -> str:
    """The page. stores: the committed studies by their folders, as the page links to them."""
    manifests = {folder: manifest_of(store) for folder, store in stores.items()}
    rows = ((folder, verdict, manifests[folder]) for folder, store in stores.items() for verdict in scoreboard(store))
    verdicts = grouped((row[1].claim.id, row) for row in rows)
    told = {name: _telling(rows) for name, rows in verdicts.items()}
    figures = {folder: _figure(folder, store) for folder, store in stores.items()}
    return "\n".join([_HEAD, _tally(told), _NOTES, *(_family(family, told, figures) for family in FAMILIES)])


def _telling(rows: Sequence[_Row]) -> list[_Row]:
    """The rows of a claim, the paper's own size first, then the most decided; where no study has anything on it, the first one's alone."""
    ran = [row for row in rows if row[1].verdict != NOT_RUN]
    return sorted(ran or rows[:1], key=lambda row: (_scaled(row), VERDICTS.index(row[1].verdict)))


def _scaled(row: _Row) -> bool:
    return bool(reductions(row[2]))


def _tally(verdicts: Mapping[str, Sequence[_Row]]) -> str:
    """A table of the number of claims by family and outcome."""
    rows = []
    for family in FAMILIES:
        outcomes = [claim_outcome(weighed(verdicts.get(name, []))) for name in family.CLAIMS]
        counts = (str(outcomes.count(outcome) or "") for outcome in _OUTCOMES)
        rows.append((_title(family), str(len(outcomes)), *counts))
    return markdown_table(("family", "claims", *_OUTCOMES), rows) + "\n"


def weighed(rows: Sequence[_Row]) -> list[Verdict]:
    """The verdicts that count: of studies at the paper's own size if there are any, since a smaller one says less of the paper's claim."""
    whole = [row for row in rows if not _scaled(row) and row[1].verdict != NOT_RUN]
    return [verdict for _, verdict, _ in whole or rows]


def claim_outcome(verdicts: Sequence[Verdict]) -> str:
    """The outcome of a claim over the studies that count, one of _OUTCOMES."""
    decided = {verdict.refuted for verdict in verdicts if verdict.refuted or verdict.verdict in (REPRODUCED, SCALED)}
    if decided:
        return DIFFERS if len(decided) > 1 else NOT_REPRODUCED if True in decided else REPRODUCED
    return OPEN if any(verdict.verdict != NOT_RUN for verdict in verdicts) else NOT_RUN


def _title(family: ModuleType) -> str:
    title = (family.__doc__ or family.__name__).split("\n")[0].removeprefix("The claims on ").rstrip(".")
    return title[0].upper() + title[1:]


def _family(family: ModuleType, verdicts: Mapping[str, Sequence[_Row]], figures: Mapping[str, str]) -> str:
    name = family.__name__.rpartition(".")[2]
    parts = [f"## {_title(family)}\n"]
    if any(folder.startswith(f"{name}/") for folder in figures):
        parts.append(f"[What was seen and what it means]({name}/README.md)\n")
    rows = []
    for claim in family.CLAIMS.values():
        tellings = verdicts.get(claim.id, [])
        names = [_named(claim), *[f"**{claim.id}**"] * len(tellings)]  # the sentence stands in a claim's first row
        cells = [_cells(name, telling, figures[telling[0]]) for name, telling in zip(names, tellings, strict=False)]
        rows += cells or [_not_run(claim)]
    columns = ("claim", "verdict", "what was seen", "replicates", "scale", "study")
    return "\n".join([*parts, markdown_table(columns, rows)]) + "\n"


def _cells(name: str, row: _Row, figure: str) -> list[str]:
    folder, verdict, manifest = row
    if verdict.verdict == NOT_RUN:
        return _not_run(verdict.claim, verdict.finding.reason)
    seen = verdict.finding.measured or verdict.finding.reason
    counts = sorted({condition["replicates"] for condition in manifest["conditions"]})
    scale = manifest["scale"] if not reductions(manifest) or manifest["scale"] != "paper" else "reduced"
    links = f"[{folder.rpartition('/')[2]}]({folder})" + (f", [figure]({figure})" if figure else "")
    replicates = "–".join(dict.fromkeys(str(count) for count in (counts[0], counts[-1])))
    return [name, verdict.verdict, _cell(_short(seen)), replicates, _cell(scale), links]


def _not_run(claim: Claim, why: str = "") -> list[str]:
    """The row of a claim for which no committed study has the rows. why: what a study that states it lacks."""
    source = claim.study or claim.command
    return [_named(claim), NOT_RUN, _cell(_short(why)), "", "", f"`{source}`" if source else ""]


def _named(claim: Claim) -> str:
    return f"**{claim.id}** {_cell(claim.sentence)}"


def _short(text: str) -> str:
    """The first parts of a text, as far as they fit; no bracket is cut in two."""
    if len(text) <= _SEEN:
        return text
    for mark in ("; ", ", ", " "):
        ends = [at for at in range(_SEEN // 3, _SEEN) if text.startswith(mark, at) and not _in_brackets(text[:at])]
        if ends:
            return text[: ends[-1]] + " …"
    return text[:_SEEN] + " …"


def _in_brackets(text: str) -> bool:
    return sum(map(text.count, "([")) > sum(map(text.count, ")]"))


def _cell(text: str) -> str:
    """Escape text from a store or a claim for a cell of a Markdown table."""
    return html.escape(text.replace("\n", " "), quote=False).replace("*", "\\*").replace("_", "\\_")


def _figure(folder: str, store: Store) -> str:
    """The link to a study's first figure, an SVG where it has one; "" where it has none."""
    selector = pyarrow.fs.FileSelector(store.path(), recursive=True, allow_not_found=True)
    paths = [file.path for file in store.filesystem.get_file_info(selector) if "/report/" not in file.path]
    kept = [path for kind in (".svg", ".png") for path in sorted(paths) if path.endswith(kind)]
    return f"{folder}/{kept[0].removeprefix(store.path()).lstrip('/')}" if kept else ""
