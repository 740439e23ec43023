"""The report's part on distillation over grammars: lines and tables hold the numbers of the rows, beside those of the thesis."""

import numpy as np
import pytest
import yaml

from harness.run import run
from harness.study.load import from_tree
from results.report.distillation import pcfg_thesis as thesis
from results.report.distillation.pcfg_page import drawings
from results.rows.probe_values import add, by_step
from results.rows.summary import replicates_of
from results.store.manifest import label, newest_manifest
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.harness.tiny import STUDY
from tests.results.claims.distillation.pcfg_rows import planned
from tests.results.report.panel_lines import bold_lines
from tests.rounding import rounded

NONE = SCHEMAS["replicates"].empty_table()
SMALL = {"model": {"heads": 1, "width": 8}, "labels": "teacher"}


def student(steps, **options):
    return {"stages": [SMALL | {"train": {"steps": steps}} | options]}


def two(at, steps):
    return student(8, teacher={"checkpoints": [{"at": at, "steps": steps}, {"at": "last"}]})


TREE = yaml.safe_load(STUDY) | {
    "task": {"name": "pcfg", "root": 13, "length": 19},
    "model": {"name": "transformer", "layers": 1, "heads": 2, "width": 16, "causal": False},
    "train": {"steps": 16, "batch": 4, "lr": 1e-2, "warmup": 2},
    "evaluate": {"curve_every": 8, "sets": {"online": {"sequences": 10, "every": 8}, "test": {"sequences": 40}}},
    "conditions": {
        "teacher": {},
        "teacher_half": {"train": {"steps": 8}},
        "labels": {"model": {"heads": 1, "width": 8}},
        "labels_half": {"model": {"heads": 1, "width": 8}, "train": {"steps": 8}},
        "one_shot_half": student(8),
        "one_shot_cold_half": student(8, temperature=1e-4),
        "progressive_half": student(8, temperature=1e-4, teacher={"shots": 4, "kappa": 1.0}),
        "progressive": student(16, temperature=1e-4, teacher={"shots": 4, "kappa": 1.0}),
        "at_4_t2": two(4, 2),
        "at_12_t2": two(12, 2),
    },
    "replicates": 2,
    "keep": "none",  # the probes' rows are made up
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with its report, and with rows of probes behind it."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.planning.throughput._BUDGET_S", 0.01)  # nobody asks how long it would take
        assert run(from_tree(TREE | {"store": str(folder)}, []), say=lambda text: None) == 0
    store = open_store(folder, "tiny")
    for number, row in enumerate(committed(store).to_pylist()):
        for step in sorted({4, 8, 12, row["steps"]}):
            about = {"key": row["key"], "stage": row["stage"], "step": step, "layer": None, "head": None}
            for probe, items in measured(number, step).items():
                add(store, row["pack"], probe, [about | {"item": item, "value": value} for item, value in items.items()])
    return store


def measured(number, step):
    """Rows of both probes, of other options than the default ones, different for every replicate and step."""
    close = {f"close n={n} tv": (number + n) / (20 + step) for n in (2, 3, 4)}
    return {
        "ngrams-every-4": {"robust n=3 tv": step / (20 + number), "robust n=3 l1": 9.0} | close,
        "nonterminals-heads-1": {f"level={level} boundary": number / (20 + level) for level in (4, 5)} | {"level=4 every": 9.0},
    }


@pytest.fixture(scope="module")
def drawn(study):
    manifest, finished = newest_manifest(study)[1], committed(study)
    known = replicates_of(manifest, finished, read(study, "evaluations"), read(study, "failures"))
    return {each[0]: each for each in drawings(study, manifest, known, finished)}, known


def accuracies(known, condition):
    return [1 - each.error("test") for each in known if label(each.condition, each.stage) == condition]


