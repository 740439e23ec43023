"""Figure 4.4 (left) of Liu's thesis (CMU-ML-24-110), read by eye: accuracy of a perceptron of width 50,000 that learns sparse parity,
and of students of width 100, by step. About ±0.02, and ±0.2 million steps."""

from collections.abc import Mapping

import numpy as np

from results.report.plots.lines_and_maps import Bands

CARD = "P1"
TITLE = "The thesis, figure 4.4: teacher 50,000 wide, students 100"
_CHANCE, _END = 0.5, 20e6  # accuracy at first; the last step
_RISE, _RIGHT = 10.1e6, 11e6  # where curves leave chance, and are right
_LEARNED = {0.0: _CHANCE, _RISE: _CHANCE, _RIGHT: 1.0, _END: 1.0}
TEACHER = _LEARNED
STUDENTS: Mapping[str, Mapping[float, float]] = {
    "labels": {0.0: _CHANCE, 18e6: _CHANCE, _END: 0.66},
    "one_shot": {0.0: _CHANCE, _END: _CHANCE},
    "progressive": _LEARNED,
}
LABELS_BAND = (0.4, 0.88)  # of the students of labels, at the end


def bands(points: Mapping[float, float], end: tuple[float, float] | None = None) -> Bands:
    """A line through the points; end: what its band reaches at the last of them."""
    x, y = (np.array(values, dtype=np.float64) for values in (list(points), list(points.values())))
    low, high = y.copy(), y.copy()
    if end is not None:
        low[-1], high[-1] = end
    return Bands(x, low, low, y, high, high)
