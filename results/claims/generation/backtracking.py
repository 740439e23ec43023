"""BT1 to BT5: trained generators that backtrack where a trained verifier refuses a prefix (Li 2025, section 3.2.1; Botta et al. 2025).

Rows are those of the probe `backtracking`. A generator is the unit: its values are means over its verifiers, and all generators complete
the same prompts. Thresholds were fixed before the reported generators were trained.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from results.claims.claim import PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, median, percent
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import gate_learned, only, own_sets, require, require_probed
from results.rows.probe_values import Items, by_item, parts
from results.statistics.bootstrap import divide
from results.statistics.intervals import Floats, clopper_pearson, quantile

PROBE = "backtracking"
LEARNED = 0.005  # most that a generator errs on its own closing brackets; the thesis' one does not err, and the number is ours
ERRING = 0.005  # least share of completions of a generator alone that are wrong, so that there is something to lower; ours
JUDGING = 0.75  # least median accuracy of a generator's verifiers on held-out examples (thesis: 0.93); ours
DIVERSE = 2.0  # least median of distinct completions of ten without a verifier; with 1 no ratio could be below 1. Ours
QUOTAS, STRIDES = (1, 2, 4), (2, 4, 6)
HEADLINE = "Q=4 B=4"
# errors in 10,000 completions with their standard errors, by top_p: without a verifier, and with one at Q = B = 4
TABLE_3_3 = {"0.9": ((240.0, 5.177), (179.4, 1.020)), "1": ((461.8, 8.304), (200.0, 3.225))}

Values = Mapping[str, float]  # of a generator, by item


def errors_fall_with_quota_and_stride(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the shares of generators of which more error prompts end well in each of four comparisons.

    They compare a larger quota with a smaller one, a larger stride with a smaller one, both with no verifier, and one cut of eight tokens
    with one of a single token. An error prompt is one that led to an error.
    """
    generators = probed(evidence, needs)

    def right(quotas: tuple[int, ...], strides: tuple[int, ...]) -> Floats:
        forms = [f"error thesis Q={q} B={b} verifier={{n}} right" for q in quotas for b in strides]
        return np.array([np.mean([mean(values, form) for form in forms]) for values in generators])

    def alone(item: str) -> Floats:
        return np.array([values[item] for values in generators])

    pairs = {
        "quota 1 → 4": (right((1,), STRIDES), right((4,), STRIDES)),
        "stride 2 → 6": (right(QUOTAS, (2,)), right(QUOTAS, (6,))),
        "no verifier → 4 and 6": (alone("error plain right"), right((4,), (6,))),
        "one cut of 1 → of 8": (alone("error once B=1 right"), alone("error once B=8 right")),
    }
    confidence, texts, shares = 1 - 0.05 / len(pairs), [], []
    for name, (less, more) in pairs.items():
        better = int((more > less).sum())
        shares.append(clopper_pearson(better, len(generators), confidence))
        share = percent(better, len(generators), confidence)
        texts.append(f"{name}: {np.median(less):.3f} → {np.median(more):.3f}, more in {share}")
    return decide(
        *above(shares, terms.value),
        "median share that ends well, " + "; ".join(texts),
        f"each must rise in more than {terms.value:g} of the generators, whole intervals at 98.75 %, and one that is below refutes",
    )


def fewer_errors(evidence: Evidence, terms: Terms, needs: int, top: str) -> Finding:
    """Judge whether fewer completions of fresh prompts are wrong with Q = B = 4 than without a verifier, by their ratio.

    The thesis' ratio is printed beside it, and not judged by: it is an estimate, with an error of its own.
    """
    generators = probed(evidence, needs)
    alone = np.array([values[f"fresh top={top} plain wrong"] for values in generators])
    verified = np.array([mean(values, f"fresh top={top} thesis {HEADLINE} verifier={{n}} wrong") for values in generators])
    ratio = median(verified / alone)
    (before, before_error), (after, after_error) = TABLE_3_3[top]
    theirs = after / before
    error = theirs * math.hypot(before_error / before, after_error / after)
    return decide(
        ratio.interval.high < 1,
        ratio.interval.low >= 1,
        f"median errors of a generator alone {np.median(alone):.2%}; a verifier multiplies them by a median of {ratio:.3f}, in the thesis "
        f"by {theirs:.3f} ± {error:.3f} (standard error)",
        "errors must fall: the whole interval must be below 1, and it refutes where none of it is",
    )


