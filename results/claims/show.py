"""The scoreboard as text for a terminal and as a fragment of HTML for a page."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from results.claims import reductions, scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_REPRODUCED_SCALED, REPRODUCED, SCALED, VERDICTS, Verdict
from results.errors import DamagedFile, StudyError
from results.store.manifest import newest_manifest
from results.store.tables import Store

_YES, _NO = ("yes", "✓"), ("no", "✗")  # class and sign of a chip
_LOOKS = {REPRODUCED: _YES, SCALED: _YES, NOT_REPRODUCED: _NO, NOT_REPRODUCED_SCALED: _NO}


def show_claims(stores: Sequence[Store], say: Callable[[str], None]) -> int:
    """Print the scoreboard of each study that states claims; 1 where one is not reproduced or a study can't be read, else 0.

    Raises ValueError where none of them states a claim, and the last error where none can be read.
    """
    refuted = stated = unread = 0
    for store in stores:
        try:
            verdicts = scoreboard(store)
        except (StudyError, DamagedFile) as error:
            unread += 1
            if unread == len(stores):
                raise
            say(f"{store.study}: {error}")
            refuted += isinstance(error, DamagedFile)
            continue
        if not verdicts:
            continue
        stated += len(verdicts)
        refuted += sum(verdict.refuted for verdict in verdicts)
        newest = newest_manifest(store)
        say(store.study)
        changed = reductions(newest[1]) if newest else []
        if changed:
            say("  Changed from the study as written:")
        for line in changed:
            say(f"    {line}")
        for verdict in verdicts:
            for line in _lines(verdict):
                say(line)
        if changed:
            say(waiting(verdicts))
    if not stated:
        raise StudyError(f"no study of {stores[0].root} states a claim: add a section such as claims: {{R2: {{value: 1.0}}}}")
    return 1 if refuted else 0


def waiting(verdicts: Sequence[Verdict]) -> str:
    """The sentence on what a reduced study leaves open: its claims at the paper's size, with the studies that decide them."""
    studies = ", ".join(
        f"{verdict.claim.id} ({verdict.claim.study})" if verdict.claim.study else verdict.claim.id for verdict in verdicts
    )
    return f"Open at the paper's own size: {studies}."


def html(verdicts: Sequence[Verdict], reduced: bool = False) -> Markup:
    """The scoreboard as chips, one a claim, that unfold what was measured; nothing where there is none. The page has the classes.

    reduced: whether the study is smaller than the paper's, so that a line says what is still open there.
    """
    if not verdicts:
        return Markup("")
    counts = [(kind, sum(verdict.verdict == kind for verdict in verdicts)) for kind in VERDICTS]
    tally = ", ".join(f"{count} {kind}" for kind, count in counts if count)
    return Markup(
        '<section aria-labelledby="claims">\n<h2 id="claims">Claims <small>{}</small></h2>\n'
        '<div id="claims-board">\n{}</div>\n{}</section>\n'
    ).format(tally, Markup("").join(map(_chip, verdicts)), Markup("<p>{}</p>\n").format(waiting(verdicts)) if reduced else "")


def _chip(verdict: Verdict) -> Markup:
    parts = [("claim", f"{verdict.claim.sentence} ({verdict.claim.source})"), *_judged(verdict)]
    return Markup(
        '<details class="chip {}"><summary><span aria-hidden="true">{}</span> <b>{}</b> <span>{}</span></summary>\n<dl>{}</dl></details>\n'
    ).format(
        *_LOOKS.get(verdict.verdict, ("open", "○")),
        verdict.claim.id,
        verdict.verdict,
        Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(*part) for part in parts),
    )


def _lines(verdict: Verdict) -> list[str]:
    return [
        f"{verdict.claim.id}  {verdict.verdict}",
        f"    {verdict.claim.sentence}",
        f"    paper: {verdict.claim.source}",
        *(f"    {name}: {text}" for name, text in _judged(verdict)),
    ]


def _judged(verdict: Verdict) -> list[tuple[str, str]]:
    """The grounds of a verdict: the paper's value, what was measured (if anything was), and why that is the verdict."""
    terms, finding = verdict.terms, verdict.finding
    value = f"{terms.value:.0%} of {terms.of} replicates" if terms.of else f"{terms.value:g}"
    measured = [("measured", finding.measured)] if finding.measured else []
    return [("value", f"{value} ({verdict.claim.quantity})"), *measured, ("why", finding.reason)]
