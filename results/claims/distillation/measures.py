"""R5: what the n-gram measures and the probe of non-terminals say of students (Panigrahi et al. 2025).

Rows are those of `manyseeds probe STORE --probe ngrams` and `--probe nonterminals`. A lower L_close is called better, as the thesis
says, although it also means less use of the context outside the window.
"""

from collections.abc import Callable, Mapping
from statistics import fmean

from results.claims.claim import NOT_RUN, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between
from results.claims.distillation.ideal import beside
from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE
from results.claims.distillation.students import Cell, cells, gate_teacher, majority
from results.claims.distillation.sweep import PEAK, Values, probed
from results.claims.evidence import Evidence, Seeds
from results.claims.requirements import gate, require_each
from results.rows.accuracy_curves import looks, watched
from results.rows.probe_values import parts
from results.statistics.intervals import CONFIDENCE, clopper_pearson
from results.statistics.unpaired import superiority

LONG = 4  # from this n on a window is called long; ours
LEVELS = 3  # of which some are higher than others


def progress_is_better(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """By seed, the progressive student against each of the others: three measures, means over n, long n, and higher levels."""
    complete = cells(evidence, (LABELS, ONE_SHOT, PROGRESSIVE), needs)
    gate_teacher(complete, terms.gate)
    cell = max(complete, key=lambda cell: (cell.horizon <= cell.teacher.settings["train.steps"], cell.horizon))
    arms = list(cell.arms.values())
    ngrams = probed(evidence, [*arms, cell.teacher], "ngrams", needs)
    gate_past_peak(evidence, cell, ngrams, terms.gate)
    symbols = probed(evidence, arms, "nonterminals", needs)
    measures = {"L_robust": _robust, "L_close": _close, "non-terminals": _symbols}
    compared, strict = [], 1 - (1 - CONFIDENCE) / (2 * len(measures))
    for title, measure in measures.items():
        values = symbols if measure is _symbols else ngrams
        for other in (ONE_SHOT, LABELS):
            progressive, theirs = (_of(cell, kind, values, measure) for kind in (PROGRESSIVE, other))
            if other == LABELS:  # shares neither weights nor strings with the others
                require_each(len(progressive), len(theirs), needs, "were measured")
                samples = list(theirs.values()), list(progressive.values())
                chance, share = superiority(*samples, CONFIDENCE)
                up, down = share.low > terms.value, superiority(*samples, strict)[1].high < terms.value
                text = f"in {chance:.0%} of pairs {between(share)}, unpaired"
            else:
                better = [progressive[seeds] - theirs[seeds] for seeds in progressive if seeds in theirs]
                up, down = majority(better, needs, 2 * len(measures), terms.value)
                share = clopper_pearson(sum(gain > 0 for gain in better), len(better))
                text = f"{sum(gain > 0 for gain in better)} of {len(better)} {between(share)}"
            compared.append(Part(up, down, f"{title} than {other}: {text}"))
    return decide_all(
        compared,
        f"at {cell.horizon} steps the progressive student is better in ",
        f"each of the six must hold in more than {terms.value:.0%} of all replicates: lower mean L_robust over n, lower mean L_close "
        f"over n of {LONG} or more, better probe of the upper half of the levels ({LONG} and the half are ours)",
        beside(cell.teacher.settings),
    )


def gate_past_peak(evidence: Evidence, cell: Cell, ngrams: Values, share: float) -> None:
    """Settle a claim unless in `share` of the replicates all students end more accurate than their teacher was where its L_robust of
    3-grams is largest: before that peak a low L_robust says that little was learned."""
    if evidence.evaluations is None or (name := watched(evidence.evaluations)) is None:
        settle(NOT_RUN, "no set is scored on the way, so it is not known how accurate the teacher was at its peak of L_robust")
    curves = looks(evidence.evaluations, name)
    ends = [cell.accuracy(kind) for kind in cell.arms]
    past = {}
    for replicate in cell.teacher.replicates:
        seeds, rows = replicate.seeds, ngrams.get(replicate.key, {})
        peak = max(rows, key=lambda step: rows[step][PEAK], default=0)
        before = [value for step, value in curves.get(replicate.key, []) if step <= peak]
        if before and all(seeds in end for end in ends):
            past[seeds] = min(end[seeds] for end in ends) > before[-1]
    what = "teachers have students that all end more accurate than it was where its L_robust is largest"
    gate(sum(past.values()), len(past), share, what, "must: before that a low L_robust says that little was learned")


def _of(cell: Cell, kind: str, values: Values, measure: Callable[[Mapping[str, float]], float]) -> dict[Seeds, float]:
    """A measure at each replicate's last step, by seeds."""
    rows = {replicate.seeds: values[replicate.key] for replicate in cell.arms[kind].replicates if replicate.key in values}
    return {seeds: measure(steps[max(steps)]) for seeds, steps in rows.items()}


def _robust(items: Mapping[str, float]) -> float:
    """Minus the mean over n: higher is better."""
    return -fmean(value for item, value in items.items() if item.startswith("robust") and item.endswith("tv"))


def _close(items: Mapping[str, float]) -> float:
    lengths = {item: int(gaps[0]) for item in items if (gaps := parts(item, "close n={n} tv"))}
    long = [items[item] for item, length in lengths.items() if length >= LONG]
    if not long:
        settle(
            NOT_RUN, f"the probe of n-grams has no window of {LONG} tokens or more: probe with --option largest={LONG} or more"
        )
    return -fmean(long)


def _symbols(items: Mapping[str, float]) -> float:
    """The upper half of the levels, those nearest to the root, the middle one with them."""
    levels = sorted(int(gaps[0]) for item in items if (gaps := parts(item, "level={n} boundary")))
    if len(levels) < LEVELS:
        settle(
            NOT_RUN,
            f"the probe of non-terminals has {len(levels)} levels, and higher ones can be told from lower ones among {LEVELS} or more: "
            "use a larger root",
        )
    return fmean(items[f"level={level} boundary"] for level in levels[: -(-len(levels) // 2)])


R5 = Claim(
    "PD-R5",
    "On average over n, a progressive student has lower L_robust and, for long n-grams (here of 4 or more), lower L_close than "
    "students of the last checkpoint and of labels, and a better probe of the higher non-terminals.",
    "Panigrahi et al. 2025; thesis, figure 4.8, L_robust “for all n-gram contexts”; no numbers printed",
    "share of replicates, more than which must be better",
    10,
    "10 replicates: that most are, where 97 % of all are in all six comparisons",
    progress_is_better,
    "distillation/p13",
    of_share=True,
)
