"""The scoreboard of all claims as a page of Markdown: a table for each family, with links to the studies that decide them."""

import html
from collections.abc import Mapping, Sequence
from types import ModuleType

import pyarrow.fs

from results.claims import FAMILIES, reductions, scoreboard
from results.claims.claim import NOT_RUN, Claim, Verdict
from results.store.manifest import newest_manifest
from results.store.tables import Store

_SEEN = 160  # characters of what was measured; `manyseeds claims` prints all of it
_HEAD = """# Studies that were run

Every claim of every paper, and what the committed studies say of it. This page is made from the
tables beside it by `manyseeds claims docs/studies --markdown`. Without `--markdown` that command prints all
that was measured, and why.

- A verdict is *(scaled)* where anything is smaller than in the paper; the command prints what.
- *Precondition not met*: a compared condition has not learned what it was trained on.
- *Too few replicates*: the numbers decide neither for the claim nor against it.
- *Not run*: no committed study has the rows; the study that is named decides it.
- The pages of the families tell what was seen and what it means.
- `manyseeds report docs/studies/<folder>` makes a study's report from its tables.
"""


def markdown(stores: Mapping[str, Store]) -> str:
    """The page. stores: the committed studies by their folders, as the page links to them."""
    verdicts: dict[str, list[tuple[str, Verdict, Mapping[str, object]]]] = {}
    for folder, store in stores.items():
        newest = newest_manifest(store)
        for verdict in scoreboard(store):
            verdicts.setdefault(verdict.claim.id, []).append((folder, verdict, newest[1] if newest else {}))
    figures = {folder: _figure(folder, store) for folder, store in stores.items()}
    return "\n".join([_HEAD, *(_family(family, verdicts, figures) for family in FAMILIES)])


def _family(
    family: ModuleType, verdicts: Mapping[str, Sequence[tuple[str, Verdict, Mapping[str, object]]]], figures: Mapping[str, str]
) -> str:
    name = family.__name__.rpartition(".")[2]
    title = (family.__doc__ or name).split("\n")[0].removeprefix("The claims on ").rstrip(".")
    lines = [f"## {title[0].upper()}{title[1:]}\n"]
    if any(folder.startswith(f"{name}/") for folder in figures):
        lines.append(f"[What was seen and what it means]({name}/README.md)\n")
    lines += ["| claim | verdict | what was seen | replicates | scale | study |", "|---|---|---|---|---|---|"]
    for claim in family.CLAIMS.values():
        rows = verdicts.get(claim.id, [])
        lines += [_row(folder, verdict, manifest, figures[folder]) for folder, verdict, manifest in rows] or [_open(claim)]
    return "\n".join(lines) + "\n"


def _row(folder: str, verdict: Verdict, manifest: Mapping[str, object], figure: str) -> str:
    seen = verdict.finding.measured or verdict.finding.reason
    counts = sorted({condition["replicates"] for condition in manifest["conditions"]})  # type: ignore[attr-defined]
    scale = str(manifest["scale"]) if not reductions(dict(manifest)) or manifest["scale"] != "paper" else "reduced"
    links = f"[{folder.rpartition('/')[2]}]({folder})" + (f", [figure]({figure})" if figure else "")
    shown = [
        _named(verdict.claim),
        verdict.verdict,
        _cell(_short(seen)),
        "–".join(dict.fromkeys(str(count) for count in (counts[0], counts[-1]))),
        _cell(scale),
        links,
    ]
    return f"| {' | '.join(shown)} |"


def _open(claim: Claim) -> str:
    study = f"`{claim.study}`" if claim.study else ""
    return f"| {_named(claim)} | {NOT_RUN} | | | | {study} |"


def _named(claim: Claim) -> str:
    return f"**{claim.id}** {_cell(claim.sentence)}"


def _short(text: str) -> str:
    """The first parts of a text, as far as they fit."""
    if len(text) <= _SEEN:
        return text
    kept = text[:_SEEN]
    for mark in ("; ", ", ", " "):
        if mark in kept[_SEEN // 2 :]:
            return kept[: kept.rindex(mark)] + " …"
    return kept + " …"


def _cell(text: str) -> str:
    """Text of a store or a claim, so that it is text in a table too."""
    return html.escape(text.replace("\n", " "), quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _figure(folder: str, store: Store) -> str:
    """The link to a study's first figure; "" where it has none."""
    selector = pyarrow.fs.FileSelector(store.path(), recursive=True, allow_not_found=True)
    paths = sorted(file.path for file in store.filesystem.get_file_info(selector) if file.path.endswith(".svg"))
    kept = [path for path in paths if "/report/" not in path]
    return f"{folder}/{kept[0].removeprefix(store.path()).lstrip('/')}" if kept else ""
