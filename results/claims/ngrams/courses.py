"""The course of a training on in-context n-grams: which lags the heads have learned at each look, and when the loss falls.

A lag is learned at the first look at which a head of the first layer gives it more than LEARNED of its weight, and more than any other.
The model is at stage k where lags 1 … k - 1 are learned and lag k is not, as the paper reads its attention maps. The distances D_k to the
k-gram estimators can't separate the stages at T = 32: before lag 2 is learned, models are as near to the unigram as to the bigram.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from results.claims import requirements
from results.claims.claim import NOT_RUN, PRECONDITION, settle
from results.claims.evidence import Condition, Evidence
from results.rows.looks import Series, series, watched_set
from results.statistics.intervals import Floats

TASK = "in_context_ngram"
LEARNED = 0.3  # of a head's weight; ours
PERSISTS = 3  # looks in a row
DROP = 0.3  # share of the way to the next plateau at which a loss has left the last one
BASELINE = "baseline "
LAG = "lag 0."  # of the heads of the first layer


@dataclass(frozen=True)
class Course:
    """The course of one training.

    steps [looks]. loss [looks]: on the set that is scored during training. order: n. learned: the step at which each lag was learned, in
    the order of steps. levels: losses of the task's baselines on that set, by name. alpha: of the prior, the first smoothing of each
    estimator.
    """

    steps: Floats
    loss: Floats
    order: int
    learned: Mapping[int, float]
    levels: Mapping[str, float]
    alpha: float

    def begins(self, k: int) -> float:
        """The step at which stage k begins: lags 1 … k - 1 are learned by then; infinity where it does not."""
        return max([0.0, *(self.learned.get(lag, np.inf) for lag in range(1, k))])

    def looks(self, k: int) -> NDArray[np.bool_]:
        """Which looks are at stage k, [looks]."""
        end = self.begins(k + 1) if k < self.order else np.inf
        return (self.steps >= self.begins(k)) & (self.steps < end)

    def plateau(self, k: int) -> float | None:
        """The median loss at stage k; None where it has fewer than PERSISTS looks."""
        looks = self.looks(k)
        return float(np.median(self.loss[looks])) if looks.sum() >= PERSISTS else None

    def escape(self, k: int) -> float | None:
        """The step at which the loss has left the plateau of stage k; None where it has not by the last step.

        It has gone DROP of the way to the plateau of stage k + 1 and stays there, or lower, for PERSISTS looks.
        """
        here, there = self.plateau(k), self.plateau(k + 1)
        if here is None or there is None or not there < here:
            return None
        after = first_run(self.loss < here - DROP * (here - there), int(self.looks(k).argmax()))
        return None if after is None else float(self.steps[after])


def first_run(holds: NDArray[np.bool_], start: int = 0) -> int | None:
    """The first of PERSISTS places in a row, from `start` on, at which something holds."""
    run = holds[start:].astype(np.int64)
    if len(run) < PERSISTS:
        return None
    whole = np.convolve(run, np.ones(PERSISTS, dtype=np.int64), "valid") == PERSISTS
    return start + int(whole.argmax()) if whole.any() else None


def conditions(evidence: Evidence, needs: int, models: Sequence[str] | None = None, least_order: int = 2) -> list[Condition]:
    """The conditions on in-context n-grams with these models. Settles a claim where there is none, or where replicates are missing.

    A diverged replicate settles it too, since it has no course and the others alone are no fair sample.
    """
    chosen = [
        condition
        for condition in evidence.of_task(TASK)
        if condition.settings["task.order"] >= least_order and (models is None or condition.settings["model.name"] in models)
    ]
    if not chosen:
        kinds = "" if models is None else f" with {' or '.join(models)}"
        settle(NOT_RUN, f"no condition is of in-context n-grams of order {least_order} or more{kinds}")
    for condition in chosen:
        ended, planned = len(condition.ended), len(condition.replicates)
        requirements.require_all(ended, planned, needs, f"replicates of {condition.name} have ended")
        if len(condition.finished) < planned:
            settle(PRECONDITION, f"a replicate of {condition.name} diverged: lower the learning rate")
    return chosen


def courses(evidence: Evidence, condition: Condition) -> list[Course]:
    """The course of every replicate, in their order. Settles a claim where the rows lack one."""
    losses = series(evidence.averages, of_set=watched_set(evidence.averages), keys=keys_of(condition))
    heads = heads_of(evidence, condition)
    out = []
    for replicate, own_heads in zip(condition.replicates, heads, strict=True):
        own = losses.get(replicate.key, {})
        if "loss" not in own or len(np.unique(own["loss"].steps)) < 10:
            settle(NOT_RUN, f"{condition.name} was looked at fewer than 10 times on the way: give one of its sets an `every`")
        if len(np.unique(own["loss"].steps)) < len(own["loss"].steps):
            settle(NOT_RUN, f"{condition.name} has two losses of one look")
        levels = {name.removeprefix(BASELINE): float(one.values[-1]) for name, one in own.items() if name.startswith(BASELINE)}
        order, alpha = condition.settings["task.order"], float(condition.settings["task.alpha"])
        out.append(Course(own["loss"].steps, own["loss"].values, order, learned_lags(own_heads), levels, alpha))
    return out


def keys_of(condition: Condition) -> list[str]:
    return [replicate.key for replicate in condition.replicates]


Heads = Sequence[Sequence[Series]]  # of each head, the weight on the lags 0, 1, … over the training


def heads_of(evidence: Evidence, condition: Condition) -> list[Heads]:
    """The watched weights of the heads, by replicate. Settles a claim where nothing was watched."""
    watched = series(evidence.watched, keys=keys_of(condition))
    out: list[Heads] = []
    for replicate in condition.replicates:
        by: dict[int, dict[int, Series]] = {}
        for name, one in watched.get(replicate.key, {}).items():
            if place := re.fullmatch(rf"{re.escape(LAG)}([0-9]{{1,9}})\.([0-9]{{1,9}})", name):
                by.setdefault(int(place[1]), {})[int(place[2])] = one
        if not by:
            settle(NOT_RUN, f"the heads of {condition.name} were not watched: set evaluate.watch.lags to its order")
        looks = {tuple(one.steps) for lags in by.values() for one in lags.values()}
        if len(looks) > 1 or len({tuple(sorted(lags)) for lags in by.values()}) > 1:
            settle(NOT_RUN, f"rows of the watched heads of {condition.name} are missing: each head needs all lags at all looks")
        out.append([[lags[lag] for lag in sorted(lags)] for lags in by.values()])
    return out


def learned_lags(heads: Heads) -> dict[int, float]:
    """The step at which each lag from 1 on was learned, in the order of steps; lags that were not learned are left out."""
    times: dict[int, tuple[float, float]] = {}
    for own in heads:
        masses = np.stack([one.values for one in own])
        for lag in range(1, len(own)):
            there = (masses[lag] > LEARNED) & (masses.argmax(0) == lag)
            if there.any():
                place = int(there.argmax())
                # at one look the larger weight counts as the earlier one
                at = (float(own[lag].steps[place]), -float(masses[lag, place]))
                times[lag] = min(times.get(lag, at), at)
    return {lag: times[lag][0] for lag in sorted(times, key=lambda lag: times[lag])}


def gate(evidence_courses: Mapping[str, Sequence[Course]], share: float) -> None:
    """Settle a claim unless this share of each condition's replicates has come to the last stage: the others show no whole course."""
    for name, own in evidence_courses.items():
        learned = sum(math.isfinite(course.begins(course.order)) for course in own)
        what = f"replicates of {name} learn all {own[0].order - 1} lags by the last step"
        requirements.gate(learned, len(own), share, what, "must: train for longer")
