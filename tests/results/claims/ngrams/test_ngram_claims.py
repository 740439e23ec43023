"""The claims on in-context n-grams give each verdict where the rows of their studies deserve it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.claims.ngrams.courses import Course, learned_lags
from results.rows.looks import Series
from tests.results.claims.planned_rows import planned, replicates

STEPS = np.arange(100, 5001, 100)
LEVELS = {1: 1.75, 2: 1.65, 3: 1.55, 4: 1.45}  # of the prior's smoothing; the best is 0.02 below


@pytest.fixture(scope="module")
def studies():
    return {name: planned("ngrams", name) for name in ("figure3", "figure6", "figure7", "lag_order")}


def path(order, until, shift=0.0, lags=None):
    """Losses and learned lags of a training that is at stage k up to the step until[k - 1], and at the last one after that."""
    ends = [*until, STEPS[-1]]
    stage = np.array([next(k for k, end in enumerate(ends, 1) if step <= end) for step in STEPS])
    loss = np.array([LEVELS[k] - 0.01 for k in stage]) + shift
    return loss, heads(*((h, (lags or {}).get(h + 1, h + 1), end) for h, end in enumerate(until)))


def heads(*times, count=3):
    """Head h gives 0.8 to the lag q after the step, for each (h, q, step); 0.05 to every other."""
    masses = {(h, q): np.full(len(STEPS), 0.05) for h in range(count) for q in range(5)}
    for h, q, step in times:
        for other in range(5):
            masses[h, other] = np.where(step < STEPS, 0.05, masses[h, other])
        masses[h, q] = np.where(step < STEPS, 0.8, masses[h, q])
    return masses


def judged(manifest, claim, paths=None, lags=None, norms=None, changes=None):
    """The verdict; paths, lags, norms: of a seed, what was averaged over the set and what was watched."""
    known = [each if changes is None else changes(each) for each in replicates(manifest, lambda settings, definition: 0.5)]
    order = manifest["conditions"][0]["settings"]["task"]["order"]
    alpha = manifest["conditions"][0]["settings"]["task"]["alpha"]
    averages, watched = [], []
    for each in known:
        loss, masses = (None, {}) if paths is None else paths(each.init_seed)
        if loss is not None:
            averages += [(each.key, int(s), "online", "loss", float(v)) for s, v in zip(STEPS, loss, strict=True)]
            for k in range(1, order + 1):
                averages.append((each.key, 5000, "online", f"baseline {k}-gram a={alpha:g}", LEVELS[k]))
                averages.append((each.key, 5000, "online", f"baseline {k}-gram a=5", LEVELS[k] - 0.02))
        masses = masses if lags is None else lags(each.init_seed)
        more = {f"lag 0.{h}.{q}": v for (h, q), v in masses.items()}
        more |= {} if norms is None else {"sample gradient": norms(each.init_seed)}
        for name, values in more.items():
            watched += [(each.key, int(s), name, float(v)) for s, v in zip(STEPS, values, strict=True)]
    tables = [
        pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))) if rows else None
        for names, rows in (
            (("key", "step", "set", "metric", "value"), averages),
            (("key", "step", "metric", "value"), watched),
        )
    ]
    own = manifest | {"claims": {claim: manifest["claims"][claim]}, "overrides": [], "reductions": []}
    (found,) = verdicts(own, known, averages=tables[0], watched=tables[1])
    return found.verdict


def three(first=500, second=3000, **more):
    return lambda seed: path(3, (first + 20 * seed, second + 40 * seed), **more)


def lag_two_alone(seed):
    return path(3, (500, 5000), lags={1: 2})


def mostly(one, other, share):
    """`one` in the first share of 25 seeds."""
    return lambda seed: one(seed) if seed < share * 25 else other(seed)


def at_once(seed):
    return path(3, (2000, 2000))


def one_head_for_both(seed):
    """As with MLPs: the loss falls at once, and a head that reads two lags gives neither the most of its weight."""
    loss, masses = at_once(seed)
    return loss, {place: np.full(len(STEPS), 0.4 if place[1] in (0, 1, 2) else 0.05) for place in masses}


def slides(seed):
    """From the unigram to the trigram with no plateau, and slowly."""
    return np.interp(STEPS, [1000, 4000], [LEVELS[1], LEVELS[3] - 0.03]), heads()


def slides_at_once(seed):
    """From far above the unigram's loss to the trigram's, with no plateau at all."""
    return np.interp(STEPS, [100, 2000], [5.0, LEVELS[3] - 0.03]), heads()


def was_there_before(seed):
    """At the trigram's loss from the first look on."""
    return np.full(len(STEPS), LEVELS[3] - 0.03), heads()