def needed_backtracks_are_predicted(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of refused prefixes that end badly without a verifier.

    For prompts that led to an error, with nucleus 0.9 and greedily; for fresh prompts, beside as many prefixes refused at random.
    """
    generators = probed(evidence, needs)
    confidence, texts, tests = 1 - 0.05 / 3, [], []
    for way in ("nucleus", "greedy"):
        forms = [f"error thesis Q={q} B={b} verifier={{n}} flagged_{way}_right" for q in QUOTAS for b in STRIDES]
        bad = 1 - np.array([np.mean([mean(values, form) for form in forms]) for values in generators])
        share_bad = median(bad, confidence)
        tests.append(above([share_bad.interval], terms.value))
        texts.append(f"{way} {share_bad:.3f}")
    flagged = f"fresh top=0.9 thesis {HEADLINE} {{kind}}={{n}} flagged_nucleus_right"
    own, random = (
        1 - np.array([mean(values, flagged.replace("{kind}", kind)) for values in generators])
        for kind in ("verifier", "random")
    )
    worse = int((own > random).sum())
    tests.append(above([clopper_pearson(worse, len(generators), confidence)], 0.5))
    return decide(
        all(holds for holds, _ in tests),
        any(fails for _, fails in tests),
        f"median share of refused prefixes that end badly: {', '.join(texts)}; on fresh prompts {np.median(own):.3f}, refused at random "
        f"{np.median(random):.3f}, more in {percent(worse, len(generators), confidence)}",
        f"the first two must exceed {terms.value:g}, and the third what chance refuses in most generators, whole intervals at 98.3 %",
    )


def most_probable_tokens_matter(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of generators that err more with sampled tokens after a cut than with the most probable ones."""
    generators = probed(evidence, needs)
    thesis, sampled = (
        np.array([mean(values, f"fresh top=0.9 {way} {HEADLINE} verifier={{n}} wrong") for values in generators])
        for way in ("thesis", "sampled")
    )
    worse = int((sampled > thesis).sum())
    times = np.where(sampled == thesis, 1.0, divide(sampled, thesis))
    return decide(
        *above([clopper_pearson(worse, len(generators))], terms.value),
        f"sampled errs more in {percent(worse, len(generators))}; medians {np.median(thesis):.3%} → {np.median(sampled):.3%}, "
        f"{quantile(times, 0.5):.2f}×",
        f"it must in more than {terms.value:g} of the generators, the whole interval, and it refutes below",
    )


def diversity_stays(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the number of distinct completions of ten with Q = B = 4, as a share of that without a verifier, both without a nucleus."""
    generators = probed(evidence, needs)
    alone = np.array([values["diverse top=1 plain distinct"] for values in generators])
    if np.median(alone) < DIVERSE:
        settle(
            PRECONDITION,
            f"in the median generator {np.median(alone):.2f} completions of ten are distinct without a verifier: at least {DIVERSE:g} "
            "must be, or there is no diversity to keep",
        )
    verified = np.array([mean(values, f"diverse top=1 thesis {HEADLINE} verifier={{n}} distinct") for values in generators])
    ratio = median(verified / alone)
    return decide(
        ratio.interval.low >= terms.value,
        ratio.interval.high < terms.value,
        f"median of distinct completions of ten {np.median(alone):.2f} → {np.median(verified):.2f}; their ratio's median is {ratio:.3f}",
        f"it must be at least {terms.value:.3g}, the whole interval, and refutes below",
    )


def probed(evidence: Evidence, needs: int) -> Sequence[Values]:
    """The values of every generator by item; settles a claim unless they have learned, err, and have verifiers that judge."""
    condition = only(evidence.of_task("bracket_strings"), "on bracket_strings")
    require([condition], own_sets(evidence, condition), needs)
    gate_learned(evidence, [condition], most=LEARNED, share=1.0)
    require_probed(evidence, [condition], PROBE, needs)
    generators = values_by_item(evidence, condition)
    for values in generators:
        erring = min(values[f"fresh top={top} plain wrong"] for top in ("0.9", "1"))
        if erring < ERRING:
            settle(
                PRECONDITION,
                f"a generator alone errs on {erring:.2%} of the fresh prompts: at least {ERRING:.1%} must be wrong",
            )
        accuracy = [value for item, value in values.items() if parts(item, "verifier={n} accuracy")]
        if not accuracy or np.median(accuracy) < JUDGING:
            judged = f"{np.median(accuracy):.2f}" if accuracy else "none"
            settle(PRECONDITION, f"the median accuracy of a generator's verifiers is {judged}, and {JUDGING:g} is asked")
    return generators


def values_by_item(evidence: Evidence, condition: Condition) -> list[Items]:
    """The probe's values of each replicate."""
    return [by_item(values) for _, values in evidence.probed(condition, PROBE)]


def mean(values: Values, form: str) -> float:
    """The mean of a form's values over a generator's verifiers; a verifier that refused no prefix may have none.

    Settles a claim where no verifier has one.
    """
    by_verifier = matching(values, form)
    if not by_verifier:
        settle(PRECONDITION, f"a generator has no values {form.replace('{n}', '…')}: none of its verifiers refused a prefix")
    return float(np.mean(by_verifier))


def matching(values: Values, form: str) -> list[float]:
    """The values of a generator whose items have a form (`results.rows.probe_values.parts`), which may be an item itself."""
    start, gap, _ = form.partition("{n}")
    if not gap:
        return [values[form]] if form in values else []
    return [value for item, value in values.items() if item.startswith(start) and parts(item, form)]  # few start so


_SOURCE = "Li 2025, section 3.2.1"
_POWER = "8 generators: shown where 97 % of all generators have it"
_STUDY = "generation/trained_generators"
BT1 = Claim(
    "BT1",
    "On prompts that led to an error, more completions end well with a larger quota of backtracks and with a larger stride.",
    f"{_SOURCE}, tables 3.1 and 3.2",
    "share of generators to be exceeded",
    8,
    _POWER,
    errors_fall_with_quota_and_stride,
    _STUDY,
    study_reduced=True,
    of_share=True,
)
BT2 = Claim(
    "BT2",
    "With nucleus 0.9, errors fall with a quota and a stride of 4 (thesis: from 240 to 179 of 10,000).",
    f"{_SOURCE}, table 3.3",
    "ratio of errors with and without a verifier; ours must be below 1",
    8,
    _POWER,
    partial(fewer_errors, top="0.9"),
    _STUDY,
    study_reduced=True,
    paper_value=0.7475,
)
BT2_ALL = Claim(
    "BT2-all",
    "Without a nucleus, errors fall with a quota and a stride of 4 (thesis: from 462 to 200 of 10,000).",
    f"{_SOURCE}, table 3.3",
    "ratio of errors with and without a verifier; ours must be below 1",
    8,
    _POWER,
    partial(fewer_errors, top="1"),
    _STUDY,
    study_reduced=True,
    paper_value=0.433,
)
BT3 = Claim(
    "BT3",
    "On prompts that led to an error the backtracks that a verifier asks for are needed: most of the prefixes that it refuses would "
    "end badly without them.",
    f"{_SOURCE}, table 3.4",
    "share of refused prefixes to be exceeded; 0.63 on average in the thesis",
    8,
    _POWER,
    needed_backtracks_are_predicted,
    _STUDY,
    study_reduced=True,
    of_share=True,
)
BT4 = Claim(
    "BT4",
    "Taking the most probable tokens after a cut matters: where they are sampled, errors are higher (246 instead of 179).",
    f"{_SOURCE}, table 3.16",
    "share of generators to be exceeded",
    8,
    _POWER,
    most_probable_tokens_matter,
    _STUDY,
    study_reduced=True,
    of_share=True,
)
BT5 = Claim(
    "BT5",
    "Backtracking keeps completions diverse (thesis: 5.52 of ten are distinct, and 5.84 without a verifier).",
    f"{_SOURCE}, table 3.5",
    "least ratio of distinct completions with and without a verifier; 0.945 in the thesis",
    8,
    _POWER,
    diversity_stays,
    _STUDY,
    study_reduced=True,
)
