"""The three phases of a training's loss."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

RAPID, FLAT = 0.05, 0.025  # of the training: the stretch that is called rapid, and one before it that must be flat
STEEPER = 2.0  # times as steep as before and after, at least


@dataclass(frozen=True)
class Phases:
    """The rapid phase is from step `begin` to step `end`; `visible`: it is STEEPER times as steep as what comes before and after."""

    begin: float
    end: float
    visible: bool


def phases(losses: Iterable[tuple[float, float]], warmup: int) -> Phases | None:
    """Find the three phases of a training's loss: hardly any change, a rapid drop, a slow decline. None where there are none.

    Panigrahi et al. 2025, section 4.2.8 of the thesis, describes them in words. Here the rapid phase is the stretch of length RAPID (as a
    share of the training) after the warm-up over which the loss falls most. The phase before it is the flattest stretch of length FLAT,
    from the middle of the warm-up on, since the frequencies of tokens are learned first. The phase after it is all the rest. The loss is
    interpolated linearly. None with fewer than 4 points, and where nothing falls.
    """
    points = np.array(
        sorted((step, loss) for step, loss in losses if 2 * step >= warmup and np.isfinite(loss)), dtype=np.float64
    )
    if len(points) < 4:
        return None
    steps, last = points[:, 0], points[-1, 0]
    long, short = RAPID * last, FLAT * last

    def fall(begin: Any, width: float) -> Any:
        """The mean fall per step over `width` steps from `begin`."""
        return (np.interp(begin, steps, points[:, 1]) - np.interp(begin + width, steps, points[:, 1])) / width

    starts = steps[(steps >= warmup) & (steps + long < last)]
    if not starts.size or (falls := fall(starts, long)).max() <= 0:
        return None
    rapid, begin = float(falls.max()), float(starts[int(falls.argmax())])
    before = fall(steps[steps + short <= begin], short)
    after = fall(begin + long, last - begin - long)
    return Phases(begin, float(begin + long), bool(before.size and rapid >= STEEPER * max(before.min(), after)))
