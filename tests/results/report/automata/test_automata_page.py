"""The report's part on automata: the numbers in its heat maps and lines are those of the rows, beside the thesis' own."""

import json

import numpy as np
import pytest
import yaml

from harness.run import run
from harness.study.load import from_tree
from results.claims.evidence import Condition
from results.report.automata import thesis
from results.report.automata.page import drawings
from results.report.plots.lines_and_maps import bands_of
from results.store.tables import committed, open_store, read
from tests.harness.tiny import STUDY
from tests.results.claims.planned_rows import planned, replicates


def _texts(figure):
    """Numbers in the cells by panel title, row and column."""
    found = {}
    for panel in figure.axes:
        columns = [each.get_text() for each in panel.get_xticklabels()]
        rows = [each.get_text() for each in figure.axes[0].get_yticklabels()]  # panels share the axis
        for text in panel.texts:
            x, y = text.get_position()
            found[panel.get_title(loc="left"), rows[int(y)], columns[int(x)]] = text.get_text()
    return found


def _draw(tmp_path, name, rates, scale="paper"):
    manifest = planned("length_generalization", name, scale)
    store = open_store(str(tmp_path), manifest["study"])
    return {each[0]: each for each in drawings(store, manifest, replicates(manifest, rates), committed(store))}


def test_heat_maps_hold_best_and_median_beside_the_thesis(tmp_path):
    def rates(settings, _definition):
        return (
            20 * [0.1 * settings["model.layers"]] if settings["task.automaton"] != "S4" else [0.6 - 0.01 * i for i in range(20)]
        )

    _, title, caption, figure = _draw(tmp_path, "a1_reduced", rates)["depth"]
    cells = _texts(figure)
    assert cells["Measured here, best of seeds", "C2", "4"] == cells["Measured here, median of seeds", "C2", "4"] == "60.0"
    assert cells["Measured here, best of seeds", "S4", "1"] == "59.0"
    assert cells["Measured here, median of seeds", "S4", "1"] == "49.5"
    assert cells["Thesis, best of 20 (T = 100, width 512)", "S4", "4"] == "27.1"
    assert cells["Thesis, median of 20 (T = 100, width 512)", "Dyck_4_2", "1"] == "98.8"
    assert ("Thesis, best of 20 (T = 100, width 512)", "C2", "1") not in cells  # lost in print
    assert "length 16; 20 seeds a cell" in caption
    assert title == "Accuracy by automaton and depth"


def test_the_thesis_tables_say_what_the_card_says():
    """Smallest depths with 99 % or more, as the card derives them."""
    first = {
        name: next(depth for depth, value in zip(thesis.LAYERS, row, strict=True) if value is not None and value >= 99)
        for name, row in thesis.BEST.items()
    }
    assert first == dict(
        zip(
            "Dyck_4_2 Grid4 Grid9 C2 C5 C7 C8 C2^2 D8 C2^3 C3 C4 C6 D6 Q8 A5 A4 S4 S5".split(),
            [1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6, 7, 10, 13, 13],
            strict=True,
        )
    )
    for name, row in thesis.MEDIAN.items():
        assert all(m is None or b is None or m <= b + 0.05 for m, b in zip(row, thesis.BEST[name], strict=True))


def test_depth_needed_is_drawn_against_length(tmp_path):
    def rates(settings, _definition):
        return 0.5 if settings["model.layers"] < settings["task.length"] / 8 else 0.001

    found = _draw(tmp_path, "depth_by_length", rates, "gpu-hour")
    assert set(found) == {"depth", "depth-needed"}
    titles = [axes.get_title(loc="left") for axes in found["depth"][3].axes]
    assert titles == [f"{length} tokens, {which} of seeds" for length in (8, 16, 32) for which in ("best", "median")]
    of_16 = [text.get_text() for text in found["depth"][3].axes[2].texts]
    assert [float(text) > 99 for text in of_16] == [False, True, True, True] * 3  # 1, 2, 4 and 8 layers, three groups
    assert "thesis" not in found["depth"][2]
    (best, median) = found["depth-needed"][3].axes[:2]
    assert best.get_title(loc="left") == "best seed"
    (line,) = [each for each in best.lines if len(each.get_xdata()) == 3 and round(each.get_ydata()[0], 6) == 0]
    assert line.get_xdata().tolist() == [8, 16, 32]
    assert line.get_ydata().tolist() == [0, 1, 2]  # 1, 2 and 4 layers
    assert best.get_yticklabels()[-1].get_text() == "more"
    assert [each.get_ydata()[-1] for each in median.lines if len(each.get_xdata()) == 3] == pytest.approx([2, 2, 2], abs=0.1)


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("a6", {"accuracy-p_one", "accuracy-ones"}), ("a7", {"accuracy-length"}), ("a5", {"revealed"}), ("a8", set())],
)
def test_every_study_has_the_figures_that_its_sets_allow(tmp_path, name, drawn):
    found = _draw(tmp_path, name, lambda settings, definition: 0.1 if definition else 0.3)
    assert set(found) == drawn
    for _, _, caption, figure in found.values():
        assert "median over seeds" in caption
        assert figure.axes


def test_bands_are_quantiles_of_the_seeds():
    bands = bands_of([(1.0, np.array([0.0, 0.5, 1.0])), (2.0, np.array([1.0, 1.0, 1.0]))])
    assert (bands.least[0], bands.low[0], bands.middle[0], bands.high[0], bands.most[0]) == (0, 0.25, 0.5, 0.75, 1)
    assert bands_of([]) is None


def test_a_diverged_replicate_has_accuracy_0():
    manifest = planned("length_generalization", "a8")
    one = replicates(manifest, lambda settings, definition: 0.25)[0]
    assert Condition("one", {}, (one,)).accuracies("twice") == pytest.approx([0.75], abs=0.06)
    lost = type(one)(**(vars(one) | {"status": "diverged", "scores": {}}))
    assert Condition("lost", {}, (lost,)).accuracies("twice").tolist() == [0]


def test_a_report_has_accuracy_by_position_and_the_rate_that_the_monitor_chooses(tmp_path):
    tree = yaml.safe_load(STUDY) | {
        "task": {"name": "automaton", "automaton": "C2", "length": 6},
        "model": {"name": "lstm", "width": 8},
        "train": {"steps": 20, "batch": 4, "warmup": 5, "monitor": {"sequences": 8, "every": 10}},
        "evaluate": {"sets": {"same": {"sequences": 40}, "long": {"length": 10, "sequences": 40}}},
        "conditions": {},
        "grid": {"train.lr": [1e-2, 1e-9]},
        "store": str(tmp_path / "runs"),
    }
    assert run(from_tree(tree, ["replicates=2"]), say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    last = [row for row in read(store, "curves").to_pylist() if row["metric"] == "monitor_loss" and row["step"] == 20]
    rate = {row["key"]: json.loads(row["config"])["train"]["lr"] for row in committed(store).to_pylist()}
    median = {lr: np.median([row["value"] for row in last if rate[row["key"]] == lr]) for lr in (1e-2, 1e-9)}
    assert len(last) == 4
    page = (tmp_path / "runs" / "tiny" / "report" / "index.html").read_text(encoding="utf-8")
    assert "Accuracy by position in the longest words" in page
    assert "profile-position" not in page
    assert f"Lowest median: C2, 1 layer: {min(median, key=median.get):g}." in page
    assert (tmp_path / "runs" / "tiny" / "report" / "figures" / "accuracy-position.png").stat().st_size > 1000
