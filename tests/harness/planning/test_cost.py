"""What a plan announces, against what a study then writes."""

import re
from pathlib import Path

import pytest

import harness.training.checkpoint as checkpoints
from harness.announce import announce
from harness.planning.amounts import size
from harness.planning.cost import estimate, rows_of
from harness.planning.plan import plan
from harness.prepare import executor_of, prepare
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study.load import load
from results.store.schema import TABLES
from results.store.tables import open_store, read
from tests.harness.planning.plans import NUMERICS, committed_rows, planned_packs, trial_study
from tests.harness.tiny import write_study


def _sizes(root: Path, *patterns: str) -> int:
    return sum(path.stat().st_size for pattern in patterns for path in root.glob(pattern))


def test_an_estimate_counts_what_is_missing():
    study = trial_study("replicates=8")
    planned = planned_packs(study)
    rates = {pack.signature: 90.0 for pack in planned.packs}
    whole = estimate(planned, rates, slots=4)
    assert (whole.replicates, whole.packs, whole.slot_hours, whole.hours, whole.weights) == (8, 2, 0.2, 0.1, 0)
    half = estimate(planned_packs(study, committed_rows((planned, planned.packs[0]))), rates)
    assert (half.replicates, half.slot_hours, half.tables * 2) == (4, 0.1, whole.tables)
    with pytest.raises(ValueError, match="no measured seconds"):
        estimate(planned, {})


def test_steps_that_an_interrupted_pack_has_saved_are_not_to_do_again(tmp_path):
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "device=cpu"])
    executor = executor_of(study)
    before = prepare(study, executor)
    begun, steps = before.plan.packs[0], 30
    checkpoints.write(before.store, begun.id, steps, {}, {})
    after = prepare(study, executor)
    executor.close()
    rate = after.rates[begun.shape]
    assert {pack.id for pack in after.plan.packs} == {pack.id for pack in before.plan.packs}
    saved = steps * rate.step_s * len(begun.replicates) / rate.size
    assert (before.cost.slot_hours - after.cost.slot_hours) * 3600 == pytest.approx(saved, rel=1e-6)
    assert after.cost.replicates == before.cost.replicates


KEPT = [("none", 0, 0), ("all", 8000, 8000), ("tail(3)", 3000, 8000), ("'steps(0, 1)'", 24000, 24000)]


@pytest.mark.parametrize(("keep", "stay", "meanwhile"), KEPT)
def test_weights_are_counted_where_they_are_kept(keep, stay, meanwhile):
    planned = planned_packs(trial_study("replicates=8", f"keep={keep}"), sizes=2)
    rates, weights = {planned.packs[0].signature: 1.0}, {planned.packs[0].signature: 1000}
    cost = estimate(planned, rates, weights=weights)
    assert (cost.weights, cost.weights_meanwhile) == (stay, meanwhile)
    if keep != "none":
        with pytest.raises(ValueError, match="no measured bytes of weights"):
            estimate(planned, rates)


def test_a_tail_is_of_every_condition():
    study = trial_study("replicates=4", "keep=tail(3)", sweeps=[{"each": {"train.lr": [1e-3, 1e-2]}}])
    planned = plan(study, None, 8, numerics=NUMERICS)
    names = {pack.signature for pack in planned.packs}
    cost = estimate(planned, dict.fromkeys(names, 1.0), weights=dict.fromkeys(names, 10))
    assert (cost.replicates, cost.weights, cost.weights_meanwhile) == (8, 60, 80)


def test_rows_count_the_looks_of_every_set():
    study = trial_study("evaluate.sets.online={p_ignore: 0.9, sequences: 5, every: 6}", "evaluate.curve_every=5")
    (condition,) = study.conditions
    assert rows_of(study, condition)["evaluations"] == 2 * (1 + 1 + 4)
    assert rows_of(study, condition)["curves"] == 2 * 4


