"""The scoreboard as text for a terminal and as a fragment of HTML for a page."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from results.claims import reductions, scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_REPRODUCED_SCALED, REPRODUCED, SCALED, VERDICTS, Verdict
from results.errors import StudyError
from results.store.manifest import newest_manifest
from results.store.tables import Store

_YES, _NO = ("yes", "✓"), ("no", "✗")  # class and sign of a chip
_LOOKS = {REPRODUCED: _YES, SCALED: _YES, NOT_REPRODUCED: _NO, NOT_REPRODUCED_SCALED: _NO}


def show_claims(stores: Sequence[Store], say: Callable[[str], None]) -> int:
    """Print the scoreboard of each study that states claims; 1 where one is not reproduced, else 0.

    Raises ValueError where none of them states a claim.
    """
    refuted = stated = 0
    for store in stores:
        found = scoreboard(store)
        if not found:
            continue
        stated += len(found)
        refuted += sum(each.refuted for each in found)
        newest = newest_manifest(store)
        say(store.study)
        for line in reductions(newest[1]) if newest else []:
            say(f"  {line}")
        for each in found:
            for line in _lines(each):
                say(line)
        if newest and reductions(newest[1]):
            say(waiting(found))
    if not stated:
        raise StudyError(f"no study of {stores[0].root} states a claim: add a section such as claims: {{R2: {{value: 1.0}}}}")
    return 1 if refuted else 0


def waiting(found: Sequence[Verdict]) -> str:
    """What a reduced study leaves open: its claims at the paper's own size, with the studies that decide them there."""
    studies = ", ".join(f"{each.claim.id} ({each.claim.study})" if each.claim.study else each.claim.id for each in found)
    return f"Open at the paper's own size: {studies}."


def html(found: Sequence[Verdict], reduced: bool = False) -> Markup:
    """The scoreboard as chips, one a claim, that unfold what was measured; nothing where there is none. The page has the classes.

    reduced: whether the study is smaller than the paper's, so that a line says what is still open there.
    """
    if not found:
        return Markup("")
    counts = [(verdict, sum(each.verdict == verdict for each in found)) for verdict in VERDICTS]
    tally = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    return Markup(
        '<section aria-labelledby="claims">\n<h2 id="claims">Claims <small>{}</small></h2>\n'
        '<div id="claims-board">\n{}</div>\n{}</section>\n'
    ).format(tally, Markup("").join(map(_chip, found)), Markup("<p>{}</p>\n").format(waiting(found)) if reduced else "")


def _chip(each: Verdict) -> Markup:
    parts = [
        ("claim", f"{each.claim.sentence} ({each.claim.source})"),
        ("value", _value(each)),
        *([("measured", each.finding.measured)] if each.finding.measured else []),
        ("why", each.finding.reason),
    ]
    return Markup(
        '<details class="chip {}"><summary><span aria-hidden="true">{}</span> <b>{}</b> <span>{}</span></summary>\n<dl>{}</dl></details>\n'
    ).format(
        *_LOOKS.get(each.verdict, ("open", "○")),
        each.claim.id,
        each.verdict,
        Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(*part) for part in parts),
    )


def _lines(each: Verdict) -> list[str]:
    return [
        f"{each.claim.id}  {each.verdict}",
        f"    {each.claim.sentence}",
        f"    value: {_value(each)}; {each.claim.source}",
        *([f"    measured: {each.finding.measured}"] if each.finding.measured else []),
        f"    {each.finding.reason}",
    ]


def _value(each: Verdict) -> str:
    terms = each.terms
    value = f"{terms.value:.0%} of {terms.of} replicates" if terms.of else f"{terms.value:g}"
    return f"{value} ({each.claim.quantity})"
