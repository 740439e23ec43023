"""Labels of axes: numbers as a reader writes them, in the files of a figure and in the page's data."""

import re

import numpy as np
import pytest

from results.report.plots.figure_files import svg
from results.report.plots.panels import titled_panels
from results.report.plots.plot_data import plot_data
from results.report.plots.tick_labels import plain
from results.report.plots.values_figure import values_by_condition


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0.001, "0.001"),
        (0.25, "0.25"),
        (6, "6"),
        (30_000, "30,000"),
        (900_000, "900,000"),
        (1e6, "10⁶"),
        (2e6, "2×10⁶"),
        (1e-4, "10⁻⁴"),
        (2e-5, "2×10⁻⁵"),
    ],
)
def test_a_label_is_the_number(value, label):
    assert plain(value) == label


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [(6, 40, {"6", "10", "20", "30"}), (0.05, 2000, {"0.1", "1", "1,000"}), (1e-9, 1e-2, {"10⁻⁹", "0.01"})],
)
def test_every_log_axis_has_plain_labels(low, high, labels):
    """Within a decade, some of the ticks between powers are labelled too."""
    with titled_panels(["$5"], 4, 3) as (figure, (panel,)):
        panel.plot([low, high], [1, 2])
        panel.set_xscale("log")
    document = svg(figure)
    assert "mathdefault" not in document
    assert ">$5<" in document
    assert labels <= set(re.findall("<text[^>]*>([^<]*)</text>", document))
    (shown,) = plot_data(figure)["panels"]
    assert labels <= {label for _, label in shown["x"]["ticks"]}
    assert all(low * 0.5 <= 10**place <= high * 2 for place, _ in shown["x"]["ticks"])


def test_zeros_of_values_lie_below_the_break_of_a_log_axis():
    values = {"a": np.array([0.0, 0.0, 1.0, 1000.0]), "b": np.array([50.0])}
    places = {name: [(0, 0)] * len(by) for name, by in values.items()}
    figure = values_by_condition({"m": values}, {"m": True}, {"m": places})
    (shown,) = plot_data(figure)["panels"]
    ticks = {label: place for place, label in shown["y"]["ticks"]}
    assert ticks["10³"] == pytest.approx(3)
    assert ticks["10"] == pytest.approx(1)
    assert ticks["0"] < 0
    assert shown["y"]["from"] > -2.5  # no room for decades below the break, but one for the median, 0.5
    points = next(mark for mark in shown["marks"] if len(mark.get("y", ())) == 4)
    assert sorted(points["y"])[2:] == pytest.approx([0, 3], abs=2e-3)
    assert all(abs(y - ticks["0"]) < 0.3 for y in sorted(points["y"])[:2])


@pytest.mark.parametrize(
    ("most", "labels"), [(20_000, {"0", "5,000", "20,000"}), (5e6, {"1×10⁶", "5×10⁶"}), (0.5, {"0.0", "0.5"})]
)
@pytest.mark.parametrize("direction", ["x", "y"])
def test_a_linear_axis_has_commas_and_powers_of_ten(direction, most, labels):
    with titled_panels(["a"], 4, 3) as (figure, (panel,)):
        ends, apart = [0, most], [7, 8]
        panel.plot(*((ends, apart) if direction == "x" else (apart, ends)))
    document = svg(figure)
    assert labels <= set(re.findall("<text[^>]*>([^<]*)</text>", document))
    assert "1e6" not in document
