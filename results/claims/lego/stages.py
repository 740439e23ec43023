"""L6, L7 and L8: models of all permutations that are trained on chains they labelled themselves (Huang et al. 2025, figure 1b)."""

from typing import NamedTuple

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.lego.lengths import FAR, FARTHEST, PRACTICAL, gated, learned, of_family, only, wrong
from results.claims.lego.sentences import SIMPLY_TRANSITIVE, SYMMETRY
from results.claims.requirements import require
from results.statistics.intervals import Floats, clopper_pearson, quantile, quantile_interval

SELF = {"stage.labels": "previous", "stage.init": "previous"}  # labelled by the stage before, whose weights go on


class Chain(NamedTuple):
    """The stages of one condition, the first included, in order; `along`: sets by length, as of the first stage's training length."""

    stages: list[Condition]
    along: dict[int, str]

    @property
    def trained(self) -> list[int]:
        """The training length of each stage."""
        return [each.settings["task.length"] for each in self.stages]


def chain(evidence: Evidence, terms: Terms, needs: int) -> Chain:
    """The practical model on all permutations with its warm self-training; settles the claim where it is not all there."""
    first = only(of_family(evidence, SYMMETRY, PRACTICAL), "the practical model on all permutations")
    later = of_family(evidence, SYMMETRY, PRACTICAL | SELF, later=True)
    later.sort(key=lambda each: each.settings["stage.number"])
    if not later or [each.settings["stage.number"] for each in later] != list(range(1, len(later) + 1)):
        settle(NOT_RUN, "no condition goes on from its own weights, stage after stage, on chains that it labelled itself")
    along = gated(evidence, first, terms, needs)
    found = Chain([first, *later], along)
    missing = [length for length in found.trained if length not in along]
    if missing:
        settle(NOT_RUN, f"no set has sentences of {missing[0]}, at which a stage is trained")
    require(later, along.values(), needs)
    return found


def by_stage(evidence: Evidence, found: Chain, name: str) -> Floats:
    """[stages, replicates] shares of sentences that are not right throughout, replicates in the order of their seeds."""
    rows = [ordered(evidence, each, name) for each in found.stages]
    common = sorted(set.intersection(*(set(row) for row in rows)))
    return np.array([[row[seeds] for seeds in common] for row in rows], dtype=np.float64)


def ordered(evidence: Evidence, condition: Condition, name: str) -> dict[tuple[int, int], float]:
    """Shares of sentences that are not right throughout, by (init_seed, data_seed)."""
    numbered = [each for each in condition.replicates if each.status == "diverged" or name in each.scores]
    values = wrong(evidence, condition, name)
    return dict(zip(((each.init_seed, each.data_seed) for each in numbered), values.tolist(), strict=True))


