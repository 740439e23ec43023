"""The scoreboard as text for a terminal and as a fragment of HTML for a page."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from results.claims import reductions, scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_REPRODUCED_SCALED, REPRODUCED, SCALED, VERDICTS, Verdict
from results.errors import DamagedFile, StudyError
from results.progress.status import left_out
from results.store.manifest import newest_manifest
from results.store.tables import Store

_YES, _NO = ("yes", "✓"), ("no", "✗")  # class and sign of a chip
_LOOKS = {REPRODUCED: _YES, SCALED: _YES, NOT_REPRODUCED: _NO, NOT_REPRODUCED_SCALED: _NO}


def show_claims(stores: Sequence[Store], say: Callable[[str], None]) -> int:
    """Print the scoreboard of each study that states claims; 1 where one is not reproduced or a study can't be read, else 0.

    The last line says what reduced studies leave open, unless another of the studies decides it at the paper's own size.
    Raises ValueError where none of them states a claim, and the last error where none can be read.
    """
    refuted = stated = unread = 0
    reduced: list[Verdict] = []
    decided: set[str] = set()
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
        if more := left_out(store):
            say(f"  {more.partition(': ')[2]}")
        changed = reductions(newest[1]) if newest else []
        if changed:
            say("  Changed from the study as written:")
        for line in changed:
            say(f"    {line}")
        for verdict in verdicts:
            for line in _lines(verdict):
                say(line)
        if changed:
            reduced += verdicts
        decided |= {verdict.claim.id for verdict in verdicts if verdict.verdict in (REPRODUCED, NOT_REPRODUCED)}
    if open_claims := [verdict for verdict in reduced if verdict.claim.id not in decided]:
        say(waiting(open_claims))
    if not stated:
        nobody = f"{stores[0].study} states no claim" if len(stores) == 1 else f"no study of {stores[0].root} states a claim"
        raise StudyError(f"{nobody}: add a section such as claims: {{R2: {{value: 1.0}}}}")
    return 1 if refuted else 0


def waiting(verdicts: Sequence[Verdict]) -> str:
    """What reduced studies leave open: their claims at the paper's own size, with the studies that decide them there, if any do."""
    claims = {verdict.claim.id: verdict.claim for verdict in verdicts}.values()
    named = [f"{claim.id} ({claim.study})" for claim in claims if claim.study and not claim.study_reduced]
    others = [claim.id for claim in claims if claim.study_reduced or not claim.study]
    sentences = [f"Open at the paper's own size: {', '.join(named)}."] if named else []
    if others:
        sentences.append(f"No study decides {', '.join(others)} at the paper's own size.")
    return " ".join(sentences)


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
    """The grounds of a verdict: the value and whose it is, what was measured (if anything was), and why that is the verdict."""
    terms, finding = verdict.terms, verdict.finding
    value = f"{terms.value:.0%} of {terms.of} replicates" if terms.of else f"{terms.value:g}"
    measured = [("measured", finding.measured)] if finding.measured else []
    whose = "the paper's number" if terms.value == verdict.claim.paper_value else "our threshold"
    return [("value", f"{value}, {whose} ({verdict.claim.quantity})"), *measured, ("why", finding.reason)]
