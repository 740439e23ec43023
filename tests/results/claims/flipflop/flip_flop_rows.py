"""Rows that the tests of claims on flip-flop languages share: baselines, mixtures, sweeps, and the verdict on them."""

from pathlib import Path

import numpy as np

from results.claims import REGISTRY, scoreboard
from results.store.tables import open_store
from tests.results.claims.claim_rows import Errors, condition, tail, write

INF = np.inf
FLIP_FLOP = [name for name, claim in REGISTRY.items() if claim.study.partition("/")[0] in ("flipflop", "")]
LSTM = {"model__name": "lstm", "model__layers": 1, "model__width": 128, "train__steps": 500}
MIXTURE = {"task__p_ignore": [0.9, 0.98, 0.1]}
DROPOUT = {"model__embedding_dropout": 0.5}
SHARPEN = {"train__sharpen": {"kind": "entropy", "weight": 0.1}}
VALUES = {
    "R1": {"value": 0.5},
    "R1-iterates": {"value": 0.5},
    "R2": {"value": 1.0, "of": 100},
    "R4": {"value": 0.24, "of": 25},
    "R5": {"value": 10},
    "R6": {"value": 10},
    "R6-positions": {"value": 1},
    "R6-sharpening": {"value": 10},
    "R7": {"value": 0.95},
    "R8": {"value": 0.5},
    "T0": {"value": 0.9},
}


def base(n: int = 25, rare: float = 1e-2, busy: float = 3e-3, often: Errors | float = 2e-3, **more: object) -> dict:
    own = tail(n, often, seed=2) if isinstance(often, float) else often
    return condition(n, tail(n, rare), tail(n, busy, seed=1), often=own, **more)


def poor(n: int = 25) -> dict:
    """A baseline that did not learn its training distribution."""
    return base(n, narrow=0.01)


UNLEARNED = [0.15] * 8 + [0.0] * 17  # of a condition of which 8 of 25 err on 15 % of their own training distribution
UP, FALL, RISE = [(100, 0, 0), (200, 100, 0)], [(100, 100, 0), (200, 0, 0)], [(100, 10, 0), (200, 30, 0)]
LEARNING = [(100, 0, 50), (200, 100, 50)]  # errs on its training distribution at both looks
LOST = [(100, 0, 0), (200, 400, 400), (300, 100, 0)]  # errs on it between the two


def mixed(n: int = 25, rare: Errors | float = 1e-5, busy: float = 1e-5, zero: int = 6, **more: object) -> dict:
    rates = [[0.0] * zero + [each] * (n - zero) if isinstance(each, float) else each for each in (rare, busy)]
    return condition(n, *rates, **(MIXTURE | more))


def trade(n: int = 25, rare: float = 3e-3, busy: float = 1e-2, **options: object) -> dict:
    return condition(n, tail(n, rare), tail(n, busy, seed=1), **({"train__steps": 10000} | options))


def resources(rare: float = 2e-3, busy: float = 15e-3) -> list[dict]:
    """More steps on fresh strings and on a fixed pool, and a larger model."""
    pools = [base(train__pool=160000), trade(25, rare, busy, train__pool=160000)]
    return [trade(25, rare, busy), *pools, base(model__layers=8)]


def encoding(n: int = 25, busy: float = 3e-4, name: str = "rotary", **more: object) -> dict:
    return condition(n, tail(n, 1e-2), tail(n, busy, seed=1), model__positions=name, **more)


def penalties(count: int, **more: object) -> list[dict]:
    """Baselines with penalties that change nothing."""
    return [base(rare=1e-2, train__sharpen={"kind": "l2", "weight": 0.1 * each}, **more) for each in range(1, count + 1)]


def blind(n: int, rare: float, busy: float = 0.0) -> dict:
    return condition(n, rare, busy, model__name="my:Window", model__options=[["context", 5], ["width", 8]])


def anti(n: int = 25, **options: object) -> dict:
    """Fewer sparse errors and more dense ones: improves one axis."""
    return condition(n, tail(n, 1e-3), tail(n, 3e-2, seed=1), **options)


def mostly_both() -> dict:
    """Improves both axes in 12 of 15 replicates: significant alone, not among twenty-one conditions."""
    return condition(15, *[[1e-5] * 12 + [0.3] * 3] * 2, model__activation="geglu")


def better(activation: str) -> dict:
    """A setting that improves both axes in all replicates."""
    return condition(15, 1e-5, 1e-5, model__activation=activation)


def just_below() -> list[dict]:
    """Errors of a baseline from 1e-4 to 3e-3, and a setting whose replicates all lie just below its medians."""
    spread = [1e-4 * each for each in range(1, 31)]
    return [condition(30, spread, spread), condition(15, 1.5e-3, 1.5e-3, model__activation="geglu")]


def sweep(n: int = 15, **more: object) -> list[dict]:
    """Twenty settings of five kinds that improve one axis alone."""
    grid = {
        "train__steps": (2000, 3000, 5000, 10000),
        "model__width": (32, 128, 256, 512),
        "model__embedding_dropout": (0.1, 0.2, 0.3, 0.5),
        "model__positions": ("none", "sinusoidal", "rotary", "alibi"),
        "train__lr": (1e-4, 2e-4, 1e-3, 3e-3),
    }
    return [anti(n, **{name: value}, **more) for name, values in grid.items() for value in values]


def undecided(n: int = 25, wrong: int = 15) -> dict:
    """Errs in `wrong` of n replicates, far apart."""
    return condition(n, [1e-4, 1e-1, *[1e-2] * (wrong - 2), *[0.0] * (n - wrong)], [1e-3, *[0.0] * (n - 1)])


def one_verdict(folder: Path, name: str, conditions: list[dict], **changes: object):
    store = open_store(str(folder), "claims")
    write(store, {name: VALUES[name]}, conditions, **changes)
    (found,) = scoreboard(store)
    return found
