"""T2, T3 and the attention half of R8 give each verdict on probe rows that deserve it."""

import numpy as np
import pytest

from results.claims import scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.rows.probe_values import add, by_key, probed
from results.store.tables import committed, open_store, read
from tests.results.claims.claim_rows import condition, tail, write

SHARPEN = {"train__sharpen": {"kind": "entropy", "weight": 0.1}}


def judged(folder, claim, conditions, probes):
    """The verdict where `probes` gives for condition number and seed the rows of (probe, [(layer, head, item, value)]) or None."""
    store = open_store(str(folder), "claims")
    write(store, {claim: {"value": 0.5}}, conditions)
    for row in committed(store).to_pylist():
        found = probes(int(row["condition"][1:]), row["init_seed"])
        if found is not None:
            probe, values = found
            base = {"key": row["key"], "stage": 0, "step": row["steps"]}
            add(
                store,
                row["pack"],
                probe,
                [base | dict(zip(("layer", "head", "item", "value"), each, strict=True)) for each in values],
            )
    (verdict,) = scoreboard(store)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict.verdict


def dilution(bound=0.9, short=0.8, long=0.3):
    rows = []
    for length, mean in ((8, short), (64, long)):
        rows += [
            (0, head, f"T={length} {item}", value)
            for head in (0, 1)
            for item, value in (("bound", bound), ("largest", mean + 0.05), ("mean", mean))
        ]
    return "dilution", rows


@pytest.mark.parametrize(
    ("verdict", "n", "rows"),
    [
        (REPRODUCED, 15, lambda seed: dilution()),
        (NOT_REPRODUCED, 15, lambda seed: dilution(bound=0.84) if seed == 7 else dilution()),  # one above its bound
        (NOT_REPRODUCED, 15, lambda seed: dilution(short=0.3, long=0.8)),  # they grow
        (TOO_FEW, 15, lambda seed: dilution() if seed < 8 else dilution(short=0.3, long=0.8)),
        (TOO_FEW, 14, lambda seed: dilution()),
        (PRECONDITION, 15, lambda seed: dilution(bound=1.0)),  # a bound that any weight keeps
        (NOT_REPRODUCED, 15, lambda seed: dilution(bound=0.999, short=0.97, long=0.96)),  # vacuous, and broken all the same
        (TOO_FEW, 20, lambda seed: dilution() if seed < 19 else None),  # one not probed
        (NOT_RUN, 15, lambda seed: None),
        (NOT_RUN, 15, lambda seed: ("dilution", dilution()[1][:6])),  # a model of 8 positions is probed at one length
    ],
)
def test_dilution_gives_the_verdict_that_its_rows_deserve(verdict, n, rows, tmp_path):
    assert judged(tmp_path, "T2", [condition(n)], lambda number, seed: rows(seed)) == verdict


def test_even_attention_of_models_that_have_learned_nothing_shows_no_dilution(tmp_path):
    untrained = condition(15, narrow=0.3)
    assert judged(tmp_path, "T2", [untrained], lambda number, seed: dilution(bound=0.3, short=0.13, long=0.02)) == PRECONDITION


def drift(margin, recent, early):
    ends = [(0, 0, "b p=10 recent", 0.0), (0, 0, "b p=10 early", 0.0), (0, 0, "a p=10 recent", 1.0)]
    return "drift", [(0, 0, "margin", margin), *ends, (0, 0, "b p=90 recent", recent), (0, 0, "b p=90 early", early)]


def as_told(seed):
    return drift(1.0, 0.9, 0.0) if seed % 3 else drift(-1.0, 0.1, 0.8)


@pytest.mark.parametrize(
    ("verdict", "n", "rows"),
    [
        (REPRODUCED, 15, as_told),
        (REPRODUCED, 15, lambda seed: drift(-1, 0, 1) if seed < 2 else drift(1, 1, 0)),  # the power that the claim states
        (NOT_REPRODUCED, 15, lambda seed: drift(-1.0, 0.9, 0.0) if seed % 3 else drift(1.0, 0.1, 0.8)),
        (PRECONDITION, 15, lambda seed: drift(1, 1, 0)),  # one sign only
        (TOO_FEW, 15, lambda seed: drift(1, 0.2, 0.2) if seed else drift(1, 1, 0)),  # one failure
        (TOO_FEW, 14, as_told),
        (PRECONDITION, 15, lambda seed: drift(1, 0.2, 0.2)),  # nobody fails
        (NOT_RUN, 15, lambda seed: None),
    ],
)
def test_drift_gives_the_verdict_that_its_rows_deserve(verdict, n, rows, tmp_path):
    assert judged(tmp_path, "T3", [condition(n)], lambda number, seed: rows(seed)) == verdict


def test_drift_waits_for_a_model_that_learned_its_training_distribution(tmp_path):
    poor = condition(15, narrow=0.01)
    assert judged(tmp_path, "T3", [poor], lambda number, seed: as_told(seed)) == PRECONDITION


def hardness(*means):
    noise = np.random.default_rng(0).permutation(np.linspace(-0.05, 0.05, 25))
    return lambda number, seed: (
        None
        if means[number] is None
        else ("attention", [(0, 0, "largest", means[number] + noise[seed]), (0, 0, "entropy", 1.0)])
    )


def pair(n=25, rare=1e-4):
    return [condition(n, tail(n, 1e-2), tail(n, 3e-3, seed=1)), condition(n, tail(n, rare), tail(n, 3e-3, seed=1), **SHARPEN)]


@pytest.mark.parametrize(
    ("verdict", "conditions", "means"),
    [
        (REPRODUCED, pair(), (0.4, 0.8)),
        (NOT_REPRODUCED, pair(), (0.8, 0.4)),  # sharpening made it softer
        (NOT_REPRODUCED, pair(), (0.2, 0.3)),  # harder, and not hard: most of it lies elsewhere
        (TOO_FEW, pair(), (0.4, 0.5)),
        (TOO_FEW, pair(), (0.6, 0.6)),
        (REPRODUCED, pair(rare=1e-2), (0.4, 0.8)),  # that errors are rarer is another claim
        (NOT_RUN, pair(), (0.4, None)),
        (NOT_RUN, pair(), (None, None)),
    ],
)
def test_hard_attention_is_read_from_probe_rows(verdict, conditions, means, tmp_path):
    assert judged(tmp_path, "R8", conditions, hardness(*means)) == verdict


def test_rows_are_added_beside_those_of_other_probes_and_survive_a_compaction(tmp_path):
    from results.store.merge import compact

    store = open_store(str(tmp_path), "claims")
    write(store, {}, [condition(2)])
    one, other = committed(store).to_pylist()
    rows = [{"key": one["key"], "stage": 0, "step": 5, "item": "x", "value": 1.0}]
    add(store, one["pack"], "first", rows)
    add(store, one["pack"], "first", [rows[0] | {"key": other["key"], "value": 2.0}])
    assert read(store, "probes").num_rows == 2
    add(store, one["pack"], "first", [rows[0] | {"value": 3.0}])  # replaces its own
    compact(store)
    add(store, one["pack"], "second", rows)
    add(store, "fd-unknown", "first", rows)  # of no committed pack
    compact(store)
    assert probed(store, "first") == {(one["key"], 0, 5), (other["key"], 0, 5)}
    assert by_key(read(store, "probes")) == {
        one["key"]: {("first", None, None, "x"): 3.0, ("second", None, None, "x"): 1.0},
        other["key"]: {("first", None, None, "x"): 2.0},
    }
