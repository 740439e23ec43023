"""How often the nominal 95 % interval covers at the stop of an adaptive study, beside the same interval at a fixed number of replicates.

python -m benchmarks.stopping [--quick] [--out benchmarks/results/cpu]

Coverage for the share of replicates without an error is computed exactly; ratios are simulated from known distributions; nothing is
trained. The study decides at 15, 25, … 100 replicates, as in `results.statistics.adaptive_rules`.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from results.markdown_table import markdown_table
from results.statistics.adaptive_rules import Rule
from results.statistics.bootstrap import quantile_ratio
from results.statistics.intervals import Floats, Interval, clopper_pearson

Look = tuple[float, Interval]  # what the rule bounds, and the interval

ZERO = Rule(15, 100, 10, "dense", 0.1)
RATIO = Rule(15, 100, 10, "sparse", 3.0, "baseline")
PROBABILITIES = (0.0, 0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
HALF_WIDTHS = (0.05, 0.08, 0.1, 0.15, 0.2)
SPREADS = (
    0.5,
    1.0,
    2.0,
)  # standard deviation of the logarithm of the error; 2 is a factor of 50 between the 2.5 % and the median
RESAMPLES = 499
_COLUMNS = (
    "rule",
    "truth",
    "mean n at the stop",
    "coverage at the stop",
    "at fixed n, the mean",
    "at fixed n = 100",
    "simulated",
)


class Stop(NamedTuple):
    """Mean n at the stop, and the probability that the interval holds the truth: at the stop, at the look nearest to that mean, at the
    maximum."""

    mean: float
    stop: float
    near: float
    most: float


def row(rule: Rule, truth: float, look: Callable[[int, int], Look], simulated: int) -> Stop:
    """Shares of simulated studies.

    look(i, n): the interval of the first n replicates of simulation i.
    """
    stops = [_stop(rule, [look(i, n) for n in rule.looks]) for i in range(simulated)]
    mean = float(np.mean([rule.looks[stop] for stop in stops]))
    near = min(rule.looks, key=lambda n: abs(n - mean))

    def share(sizes: Sequence[int]) -> float:
        return float(np.mean([at.low <= truth <= at.high for at in (look(i, n)[1] for i, n in enumerate(sizes))]))

    return Stop(mean, share([rule.looks[stop] for stop in stops]), share([near] * simulated), share([rule.maximum] * simulated))


def zero_error(p: float, rule: Rule = ZERO) -> Stop:
    """P(no error) = p, exactly: the probability of every count of replicates without error that reaches a look is carried to the next."""
    reaching, done, mean, stop = np.ones(1), 0, 0.0, 0.0
    for look in rule.looks:
        new = look - done
        reaching, done = np.convolve(reaching, stats.binom.pmf(np.arange(new + 1), new, p)), look
        size, low, high = _intervals(look)
        stopping = (size <= rule.limit) | (look == rule.maximum)
        mean += look * float(reaching[stopping].sum())
        stop += float(reaching[stopping & (low <= p) & (p <= high)].sum())
        reaching = np.where(stopping, 0.0, reaching)
    near = min(rule.looks, key=lambda n: abs(n - mean))
    return Stop(mean, stop, _fixed(near, p), _fixed(rule.maximum, p))


def least_covered(rule: Rule = ZERO) -> tuple[float, Stop]:
    """The P(no error) whose coverage at the stop is lowest: it falls only where an interval that a condition can stop with ends."""
    ends = [end for look in rule.looks for end in np.concatenate(_intervals(look)[1:])]
    tried = sorted({float(p) for end in ends for p in (end - 1e-9, end + 1e-9) if 0 < p < 1})
    worst = min(tried, key=lambda p: zero_error(p, rule).stop)
    return worst, zero_error(worst, rule)


def ratio_of_medians(spread: float, simulated: int, truth: float = 2.0) -> Stop:
    """Log-normal errors of both conditions, medians in the ratio `truth`, and the bootstrap interval over pairs."""
    random = np.random.default_rng(11)
    both = np.exp(spread * random.standard_normal((simulated, 2, RATIO.maximum)))

    @cache
    def look(i: int, n: int) -> Look:
        first, second = both[i, 0, :n], truth * both[i, 1, :n]
        interval = quantile_ratio(first, second, 0.5, paired=True, resamples=RESAMPLES, seed=i).interval
        if interval is None:
            raise ValueError(f"{n} replicates give no interval of a ratio: look later")
        return (interval.high / interval.low if interval.low > 0 else math.inf), interval

    return row(RATIO, truth, look, simulated)


def table(quick: bool = False) -> str:
    """The Markdown table of all cases."""
    few = 40 if quick else 600
    zero = [_line("P(no error), ±0.1", f"{p:g}", zero_error(p), "exact") for p in PROBABILITIES]
    for width in HALF_WIDTHS:
        worst, stop = least_covered(replace(ZERO, limit=width))
        zero.append(_line(f"P(no error), ±{width:g}", f"{worst:.4f}, where it covers least", stop, "exact"))
    ratio = [_line("ratio of medians, 3", f"2, σ of log error {sd:g}", ratio_of_medians(sd, few), str(few)) for sd in SPREADS]
    return markdown_table(_COLUMNS, [*zero, *ratio])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopping", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer simulations, in seconds; prints and writes nothing")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cpu"))
    options = parser.parse_args(arguments)
    rows = table(options.quick)
    print(rows)
    if not options.quick:
        looks = ", ".join(map(str, ZERO.looks))
        text = f"# Coverage at an adaptive stop\n\n`python -m benchmarks.stopping`; looks at {looks}; nominal 95 %.\n"
        (options.out / "stopping.md").write_text(f"{text}\n{rows}\n")
    return 0


@cache
def _intervals(trials: int) -> tuple[Floats, Floats, Floats]:
    """Half the width, low and high ends of the Clopper–Pearson intervals of 0 … trials successes."""
    intervals = [clopper_pearson(successes, trials) for successes in range(trials + 1)]
    low, high = np.array([interval.low for interval in intervals]), np.array([interval.high for interval in intervals])
    return (high - low) / 2, low, high


def _fixed(trials: int, p: float) -> float:
    _, low, high = _intervals(trials)
    return float(stats.binom.pmf(np.arange(trials + 1), trials, p)[(low <= p) & (p <= high)].sum())


def _stop(rule: Rule, looks: Sequence[Look]) -> int:
    """Index of the first look whose interval is narrow enough, or of the last."""
    return next((i for i, (size, _) in enumerate(looks) if size <= rule.limit), len(looks) - 1)


def _line(rule: str, truth: str, stopped: Stop, simulated: str) -> list[str]:
    mean, *shares = stopped
    return [rule, truth, f"{mean:.1f}", *(f"{share:.3f}" for share in shares), simulated]


if __name__ == "__main__":
    raise SystemExit(main())
