"""How often the nominal 95 % interval covers at the stop of an adaptive study, beside the same interval at a fixed number of replicates.

python -m benchmarks.stopping [--quick] [--out benchmarks/results/cpu]

Simulated: numbers drawn from known distributions, no training. Looks at 15, 25, … 100 as in `results.adaptive_rules`.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from results.adaptive_rules import Rule
from results.bootstrap import quantile_ratio
from results.statistics import Interval, clopper_pearson

Floats = NDArray[np.float64]
Look = tuple[float, Interval]  # what the rule bounds, and the interval

ZERO = Rule(15, 100, 10, "dense", 0.1)
RATIO = Rule(15, 100, 10, "sparse", 3.0, "baseline")
PROBABILITIES = (0.0, 0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
SPREADS = (
    0.5,
    1.0,
    2.0,
)  # standard deviation of the logarithm of the error; 2 is a factor of 50 between the 2.5 % and the median
RESAMPLES = 499
_HEAD = "| rule | truth | mean n at the stop | coverage at the stop | at fixed n, the mean | at fixed n = 100 | simulated |"


def row(rule: Rule, truth: float, look: Callable[[int, int], Look], simulated: int) -> tuple[float, float, float, float]:
    """Mean n at the stop, and the share of intervals that hold `truth`: at the stop, at the look nearest to that mean, at the maximum.

    look(i, n): the interval of the first n replicates of simulation i.
    """
    stops = [_stop(rule, [look(i, n) for n in rule.looks]) for i in range(simulated)]
    mean = float(np.mean([rule.looks[stop] for stop in stops]))
    near = min(rule.looks, key=lambda n: abs(n - mean))

    def share(sizes: Sequence[int]) -> float:
        return float(np.mean([each.low <= truth <= each.high for each in (look(i, n)[1] for i, n in enumerate(sizes))]))

    return mean, share([rule.looks[stop] for stop in stops]), share([near] * simulated), share([rule.maximum] * simulated)


def zero_error(p: float, simulated: int) -> tuple[float, float, float, float]:
    """P(no error) = p: binary replicates and Clopper–Pearson."""
    counts = (np.random.default_rng(7).random((simulated, ZERO.maximum)) < p).cumsum(axis=1)
    return row(ZERO, p, lambda i, n: _binomial(int(counts[i, n - 1]), n), simulated)


def ratio_of_medians(spread: float, simulated: int, truth: float = 2.0) -> tuple[float, float, float, float]:
    """Log-normal errors of both conditions, medians in the ratio `truth`, and the bootstrap interval over pairs."""
    random = np.random.default_rng(11)
    both = np.exp(spread * random.standard_normal((simulated, 2, RATIO.maximum)))

    @cache
    def look(i: int, n: int) -> Look:
        found = quantile_ratio(both[i, 0, :n], truth * both[i, 1, :n], 0.5, paired=True, resamples=RESAMPLES, seed=i).interval
        if found is None:
            raise ValueError(f"{n} replicates give no interval of a ratio: look later")
        return (found.high / found.low if found.low > 0 else math.inf), found

    return row(RATIO, truth, look, simulated)


def table(quick: bool = False) -> str:
    """The Markdown table of all cases."""
    many, few = (500, 40) if quick else (4_000, 600)
    zero = [_line("P(no error), ±0.1", f"{p:g}", zero_error(p, many), many) for p in PROBABILITIES]
    ratio = [_line("ratio of medians, 3", f"2, σ of log error {each:g}", ratio_of_medians(each, few), few) for each in SPREADS]
    return "\n".join([_HEAD, "|" + "---|" * 7, *zero, *ratio])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopping", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer simulations, in seconds; prints and writes nothing")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cpu"))
    options = parser.parse_args(arguments)
    found = table(options.quick)
    print(found)
    if not options.quick:
        looks = ", ".join(map(str, ZERO.looks))
        text = (
            f"# Coverage at an adaptive stop (simulated)\n\n`python -m benchmarks.stopping`; looks at {looks}; nominal 95 %.\n"
        )
        (options.out / "stopping.md").write_text(f"{text}\n{found}\n")
    return 0


@cache
def _binomial(successes: int, trials: int) -> Look:
    interval = clopper_pearson(successes, trials)
    return (interval.high - interval.low) / 2, interval


def _stop(rule: Rule, looks: Sequence[Look]) -> int:
    """Index of the first look whose interval is narrow enough, or of the last."""
    return next((i for i, (size, _) in enumerate(looks) if size <= rule.limit), len(looks) - 1)


def _line(rule: str, truth: str, found: tuple[float, float, float, float], simulated: int) -> str:
    mean, stop, near, most = found
    return f"| {rule} | {truth} | {mean:.1f} | {stop:.3f} | {near:.3f} | {most:.3f} | {simulated:,} |"


if __name__ == "__main__":
    raise SystemExit(main())