def slides_past(seed):
    """The medians of the first two stages are those of the unigram and the bigram, at which the loss does not stay."""
    loss = np.interp(
        STEPS,
        [100, 1600, 1601, 3000, 3001, 5000],
        [LEVELS[1] + 0.1, LEVELS[1] - 0.12, LEVELS[2] + 0.1, LEVELS[2] - 0.12, LEVELS[3], LEVELS[3] - 0.03],
    )
    return loss, path(3, (1600, 3000))[1]


def stays(seed):
    return path(3, (500, 5000))


def hardly_falls(seed):
    """The lags are learned in their order, and the loss is lower by a hundredth of what the k-grams' losses differ by."""
    return LEVELS[1] - 0.001 * np.searchsorted((500, 3000), STEPS), path(3, (500, 3000))[1]


def one_lag_more(seed):
    """After the trigram's two lags a third is learned, and the loss falls once more."""
    loss, _ = path(3, (500, 2000))
    return loss - 0.001 * (STEPS > 3500), heads((0, 1, 500), (1, 2, 2000), (2, 3, 3500))


BACKWARDS = three(lags={1: 2, 2: 1})
RISES = lambda seed: (three()(seed)[0][::-1], three()(seed)[1])  # noqa: E731


@pytest.mark.parametrize(
    ("claim", "paths", "verdict"),
    [
        ("N1", three(), REPRODUCED),
        ("N1", three(shift=-0.045), NOT_REPRODUCED),  # plateaus elsewhere
        ("N1", three(shift=0.05), NOT_REPRODUCED),
        ("N1", at_once, NOT_REPRODUCED),
        ("N1", slides_past, NOT_REPRODUCED),
        ("N1", mostly(three(), three(shift=0.05), 0.6), TOO_FEW),
        ("N1", stays, PRECONDITION),
        ("N1", None, NOT_RUN),
        ("N2", three(), REPRODUCED),
        ("N2", mostly(three(), at_once, 0.96), REPRODUCED),
        ("N2", mostly(three(), stays, 0.72), REPRODUCED),  # 18 of 18, and 7 that have not come so far
        ("N2", mostly(three(), lag_two_alone, 0.72), TOO_FEW),  # 18 of 25: these have left the order
        ("N2", mostly(three(), at_once, 0.8), TOO_FEW),
        ("N2", mostly(three(), at_once, 0.5), NOT_REPRODUCED),
        ("N2", stays, PRECONDITION),
        ("N2", BACKWARDS, NOT_REPRODUCED),
        ("N2", RISES, NOT_REPRODUCED),
        ("N2", hardly_falls, NOT_REPRODUCED),
        ("N2", one_lag_more, REPRODUCED),
        ("N2", None, NOT_RUN),
    ],
)
def test_plateaus_and_their_order(studies, claim, paths, verdict):
    assert judged(studies["figure3"], claim, paths) == verdict


def test_k_grams_whose_windows_overlap_are_not_tested(studies, monkeypatch):
    """A steady slide past both passed where they were more than one margin apart."""
    for k, level in enumerate((1.08, 1.035, 0.95), 1):  # bands of 0.02 below each
        monkeypatch.setitem(LEVELS, k, level)

    def falls(seed):
        return np.interp(STEPS, [100, 3000, 5000], [1.077, 1.02, 0.94]), path(3, (1500, 3000))[1]

    assert judged(studies["figure6"], "N1", falls) == PRECONDITION


def test_plateaus_that_no_loss_tells_apart_are_not_tested(studies, monkeypatch):
    """As with α = 1, where the unigram's loss is 1.637 and the bigram's 1.634: any course would do."""
    monkeypatch.setitem(LEVELS, 1, LEVELS[2] + 0.003)
    assert judged(studies["figure3"], "N1", three()) == PRECONDITION


@pytest.mark.parametrize(
    ("paths", "verdict"),
    [
        (at_once, REPRODUCED),
        (one_head_for_both, REPRODUCED),
        (slides, NOT_REPRODUCED),
        (slides_at_once, NOT_REPRODUCED),
        (was_there_before, NOT_REPRODUCED),
        (three(), NOT_REPRODUCED),  # without MLPs
        (mostly(at_once, three(), 0.8), TOO_FEW),
        (stays, PRECONDITION),
        (None, NOT_RUN),
    ],
)
def test_one_plateau_with_mlps(studies, paths, verdict):
    assert judged(studies["figure7"], "N6", paths) == verdict


def always(*times):
    return lambda seed: heads(*times)


ONE_TWO, ONE_THREE = always((0, 1, 300), (1, 2, 2000)), always((0, 1, 300), (1, 3, 2000))
TWO_ONE = always((0, 2, 300), (1, 1, 2000))
MOVED = always((0, 1, 300), (1, 1, 400), (1, 2, 2000))  # both heads on lag 1 at first, as in figure 3