def test_lines_are_of_each_strategy_by_horizon_and_of_the_better_one_shot(drawn):
    figures, known = drawn
    figure = figures["strategies"][3]
    whole, half = (np.median(accuracies(known, name)) for name in ("teacher", "teacher_half"))
    assert bold_lines(figure, "teacher") == {"heads: 1": ([0.5, 1], rounded([half, whole]))}
    better = max((accuracies(known, name) for name in ("one_shot_half, stage 1", "one_shot_cold_half, stage 1")), key=np.mean)
    assert bold_lines(figure, "one-shot") == {"heads: 1": ([0.5], rounded([np.median(better)]))}
    labels = [np.median(accuracies(known, name)) for name in ("labels_half", "labels")]
    assert bold_lines(figure, "labels") == {"heads: 1": ([0.5, 1], rounded(labels))}
    assert bold_lines(figure, "progressive")["heads: 1"][0] == [0.5, 1]


def test_the_table_holds_them_beside_the_thesis(drawn):
    figures, known = drawn
    mine, theirs = figures["strategies-table"][3].axes[:2]
    assert mine.get_title(loc="left") == "heads: 1, median of seeds"
    shown = [text.get_text() for text in theirs.texts]
    assert shown == [f"{100 * row[at][0]:.1f}" for row in thesis.STRATEGIES.values() for at in (0.5, 1.0)]
    assert f"{100 * np.median(accuracies(known, 'teacher')):.1f}" in [text.get_text() for text in mine.texts]


def test_the_sweep_is_drawn_beside_its_teacher(study, drawn):
    figures, known = drawn
    figure = figures["sweep"][3]
    students = bold_lines(figure, "T = 2")["Student's accuracy by its first checkpoint"]
    expected = [np.median(accuracies(known, name)) for name in ("at_4_t2, stage 1", "at_12_t2, stage 1")]
    assert students == ([25, 75], rounded(expected))
    last = np.median(accuracies(known, "one_shot_half, stage 1"))  # of their temperature
    assert bold_lines(figure, "the last alone")["Student's accuracy by its first checkpoint"] == ([100], rounded([last]))
    rows = by_step(read(study, "probes"), "ngrams")
    mine = [rows[each.key] for each in known if each.condition == "teacher"]
    robust = [np.median([each[step]["robust n=3 tv"] for each in mine]) for step in (4, 8, 12, 16)]
    assert bold_lines(figure, "L_robust of 3-grams")["Teacher's L_robust of 3-grams"] == (
        [25, 50, 75, 100],
        rounded(robust),
    )
    looked = [row for row in read(study, "evaluations").to_pylist() if row["set"] == "online" and row["step"] == 8]
    keys = {each.key for each in known if each.condition == "teacher"}
    first = np.median([1 - row["errors"] / row["count"] for row in looked if row["key"] in keys])
    assert bold_lines(figure, "teacher")["Teacher's accuracy"][1][0] == rounded(first)
    theirs = bold_lines(figure, "thesis, best T")["The same in figure 4.7 of the thesis"]
    assert theirs[0][2] == 12.5
    assert max(zip(*theirs, strict=True), key=lambda point: point[1]) == (12.5, 0.925)


def test_measures_are_of_students_at_one_horizon(study, drawn):
    figures, known = drawn
    figure = figures["measures"][3]
    rows = by_step(read(study, "probes"), "ngrams")
    (mine,) = [[rows[each.key][16] for each in known if each.condition == "progressive" and each.stage]]
    expected = [np.median([each[f"close n={n} tv"] for each in mine]) for n in (2, 3, 4)]
    assert bold_lines(figure, "progressive, stage 1")["L_close by n"] == ([2, 3, 4], rounded(expected))
    assert bold_lines(figure, "labels")["Probe of non-terminals by level from the root"][0] == [4, 5]


def test_the_report_shows_them(study):
    with open(study.path("report") + "/index.html", encoding="utf-8") as file:
        text = file.read()
    for title in (
        "Accuracy by strategy and horizon",
        "Accuracy by strategy and horizon, beside the thesis",
        "The first checkpoint of (2, T) students, and their teacher there",
    ):
        assert title in text


def test_a_study_without_rows_draws_what_it_can_and_one_of_another_task_nothing(tmp_path):
    manifest = planned("p16_heads")
    store = open_store(str(tmp_path), manifest["study"])
    assert drawings(store, manifest, [], NONE) == []
