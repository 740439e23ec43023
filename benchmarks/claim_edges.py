"""Rows at the edge of each claim: one part of the claim lies exactly at its boundary, the other parts are clear or at theirs too.

Conditions, replicates, sets and terms are those of the studies that state the claims; the errors are drawn. Rates are continuous and
independent between sets, replicates and conditions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy import optimize, stats

from harness.planning import manifest
from harness.planning.plan import plan
from harness.study.load import load
from results.claims import REGISTRY
from results.claims.claim import Terms, terms_of
from results.claims.evidence import Condition, Evidence, gather
from results.claims.flipflop.context import floor
from results.claims.flipflop.read_sets import baseline, p_ignore_of_sets, training_p_ignore
from results.rows.probe_values import Name
from results.rows.summary import Replicate, Score
from results.statistics.intervals import Floats, clustered_rates

Random = np.random.Generator
Probes = Mapping[str, Mapping[Name, float]]
STUDIES = Path(__file__).parents[1] / "launch" / "studies" / "flipflop"
READS = 16_000  # of a replicate on a set, each a string of its own; the campaign's sparse set has 16,200 on average
# median errors of the baseline on sparse and dense strings, and of what is far below: only ranks are compared, and rates as small as
# these pass the gate of every condition, which is no part of the test
RARE, BUSY, CLEAR = 1e-7, 3e-7, 1e-14
BASE = {"sparse": RARE, "dense": BUSY}
HARDEST = 9.0  # mean of a largest weight that is clearly hard: only its rank, and whether it is above 0.5, count
OTHER_TERMS = {"R6-positions": Terms(1.0)}  # of claims that the campaign's file does not state
SPREADS = ((2.0, 2.0), (1.0, 3.0))  # standard deviations of the log errors: of the baseline, of the other


@dataclass(frozen=True)
class Stage:
    """A study without rows: its conditions and sets, how many replicates each condition has, and the terms of its claims."""

    evidence: Evidence
    counts: Mapping[str, int]
    terms: Mapping[str, Terms]


@dataclass(frozen=True)
class Rows:
    """Errors by (condition, set); those not named are drawn by `fill`. exact: with intervals of each rate, from counted reads."""

    errors: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    probes: Probes = field(default_factory=dict)
    exact: bool = False


@dataclass(frozen=True)
class Edge:
    """A point at a boundary of `claim`. reproduced and refuted: what the code's own intervals allow each verdict there.

    A level is nan where the code states none, and None where that verdict is the right one.
    """

    claim: str
    setting: str
    reproduced: float | None
    refuted: float | None
    stage: Stage
    draw: Callable[[Random], Rows]

    @property
    def terms(self) -> Terms:
        return self.stage.terms[self.claim]


def stage(name: str) -> Stage:
    """The stage of a flip-flop study's file, at the paper's scale."""
    study = load(STUDIES / f"{name}.yaml")
    content = manifest.read(manifest.to_bytes(manifest.build(plan(study, None, 1, numerics={}), {}, {})))  # as a store has it
    terms = OTHER_TERMS | {claim: terms_of(REGISTRY[claim], node) for claim, node in study.claims.items()}
    return Stage(gather(content, []), {condition.name: len(condition.seeds) for condition in study.conditions}, terms)


def logs(random: Random, n: int, median: float, sigma: float = 2.0) -> Floats:
    """Log-normal rates; those above 1 are ranked like any other."""
    return median * np.exp(sigma * random.normal(size=n))


def fill(stage: Stage, rows: Rows, random: Random) -> Evidence:
    """Its evidence with a replicate for each count: no error in distribution and of LSTMs, log-normal ones elsewhere, unless given."""
    evidence = stage.evidence
    inside = [name for name, p in p_ignore_of_sets(evidence).items() if p == training_p_ignore(evidence)]
    conditions = []
    for condition in evidence.conditions:
        title, perfect = condition.name, condition.settings.get("model.name") == "lstm"
        n = stage.counts[title]
        scores = {}
        for name in p_ignore_of_sets(evidence):
            quiet = perfect or name in inside
            rates = rows.errors.get((title, name))
            rates = rates if rates is not None else np.zeros(n) if quiet else logs(random, n, BUSY)
            scores[name] = _scores(rates, rows.exact, random)
        members = tuple(
            Replicate(title, 0, f"{title} {i}", i, i, "finished", 0.0, None, {name: scores[name][i] for name in scores})
            for i in range(n)
        )
        conditions.append(Condition(title, condition.settings, members))
    return replace(evidence, conditions=tuple(conditions), probes=rows.probes)


def _scores(rates: Floats, exact: bool, random: Random) -> list[Score]:
    if not exact:
        return [Score(round(min(rate, 1.0) * READS), READS, READS, rate, rate, rate) for rate in rates.tolist()]
    errors = random.binomial(READS, np.minimum(rates, 1.0))
    ones = np.ones_like(errors)
    clustered = clustered_rates(errors, READS * ones, READS * ones, errors, errors, READS * ones)
    columns = (errors.tolist(), clustered.value.tolist(), clustered.low.tolist(), clustered.high.tolist())
    return [Score(e, READS, READS, value, low, high) for e, value, low, high in zip(*columns, strict=True)]


def even(zero: float, spreads: tuple[float, float]) -> float:
    """Median of the nonzero errors of one of which a share has none, for P(a baseline error of median 1 is larger) = 1/2."""
    width = float(np.hypot(*spreads))
    shift = optimize.brentq(lambda x: zero + (1 - zero) * stats.norm.cdf(x / width) - 0.5, -50, 50)
    return float(np.exp(-shift))


def edges() -> Iterator[Edge]:
    campaign = stage("campaign")
    yield from _tail(campaign)
    resources = stage("resources")
    for spreads in SPREADS:
        yield from _ranks(campaign, spreads)
        yield from _more(resources, spreads)
    yield from _both(stage("choices"))
    yield from _sharpened(campaign)
    yield from _floor(campaign)


def _tail(campaign: Stage) -> Iterator[Edge]:
    n, terms = campaign.counts, campaign.terms

    def half(random: Random) -> Rows:
        errs = random.random(n["baseline"]) < terms["R1"].value
        wide = np.where(np.arange(n["baseline"]) % 2, 1e-3, 0.1)
        return Rows({("baseline", name): np.where(errs, wide, 0.0) for name in ("sparse", "dense")}, exact=True)

    def factor(random: Random) -> Rows:
        two = np.where(np.arange(n["baseline"]) % 2, 3e-3, 3e-2)
        return Rows({("baseline", "sparse"): two, ("baseline", "dense"): two}, exact=True)

    yield Edge("R1", "half of the replicates err, a factor of 100 apart", 0.025, 0.025, campaign, half)
    yield Edge("R1", "all err, exactly a factor of 10 between best and worst", np.nan, np.nan, campaign, factor)

    def lstm(share: float) -> Callable[[Random], Rows]:
        return lambda random: Rows({("lstm", "dense"): np.where(random.random(n["lstm"]) < share, 1e-3, 0.0)})

    yield Edge("R2", "10 % of the LSTMs err", 0.2, None, campaign, lstm(0.1))
    yield Edge("R2", "no LSTM errs", None, 0.0, campaign, lstm(0.0))


def _drawn(
    n: Mapping[str, int], spreads: tuple[float, float], medians: Mapping[tuple[str, str], float]
) -> Callable[[Random], Rows]:
    """Errors of the baseline, and of others with these medians by (condition, set)."""
    one, other = spreads

    def draw(random: Random) -> Rows:
        plain = {("baseline", name): logs(random, n["baseline"], median, one) for name, median in BASE.items()}
        return Rows(plain | {pair: logs(random, n[pair[0]], median, other) for pair, median in medians.items()})

    return draw


def _ranks(campaign: Stage, spreads: tuple[float, float]) -> Iterator[Edge]:
    """P = 1/2 in one comparison or in all of R4 and R6."""
    n, terms = campaign.counts, campaign.terms
    words = _words(spreads)
    share = terms["R4"].value

    def mixture(sparse: float, dense: float) -> Callable[[Random], Rows]:
        def draw(random: Random) -> Rows:
            zero = random.random(n["mixture"]) < share
            medians = {"sparse": sparse, "dense": dense, "in_distribution": CLEAR, "ignore_90": CLEAR}
            mixed = {
                ("mixture", name): np.where(zero, 0.0, logs(random, n["mixture"], median, spreads[1]))
                for name, median in medians.items()
            }
            return Rows(_drawn(n, spreads, {})(random).errors | mixed)

        return draw

    at = even(share, spreads) / 10
    alike = f"share without error as the paper's, {words}"
    third = 0.025 / 3  # sparse, dense and FFL(0.9) are compared, each on both sides
    yield Edge("R4", f"sparse P = 1/2, the rest clear, {alike}", third, 0.05 + third, campaign, mixture(RARE * at, CLEAR))
    yield Edge("R4", f"sparse and dense P = 1/2, {alike}", third, 0.05 + 2 * third, campaign, mixture(RARE * at, BUSY * at))
    yield Edge("R4", f"all clear, {alike}", None, 0.05, campaign, mixture(CLEAR, CLEAR))

    dropped = {("embedding_dropout", "sparse"): RARE / terms["R6"].value}
    yield Edge("R6", f"P = 1/2, {words}", 0.025, 0.025, campaign, _drawn(n, spreads, dropped))
    fixed = dict.fromkeys([(name, "dense") for name in ("sinusoidal", "rotary")], BUSY)
    yield Edge("R6-positions", f"both encodings P = 1/2, {words}", 0.0125, 0.025, campaign, _drawn(n, spreads, fixed))


def _more(resources: Stage, spreads: tuple[float, float]) -> Iterator[Edge]:
    """R5: P = 1/2 on fresh strings or everywhere; two trades have two tests each, and three conditions a distance to the mixture."""
    n, words, factor = resources.counts, _words(spreads), resources.terms["R5"].value
    few, most = (f"train.steps={steps}, train.pool=160000" for steps in (30000, 100000))
    longer, far = ("train.steps=100000", "sparse"), ("mixture", "sparse")
    grow = dict.fromkeys([("train.steps=100000", "dense"), (most, "dense")], 3e5 * BUSY)
    clear = grow | {(few, "sparse"): 3e5 * RARE, (most, "sparse"): RARE, ("larger", "sparse"): RARE}
    trade, distance = 0.025 / 4, 0.025 / 3

    def edge(what: str, reproduced: float, refuted: float, medians: Mapping[tuple[str, str], float]) -> Edge:
        return Edge("R5", f"{what}, {words}", reproduced, refuted, resources, _drawn(n, spreads, medians))

    sparse = clear | {longer: RARE, far: CLEAR * 1e-3}
    yield edge("sparse errors on fresh strings P = 1/2, the rest clear", trade, trade, sparse)
    alike = {(name, error): BASE[error] for name in (longer[0], few, most, "larger") for error in BASE}
    yield edge("all seven P = 1/2", trade, 4 * trade + 3 * distance, alike | {far: RARE / factor})
    near = clear | {longer: RARE * 1e-4, far: RARE * 1e-4 / factor}
    yield edge("distance of fresh strings to the mixture P = 1/2, the rest clear", distance, distance, near)


def _words(spreads: tuple[float, float]) -> str:
    return f"spreads {spreads[0]:g} and {spreads[1]:g}"


def _both(choices: Stage) -> Iterator[Edge]:
    """R7: settings that improve both in half of their replicates must not refute it; three that do in 95 %, which do, not support it."""
    n, terms = choices.counts, choices.terms
    others = [name for name in n if name != "baseline"]

    def drawn(medians: Mapping[str, float]) -> Callable[[Random], Rows]:
        """Both errors of a replicate are high or low together."""

        def draw(random: Random) -> Rows:
            errors = {}
            for name in n:
                alike = logs(random, n[name], 1.0)
                scale = medians.get(name, 1e4)
                errors |= {(name, "sparse"): RARE * scale * alike, (name, "dense"): BUSY * scale * alike}
            return Rows(errors)

        return draw

    value = terms["R7"].value
    improving = float(np.exp(-2 * stats.norm.ppf(value)))
    all_half = drawn(dict.fromkeys(n, 1.0))
    yield Edge("R7", f"all {len(others)} improve both in half of the replicates", None, 0.05, choices, all_half)
    draw = drawn({"baseline": 1.0} | dict.fromkeys(others[:3], improving))
    settings = f"three of {n[others[0]]} replicates each improve both in {value:.0%}, the others in none"
    yield Edge("R7", settings, 0.01, None, choices, draw)


def _sharpened(campaign: Stage) -> Iterator[Edge]:
    """R8: its error half without probes, which can only refute it; then with attention drawn too."""
    n, names = campaign.counts, [*p_ignore_of_sets(campaign.evidence)]

    def drawn(zero: float, harder: float | None) -> Callable[[Random], Rows]:
        def draw(random: Random) -> Rows:
            none = random.random(n["sharpened"]) < zero
            errors = {("sharpened", name): np.where(none, 0.0, logs(random, n["sharpened"], RARE)) for name in names}
            errors |= {("baseline", "sparse"): logs(random, n["baseline"], RARE)}
            if harder is None:
                return Rows(errors)
            about = (("baseline", HARDEST - harder), ("sharpened", HARDEST))
            probes = {
                f"{name} {i}": {("attention", 0, 0, "largest"): float(value)}
                for name, shift in about
                for i, value in enumerate(shift + random.normal(size=n[name]))
            }
            return Rows(errors, probes)

        return draw

    yield Edge("R8", "no probes: half without error", 0.0, 0.025, campaign, drawn(0.5, None))
    yield Edge("R8", "probed: half without error, the rest clear", 0.025, 0.025, campaign, drawn(0.5, HARDEST))
    yield Edge("R8", "probed: hardness P = 1/2, the rest clear", 0.025, 0.025, campaign, drawn(0.0, 0.0))


def _floor(campaign: Stage) -> Iterator[Edge]:
    """T0 at the replicates that it needs: no study of the campaign's size has a model with a limited context."""
    tokens, value, n = 2, 0.9, REGISTRY["T0"].needs
    full = campaign.evidence
    settings = baseline(full).settings | {"model.name": "my:Window", "model.context": tokens}
    evidence = replace(full, conditions=(Condition("window", settings, ()),))
    least = {name: value * floor(p, tokens, settings["task.length"]) for name, p in p_ignore_of_sets(full).items()}
    window = Stage(evidence, {"window": n}, {"T0": terms_of(REGISTRY["T0"], {"value": value})})

    def drawn(dense: float) -> Callable[[Random], Rows]:
        medians = {"sparse": least["sparse"], "dense": least["dense"] * dense}
        return lambda random: Rows({("window", name): logs(random, n, median, 0.2) for name, median in medians.items()})

    yield Edge("T0", "sparse median at the floor's part, dense clear", 0.0125, 0.0125, window, drawn(3.0))
    yield Edge("T0", "both medians at the floor's part", 0.0125, 0.025, window, drawn(1.0))