def every_stage_goes_farther(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In more than half of the replicates each stage reaches farther than the one before, and twice its own training length."""
    found = chain(evidence, terms, needs)
    lengths = np.array([0, *found.along])
    right = np.stack([by_stage(evidence, found, name) for name in found.along.values()]) <= 1 - terms.value
    reached = lengths[np.logical_and.accumulate(right, axis=0).sum(0)]  # [stages, replicates]
    farther = (np.diff(reached, axis=0) > 0) | (reached[1:] == lengths[-1])
    twice = reached >= np.minimum(2 * np.array(found.trained), lengths[-1])[:, None]
    good = farther.all(0) & twice[1:].all(0)
    share = clopper_pearson(int(good.sum()), good.size)
    shown = "; ".join(
        f"trained on {trained}: {quantile(row.astype(np.float64), 0.5):g} ({row.min():g} to {row.max():g})"
        for trained, row in zip(found.trained, reached, strict=True)
    )
    return decide(
        share.low > 0.5,
        share.high < 0.5,
        f"{terms.value:g} is kept up to, median and range over seeds: {shown}; {int(good.sum())} of {good.size} replicates hold",
        "more than half must reach farther with every stage, and twice the length that a stage is trained on",
    )


def last_stage_equals_simply_transitive(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Medians of the longest sentences, of the last stage and of the simply transitive action after its only stage, by seed."""
    found = chain(evidence, terms, needs)
    other = only(of_family(evidence, SIMPLY_TRANSITIVE, PRACTICAL), "the practical model on a simply transitive action")
    longest = max(found.along)
    if longest < FARTHEST * found.trained[0]:
        settle(NOT_RUN, f"the longest sentences are of {longest}, and the claim is of {FARTHEST} times {found.trained[0]}")
    require([other], found.along.values(), needs)
    missed = learned(evidence, other, found.along[found.trained[0]], terms.gate)
    if missed is not None:
        settle(PRECONDITION, missed)
    mine, theirs = (ordered(evidence, each, found.along[longest]) for each in (found.stages[-1], other))
    common = sorted(mine.keys() & theirs.keys())
    if len(common) < needs:
        settle(
            TOO_FEW, f"{len(common)} seeds are common to {found.stages[-1].name} and {other.name}, and the claim needs {needs}"
        )
    behind = np.array([mine[seeds] - theirs[seeds] for seeds in common])  # positive: fewer sentences right
    if quantile(np.array([theirs[seeds] for seeds in common]), 0.5) > 1 - FAR:
        settle(
            PRECONDITION, f"the median accuracy of {other.name} at {longest} is below {FAR:g}, which nobody calls near-perfect"
        )
    interval = quantile_interval(behind, 0.5)
    a, b = (1 - quantile(np.array([each[seeds] for seeds in common]), 0.5) for each in (mine, theirs))
    return decide(
        interval.high <= terms.value,
        interval.low > terms.value,
        f"median accuracy at {longest}: {found.stages[-1].name} {a:.3f}, {other.name} {b:.3f}; behind by seed, median and interval: "
        f"{quantile(behind, 0.5):.3f} ({interval.low:.3f} to {interval.high:.3f})",
        f"the median of the differences must be {terms.value:g} or less",
    )


def labels_are_right(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In more than half of the replicates, every stage answers the chains that the next is trained on."""
    found = chain(evidence, terms, needs)
    shares = np.stack(
        [1 - by_stage(evidence, found, found.along[length])[at] for at, length in enumerate(found.trained[1:])]
    )  # [stages - 1, replicates]
    good = (shares >= terms.value).all(0)
    share = clopper_pearson(int(good.sum()), good.size)
    shown = "; ".join(
        f"of {length} by {stage.name}: {row.min():.3f} / {quantile(row, 0.5):.3f}"
        for length, stage, row in zip(found.trained[1:], found.stages, shares, strict=False)
    )
    return decide(
        share.low > 0.5,
        share.high < 0.5,
        f"share of chains labelled right, worst / median of seeds: {shown}; {int(good.sum())} of {good.size} replicates hold",
        f"in more than half every stage must label {terms.value:g} of the next one's chains right",
    )


_MOST = "that most replicates do, where 97 % of all do"
L6 = Claim(
    "L6",
    "With every stage of self-training the model is right on longer chains, and on twice those it was trained on.",
    "Huang et al. 2025, theorem 5.1 and figure 1b, no numbers printed",
    "accuracy that counts as right",
    6,
    _MOST,
    every_stage_goes_farther,
    "lego/lego_self_training",
)
L7 = Claim(
    "L7",
    "After self-training up to 40 permutations are as near-perfect at 160 as the simply transitive action.",
    "Huang et al. 2025, figures 1a and 1b, no numbers printed",
    "difference in accuracy that counts as none",
    6,
    "6 replicates: a median of which the interval is bounded on both sides",
    last_stage_equals_simply_transitive,
    "lego/lego_self_training",
)
L8 = Claim(
    "L8",
    "Each stage labels the chains of the next one right.",
    "Huang et al. 2025, theorem 5.1: a stage solves twice its training length",
    "share of chains that must be right",
    6,
    _MOST,
    labels_are_right,
    "lego/lego_self_training",
)