TRAINED = (
    *("keep=all", "train.ema=0.9", "conditions.transformer.train.sharpen={kind: entropy, weight: 0.1}"),
    *("train.monitor={every: 7, sequences: 4}", "evaluate.curve_every=15"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study with averaged weights, a penalty and a monitor, what it announced, and its store."""
    folder = tmp_path_factory.mktemp("cost")
    study = load(write_study(folder), [f"store={folder / 'runs'}", *TRAINED])
    said: list[str] = []
    executor = executor_of(study)
    prepared = prepare(study, executor)
    announce(prepared, said.append)
    executor.close()
    assert run(study, say=lambda text: None) == 0
    return prepared, said, folder / "runs"


def test_announced_rows_are_those_that_are_written(trained):
    prepared, _, root = trained
    each = [rows_of(prepared.study, condition) for condition in prepared.study.conditions]
    assert each[0]["curves"] > each[1]["curves"]  # the LSTM has no attention to sharpen
    store = open_store(root, "tiny")
    written = {name: read(store, name).num_rows for name in ("replicates", "evaluations", "curves")}
    assert written == {name: 4 * sum(rows[name] for rows in each) for name in written}
    assert {row["weights"] for row in read(store, "evaluations").to_pylist()} == {"raw", "ema"}


def test_announced_bytes_are_those_on_disk(trained):
    prepared, said, root = trained
    weights = _sizes(root, "artifacts/**/*.safetensors")
    assert prepared.cost.weights == prepared.cost.weights_meanwhile == pytest.approx(weights, rel=0.01)
    assert prepared.cost.tables == pytest.approx(_sizes(root, *(f"tiny/{table}/*.parquet" for table in TABLES)), rel=0.1)
    assert said[-1].endswith(f"{size(prepared.cost.tables)} of tables, {size(prepared.cost.weights)} of weights")


def test_weights_that_are_thinned_out_are_announced_as_such(tmp_path):
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "keep=tail(1)", "train.steps=2"])
    said: list[str] = []
    executor = executor_of(study)
    prepared = prepare(study, executor)
    executor.close()
    announce(prepared, said.append)
    assert prepared.cost.weights * 4 == prepared.cost.weights_meanwhile
    assert re.search(r"KB of tables, [\d.]+ KB of weights \([\d.]+ KB until the end thins them out\)$", said[-1])


def test_weights_that_earlier_replicates_lack_are_announced(tmp_path):
    """`keep` does not train again what is committed; the sentence has the command that does."""
    words = [f"store={tmp_path / 'my runs'}", "train.steps=2", "replicates=1", "device=cpu"]
    assert run(load(write_study(tmp_path), words), say=lambda line: None) == 0

    def announced(*more):
        study, said = load(write_study(tmp_path), [*words, *more]), list[str]()
        announce(prepare(study, executor_of(study)), said.append)
        return [line for line in said if "no weights" in line]

    assert announced() == announced("keep=tail(1)") == []
    (line,) = announced("keep=all")
    key = min(read(open_store(tmp_path / "my runs", "tiny"), "replicates")["key"].to_pylist())
    assert "2 committed replicates have no weights" in line
    assert f"manyseeds rerun '{tmp_path}/my runs' {key[:8]} --keep weights" in line
    rerun(open_store(tmp_path / "my runs", "tiny"), key, keep=True)
    assert "1 committed replicate has no weights" in announced("keep=all")[0]


@pytest.mark.parametrize(
    ("replicates", "line"),
    [
        ("replicates=15", None),
        ("replicates=14", "14 replicates of a condition are too few for a verdict: R1 needs 15, R2 needs 100"),
        ("replicates=1", "1 replicate of a condition is too few for a verdict: R1 needs 15, R2 needs 100"),
        (
            "replicates={min: 8, max: 16, step: 4, until: {zero_error: {set: sparse, half_width: 0.4}}}",
            "16 replicates of a condition are too few for a verdict: R2 needs 100",
        ),
    ],
)
def test_claims_that_can_have_no_verdict_are_announced(tmp_path, replicates, line):
    """One replicate short of what a claim needs is hours of training for *too few replicates*."""
    claims = ["claims.R1.value=0.5", f"claims.R2={{value: 1, replicates: {15 if line is None else 100}}}"]
    said: list[str] = []
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "train.steps=2", replicates, *claims])
    announce(prepare(study, executor_of(study)), said.append)
    found = [text.strip() for text in said if "for a verdict" in text]
    assert found == ([] if line is None else [line])


def test_a_claim_that_lacks_a_condition_is_announced_until_a_replicate_has_ended(tmp_path):
    words = [f"store={tmp_path / 'runs'}", "train.steps=2", "replicates=1", "device=cpu", "claims.R4.value=0.24"]

    def announced():
        said = list[str]()
        study = load(write_study(tmp_path), words)
        announce(prepare(study, executor_of(study)), said.append)
        return [text.strip() for text in said if "no verdict" in text]

    (line,) = announced()
    assert line.startswith("no verdict on R4: no condition is the baseline trained on the thesis' mixture")
    assert run(load(write_study(tmp_path), words), say=lambda text: None) == 0
    assert announced() == []
