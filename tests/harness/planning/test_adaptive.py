"""Adaptive replicates: what is decided of rows, the grammar, and real runs that stop early, go on to the maximum and are resumed."""

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import local
from harness.local import Local
from harness.planning import adaptive
from harness.planning.plan import replicates_of
from harness.prepare import next_round, prepare
from harness.run import run
from harness.study.load import load
from results.progress.status import show_status
from results.report.report import write_report
from results.rows.summary import replicates_of as known_of
from results.rows.summary import summarise
from results.statistics.adaptive_rules import PENDING, Rule, decide, first_look, narrowing
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read
from tests.harness.tiny import STUDY, tables, write_study

RULE = Rule(4, 12, 4, "dense", 0.2)
RATIO = Rule(6, 12, 3, "sparse", 3.0, "base")
ADAPTIVE = "replicates={min: 2, max: 6, step: 2, until: {zero_error: {set: sparse, half_width: 0.4}}}"
NEVER = "replicates={min: 2, max: 6, step: 2, until: {zero_error: {set: sparse, half_width: 0.01}}}"
ends = st.lists(st.sampled_from([0.0, 0.0, 0.1, float("inf"), None]), min_size=12, max_size=12)


@pytest.fixture
def study(tmp_path):
    path = write_study(tmp_path)
    return lambda *overrides, store="runs": load(path, [f"store={tmp_path / store}", *overrides])


def planned(store) -> dict[str, int]:
    manifest = newest_manifest(store)[1]
    return {each["name"]: each["replicates"] for each in manifest["conditions"]}


def quiet(text: str) -> None:
    assert text


@settings(deadline=None)
@given(ends, st.sets(st.integers(0, 11)))
def test_no_look_is_made_before_all_seeds_below_it_have_ended(errors, open_seeds):
    seen = [PENDING if seed in open_seeds else error for seed, error in enumerate(errors)]
    decision = decide(RULE, {"a": seen})["a"]
    assert not open_seeds & set(range(decision.at))
    first = min(open_seeds, default=12)
    without = decide(RULE, {"a": [*errors[:first], *[PENDING] * (12 - first)]})["a"]
    assert (decision.target, decision.at, decision.size) == (without.target, without.at, without.size)
    whole = decide(RULE, {"a": errors})["a"]
    assert decision.target <= whole.target  # what is planned early is never more than what is needed in the end


