"""L6, L7 and L8: models of all permutations that are trained on chains they labelled themselves (Huang et al. 2025, figure 1b)."""

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import above
from results.claims.evidence import Condition, Evidence, Seeds, differing
from results.claims.lego.lengths import FAR, FARTHEST, PRACTICAL, by_seeds, falls_below, gated, kept_up_to, learned, of_family
from results.claims.lego.sentences import SIMPLY_TRANSITIVE, SYMMETRY
from results.claims.requirements import common_seeds, gate, only, require
from results.statistics.intervals import Floats, clopper_pearson, quantile, quantile_interval
from results.store.schema import LABELS_RIGHT

CONTROL = {"stage.labels": "task", "stage.init": "previous"}  # true answers, at the length of the stage before
SELF = {"stage.labels": "previous", "stage.init": "previous"}  # labelled by the stage before, whose weights go on


class Chain(NamedTuple):
    """The stages of one condition, the first included, in order; `along`: sets by length, as of the first stage's training length."""

    stages: list[Condition]
    along: dict[int, str]

    @property
    def trained(self) -> list[int]:
        """The training length of each stage."""
        return [stage.settings["task.length"] for stage in self.stages]


def chain(evidence: Evidence, terms: Terms, needs: int) -> Chain:
    """The practical model on all permutations with its warm self-training; settles the claim where it is not all there."""
    first = only(of_family(evidence, SYMMETRY, PRACTICAL), "the practical model on all permutations")
    later = of_family(evidence, SYMMETRY, PRACTICAL | SELF, later=True)
    later.sort(key=lambda stage: stage.settings["stage.number"])
    if not later or [stage.settings["stage.number"] for stage in later] != list(range(1, len(later) + 1)):
        settle(NOT_RUN, "no condition goes on from its own weights, stage after stage, on chains that it labelled itself")
    along = gated(evidence, first, terms, needs)
    rounds = Chain([first, *later], along)
    missing = [length for length in rounds.trained if length not in along]
    if missing:
        settle(NOT_RUN, f"no set has sentences of {missing[0]}, at which a stage is trained")
    require(later, along.values(), needs)
    return rounds


def by_stage(evidence: Evidence, rounds: Chain, name: str) -> Floats:
    """[stages, replicates] fraction of sentences with an error, replicates in the order of their seeds."""
    rows = [by_seeds(evidence, stage, name) for stage in rounds.stages]
    common = sorted(set.intersection(*(set(row) for row in rows)))
    return np.array([[row[seeds] for seeds in common] for row in rows], dtype=np.float64)


def control(evidence: Evidence, rounds: Chain, terms: Terms, needs: int) -> Condition:
    """The last stage that trained the same weights alike on true chains of the first length; settles a claim without it, and one whose
    control lost those chains: anything reaches beyond that."""
    members = [
        condition
        for condition in of_family(evidence, SYMMETRY, PRACTICAL | CONTROL, later=True)
        if condition.settings["task.length"] == rounds.trained[0]
    ]
    members.sort(key=lambda stage: stage.settings["stage.number"])
    steps = [[stage.settings["train.steps"] for stage in stages] for stages in (members, rounds.stages[1:])]
    if steps[0] != steps[1]:
        settle(
            NOT_RUN,
            f"no condition goes on with true chains of {rounds.trained[0]} for as many steps, so the effect of steps alone is not known",
        )
    for member, stage in zip(members, rounds.stages[1:], strict=True):
        if more := sorted(differing(member, stage) - {"task.length", "stage.labels"}):
            settle(NOT_RUN, f"{member.name} and {stage.name} differ in {more[0]} too, and the control is of steps alone")
    require(members, rounds.along.values(), needs)
    missed = learned(evidence, members[-1], rounds.along[rounds.trained[0]], terms.gate)
    if missed is not None:
        settle(PRECONDITION, missed)
    return members[-1]


