"""Numbers of Liu's thesis (CMU-ML-24-110) on distillation over cfg3b, read by eye off its figures: about ±0.005."""

from collections.abc import Mapping

from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE

TEACHER = "teacher"
STEPS = 8000  # of the teacher, T0

# figure 4.4 right, 8 heads: accuracy and half the height of its error bar, by steps of the student over T0
STRATEGIES: Mapping[str, Mapping[float, tuple[float, float | None]]] = {
    LABELS: {0.25: (0.746, 0.013), 0.5: (0.866, 0.022), 1.0: (0.926, 0.010), 2.0: (0.927, 0.010)},
    ONE_SHOT: {0.25: (0.769, 0.025), 0.5: (0.901, 0.020), 1.0: (0.928, 0.012), 2.0: (0.953, 0.002)},
    PROGRESSIVE: {0.25: (0.803, 0.011), 0.5: (0.921, 0.006), 1.0: (0.957, 0.003), 2.0: (0.962, 0.002)},
    TEACHER: {0.25: (0.910, None), 0.5: (0.960, None), 1.0: (0.970, None), 2.0: (0.980, None)},
}
# figure 4.7 right: accuracy of a student of 8 heads and 4000 steps by the teacher's step that it begins with, at the best T
SWEEP = {
    400: 0.850,
    800: 0.895,
    1000: 0.925,
    1200: 0.919,
    1600: 0.905,
    2000: 0.898,
    3000: 0.889,
    4000: 0.887,
    5000: 0.885,
    6000: 0.888,
    7000: 0.873,
    8000: 0.870,
}
# figure 4.7 middle: the teacher's median L_robust of 3-grams by step
ROBUST = {600: 0.008, 800: 0.55, 1000: 0.7, 1200: 0.7, 2000: 0.04, 4400: 8e-4, 8000: 5e-5}
