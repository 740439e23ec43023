"""The phase transition of a training: begin, middle and end of the rise of its accuracy.

Panigrahi et al. 2025, section 4.2.7.1 and figure 4.5 of the thesis: a student learns from a checkpoint of the middle of its teacher's
transition, and not from one of its begin or end. All three are found on the teacher's own curve, since steps differ between seeds.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Curve = Iterable[tuple[int, float | None]]  # (step, accuracy in 0 … 1, or None where the replicate has diverged)


@dataclass(frozen=True)
class Transition:
    """The steps of a transition; None for a begin that was not seen or an end that was not reached."""

    begin: int | None
    middle: int
    end: int | None


def first_step(curve: Curve, at_least: float) -> int | None:
    """The first step whose accuracy is `at_least` that, None where none is. An accuracy that is None or NaN reaches nothing.

    The order of the pairs means nothing. ValueError for a threshold that is no accuracy, or a step with two accuracies.
    """
    _refuse_threshold(at_least)
    return next((step for step, accuracy in _ordered(curve) if accuracy >= at_least), None)


def transition(
    curve: Curve, low: float = 0.55, middle: float = 0.75, high: float = 0.999, before: int = 0, after: int = 0
) -> Transition | None:
    """Find where the curve rises; None where it never reaches `middle`.

    middle: the first step with an accuracy of at least `middle`. begin: the last step, at least `before` steps ahead of the middle, with
    an accuracy of at most `low`. end: the first step, at least `after` steps behind the middle, with an accuracy of at least `high`.
    The thesis' candidates on a curve of every 0.1M steps are those of before = 500,000 and after = 600,000.
    ValueError as in `first_step`, for thresholds that do not ascend, or for a negative number of steps.
    """
    if not low < middle <= high:
        raise ValueError(f"low = {low:g}, middle = {middle:g} and high = {high:g} must ascend")
    for threshold in (low, middle, high):
        _refuse_threshold(threshold)
    if before < 0 or after < 0:
        raise ValueError(f"before = {before} and after = {after} must be numbers of steps from 0 on")
    pairs = _ordered(curve)
    middle_step = first_step(pairs, middle)
    if middle_step is None:
        return None
    begins = [step for step, accuracy in pairs if step <= middle_step - before and accuracy <= low]
    ends = [step for step, accuracy in pairs if step >= middle_step + after and accuracy >= high]
    return Transition(begins[-1] if begins else None, middle_step, ends[0] if ends else None)


def _ordered(curve: Curve) -> list[tuple[int, float]]:
    """The pairs with an accuracy by step; a NaN is left out with the rest."""
    accuracies: dict[int, float | None] = {}
    for step, accuracy in curve:
        if step in accuracies and accuracies[step] != accuracy:
            raise ValueError(
                f"step {step} has two accuracies, {accuracies[step]} and {accuracy}: give the curve of one replicate and set"
            )
        accuracies[step] = accuracy
    return [(step, accuracy) for step, accuracy in sorted(accuracies.items()) if accuracy is not None and accuracy == accuracy]


def _refuse_threshold(value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"an accuracy of {value:g} is no threshold: write one above 0 and at most 1")