@settings(max_examples=50, deadline=None)
@given(ends, ends, st.permutations(list(range(24))))
def test_the_order_of_finishing_changes_no_target(one, other, order):
    """Seeds beyond the target may have ended before those below it."""
    final = {name: each.target for name, each in decide(RULE, {"a": one, "b": other}).items()}
    seen = {"a": [PENDING] * 12, "b": [PENDING] * 12}
    ended = dict(enumerate([*one, *other]))
    reached = {}
    for index in order:
        seen["ab"[index // 12]][index % 12] = ended[index]
        for name, each in decide(RULE, seen).items():
            if each.reason is not None:
                assert reached.setdefault(name, each.target) == each.target == final[name]
    assert reached == final


def test_the_interval_stops_a_condition_and_diverged_and_failed_ones_count_as_they_must():
    same = decide(RULE, {"a": [0.0] * 12})["a"]
    assert (same.target, same.reason, same.looks) == (8, "narrow", 2)  # Clopper–Pearson of 8 of 8 is 0.631 … 1
    diverged = decide(Rule(4, 12, 4, "dense", 0.4), {"a": [float("inf")] * 12})["a"]
    assert (diverged.target, diverged.reason, diverged.size) == (4, "narrow", pytest.approx(0.301, abs=0.001))
    failed = decide(RULE, {"a": [None] * 6 + [0.0] * 6})["a"]
    assert (failed.target, failed.reason, failed.failed) == (12, "max", 6)


def test_the_ratio_needs_the_seeds_of_both_and_the_baseline_goes_on_with_the_others():
    steady = [0.1, 0.11, 0.12, 0.1, 0.11, 0.12] * 2
    wild = [1e-6, 1.0] * 6
    found = decide(RATIO, {"base": steady, "a": steady, "b": wild})
    assert [(each.target, each.reason) for each in found.values()] == [(12, "baseline"), (6, "narrow"), (12, "max")]
    found = decide(RATIO, {"base": [*steady[:5], *[PENDING] * 7], "a": steady, "b": wild})
    assert {each.at for each in found.values()} == {0}
    assert {each.target for each in found.values()} == {6}


def test_the_interval_of_a_condition_that_always_diverges_has_no_end_and_does_not_take_the_whole_budget():
    """Its ratio to the baseline is infinite in every resample; the quotient of the ends is then no number."""
    steady, wild, rule = [0.1, 0.11, 0.12, 0.1, 0.11, 0.12] * 2, [1e-6, 1.0] * 6, RATIO
    found = decide(rule, {"base": steady, "lost": [math.inf] * 12, "wild": wild})
    assert (found["lost"].target, found["lost"].reason, found["lost"].size) == (12, "max", math.inf)
    gains = [narrowing(rule, each.size, 6, 3) for each in (found["lost"], found["wild"])]
    assert all(map(math.isfinite, gains))


def test_the_command_line_switches_a_rule_on_and_to_another_one(tmp_path, study):
    zero, ratio = "{zero_error: {set: sparse, half_width: 0.1}}", "{ratio_of_medians: {set: sparse, baseline: lstm, width: 3}}"
    fixed = study(f"replicates.until={zero}").adaptive  # the file has replicates: 4
    assert (fixed["minimum"], fixed["maximum"], fixed["baseline"], fixed["limit"]) == (2, 4, None, 0.1)
    wider = study(f"replicates.until={ratio}", "replicates.min=5", "replicates.max=60").adaptive
    assert (wider["minimum"], wider["maximum"], wider["baseline"], wider["limit"]) == (5, 60, "lstm", 3)
    path = tmp_path / "adaptive.yaml"
    path.write_text(STUDY.replace("replicates: 4", f"replicates: {{min: 2, max: 6, until: {zero}}}"))
    switched = load(path, [f"replicates.until={ratio}"]).adaptive
    assert (switched["minimum"], switched["maximum"], switched["baseline"], switched["limit"]) == (2, 6, "lstm", 3)
    narrower = load(path, ["replicates.until.zero_error.half_width=0.2"]).adaptive
    assert (narrower["set"], narrower["limit"]) == ("sparse", 0.2)
    with pytest.raises(ValueError, match=r"replicates\.until is missing"):
        study("replicates.max=60")
    assert [first_look(number) for number in (2, 12, 30, 500)] == [1, 6, 15, 15]


def test_a_number_on_the_command_line_makes_a_study_with_a_budget_a_fixed_one(tmp_path):
    path = tmp_path / "budget.yaml"
    rule = "replicates: {min: 4, max: 8, until: {zero_error: {set: sparse, half_width: 0.1}}}"
    path.write_text(STUDY.replace("replicates: 4", f"{rule}\nbudget: {{gpu_hours: 1}}"))
    fixed = load(path, ["replicates=5"])
    assert fixed.adaptive is None
    assert {len(condition.seeds) for condition in fixed.conditions} == {5}


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["replicates={min: 5, max: 10}"], "replicates.until is missing"),
        (["replicates={min: 10, max: 5, until: {zero_error: {set: sparse, half_width: 0.1}}}"], "must be below replicates.max"),
        (["replicates={min: 0, max: 5, until: {zero_error: {set: sparse, half_width: 0.1}}}"], "replicates.min = 0"),
        (["replicates={min: 2, max: 5, until: {zero_error: {set: sparce, half_width: 0.1}}}"], "did you mean sparse"),
        (["replicates={min: 2, max: 5, until: {zero_error: {set: sparse, half_width: 0.7}}}"], "below 0.5"),
        (["replicates={min: 2, max: 5, until: {zero_error: {set: sparse, width: 0.1}}}"], "no key 'width'"),
        (["replicates={min: 2, max: 5, until: {median: {set: sparse}}}"], "no key 'median'"),
        (["replicates={min: 2, max: 5, until: {ratio_of_medians: {set: sparse, baseline: gru, width: 3}}}"], "'gru'"),
        (["replicates={min: 2, max: 5, until: {ratio_of_medians: {set: sparse, baseline: lstm, width: 1}}}"], "above 1"),
        (["budget.gpu_hours=1"], "budget needs adaptive replicates"),
        ([ADAPTIVE, "budget={hours: 1}"], "budget = "),
        ([ADAPTIVE, "budget.gpu_hours=-1"], "budget.gpu_hours = -1"),
        ([ADAPTIVE, "seeds={init: 0..1, data: 0}"], "seeds beside adaptive replicates"),
    ],
)
def test_a_wrong_rule_is_refused_in_one_sentence(study, overrides, says):
    with pytest.raises(ValueError) as error:
        study(*overrides)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_condition_can_have_no_replicates_of_its_own_beside_a_rule(tmp_path):
    text = STUDY.replace("replicates: 4", ADAPTIVE.replace("=", ": ", 1)).replace(
        "transformer: {}", "transformer: {replicates: 3}"
    )
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"condition transformer .*replicates or seeds"):
        load(tmp_path / "own.yaml")
    rule = "replicates.until={zero_error: {set: sparse, half_width: 0.1}}"
    (tmp_path / "own.yaml").write_text(STUDY.replace("transformer: {}", "transformer: {replicates: 3}"))
    with pytest.raises(ValueError, match=r"condition transformer .*replicates or seeds of its own.*leave them out"):
        load(tmp_path / "own.yaml", [rule])


