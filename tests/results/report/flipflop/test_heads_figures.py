"""The figures of heads draw the rows they are given: the marks of each head, the pairs of each layer, and who stands beside whom."""

from pathlib import Path

import matplotlib.colors
import numpy as np
import pyarrow as pa
import pytest

from results.report.flipflop.attention_figures import patterns
from results.report.flipflop.heads import main, summary, table
from results.report.flipflop.heads_figures import INPUTS, WRITES, comparable, distances, largest, over_steps
from results.report.plots.figure_files import svg
from results.store.schema import SCHEMAS

KEYS = (0, 1, 2, 2, 4, 5, 5, 6)  # of the largest weights


def test_the_latest_writes_are_those_of_the_input():
    for query, write in enumerate(WRITES):
        assert INPUTS[write] != "⊥"
        assert write <= query
        assert all(INPUTS[j] == "⊥" for j in range(write + 1, query + 1))


def values(layers=1, heads=2, shift=0.0):
    found = {}
    for layer in range(layers):
        for head in range(heads):
            for i, (key, write) in enumerate(zip(KEYS, WRITES, strict=True)):
                found["heads", layer, head, f"i={i} key"] = float(key if head else write)
                found["heads", layer, head, f"i={i} norm_key"] = float(write)
            found["heads", layer, head, "weight_state"] = 0.25 + head / 2
            found["heads", layer, head, "norm_state"] = 1.0
            for other in range(head + 1, heads):
                found["heads", layer, head, f"distance {other}"] = shift + layer + other
        found |= {("heads", layer, None, f"norm {name}"): 3.0 + shift for name in ("query", "key", "value", "out")}
    return found


def test_each_head_shows_its_largest_weights_and_norms_beside_the_latest_writes():
    figure = largest(values(), "one")
    assert len(figure.axes) == 2
    for head, axes in enumerate(figure.axes):
        write, weight, norm = (line.get_ydata() for line in axes.lines)
        assert tuple(write) == WRITES == tuple(norm)
        assert tuple(weight) == (KEYS if head else WRITES)
        assert axes.get_xlabel().startswith(("right state: weight 25%, norm 100%", "right state: weight 75%, norm 100%")[head])
    assert svg(figure) == svg(largest(values(), "one"))
    with pytest.raises(ValueError, match="--probe heads"):
        largest({("drift", None, None, "margin"): 1.0}, "none")


def test_distances_are_a_line_a_pair_with_their_median_by_layer():
    figure = distances([("a", {0: values(2, 3), 10: values(2, 3, shift=0.5)}), ("b", {0: values(2, 3), 20: values(2, 3)})])
    assert len(figure.axes) == 2 * 3
    first, second, norms, other = figure.axes[:4]
    for layer, axes in enumerate((first, second)):
        lines = [tuple(line.get_ydata()) for line in axes.lines]
        assert sorted(lines[:-1]) == [(layer + 1, layer + 1.5), (layer + 2, layer + 2.5), (layer + 2, layer + 2.5)]
        assert lines[-1] == tuple(np.median(lines[:-1], axis=0))
        assert tuple(axes.lines[0].get_xdata()) == (0, 10)
    assert [tuple(line.get_ydata()) for line in norms.lines] == [(pytest.approx(18**0.5), pytest.approx(24.5**0.5))] * 4
    assert tuple(other.lines[0].get_xdata()) == (0, 20)
    assert first.get_ylim() == second.get_ylim() == other.get_ylim()


def test_replicates_of_one_shape_stand_together_and_those_with_nothing_to_draw_are_left_out():
    deep, wide = {0: values(2, 3), 5: values(2, 3)}, {0: values(1, 3), 5: values(1, 3)}
    members = [("deep", deep), ("one head", {0: values(1, 1), 5: values(1, 1)}), ("wide", wide), ("late", {5: values(2, 3)})]
    members.append(("deep too", deep))
    assert [[title for title, _ in group] for group in comparable(members)] == [["deep", "deep too"], ["wide"]]


def test_rows_are_told_apart_by_key_and_step():
    row = {"stage": 0, "pack": "p", "layer": 0, "head": None, "item": "norm out"}
    rows = [row | {"key": key, "step": step, "probe": "heads", "value": step + 0.5} for key in "ab" for step in (0, 4)]
    rows += [rows[0] | {"probe": "drift"}, rows[1] | {"stage": 1}]
    found = over_steps(pa.Table.from_pylist(rows, SCHEMAS["probes"]))
    name = ("heads", 0, None, "norm out")
    assert found == {key: {0: {name: 0.5}, 4: {name: 4.5}} for key in "ab"}


def test_the_ideal_pattern_stands_beside_the_heads_and_is_framed_in_each():
    cells = {("pattern", 0, head, f"{i},{j}"): float(i == j) for head in (0, 1) for i in range(8) for j in range(8)}
    figure = patterns(cells, "two")
    ideal, one, two = figure.axes
    assert [ideal.images[0].get_array()[i].argmax() for i in range(8)] == list(WRITES)
    assert ideal.images[0].get_array().sum() == 8
    for axes in (one, two):
        assert (axes.images[0].get_array() == np.eye(8)).all()
        (frames,) = axes.patches
        squares = frames.get_path().to_polygons()
        assert {tuple(square[:4].mean(0)) for square in squares} == {(write, query) for query, write in enumerate(WRITES)}
        assert all((np.ptp(square, 0) == 1).all() for square in squares)
        assert matplotlib.colors.to_hex(frames.get_edgecolor()) == "#d55e00"


def test_the_table_counts_rows_of_the_first_layer_and_heads_near_the_ideal():
    cells = values(layers=2, heads=3) | {
        ("heads", None, None, name): value for name, value in (("rows", 200.0), ("norm", 9.04))
    }
    cells |= {("heads", layer, head, "ideal"): (0.3, 0.5, 2.0)[head] for layer in (0, 1) for head in (0, 1, 2)}
    for layer in (0, 1):
        for head in (0, 1, 2):
            cells["heads", layer, head, "elsewhere"] = (0.01, 0.9)[layer] * (head + 1)
            cells["heads", layer, head, "elsewhere_norm"] = 0.005
    assert summary(cells | {("heads", None, None, "wrong"): 0.015}) == {
        "wrong": "3 of 200",
        "elsewhere": "12",  # 2 + 4 + 6 of layer 0
        "norm right": "3",
        "near ideal": "2 of 6",
        "distance": "2.00",  # of 1, 2, 2 and 2, 3, 3
        "norm": "9.0",
    }
    rows = [
        {"key": key, "condition": name, "init_seed": 1, "data_seed": 2} for key, name in (("a", "z"), ("b", "y"), ("c", "x"))
    ]
    steps = {"a": {0: cells, 7: cells}, "b": {5: cells}}
    assert [(line["condition"], line["step"]) for line in table(steps, rows, False)] == [("y", "5"), ("z", "7")]
    assert [(line["condition"], line["step"]) for line in table(steps, rows, True)] == [("y", "5"), ("z", "0"), ("z", "7")]


def test_the_committed_example_is_read_and_a_study_without_rows_is_one_sentence(capsys):
    folder = Path(__file__).parents[4] / "docs" / "studies" / "flipflop"
    assert main([str(folder / "heads"), "fflm-simulation", "--steps", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|") == 10
    assert len(lines) == 2 + 8 * 9
    page = (folder / "README.md").read_text()
    assert main([str(folder / "heads"), "fflm-simulation"]) == 0
    assert capsys.readouterr().out in page
    assert main([str(folder), "fflm-simulation"]) == 2
    assert "error: study fflm-simulation has no rows of heads" in capsys.readouterr().err
