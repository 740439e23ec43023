"""PD-R6 for heads: more attention heads find the support of a parity sooner (Panigrahi et al. 2025, figures 4.10 and 4.13 of the thesis).

A run's step is the first look at which its accuracy reaches the claim's value. A run that never does is later than every one that does,
and as late as any other such run: all runs that are compared have the same number of steps, so its rank is known although its step is not.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.distillation.parity import looks_of, reached, said
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import gate, in_distribution_set, require
from results.plain_values import Tree
from results.statistics.intervals import Floats, quantile

SIZES = ("model.heads", "model.width", "model.head_dim", "model.feed_forward")
KINDS = ("the size of a head", "the width", "both, heads averaged")  # what the sentence holds fixed
_SHUFFLES = 20_000  # of the permutation test; a p of 0.008 is known to a tenth of itself


@dataclass(frozen=True)
class Axis:
    """Conditions by number of heads, ascending, that differ in nothing else but what `fixed` does not hold. kind: one of KINDS."""

    kind: str
    fixed: str
    by_heads: dict[int, Condition]


def head_dim(settings: Tree) -> int:
    return int(settings.get("model.head_dim") or settings["model.width"] // settings["model.heads"])


def axes(evidence: Evidence) -> list[Axis]:
    """Groups of transformers on sparse parity, trained on labels, that share the dimensions of a head or the width.

    Where heads are averaged, a group shares both.
    """
    groups: dict[tuple[Any, ...], dict[int, Condition]] = {}
    for condition in evidence.with_settings({"task.name": "sparse_parity", "model.name": "transformer"}):
        options = condition.settings
        if "stage.number" in options:
            continue
        others = tuple(sorted((name, str(value)) for name, value in options.items() if name not in SIZES))
        for kind, name in _names(options):
            groups.setdefault((kind, name, others), {}).setdefault(options["model.heads"], condition)
    compared = [Axis(kind, name, dict(sorted(group.items()))) for (kind, name, _), group in groups.items() if len(group) > 1]
    if not compared:
        settle(
            NOT_RUN,
            "no two transformers on sparse parity differ in their heads with the dimensions of a head, or the width, fixed",
        )
    return compared


def _names(options: Tree) -> Iterator[tuple[str, str]]:
    """The kinds of axes that a condition is on, with what is held fixed there."""
    dim, width = f"{head_dim(options)} dimensions a head", f"width {options['model.width']}"
    if options.get("model.join") == "average":
        yield KINDS[2], f"{dim} and {width}, heads averaged"
    else:
        yield KINDS[0], dim
        yield KINDS[1], width


def trend(groups: list[Floats]) -> tuple[float, float, float]:
    """Kendall's tau-b between the place of a group and its values, with the one-sided p of one as low, and of one as high.

    p is found by permutations. Values may be tied, also at infinity; where all are equal, tau is NaN and p is 1.
    """
    place = np.concatenate([np.full(len(values), number) for number, values in enumerate(groups)])
    late = scipy.stats.rankdata(np.concatenate(groups), method="dense")
    if len(set(late.tolist())) == 1:
        return math.nan, 1.0, 1.0
    tau = float(scipy.stats.kendalltau(place, late).statistic)
    first, second = np.triu_indices(len(place), 1)
    apart = np.sign(late[first] - late[second])

    def score(order: Floats) -> Floats:
        return np.sign(order[..., first] - order[..., second]) @ apart

    whole = score(place.astype(np.float64))
    mixed = score(np.random.default_rng(0).permuted(np.tile(place.astype(np.float64), (_SHUFFLES, 1)), axis=1))
    # the run itself is one of the permutations
    lower, higher = ((1 + int(side.sum())) / (_SHUFFLES + 1) for side in (mixed <= whole, mixed >= whole))
    return tau, lower, higher


def more_heads_are_sooner(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the steps fall with the number of heads along every axis, by permutation tests of Kendall's tau at 5 % together."""
    compared = axes(evidence)
    every = {condition.name: condition for axis in compared for condition in axis.by_heads.values()}
    require(every.values(), [in_distribution_set(evidence)], needs)
    seen, parts, down, up = looks_of(evidence), [], [], []
    for axis in compared:
        steps = {
            heads: np.array(list(reached(seen, condition, terms.value).values())) for heads, condition in axis.by_heads.items()
        }
        most = steps[max(steps)]
        what = f"runs of {max(steps)} heads ({axis.fixed}) reach {terms.value:g} within the training"
        gate(int(np.isfinite(most).sum()), len(most), terms.gate, what, "must, or there is no order to see")
        tau, lower, higher = trend(list(steps.values()))
        down.append(lower)
        up.append(higher)
        parts.append(
            f"{axis.fixed}: {', '.join(_said(heads, values) for heads, values in steps.items())} (tau {tau:.2f}, p {lower:.2g})"
        )
    level = 0.025 / len(compared)  # one-sided, of each of the two outcomes
    measured, holds = "; ".join(parts), all(p < level for p in down)
    missing = [kind for kind in KINDS if kind not in {axis.kind for axis in compared}]
    if holds and missing:
        settle(
            NOT_RUN, f"no two numbers of heads are compared with {missing[0]} held fixed, of which the claim is too", measured
        )
    return decide(
        holds,
        any(p < level for p in up),
        measured,
        f"steps to an accuracy of {terms.value:g} must fall with the number of heads, each axis at {level:.2g}",
    )


def _said(heads: int, values: Floats) -> str:
    never = int(np.isinf(values).sum())
    return f"{heads} heads {said(quantile(values, 0.5))}" + (f" ({never} of {len(values)} never)" if never else "")


R6 = Claim(
    "PD-R6",
    "More attention heads find the support of a parity sooner, with the size of a head, the width, or both held fixed.",
    "Panigrahi et al. 2025, figures 4.10 and 4.13 of Liu's thesis, no numbers printed",
    "accuracy from which a run has made its transition",
    5,
    "5 replicates of 4 numbers of heads: along one of 3 axes, a fall of 0.8 standard deviations of the seeds with each doubling",
    more_heads_are_sooner,
    "distillation/p6",
    of_share=True,
)