def test_a_study_stops_as_soon_as_the_interval_is_narrow_and_nothing_is_missing(study, tmp_path):
    said: list[str] = []
    assert run(study(ADAPTIVE), say=said.append) == 0
    store = open_store(tmp_path / "runs", "tiny")
    decisions = decide(adaptive.rule_of(study(ADAPTIVE)), adaptive.errors_of(study(ADAPTIVE), _tables(store)))
    targets = {name: each.target for name, each in decisions.items()}
    assert {each.reason for each in decisions.values()} == {"narrow"}
    assert max(targets.values()) < 6
    assert planned(store) == targets
    assert committed(store).num_rows == sum(targets.values())
    known = known_of(newest_manifest(store)[1], *(_tables(store)[name] for name in ("replicates", "evaluations", "failures")))
    assert sum(row["missing"] for row in summarise(newest_manifest(store)[1], known).to_pylist()) == 0
    assert any("at least: 4 replicates" in line for line in said)
    assert any("at most: 12 replicates" in line for line in said)
    said.clear()
    assert run(study(ADAPTIVE), say=said.append) == 0
    assert "  to do: nothing" in said  # what has stopped needs no more, and is not measured again
    status: list[str] = []
    show_status(store, status.append)
    assert sum("stopped at" in line and "narrow enough" in line for line in status) == 2
    page = write_report(store).read_text()
    assert "not one of a fixed number of replicates" in page
    assert "narrow enough" in page


def test_a_study_that_never_narrows_runs_to_the_maximum_with_the_rows_of_a_fixed_one(study, tmp_path):
    assert run(study(NEVER, "only=[lstm]"), say=quiet) == 0
    assert run(study("replicates=6", "only=[lstm]", store="fixed"), say=quiet) == 0
    assert tables(tmp_path / "runs") == tables(tmp_path / "fixed")
    assert len(list((tmp_path / "runs" / "tiny" / "manifests").glob("*.yaml"))) == 3  # one a round
    status: list[str] = []
    show_status(open_store(tmp_path / "runs", "tiny"), status.append)
    assert any("lstm: 3 looks, stopped at 6, the maximum" in line for line in status)


def test_a_finished_adaptive_study_has_a_new_manifest_where_it_is_described_anew(study, tmp_path):
    written = []
    for question in ("Why?", "Why?", "Why not?"):
        assert run(study(ADAPTIVE, "only=[lstm]", f"question={question}"), say=quiet) == 0
        written.append(len(list((tmp_path / "runs" / "tiny" / "manifests").glob("*.yaml"))))
    assert written[0] == written[1] == written[2] - 1
    assert newest_manifest(open_store(tmp_path / "runs", "tiny"))[1]["question"] == "Why not?"


def test_an_adaptive_study_in_a_store_that_holds_more_plans_what_it_needs(study, tmp_path):
    assert run(study("replicates=6", "only=[lstm]"), say=quiet) == 0
    assert run(study(ADAPTIVE, "only=[lstm]"), say=quiet) == 0
    assert planned(open_store(tmp_path / "runs", "tiny"))["lstm"] < 6


def test_interrupted_and_resumed_ends_at_the_same_targets(study, tmp_path, monkeypatch):
    assert run(study(NEVER), say=quiet, retry=False) == 0
    started = []
    real = local.run_there

    def stop_at_the_third(pack, store, device, report, should_stop, say, begun):
        started.append(pack.id)
        return real(pack, store, device, report, (lambda: True) if len(started) == 3 else should_stop, say, begun)

    monkeypatch.setattr(local, "run_there", stop_at_the_third)
    run(study(NEVER, store="again"), say=quiet)
    assert committed(open_store(tmp_path / "again", "tiny")).num_rows < 12
    assert run(study(NEVER, store="again"), say=quiet) == 0
    assert planned(open_store(tmp_path / "again", "tiny")) == planned(open_store(tmp_path / "runs", "tiny"))
    assert tables(tmp_path / "again") == tables(tmp_path / "runs")


