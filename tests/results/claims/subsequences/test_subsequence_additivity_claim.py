"""S5 gives each verdict on trace rows that deserve it."""

import numpy as np
import pytest

from results.claims import scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.rows.probe_values import add
from results.store.tables import committed, open_store
from tests.results.claims.claim_rows import condition, write


def judged(folder, conditions, reads):
    """The finding where reads(condition, seed) are (interaction, r2_pairs) of wrong reads; None: not traced."""
    store = open_store(str(folder), "claims")
    write(store, {"S5": {"value": 0.1}}, conditions)
    for row in committed(store).to_pylist():
        found = reads(int(row["condition"][1:]), row["init_seed"])
        items = [] if found is None else [("median srep", 0.5)]
        for number, (interaction, pairs) in enumerate(found or []):
            own = {"srep": 0.4, "r2_pairs": pairs, "r2": pairs * (1 - interaction), "interaction": interaction}
            items += [(f"busy {number} 12 {name}", value) for name, value in own.items()]
            items += [(f"busy {number} 40 {name}", value) for name, value in {"r2": 0.9, "events": 1}.items()]  # of one event
        base = {"key": row["key"], "stage": 0, "step": row["steps"], "layer": None, "head": None}
        if items:
            add(store, row["pack"], "trace", [base | {"item": item, "value": value} for item, value in items])
    (verdict,) = scoreboard(store)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict.finding


def around(share, pairs=0.6):
    """Three wrong reads about these, another set for each seed."""
    return lambda number, seed: [(share + 0.01 * np.sin(3 * seed + i), pairs + 0.02 * np.cos(seed + i)) for i in range(3)]


ERRING = 0.01


@pytest.mark.parametrize(
    ("verdict", "n", "reads"),
    [
        (REPRODUCED, 10, around(0.05)),
        (REPRODUCED, 10, around(-0.05)),
        (NOT_REPRODUCED, 10, around(0.3)),
        (TOO_FEW, 10, lambda number, seed: around(0.05 if seed % 2 else 0.3)(number, seed)),  # the interval has 0.1
        (PRECONDITION, 10, around(0.05, pairs=0.05)),
        (TOO_FEW, 9, around(0.05)),
        (TOO_FEW, 12, lambda number, seed: around(0.05)(number, seed) if seed else None),  # one that errs was not traced
        (NOT_RUN, 10, lambda number, seed: None),
    ],
)
def test_additivity_gives_the_verdict_that_its_rows_deserve(verdict, n, reads, tmp_path):
    assert judged(tmp_path, [condition(n, busy=ERRING)], reads).verdict == verdict


def test_a_replicate_without_error_has_nothing_to_trace(tmp_path):
    found = judged(
        tmp_path, [condition(11, busy=[0.0, *[ERRING] * 10])], lambda number, seed: around(0.05)(number, seed) if seed else None
    )
    assert found.verdict == REPRODUCED
    assert "(medians of 10 replicates)" in found.measured


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_models_that_have_not_learned_say_nothing(share, tmp_path):
    """Two of ten may err on more than 1 % of their own training distribution; three are too many."""
    few, many = ([0.5] * wrong + [0.0] * (10 - wrong) for wrong in (2, 3))
    assert judged(tmp_path / "few", [condition(10, busy=ERRING, narrow=few)], around(share)).verdict != PRECONDITION
    assert judged(tmp_path / "many", [condition(10, busy=ERRING, narrow=many)], around(share)).verdict == PRECONDITION


def test_every_condition_must_be_additive_and_an_outlier_of_a_replicate_counts_once(tmp_path):
    both = [condition(10, busy=ERRING), condition(10, busy=ERRING, task__p_ignore=0.5)]
    found = judged(tmp_path / "one", both, lambda number, seed: around(0.3 * number)(number, seed))
    assert found.verdict == NOT_REPRODUCED

    def wild(number, seed):
        return [(0.05, 0.6), (0.05, 0.6), (5.0, 0.6)]

    assert judged(tmp_path / "two", both[:1], wild).verdict == REPRODUCED