@pytest.mark.parametrize(
    ("study", "claim", "lags", "verdict"),
    [
        ("figure3", "N3", ONE_TWO, REPRODUCED),
        ("figure3", "N3", MOVED, REPRODUCED),
        ("figure3", "N3", TWO_ONE, NOT_REPRODUCED),
        ("figure3", "N3", mostly(ONE_TWO, TWO_ONE, 0.8), TOO_FEW),
        ("figure3", "N3", always(), PRECONDITION),
        ("figure3", "N3", None, NOT_RUN),
        ("lag_order", "N3-second", ONE_TWO, REPRODUCED),
        ("lag_order", "N3-second", ONE_THREE, NOT_REPRODUCED),
        ("lag_order", "N3-second", lambda seed: (ONE_TWO if seed % 2 else ONE_THREE)(seed), TOO_FEW),
        ("lag_order", "N3-second", always((0, 1, 300)), PRECONDITION),
        ("lag_order", "N3-second", None, NOT_RUN),
    ],
)
def test_the_order_of_lags(studies, study, claim, lags, verdict):
    assert judged(studies[study], claim, lags=lags) == verdict


def jump(height):
    """Norms of 1, and of `height` for 300 steps about the jump of `slope`."""
    return lambda seed: np.where(np.abs(STEPS - 3000) <= 150, height, 1.0)


def slope(seed):
    """As `three`, with a jump that takes 300 steps."""
    loss, masses = path(3, (500, 3000))
    for step, level in ((2900, 1.62), (3000, 1.58), (3100, 1.56)):
        loss[step == STEPS] = level
    return loss, masses


@pytest.mark.parametrize(
    ("paths", "norms", "verdict"),
    [
        (slope, jump(2.0), REPRODUCED),
        (slope, jump(1.0), NOT_REPRODUCED),  # no peak
        (slope, lambda seed: jump(2.0 if seed % 2 else 1.0)(seed), TOO_FEW),
        (slope, lambda seed: np.where(STEPS < 2000, 0.1, 2.0), NOT_REPRODUCED),  # it grows long before
        (slope, lambda seed: np.where(STEPS < 2850, 1.0, 2.0 - 0.01 * (seed - 12)), TOO_FEW),  # it stays high, which is no peak
        (slope, lambda seed: np.where(STEPS < 2850, 1.0, STEPS / 1000), NOT_REPRODUCED),  # it goes on to rise
        (slope, lambda seed: np.zeros(len(STEPS)), NOT_REPRODUCED),
        (slope, lambda seed: np.where(STEPS == 700, 5.0, 1.0), NOT_REPRODUCED),  # a peak elsewhere
        (stays, jump(2.0), PRECONDITION),
        (slope, None, NOT_RUN),
    ],
)
def test_the_gradient_peaks_at_jumps(studies, paths, norms, verdict):
    assert judged(studies["figure3"], "N5", paths, norms=norms) == verdict


def test_the_peak_is_no_ones_where_no_replicate_leaves_its_plateau(studies):
    """Whatever the study's gate: with 0 there would be no norm to take a median of."""
    ungated = studies["figure3"] | {"claims": {"N5": studies["figure3"]["claims"]["N5"] | {"gate": 0}}}
    assert judged(ungated, "N5", stays, norms=jump(2.0)) == PRECONDITION


def test_a_missing_replicate_is_waited_for_and_a_diverged_one_settles_it(studies):
    def without(status):
        return lambda each: replace(each, status=status) if each.init_seed == 3 else each

    assert judged(studies["figure3"], "N2", three(), changes=without("missing")) == TOO_FEW
    assert judged(studies["figure3"], "N2", three(), changes=without("diverged")) == PRECONDITION


def test_the_escape_is_where_the_loss_has_gone_three_tenths_of_the_way():
    steps, loss = np.arange(10.0), np.array([2, 2, 2, 2, 1.6, 1.95, 1.65, 1.2, 1, 1])
    course = Course(steps, loss, 2, {1: 6.0}, {}, 1.0)
    assert (course.plateau(1), course.plateau(2)) == (2, 1.1)
    assert course.escape(1) == 6  # the dip at 4 does not stay
    assert Course(steps[:5], loss[:5], 2, {}, {}, 1.0).escape(1) is None
    assert Course(steps, loss, 2, {1: 8.0}, {}, 1.0).escape(1) is None  # too few looks after it


def test_lags_are_in_the_order_of_their_first_head():
    steps = np.arange(5.0)

    def head(*rows):
        return [Series(steps, np.array(each)) for each in rows]

    early = head([0.1] * 5, [0.1, 0.5, 0.5, 0.2, 0.2], [0.1, 0.2, 0.2, 0.7, 0.7])
    late = head([0.1] * 5, [0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4, 0.4])
    assert learned_lags([early, late]) == {1: 1.0, 2: 2.0}
    assert learned_lags([head([0.9] * 5, [0.05] * 5)]) == {}
