"""R3: large language models err on the English flip-flop, and more so the longer it is (Liu's thesis, figure 3.24 right)."""

import numpy as np
import scipy

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import percent
from results.claims.evidence import Condition, Evidence
from results.rows.summary import Score
from results.statistics.intervals import clopper_pearson

ALPHA = 0.05
PARAMETERS = 10e9  # the thesis: "10B-scale natural LMs"


def longer_is_worse(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the largest model beats chance at the shortest length, errs at the longest, and is less accurate the longer."""
    models = [condition for condition in evidence.of_task("english_flipflop") if _scores(condition)]
    if not models:
        settle(NOT_RUN, "no language model was asked: manyseeds language-model FOLDER --store STORE")
    largest = max(models, key=lambda model: (model.settings["model.parameters"], model.name))
    scores = _scores(largest)
    if len(scores) < 2:
        settle(NOT_RUN, f"{largest.name} was asked at one length alone, and a trend needs two")
    fewest = min(score.reads for score in scores.values())
    if fewest < needs:
        settle(TOO_FEW, f"{largest.name} was asked {fewest} strings of a length; the claim needs {needs}")
    shortest, longest = scores[min(scores)], scores[max(scores)]
    right = shortest.reads - shortest.errors
    above = clopper_pearson(right, shortest.reads)
    falls, rises = (trend(scores, side) for side in ("less", "greater"))
    measured = (
        f"{largest.name} ({largest.settings['model.parameters']:.3g} parameters) is right on {percent(right, shortest.reads)} strings of "
        f"length {min(scores)} and on {percent(longest.reads - longest.errors, longest.reads)} of length {max(scores)}; "
        f"falling trend: p = {falls:.2g}"
    )
    if largest.settings["model.parameters"] < PARAMETERS:
        settle(PRECONDITION, f"the claim is of models of {PARAMETERS / 1e9:g} billion parameters or more", measured)
    return decide(
        above.low > terms.value and longest.errors > 0 and falls < ALPHA,
        above.high < terms.value or longest.errors == 0 or rises < ALPHA,
        measured,
        f"more than {terms.value:.0%} right at the shortest length, an error at the longest, and a trend with p below {ALPHA:g}",
    )


def trend(scores: dict[int, Score], side: str) -> float:
    """One-sided p of a trend that falls (`less`) or rises (`greater`) with log length; 1 where all answers are alike.

    It tests the correlation of being right (0 or 1) with log length over all strings: the Cochran–Armitage test, with t for the normal.
    """
    answers = np.concatenate([np.repeat([1.0, 0.0], [score.reads - score.errors, score.errors]) for score in scores.values()])
    if answers.min() == answers.max():
        return 1.0
    lengths = np.repeat(np.log([float(length) for length in scores]), [score.reads for score in scores.values()])
    return float(scipy.stats.pearsonr(lengths, answers, alternative=side).pvalue)


def _scores(condition: Condition) -> dict[int, Score]:
    """Scores of a model by length; the sets are called length-16 and so on."""
    return {
        int(name.removeprefix("length-")): score
        for replicate in condition.replicates
        for name, score in sorted(replicate.scores.items())
        if name.startswith("length-")
    }


R3 = Claim(
    "R3",
    "Language models of 10 billion parameters or more follow a flip-flop told in English better than chance, not reliably, and worse the "
    "longer it is.",
    "Liu's thesis, result R3, section 3.5.6.2.1 and figure 3.24 right",
    "accuracy of a guess, which the largest model must exceed at the shortest length",
    100,
    "100 strings of a length: an accuracy of 65 % is told from a guess",
    longer_is_worse,
    command="manyseeds language-model",
    of_share=True,
)
