"""A study of a person's own function: from its YAML to rows, a report and a comparison, whatever happens on the way."""

import json
import re

import numpy as np
import pytest

import harness.run
from harness.local import run_manifest
from harness.prepare import executor_of, prepare
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study.load import load
from launch.planning import show_diff, show_plan
from models.custom import custom
from results.errors import StudyError
from results.progress.failures import show_failures
from results.progress.status import show_status
from results.report.contrasts import show_contrasts
from results.report.replicate_page import write_replicate_page
from results.report.report import write_report
from results.report.spread import show_spread
from results.rows.measures import measures_of
from results.rows.study_rows import read_study
from results.store.manifest import newest_manifest
from results.store.merge import merge
from results.store.tables import committed, open_store, read
from results.store.verify import show_verify
from tests.harness.experiments import own_functions
from tests.harness.killed import without_report
from tests.harness.tiny import tables

MODULE = own_functions.__name__
STUDY = """
name: own
question: Does a shift show?
experiment: {{name: "{module}:{function}"}}
evaluate: {{metrics: {{score: higher}}}}
replicates: 12
executor: local
wandb: off
"""


@pytest.fixture(autouse=True)
def _allowed(monkeypatch):
    monkeypatch.setattr(custom, "_allowed", {MODULE})
    monkeypatch.setattr(own_functions, "kill_at", set())
    monkeypatch.setattr(own_functions, "raise_at", set())
    without_report(monkeypatch)


@pytest.fixture
def start(tmp_path):
    """start(function, *overrides, store="runs") → (exit status, what was said)."""

    def started(function, *overrides, store="runs"):
        path, said = tmp_path / "own.yaml", []
        path.write_text(STUDY.format(module=MODULE, function=function))
        return run(load(path, [f"store={tmp_path / store}", *overrides]), say=said.append), said

    return started


