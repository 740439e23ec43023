"""S6 gives each verdict on rows of the alignment probe that deserve it."""

import numpy as np
import pytest

from results.claims import scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.rows.probe_values import add
from results.store.tables import committed, open_store
from tests.results.claims.claim_rows import condition, write

PAIRS = 40
LAW = np.linspace(0.95, 0.25, PAIRS)
BEST = 0.4  # error of the best answers


def judged(folder, conditions, srep, law=LAW, lost=None, pairs=PAIRS, value=0.72):
    """The finding where srep(seed) are the pairs' S_rep, their P is `law`; None: not probed. lost: an item that has no rows.
    pairs: how many were probed."""
    store = open_store(str(folder), "claims")
    write(store, {"S6": {"value": value}}, conditions)
    for row in committed(store).to_pylist():
        said = srep(row["init_seed"])
        if said is None:
            continue
        items = {"least error": BEST}
        for pair in range(pairs):
            items |= {f"pair={pair} srep": said[pair], f"pair={pair} exact": law[pair], f"pair={pair} planted": pair % 2}
        items.pop(lost, None)
        base = {"key": row["key"], "stage": 0, "step": row["steps"], "layer": None, "head": None}
        add(store, row["pack"], "alignment", [base | {"item": item, "value": float(value)} for item, value in items.items()])
    (verdict,) = scoreboard(store)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict.finding


def noisy(part):
    """S_rep that goes with P, and noise of its own for each seed: `part` of the variance."""

    def said(seed):
        noise = np.random.default_rng(seed).standard_normal(PAIRS)
        steady = (LAW - LAW.mean()) / LAW.std()
        return 0.5 + 0.1 * (np.sqrt(1 - part) * steady + np.sqrt(part) * noise)

    return said


def learned(n, error=0.41):
    return [condition(n, narrow=error, task__name="associations")]


@pytest.mark.parametrize(
    ("verdict", "conditions", "srep"),
    [
        (REPRODUCED, learned(10), noisy(0.1)),
        (NOT_REPRODUCED, learned(10), noisy(0.9)),
        (NOT_REPRODUCED, learned(10), noisy(0.75)),  # r of 0.5: above half of the paper's 0.72, and below it
        (NOT_REPRODUCED, learned(10), lambda seed: 1 - noisy(0.1)(seed)),
        (NOT_REPRODUCED, learned(10), lambda seed: np.full(PAIRS, 0.5)),  # no spread, so no correlation
        (TOO_FEW, learned(10), lambda seed: noisy(0.1 if seed % 2 else 0.9)(seed)),
        (TOO_FEW, learned(9), noisy(0.1)),
        (TOO_FEW, learned(12), lambda seed: noisy(0.1)(seed) if seed else None),
        (PRECONDITION, learned(10, 0.46), noisy(0.1)),
        (NOT_RUN, learned(10), lambda seed: None),
        (NOT_RUN, [condition(10)], noisy(0.1)),  # of the flip-flop
    ],
)
def test_alignment_gives_the_verdict_that_its_rows_deserve(verdict, conditions, srep, tmp_path):
    assert judged(tmp_path, conditions, srep).verdict == verdict


@pytest.mark.parametrize("lost", ["least error", "pair=3 srep", "pair=3 exact"])
def test_rows_of_a_foreign_store_that_are_missing_settle_the_claim(tmp_path, lost):
    found = judged(tmp_path, learned(10), noisy(0.1), lost=lost)
    assert found.verdict == NOT_RUN
    assert "probe the study again" in found.reason


def test_pairs_that_are_equally_sure_say_nothing(tmp_path):
    found = judged(tmp_path, learned(10), noisy(0.1), np.full(PAIRS, 0.8))
    assert found.verdict == NOT_RUN
    assert "set task.spread" in found.reason


@pytest.mark.parametrize(("pairs", "verdict"), [(2, NOT_RUN), (9, NOT_RUN), (10, REPRODUCED)])
def test_a_correlation_needs_ten_pairs(tmp_path, pairs, verdict):
    """Two pairs have one of 1 or of -1, whatever they are."""
    found = judged(tmp_path, learned(10), lambda seed: LAW, pairs=pairs)
    assert found.verdict == verdict
    if verdict == NOT_RUN:
        assert f"{pairs} pairs" in found.reason
        assert "set task.pairs" in found.reason


def test_the_papers_number_is_the_papers_whatever_a_study_asks_for(tmp_path):
    reason = judged(tmp_path, learned(10), noisy(0.1), value=0.5).reason
    assert "must correlate above 0.5," in reason
    assert reason.endswith("the paper has 0.72")


def test_what_was_measured_has_the_median_replicate_and_the_traced_tokens(tmp_path):
    found = judged(tmp_path, learned(11), lambda seed: LAW if seed < 6 else noisy(0.5)(seed))
    assert "median r = 1.000" in found.measured
    assert "over 11 replicates of 40 pairs" in found.measured
    assert "50.0% of the traced tokens are the pair's" in found.measured