def test_a_budget_is_not_exceeded_by_more_than_a_pack(study, tmp_path):
    wide = "replicates={min: 2, max: 60, step: 2, until: {zero_error: {set: sparse, half_width: 0.01}}}"
    executor = Local("cpu")
    first = next_round(prepare(study(wide, store="probe"), executor))
    budget = f"budget.gpu_hours={2 * first.cost.slot_hours:.8f}"
    chosen = study(wide, budget)
    assert run(chosen, say=quiet) == 0
    store = open_store(tmp_path / "runs", "tiny")
    rows = committed(store).to_pylist()
    pack = max(row["pack_size"] * (row["train_s"] + row["evaluate_s"]) for row in rows) / 3600
    assert adaptive.spent(chosen, committed(store)) <= chosen.adaptive["budget"] + pack
    assert 2 <= len(rows) < 120
    before = planned(store)
    assert (run(chosen, say=quiet) == 0 and planned(store) == before) or adaptive.spent(chosen, committed(store)) < pack * 60
    with pytest.raises(ValueError, match=r"budget\.gpu_hours = .* is less than"):
        run(study(wide, f"budget.gpu_hours={first.cost.slot_hours / 1e4:.12f}", store="poor"), say=quiet)


def test_a_budget_is_spent_where_it_narrows_most(study):
    """The LSTM's replicates are as wide and ten times as cheap; the one already narrow gets nothing."""
    chosen = study("replicates={min: 10, max: 40, until: {zero_error: {set: sparse, half_width: 0.1}}}", "budget.gpu_hours=1")
    rates = {"transformer": [0.0, 0.5] * 5, "lstm": [0.0, 0.5] * 5}
    assert adaptive.targets(chosen, _made(chosen, rates, {"transformer": 36.0, "lstm": 3.6})) == {"transformer": 10, "lstm": 20}
    assert adaptive.targets(chosen, _made(chosen, rates, {"transformer": 3.6, "lstm": 36.0})) == {"transformer": 20, "lstm": 10}
    assert adaptive.targets(chosen, _made(chosen, rates, {"transformer": 400.0, "lstm": 40.0})) == {
        "transformer": 10,
        "lstm": 10,
    }
    begun = rates | {"transformer": [0.0, 0.5] * 5 + [0.5] * 3}  # three of the next ten have ended: these go on first
    assert adaptive.targets(chosen, _made(chosen, begun, {"transformer": 36.0, "lstm": 3.6})) == {"transformer": 20, "lstm": 10}
    half = rates | {"transformer": [0.0] * 10}  # ±0.154 is narrower than ±0.313
    assert adaptive.targets(chosen, _made(chosen, half, {"transformer": 10.0, "lstm": 10.0})) == {"transformer": 10, "lstm": 20}


def _made(study, errors, seconds):
    """Tables of replicates that ended with these error rates of 100 reads."""
    replicates, evaluations = [], []
    hashes = {each.name: study.set_hashes(each)["sparse"] for each in study.conditions}
    counts = dict.fromkeys(errors, 0)
    for each in replicates_of(study.conditions):
        name = study.conditions[each.condition].name
        if counts[name] == len(errors[name]):
            continue
        wrong = int(100 * errors[name][counts[name]])
        counts[name] += 1
        row = {"key": each.key, "stage": 0, "pack": "p"}
        ended = {
            "status": "finished",
            "loss": 1.0,
            "diverged_at": None,
            "steps": 40,
            "train_s": seconds[name],
            "evaluate_s": 0.0,
        }
        replicates.append(row | ended)
        sums = {"errors": wrong, "count": 100, "sequences": 100, "sequences_wrong": wrong, "count_sq": 100}
        sums |= {"errors_sq": wrong, "errors_x_count": wrong}
        scored = {"set": "sparse", "set_hash": hashes[name], "metric": "read", "weights": "raw", "step": 40}
        evaluations.append(row | scored | sums)
    failures = pa.table({"keys": pa.array([], pa.list_(pa.string())), "stage": pa.array([], pa.int32())})
    typed = pa.Table.from_pylist(replicates)
    typed = typed.set_column(typed.schema.get_field_index("diverged_at"), "diverged_at", typed["diverged_at"].cast(pa.int64()))
    return {"replicates": typed, "evaluations": pa.Table.from_pylist(evaluations), "failures": failures}


def _tables(store):
    return {"replicates": committed(store), "evaluations": read(store, "evaluations"), "failures": read(store, "failures")}


def test_the_manifest_keeps_the_rule(study, tmp_path):
    assert run(study(ADAPTIVE, "only=[lstm]"), say=quiet) == 0
    [*files] = (tmp_path / "runs" / "tiny" / "manifests").glob("*.yaml")
    assert {json.dumps(json.loads(file.read_text())["adaptive"]["limit"]) for file in files} == {"0.4"}