def test_the_estimate_follows_what_replicates_take_while_they_run(start, monkeypatch, capsys):
    """The first is over at once; each of the other nine then takes 10 s, by a clock that the function moves."""
    now, calls, measured = [1000.0], [], own_functions.measure

    def slow(seed, settings):
        calls.append(seed)
        now[0] += 10.0 if len(calls) > 1 else 0.01
        return measured(seed, settings)

    monkeypatch.setattr("harness.executing.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr(own_functions, "measure", slow)
    status, said = start("measure", "experiment.shift=0", "replicates=10", "pack.size=1")
    assert (status, len(calls)) == (0, 10)
    (planned,) = [line for line in said if "to do: 9 replicates" in line]
    assert re.search(r"about \d(\.\d)? s", planned)  # by the first, so nearly nothing but the start and the report
    left = re.findall(r"/9 packs .*\((.*) left\)$", capsys.readouterr().out, re.MULTILINE)
    assert left[:5] == ["80 s", "70 s", "60 s", "50 s", "40 s"]  # of the first minute, in which lines come often


@pytest.fixture
def shifted(start, tmp_path):
    """The rows of two conditions that differ by a shift of 3."""
    assert start("measure", "grid={experiment.shift: [0, 3]}")[0] == 0
    return tmp_path / "runs"


def values(root, metric, study="own"):
    rows = read(open_store(root, study), "evaluations").to_pylist()
    seeds = {row["key"]: (row["condition"], row["init_seed"]) for row in committed(open_store(root, study)).to_pylist()}
    return {(*seeds[row["key"]], row["step"], row["set"]): row["value"] for row in rows if row["metric"] == metric}


def test_every_replicate_has_the_number_that_its_seed_gives(shifted):
    found = values(shifted, "score")
    expected = {
        (f"shift={shift}", seed, 0, "result"): shift + np.random.default_rng(seed).standard_normal()
        for shift in (0, 3)
        for seed in range(12)
    }
    assert found == expected
    drawn = values(shifted, "drawn")  # from a global generator, which is seeded with the replicate's seed
    assert all(drawn["shift=0", seed, 0, "result"] == drawn["shift=3", seed, 0, "result"] for seed in range(12))
    assert len(set(drawn.values())) == 12


def test_the_first_replicate_is_timed_for_good_and_the_rest_planned_by_it(start, tmp_path):
    status, said = start("measure", "experiment.shift=0")
    assert status == 0
    assert any("is not timed yet, so its first replicate goes before the others" in line for line in said)
    assert any("1 committed" in line for line in said)
    again = start("measure", "experiment.shift=0")[1]
    assert not any("timed" in line for line in again)
    assert committed(open_store(tmp_path / "runs", "own")).num_rows == 12


def test_a_plan_runs_nothing_and_says_what_is_not_known(start, tmp_path, monkeypatch):
    """Also what a store holds already, and what it will cost once some replicate has run."""
    monkeypatch.setattr(own_functions, "measure", lambda seed, settings: pytest.fail("a plan ran the function"))
    path, said = tmp_path / "own.yaml", []
    path.write_text(STUDY.format(module=MODULE, function="measure"))
    study = load(path, [f"store={tmp_path / 'runs'}", "experiment.shift=0"])
    show_plan(study, None, said.append)
    assert (
        said[-1].strip() == "nothing is known of what a replicate takes: the run begins with the first ones, and then says it"
    )
    assert not (tmp_path / "runs" / "own").exists()
    show_diff(study, said.append)
    assert said[-1] == "measure: 12 planned, 12 missing"


def test_a_plan_of_more_replicates_goes_by_those_that_have_run(start, tmp_path):
    assert start("measure", "experiment.shift=0", "replicates=2")[0] == 0
    said = []
    show_plan(load(tmp_path / "own.yaml", [f"store={tmp_path / 'runs'}", "experiment.shift=0"]), None, said.append)
    assert "10 replicates in" in said[-1]


def test_a_report_and_a_comparison_come_of_the_rows(shifted):
    store = open_store(shifted, "own")
    page = write_report(store).read_text()
    assert "higher is better" in page
    medians = {
        shift: shift + np.median([np.random.default_rng(seed).standard_normal() for seed in range(12)]) for shift in (0, 3)
    }
    best, worst = (f"{medians[shift]:.4g}".replace("-", "−") for shift in (3, 0))
    said = rf"The median score is highest, {best} \(95.%: .*\), for shift=3, and lowest, {worst} \(.*\), for shift=0"
    assert re.search(said, page)
    assert page.index('id="figure-values"') < page.index('id="summary-table"'), "the key figure is on the first screen"
    assert "true in 6 of 12" in page
    assert "lower values count as better" in page  # of drawn, which is not declared
    said = []
    show_contrasts(store, None, said.append)
    line = next(line for line in said if "| score" in line)
    assert "12 pairs" in line
    assert "1.00 [" in line  # every seed is better by 3
    assert "| 3 [3, 3] |" in line
    assert "for the one comparison of this table" in said[1]
    assert said[-1] == "Not compared, as evaluate.metrics does not name them: drawn, even."


def test_a_killed_run_goes_on_at_the_replicate_and_ends_equal(start, tmp_path, monkeypatch):
    assert start("measure", "experiment.shift=0", store="whole")[0] == 0
    monkeypatch.setattr(harness.executing.run_pack, "measure", _saving_each(harness.experiments.measure.measure))
    own_functions.kill_at.add(7)
    with pytest.raises(own_functions.Gone):
        start("measure", "experiment.shift=0", store="cut")
    own_functions.kill_at.clear()
    calls = []
    original = own_functions.measure
    monkeypatch.setattr(own_functions, "measure", lambda seed, settings: calls.append(seed) or original(seed, settings))
    assert start("measure", "experiment.shift=0", store="cut")[0] == 0
    assert calls == [7, 8, 9, 10, 11]
    assert tables(tmp_path / "cut", "own") == tables(tmp_path / "whole", "own")


def test_what_a_killed_run_has_saved_is_not_counted_as_missing(start, tmp_path, monkeypatch):
    """One replicate is committed, six more are saved: five of twelve are left."""
    monkeypatch.setattr(harness.executing.run_pack, "measure", _saving_each(harness.experiments.measure.measure))
    own_functions.kill_at.add(7)
    with pytest.raises(own_functions.Gone):
        start("measure", "experiment.shift=0")
    study = load(tmp_path / "own.yaml", [f"store={tmp_path / 'runs'}", "experiment.shift=0"])
    executor = executor_of(study)
    prepared = prepare(study, executor)
    executor.close()
    (seconds,) = committed(prepared.store)["train_s"].to_pylist()
    assert prepared.cost.replicates == 11
    assert prepared.cost.slot_hours * 3600 == pytest.approx(5 * seconds)


def _saving_each(measure):
    def saving(*arguments, **named):
        return measure(*arguments, **named, checkpoint_s=0.0)

    return saving


def test_one_bad_seed_is_recorded_alone(start, tmp_path):
    own_functions.raise_at.add(5)
    assert start("measure", "experiment.shift=0")[0] == 1
    store = open_store(tmp_path / "runs", "own")
    failures = read(store, "failures").to_pylist()
    assert [len(row["keys"]) for row in failures] == [1]
    assert "seed 5 is unlucky" in failures[0]["exception"]
    assert sorted(row["init_seed"] for row in committed(store).to_pylist()) == [s for s in range(12) if s != 5]


def test_values_by_step_and_set_are_all_kept(start, tmp_path):
    assert start("stepwise", "evaluate.metrics={accuracy: higher}", "replicates=2")[0] == 0
    assert values(tmp_path / "runs", "loss")["stepwise", 1, 10, "train"] == pytest.approx(1 / 11)
    assert values(tmp_path / "runs", "accuracy")["stepwise", 0, 20, "test"] == 0.4
    rows = read(open_store(tmp_path / "runs", "own"), "evaluations").to_pylist()
    assert {row["count"] for row in rows if row["metric"] == "accuracy"} == {50}
    assert "accuracy (test) by step" in write_report(open_store(tmp_path / "runs", "own")).read_text().lower()


@pytest.mark.parametrize("function", ["summarised", "summarised_pack"])
def test_a_last_result_without_a_step_is_the_last_value(start, tmp_path, function):
    assert start(function, "replicates=1")[0] == 0
    found = {step: value for (_, _, step, _), value in values(tmp_path / "runs", "score").items()}
    assert found == {10: pytest.approx(0.1), 20: 3.0}
    assert committed(open_store(tmp_path / "runs", "own")).to_pylist()[0]["steps"] == 20


def test_a_metric_that_no_result_has_is_named_at_the_end(start):
    status, said = start("measure", "experiment.shift=0", "evaluate.metrics.scor=higher", "replicates=2")
    assert status == 0
    assert said.count("evaluate.metrics names scor, and no result has it; the results have score, drawn, even") == 1


@pytest.mark.parametrize("function", ["moving", "moving_stepwise"])
def test_a_function_that_changes_the_current_folder_changes_it_for_itself_alone(tmp_path, monkeypatch, function):
    """The store's path is relative: its rows were lost in that folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "own.yaml").write_text(STUDY.format(module=MODULE, function=function))
    overrides = ["store=runs", "replicates=3", f"experiment.where={tmp_path / 'elsewhere'}"]
    assert run(load("own.yaml", overrides), say=lambda text: None) == 0
    assert committed(open_store(tmp_path / "runs", "own")).num_rows == 3
    assert not list((tmp_path / "elsewhere").iterdir())


def test_steps_and_counts_may_be_numpys(start, tmp_path):
    assert start("numpy_places", "replicates=1")[0] == 0
    (row,) = read(open_store(tmp_path / "runs", "own"), "evaluations").to_pylist()
    assert (row["step"], row["count"], row["value"]) == (5, 7, 0.25)


def test_only_planned_replicates_say_which_metrics_there_are_and_of_what_kind(start, tmp_path):
    """The store may hold others, as of older code or of another study that had the name."""
    assert start("measure", "experiment.shift=0", "replicates=2")[0] == 0
    assert start("flagged", "replicates=2")[0] == 0
    store = open_store(tmp_path / "runs", "own")
    manifest = newest_manifest(store)[1]
    assert manifest["metrics"] == {"score": {"better": "higher", "kind": "flag"}}
    study = read_study(store, manifest)
    assert [(measure.metric, measure.kind) for measure in measures_of(manifest, study.evaluations)] == [("score", "flag")]
    assert {name for replicate in study.replicates for name in replicate.scores} == {"score"}


def test_a_packed_function_gives_the_same_in_any_pack(start, tmp_path):
    assert start("packed")[0] == 0
    assert start("packed", "pack.size=5", store="other")[0] == 0
    assert values(tmp_path / "runs", "mean") == values(tmp_path / "other", "mean")
    assert len(set(values(tmp_path / "runs", "mean").values())) == 12


def test_a_number_that_is_not_finite_is_diverged_and_ranks_worst(start, tmp_path):
    assert start("breaks", "replicates=3")[0] == 0
    statuses = {row["init_seed"]: row["status"] for row in committed(open_store(tmp_path / "runs", "own")).to_pylist()}
    assert statuses == {0: "finished", 1: "diverged", 2: "finished"}
    assert "1 diverged" in write_report(open_store(tmp_path / "runs", "own")).read_text()


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("other_kind", "the metric score is a number here and was a flag in the replicates before"),
        ("text", "the metric score is 'high', which is no number: return a number, and leave out what has none"),
        ("none", "the metric score is None, which is no number"),
        (
            "nested",
            "the metric score is a mapping, which is no number: give each of its numbers a name of its own, such as score/train",
        ),
        ("listed", "the metric score is a list, which is no number: return its mean, or keep it whole as a numpy array"),
        ("unnamed", "a result has the name '', and a metric is called by a printable word"),
        ("lacking", "KeyError: 'shfit' (own_functions.py, line "),
        ("mixed", "the metric score is a number here and was a flag in a result before: return one kind"),
        ("array_later", "the metric score is an array here and was a number in a result before: return one kind"),
        ("one_label", "two metrics are called 'score (test)', one of them by its set: rename one"),
        ("nothing", "a result is of type NoneType, and must be a mapping of names to numbers"),
    ],
)
def test_what_is_no_result_fails_with_its_reason(start, tmp_path, function, sentence):
    assert start(function, "replicates=3")[0] == 1
    assert all(sentence in row["exception"] for row in read(open_store(tmp_path / "runs", "own"), "failures").to_pylist())


def test_a_function_that_changes_its_settings_changes_those_of_no_other_replicate(start, tmp_path):
    assert start("changing", "experiment.laws={seen: []}", "replicates=3")[0] == 0
    assert set(values(tmp_path / "runs", "score").values()) == {1.0}


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        (
            f"experiment.shift={2**64}",
            "conditions[0].settings.experiment.shift is a whole number of 65 bits, and at most 64 are read",
        ),
        ("experiment.settings=3", "conditions[0].settings.experiment.settings must be a mapping"),
        (f"grid={{experiment.shift: [{'b' * 2000}, c]}}", "conditions[0].name has 2006 characters, and at most 2000 are read"),
    ],
)
def test_what_no_manifest_can_hold_is_refused_before_anything_is_written(start, tmp_path, setting, wrong):
    sentence = re.escape(f"can't be kept in a store, since nothing could read its manifest: {wrong}; change that setting, or")
    with pytest.raises(StudyError, match=sentence):
        start("measure", setting, "replicates=2")
    study, written = load(tmp_path / "own.yaml", [f"store={tmp_path / 'runs'}", setting]), tmp_path / "manifest.yaml"
    with pytest.raises(StudyError, match=sentence):
        show_plan(study, str(written), lambda text: None)
    assert not written.exists()
    assert not list((tmp_path / "runs").rglob("*.*"))


def test_a_function_that_ends_its_process_fails_alone(start, tmp_path):
    assert start("leaves", "replicates=3")[0] == 1
    (row,) = read(open_store(tmp_path / "runs", "own"), "failures").to_pylist()
    assert row["exception"] == "BadResult: the function called sys.exit(3): raise an error instead, or return"
    assert committed(open_store(tmp_path / "runs", "own")).num_rows == 2


def test_a_direction_may_be_stated_when_everything_has_run(start, tmp_path):
    assert start("measure", "experiment.shift=0", "replicates=2")[0] == 0
    assert start("measure", "experiment.shift=0", "replicates=2", "evaluate.metrics.drawn=higher")[0] == 0
    metrics = newest_manifest(open_store(tmp_path / "runs", "own"))[1]["metrics"]
    assert metrics["drawn"] == {"better": "higher", "kind": "number"}


def test_the_kinds_and_directions_of_metrics_are_in_the_manifest(shifted):
    assert newest_manifest(open_store(shifted, "own"))[1]["metrics"] == {
        "score": {"better": "higher", "kind": "number"},
        "drawn": {"better": "", "kind": "number"},
        "even": {"better": "", "kind": "flag"},
    }


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("experiment.name=other.module:measure", "pass --allow-import other.module"),
        (f"experiment.name={MODULE}:absent", "has no absent"),
        (f"experiment.name={MODULE}:measur", "has no measur; did you mean measure"),
        (f"experiment.name={MODULE}:no_seed", "takes (x, settings): write no_seed(seed, settings)"),
        (f"experiment.name={MODULE}:by_keyword", "takes (seed, settings): write by_keyword(seed, settings), which measures"),
        ("experiment.seed=3", "experiment.seed can't be a setting: each replicate has its own"),
        ("train.steps=3", "both experiment and train"),
        ("grid={shift: [0, 3]}", "grid.shift can't be swept; did you mean experiment.shift?"),
        ("conditions={a: {shift: 3}}", "conditions.a has no key 'shift'; did you mean experiment.shift?"),
        ("grid={train.steps: [3, 4]}", "train is set here, and an experiment trains nothing: leave it out"),
        ("conditions={a: {}, b: 1.5}", "conditions.b = 1.5 must be a mapping"),
        ("conditions={a: {}, b: {model.layers: 3}}", "condition b: model is set here, and an experiment trains nothing"),
        ("evaluate.sets.a.sequences=3", "evaluate has no key 'sets'"),
        ("evaluate.metrics.score=up", "evaluate.metrics.score = 'up' must be lower or higher"),
        ("seeds={init: 0..1, data: 0..1}", "an experiment has one seed"),
        ("replicates={min: 5, max: 10}", "can't be adaptive"),
        ("keep=all", "an experiment has no weights"),
    ],
)
def test_what_an_experiment_can_not_have_is_refused_in_a_sentence(start, override, sentence):
    with pytest.raises(StudyError) as refused:
        start("measure", override)
    assert sentence in str(refused.value)


def test_the_other_commands_read_a_study_of_experiments(start, tmp_path):
    """Status, failures, verify, merge and rerun; what needs counts of errors or weights says so in a sentence."""
    own_functions.raise_at.add(2)
    assert start("measure", "experiment.shift=0", "replicates=6")[0] == 1
    own_functions.raise_at.clear()
    store, said = open_store(tmp_path / "runs", "own"), []
    show_status(store, said.append)
    show_failures(store, False, said.append)
    assert "own: 5 of 6 replicates committed, 1 failed" in said[0]
    assert any("seed 2 is unlucky" in line for line in said)
    assert show_verify([store], said.append) == 0
    assert start("measure", "experiment.shift=0", "seeds.from=4", "replicates=4", store="other")[0] == 0
    merge(store, [open_store(tmp_path / "other", "own")])
    assert sorted(row["init_seed"] for row in committed(store).to_pylist()) == [0, 1, 3, 4, 5, 6, 7]
    key = committed(store)["key"][0].as_py()
    assert rerun(store, key).agrees
    with pytest.raises(StudyError, match="has no weights to keep"):
        rerun(store, key, keep=True)
    with pytest.raises(StudyError, match="no counts of errors"):
        show_spread(store, said.append)
    assert ">score</th>" in write_replicate_page(store, key).read_text()


def test_a_manifest_is_run_by_a_bare_machine_and_only_with_the_code_it_was_planned_with(start, tmp_path, monkeypatch):
    assert start("measure", "experiment.shift=0")[0] == 0
    found = {path: json.loads(path.read_bytes())["packs"] for path in (tmp_path / "runs" / "own" / "manifests").iterdir()}
    (manifest,) = [path for path, packs in found.items() if len(packs[0]["replicates"]) > 1]
    assert run_manifest(manifest, str(tmp_path / "bare"), "cpu") == 0
    whole, bare = (tables(tmp_path / name, "own") for name in ("runs", "bare"))
    assert set(bare["evaluations"]) < set(whole["evaluations"])  # all but the replicate that went first
    edited = json.loads(manifest.read_bytes())
    edited["conditions"][0]["config"]["code"] = "0" * 32
    (tmp_path / "edited.yaml").write_text(json.dumps(edited))
    with pytest.raises(StudyError, match="was planned with the code 000000000000, and the code here is"):
        run_manifest(tmp_path / "edited.yaml", str(tmp_path / "third"), "cpu")
