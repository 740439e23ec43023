"""The report's part on LEGO: lines of accuracy and of attention concentration hold the numbers of the rows."""

import numpy as np
import pyarrow as pa
import pytest
import yaml

from harness.run import run
from harness.study.load import from_tree
from launch.cli import main
from results.claims.evidence import gather
from results.claims.lego import sentences as lego
from results.report.lego.page import drawings
from results.rows.probe_values import by_key
from results.rows.summary import Replicate
from results.store.manifest import has_settings_of
from results.store.schema import SCHEMAS
from results.store.tables import open_store, read
from tests.harness.tiny import STUDY
from tests.results.claims.planned_rows import planned
from tests.results.report.panel_lines import bold_lines

NONE = SCHEMAS["replicates"].empty_table()
TREE = yaml.safe_load(STUDY) | {
    "task": {"name": "lego", "group": "C3", "length": 2, "variables": 9},
    "model": {"name": "clauses", "width": 4, "feed_forward": 8},
    "train": {"steps": 60, "batch": 8, "lr": 1e-2, "warmup": 5},
    "evaluate": {
        "sets": {
            "same": {"decode": "greedy", "sequences": 40},
            "long": {"length": 4, "decode": "greedy", "sequences": 40},
            "longest": {"length": 8, "sequences": 40},
            "mixed": {"length": 6, "order": "shuffled", "sequences": 40},
        }
    },
    "conditions": {"own": {}, "ordinary": {"model": {"name": "lego_transformer", "layers": 2, "width": 20, "heads": 2}}},
    "replicates": 3,
    "keep": "all",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with its probe's rows and its report."""
    folder = tmp_path_factory.mktemp("runs")
    assert run(from_tree(TREE | {"store": str(folder)}, []), say=lambda text: None) == 0
    main(["probe", str(folder), "--probe", "concentration", "--strings", "8"])
    main(["report", str(folder)])
    return open_store(folder, "tiny")


@pytest.fixture(scope="module")
def drawn(study):
    from results.rows.summary import replicates_of
    from results.store.manifest import newest_manifest
    from results.store.tables import committed

    manifest = newest_manifest(study)[1]
    evaluations = read(study, "evaluations")
    finished = committed(study)
    known = replicates_of(manifest, finished, evaluations, read(study, "failures"))
    return {each[0]: each for each in drawings(study, manifest, known, finished)}, known


def test_accuracy_is_of_whole_sentences_at_each_length(study, drawn):
    figures, known = drawn
    _, _, caption, figure = figures["accuracy-length"]
    rows = read(study, "evaluations").to_pylist()
    mine = {each.key for each in known if each.condition == "own"}
    expected = [
        np.median(
            [
                1 - row["sequences_wrong"] / 40
                for row in rows
                if row["key"] in mine and row["set"] == name and row["metric"] == "read"
            ]
        )
        for name in ("same", "long", "longest")
    ]
    assert bold_lines(figure, "own") == {"C3": ([2, 4, 8], pytest.approx(expected))}
    assert "every value is right" in caption


def test_concentration_is_drawn_against_length_for_every_layer(study, drawn):
    figures, known = drawn
    values = by_key(read(study, "probes"))
    mine = [values[each.key] for each in known if each.condition == "ordinary"]
    for item in ("epsilon", "gap"):
        expected = [np.median([one["concentration", 1, None, f"L={length} {item}"] for one in mine]) for length in (2, 4, 8)]
        found = bold_lines(figures[f"concentration-{item}"][3], "ordinary, layer 2")
        assert found == {"C3": ([2, 4, 8], pytest.approx(expected))}
    answers = bold_lines(figures["concentration-answers"][3], "own")
    assert {panel: x for panel, (x, _) in answers.items()} == {
        f"C3, to the {what}, L = 8": list(range(1, 9)) for what in ("predicate", "last answer")
    }


def test_the_report_shows_them(study):
    page = (study.path("report") + "/index.html") if study.is_local else ""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for title in (
        "Accuracy by length of the sentences",
        "Attention concentration by length",
        "Attention gap by length",
        "Attention by answer",
    ):
        assert title in text


def test_a_study_without_rows_or_of_another_task_has_none(tmp_path):
    for name in ("lego_c6", "a8"):
        manifest = planned("length_generalization", name)
        assert drawings(open_store(str(tmp_path), manifest["study"]), manifest, [], NONE) == []


def test_sentences_wrong_are_of_the_last_step_and_the_raw_weights():
    base = {
        "key": "a",
        "stage": 0,
        "pack": "fd-0",
        "set": "same",
        "set_hash": "0",
        "metric": "read",
        "weights": "raw",
        "sequences": 10,
    }
    rows = [
        base | {"step": 20, "sequences_wrong": 3},
        base | {"step": 10, "sequences_wrong": 9},
        base | {"step": 20, "sequences_wrong": 8, "weights": "ema"},
        base | {"step": 20, "key": "b", "sequences_wrong": None},
    ]
    assert lego.sentences_wrong(pa.Table.from_pylist(rows, SCHEMAS["evaluations"])) == {("a", "same"): 0.3}


def test_free_runs_go_before_forced_ones_at_one_length():
    sets = {"a": {"length": 10, "decode": "greedy"}, "b": {"length": 10}, "c": {}, "d": {"length": 7, "order": "shuffled"}}
    assert lego.sets_by_length(sets, 5) == {5: "c", 10: "a"}
    assert list(lego.sets_by_length({"b": {"length": 10}, "c": {}}, 5)) == [5, 10]
    assert lego.others(5) == sum(5 + answer - 2 for answer in range(1, 6)) / 5


def test_a_diverged_replicate_counts_as_right_nowhere(tmp_path):
    manifest = planned("length_generalization", "lego_c6")
    names = [each["name"] for each in manifest["conditions"]]
    known = [Replicate(names[index], 0, key, *seeds, "diverged", None, 5, {}) for key, index, *seeds in manifest["replicates"]]
    (found,) = drawings(open_store(str(tmp_path), manifest["study"]), manifest, known, NONE)
    for name in names:
        assert bold_lines(found[3], name) == {"C6": ([5, 10, 20, 40, 80, 160], [0.0] * 6)}


def test_a_later_stage_is_a_condition_of_its_own(tmp_path):
    """Its sentences are longer, so it is drawn from its own training length on and not over the stage before it."""
    plain = {"name": "warm", "config": {}, "settings": {"task": {"name": "lego", "length": 5}}}
    later = plain | {
        "config": {"stages": [{}, {}]},
        "settings": {"task": {"name": "lego", "length": 10}, "stage": {"number": 1}},
    }
    known = [Replicate("warm", stage, f"k{stage}", 0, 0, "finished", None, None, {}) for stage in (0, 1)]
    both = {"conditions": [plain, later], "sets": {}}
    conditions = gather(both, known).conditions
    assert {each.name: each.settings["task.length"] for each in conditions} == {"warm": 5, "warm, stage 1": 10}
    assert {each.name: [one.key for one in each.replicates] for each in conditions} == {"warm": ["k0"], "warm, stage 1": ["k1"]}
    assert has_settings_of(both, "automaton", "lego")
    assert not has_settings_of(both, "automaton")
    assert not has_settings_of({"conditions": [plain, {"name": "old", "config": {"task": {"name": "lego"}}}]}, "lego")