def every_stage_goes_farther(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In more than half of the replicates each stage reaches farther than the one before, and twice its own training length; the last
    one also farther than steps alone bring. That control is ours: without it nothing is shown, and it refutes nothing."""
    rounds = chain(evidence, terms, needs)
    beside = control(evidence, rounds, terms, needs)
    lengths = list(rounds.along)
    arms = [*rounds.stages, beside]
    rows = [[by_seeds(evidence, arm, name) for name in rounds.along.values()] for arm in arms]
    common = common_seeds([one for row in rows for one in row], needs, "have all stages and the control")
    reached = np.array(
        [[falls_below(lengths, [one[seeds] for one in row], terms.value) for seeds in common] for row in rows], dtype=np.float64
    )
    stages, steps_alone = reached[:-1], reached[-1]
    room = int((stages[0] < lengths[-1]).sum())
    gate(room, len(common), terms.gate, f"replicates leave longer chains to be learned after the chains of {rounds.trained[0]}")
    farther = (np.diff(stages, axis=0) > 0) | (stages[1:] == lengths[-1])
    twice = stages >= np.minimum(2 * np.array(rounds.trained), lengths[-1])[:, None]
    beyond = stages[-1] > steps_alone
    in_paper = farther.all(0) & twice[1:].all(0) & (stages[0] < lengths[-1])
    good = in_paper & beyond
    shown, refuted = (clopper_pearson(int(hold.sum()), hold.size) for hold in (good, in_paper))
    texts = (
        "{}: {} ({} to {})".format(title, *(kept_up_to(row, q, lengths[-1]) for q in (0.5, 0.0, 1.0)))
        for title, row in zip(
            [
                *(f"trained on {length}" for length in rounds.trained),
                f"{beside.name}, on {rounds.trained[0]} for as many steps",
            ],
            reached,
            strict=True,
        )
    )
    return decide(
        shown.low > 0.5,
        refuted.high < 0.5,
        f"{int(good.sum())} of {good.size} replicates hold; {terms.value:g} is kept up to, median and range over seeds: "
        f"{'; '.join(texts)}; the last stage goes beyond the control in {int(beyond.sum())}",
        "more than half must reach farther with every stage, twice the length that a stage is trained on, and farther than the control; "
        "the control is ours, and refutes nothing",
    )


def last_stage_equals_simply_transitive(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Medians of the longest sentences, of the last stage and of the simply transitive action after its only stage, by seed."""
    rounds = chain(evidence, terms, needs)
    other = only(of_family(evidence, SIMPLY_TRANSITIVE, PRACTICAL), "the practical model on a simply transitive action")
    longest = max(rounds.along)
    if longest < FARTHEST * rounds.trained[0]:
        settle(NOT_RUN, f"the longest sentences are of {longest}, and the claim is of {FARTHEST} times {rounds.trained[0]}")
    require([other], rounds.along.values(), needs)
    for condition, length in ((other, rounds.trained[0]), (rounds.stages[-1], rounds.trained[-1])):
        missed = learned(evidence, condition, rounds.along[length], terms.gate)
        if missed is not None:
            settle(PRECONDITION, missed)
    last_stage, transitive = (by_seeds(evidence, condition, rounds.along[longest]) for condition in (rounds.stages[-1], other))
    common = common_seeds([last_stage, transitive], needs, f"are common to {rounds.stages[-1].name} and {other.name}")
    behind = np.array([last_stage[seeds] - transitive[seeds] for seeds in common])  # positive: fewer sentences right
    if quantile([transitive[seeds] for seeds in common], 0.5) > 1 - FAR:
        settle(PRECONDITION, f"the median accuracy of {other.name} at {longest} is below {FAR:g}, which is not near-perfect")
    interval = quantile_interval(behind, 0.5)
    a, b = (1 - quantile([errors[seeds] for seeds in common], 0.5) for errors in (last_stage, transitive))
    return decide(
        interval.high <= terms.value,
        interval.low > terms.value,
        f"median accuracy at {longest}: {rounds.stages[-1].name} {a:.3f}, {other.name} {b:.3f}; behind by seed, median and interval: "
        f"{quantile(behind, 0.5):.3f} ({interval.low:.3f} to {interval.high:.3f})",
        f"the median of the differences must be {terms.value:g} or less",
    )


def labels_are_right(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In more than half of the replicates, every stage answers the chains of the next one's pool, as the next one counted them.

    Older studies did not count that: fixed chains of the same lengths stand in, and the verdict says so.
    """
    rounds = chain(evidence, terms, needs)
    counted = [pool_labels(evidence, stage) for stage in rounds.stages[1:]]
    whole = all(len(row) >= needs for row in counted)
    if not whole and any(counted):
        settle(TOO_FEW, f"the labels of {min(map(len, counted))} pools were counted in some stage; the claim needs {needs}")
    if whole:
        common = sorted(set.intersection(*(set(row) for row in counted)))
        shares = np.array([[row[seeds] for seeds in common] for row in counted], dtype=np.float64)
    else:
        shares = np.stack(
            [1 - by_stage(evidence, rounds, rounds.along[length])[at] for at, length in enumerate(rounds.trained[1:])]
        )  # [stages - 1, replicates]
    good = (shares >= terms.value).all(0)
    share = clopper_pearson(int(good.sum()), good.size)
    shown = "; ".join(
        f"of {length} by {stage.name}: {row.min():.3f} / {quantile(row, 0.5):.3f}"
        for length, stage, row in zip(rounds.trained[1:], rounds.stages, shares, strict=False)
    )
    what = "of the chains trained on" if whole else "of fixed chains (those trained on were not counted)"
    return decide(
        *above([share], 0.5),
        f"{int(good.sum())} of {good.size} replicates hold; share {what} labelled right, worst / median of seeds: {shown}",
        f"in more than half every stage must label {terms.value:g} of the next one's chains right",
    )


def pool_labels(evidence: Evidence, condition: Condition) -> dict[Seeds, float]:
    """The share of a stage's own training chains that are labelled right, by seeds; {} where it was not counted."""
    if evidence.curves is None:
        return {}
    rows = evidence.curves.filter(pc.field("metric") == LABELS_RIGHT).select(["key", "value"]).to_pylist()
    values = {row["key"]: row["value"] for row in rows}
    return {replicate.seeds: values[replicate.key] for replicate in condition.replicates if replicate.key in values}


_MOST = "that most replicates do, where 97 % of all do"
L6 = Claim(
    "L6",
    "With every stage of self-training the model is right on longer chains, and on twice those it was trained on; as many "
    "steps on short chains alone, our control, bring it less far.",
    "Huang et al. 2025, theorem 5.1 and figure 1b, no numbers printed and no such control",
    "accuracy that counts as right",
    6,
    _MOST,
    every_stage_goes_farther,
    "lego/lego_self_training",
    of_share=True,
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
    of_share=True,
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
    of_share=True,
)
