"""The report's part on parities: lines of students and teachers and of correlations hold the numbers of the rows."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from harness.run import run
from harness.study.load import from_tree
from launch.cli import main
from results.report import report
from results.report.distillation.page import drawings
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read
from tests.harness.distilled import GRAMMAR, PARITY
from tests.harness.killed import without_report
from tests.rounding import rounded

TREE = yaml.safe_load(PARITY) | {
    "keep": "steps(15, 30, 45)",
    "evaluate": {"sets": {"online": {"sequences": 200, "every": 6}, "test": {"sequences": 300}}},
    "replicates": 2,
}
TREE["conditions"]["labels"] = {"model": {"width": 8}, "train": {"steps": 24}}


def made(folder, tree, *probe):
    with pytest.MonkeyPatch.context() as patched:
        without_report(patched)
        assert run(from_tree(tree | {"store": str(folder)}), say=lambda line: None) == 0
    if probe:
        main(["probe", str(folder), "--probe", *probe])
    return open_store(folder, tree["name"])


def drawn_of(store):
    manifest = newest_manifest(store)[1]
    finished = committed(store)
    known = replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures"))
    return {each[0]: each for each in drawings(store, manifest, known, finished)}, finished.to_pylist()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return made(tmp_path_factory.mktemp("runs"), TREE, "monomials", "--strings", "500", "--option", "degrees=2")


@pytest.fixture(scope="module")
def drawn(study):
    rows = read(study, "probes").to_pylist()
    assert {row["probe"] for row in rows} == {"monomials-degrees-2"}
    return drawn_of(study)


def handles(figure):
    (legend,) = figure.legends
    return dict(zip([text.get_text() for text in legend.get_texts()], legend.legend_handles, strict=True))


def curve(study, rows, name, stage):
    keys = [row["key"] for row in rows if (row["condition"], row["stage"]) == (name, stage)]
    table = [row for row in read(study, "evaluations").to_pylist() if row["set"] == "online" and row["metric"] == "read"]
    steps = sorted({row["step"] for row in table if row["key"] in keys})
    return steps, [
        np.median([1 - row["errors"] / row["count"] for row in table if row["key"] in keys and row["step"] == step])
        for step in steps
    ]


def test_students_and_their_teacher_share_axes_and_hold_the_rows(study, drawn):
    figures, rows = drawn
    _, title, caption, figure = figures["students-and-teachers"]
    assert title == "Students and their teachers"
    assert "learns from first" in caption
    names = handles(figure)
    students = {"one_shot, stage 1", "slower, stage 1", "risen, stage 1", "shared, stage 1"}
    assert set(names) == {"one_shot (teaches)", "labels"} | students
    (panel,) = [each for each in figure.axes if each.get_title(loc="left")]
    assert panel.get_title(loc="left") == "one_shot"
    bold = [line for line in panel.lines if line.get_linewidth() == 2]
    assert len(bold) == len(names)
    for label, stage in (("labels", 0), ("slower, stage 1", 1), ("one_shot (teaches)", 0)):
        name = label.split(",")[0].removesuffix(" (teaches)")
        steps, values = curve(study, rows, name, stage)
        (line,) = [each for each in bold if each.get_color() == names[label].get_color() and same_marker(each, names[label])]
        assert line.get_xdata().tolist() == steps
        assert line.get_ydata().tolist() == rounded(values)


def same_marker(one, other):
    return one.get_marker() == other.get_marker()


def test_marks_are_the_checkpoints_that_are_learnt_from_first(drawn):
    figures, rows = drawn
    (panel,) = [each for each in figures["students-and-teachers"][3].axes if each.get_title(loc="left")]
    marks = [line for line in panel.lines if line.get_linestyle() == "None"]
    found = sorted(step for line in marks for step in line.get_xdata().tolist())
    early = {
        (row["condition"], row["parent_key"], row["parent_step"]) for row in rows if row["stage"] and row["parent_step"] < 60
    }
    assert {row["condition"] for row in rows if row["stage"]} - {name for name, *_ in early} == {"one_shot", "slower"}
    assert set(found) == {float(step) for *_, step in early}
    assert 15.0 in found  # of shots: 4 in 60 steps


def test_there_are_spikes_of_a_probe_with_options_and_those_of_the_default_one_hold_its_rows(study, drawn):
    assert set(drawn[0]) == {"students-and-teachers", "correlations-1", "correlations-2"}  # from monomials-degrees-2
    main(["probe", str(Path(study.path()).parent), "--probe", "monomials", "--strings", "400"])
    figures, rows = drawn_of(study)
    assert set(figures) == {"students-and-teachers", "correlations-1", "correlations-2"}
    _, _, caption, figure = figures["correlations-1"]
    assert "one by one" in caption
    key = next(row["key"] for row in rows if not row["stage"] and row["condition"] == "one_shot" and row["init_seed"] == 0)
    values = {
        (row["item"], row["step"]): row["value"]
        for row in read(study, "probes").to_pylist()
        if row["probe"] == "monomials" and row["key"] == key
    }
    titles = {each.get_title(loc="left"): each for each in figure.axes if each.get_title(loc="left")}
    panel = titles["one_shot, seed 0"]
    assert {name for name in titles if name.startswith("one_shot")} == {"one_shot, seed 0", "one_shot, seed 1"}
    names = handles(figure)
    assert set(names) == {"x0", "x1", "outside, mean ± sd", "accuracy (right)"}
    steps = sorted({step for _, step in values})
    assert len(steps) >= 4
    for bit in ("x0", "x1"):
        (line,) = [each for each in panel.lines if each.get_color() == names[bit].get_color()]
        assert line.get_xdata().tolist() == steps
        assert line.get_ydata().tolist() == rounded([values[f"degree=1 {bit}", step] for step in steps])
    (outside,) = [each for each in panel.lines if each.get_linewidth() == 1.4 and each.get_marker() == "None"]
    assert outside.get_ydata().tolist() == rounded([values["degree=1 outside", step] for step in steps])


def test_the_nodes_of_hierarchical_parity_are_lines(tmp_path):
    tree = TREE | {
        "name": "nodes",
        "task": {"name": "hierarchical_parity", "length": 12, "depth": 2, "degree": 2},
        "conditions": {"wide": {"model": {"width": 16}}},
        "replicates": 1,
    }
    figures, _ = drawn_of(made(tmp_path, tree, "monomials", "--strings", "300"))
    assert set(figures) == {"correlations-1", "correlations-2"}
    assert set(handles(figures["correlations-2"][3])) == {"node=1", "node=2", "outside, mean ± sd", "accuracy (right)"}


def test_students_of_other_models_and_horizons_have_their_own_panels(tmp_path):
    tree = TREE | {
        "conditions": {
            name: {"stages": [{"model": {"width": width}, "train": {"steps": steps}, "labels": "teacher"}]}
            for name, width, steps in (("a", 8, 24), ("b", 8, 36), ("c", 4, 24))
        }
        | {"labels": {"model": {"width": 4}, "train": {"steps": 24}}},
        "keep": "none",
    }
    figures, _ = drawn_of(made(tmp_path, tree))
    (_, _, _, figure) = figures["students-and-teachers"]
    lines = {each.get_title(loc="left"): sum(line.get_linewidth() == 2 for line in each.lines) for each in figure.axes}
    assert {title: count for title, count in lines.items() if title} == {
        "a; students: width 8, steps 24": 2,
        "a; students: width 8, steps 36": 2,
        "a; students: width 4, steps 24": 3,
    }


def test_grammars_have_students_and_no_spikes_and_studies_without_rows_nothing(tmp_path):
    tree = yaml.safe_load(GRAMMAR)
    tree["evaluate"]["sets"]["test"]["every"] = 5
    store = made(tmp_path, tree)
    assert set(drawn_of(store)[0]) == {"students-and-teachers"}
    manifest = newest_manifest(store)[1]
    assert drawings(store, manifest, [], committed(store).slice(0, 0)) == []
    manifest = json.loads(json.dumps(manifest))
    for each in manifest["conditions"]:
        each["settings"]["task"]["name"] = "flipflop"
    assert drawings(store, manifest, [], committed(store)) == []


def test_the_report_shows_them(study, monkeypatch):
    monkeypatch.setattr(report, "draw_all", lambda *tables: [])  # the figures of every study
    with open(report.write_report(study), encoding="utf-8") as file:
        page = file.read()
    assert "Students and their teachers" in page
    assert '<td class="wrap">as in training</td>' in page
    assert "of one string err together" not in page  # a string has one answer
