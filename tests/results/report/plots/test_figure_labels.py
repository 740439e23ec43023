"""Names and numbers around a figure can be read: none lies over another, and each says what it stands for."""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from results.report.interactive import plot
from results.report.plots.curves import error_curves, loss_curves
from results.report.plots.errors_by_condition import errors_by_condition
from results.report.plots.errors_by_distance import Profile, errors_by_distance
from results.report.plots.figure_files import svg
from results.report.plots.lines_and_maps import Bands, bands_of, lines
from results.report.plots.panels import titled_panels
from results.report.plots.plot_data import plot_data
from results.report.plots.values_figure import curves_by_condition, values_by_condition
from results.report.plots.violins import sweep
from results.report.report import write_report
from results.statistics.intervals import Floats
from results.store.tables import open_store
from tests.results.report.browser import asked
from tests.results.synthetic import manifest, write

LONG = "a_condition_with_experiment.rate=0.001_and_whatever_else_someone_wrote_into_its_name_by_hand"
STEPS = np.linspace(2000, 200_000, 12)


def drawn(figure: Figure) -> FigureCanvasAgg:
    svg(figure)  # which lays it out
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def bands(by_place: Mapping[float, Floats]) -> Bands:
    made = bands_of(by_place.items())
    assert made is not None
    return made


def texts(figure: Figure) -> list[str]:
    return re.findall("<text[^>]*>([^<]*)</text>", svg(figure))


@pytest.mark.parametrize("largest", [200_000, 800_000])
def test_numbers_of_steps_do_not_overlap(largest):
    curve = (np.linspace(0, largest, 9), np.linspace(0.5, 0.1, 9))
    figure = error_curves({name: [curve] for name in "abcdef"})
    renderer = drawn(figure).get_renderer()
    for panel in figure.axes:
        boxes = [label.get_window_extent(renderer) for label in panel.get_xticklabels() if label.get_text()]
        inside = [box for box in boxes if panel.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= panel.bbox.x1 + 1]
        assert len(inside) > 2
        assert all(left.x1 < right.x0 for left, right in pairwise(inside))


def long_names() -> dict[str, Figure]:
    errors = {name: np.array([0.1, 0.2]) for name in ("short", LONG, "other")}
    curves = {name: [(STEPS, np.linspace(0.5, 0.1, 12))] for name in errors}
    places = {"m": {name: [(0, 0), (1, 1)] for name in errors}}
    return {
        "errors": errors_by_condition({"test": errors}),
        "values": values_by_condition({"m": errors}, {"m": False}, places),
        "sweep": sweep({"test": errors}, "short"),
        "losses": loss_curves(curves),
        "curves": curves_by_condition(curves, "m", False),
        "legend": lines({"p": {name: bands({1: values, 2: values}) for name, values in errors.items()}}, "x"),
    }


@pytest.mark.parametrize("kind", long_names())
def test_long_names_are_shortened_in_files_and_leave_room_for_the_data(kind):
    figure = long_names()[kind]
    renderer = drawn(figure).get_renderer()  # a layout without room warns, and a warning is an error
    width, height = figure.bbox.size
    for panel in figure.axes:
        assert panel.bbox.width > 0.25 * width / len(figure.axes)
        assert panel.bbox.height > 0.25 * height
    titles = [vars(panel)["_left_title"].get_window_extent(renderer) for panel in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))
    legends = [legend.get_window_extent(renderer).x1 for legend in figure.legends]
    assert all(end <= width for end in [titles[-1].x1, *legends])
    shown = next(text for text in texts(figure) if "…" in text)
    assert shown.startswith("a_condition")
    assert shown.endswith("hand")


def test_a_page_has_whole_titles():
    panels = plot_data(loss_curves({LONG: [(STEPS, STEPS)], "other": [(STEPS, STEPS)]}))["panels"]
    assert [panel["title"] for panel in panels] == [LONG, "other"]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1.2e7, 1.9e7], {"1.2×10⁷", "1.8×10⁷"}),
        ([-3e-10, 3e-10], {"−2×10⁻¹⁰", "0", "2×10⁻¹⁰"}),
        ([5.00001, 5.00002], {"5.000010", "5.000020"}),
    ],
)
def test_powers_of_ten_stand_with_the_numbers_and_not_in_the_title(values, labels):
    with titled_panels(["title"], 4, 3) as (figure, (panel,)):
        panel.plot([1, 2], values)
    shown = texts(figure)
    assert labels <= set(shown)
    assert not [text for text in shown if re.fullmatch(r"[+−]?1e[\d−]+|[+−]\d\S*e\S*|\+\d.*", text)]


@pytest.mark.parametrize(("places", "labels"), [([2, 3, 4, 5], ["2", "3", "4", "5"]), ([4, 5], ["4", "5"])])
def test_whole_numbers_have_whole_labels(places, labels):
    by_place = dict.fromkeys(places, np.array([0.1, 0.2]))
    (panel,) = plot_data(lines({"p": {"a": bands(by_place)}}, "n"))["panels"]
    assert [label for _, label in panel["x"]["ticks"]] == labels


def test_shares_keep_labels_between_whole_numbers():
    by_place = dict.fromkeys((0.25, 1, 2), np.array([0.1, 0.2]))
    (panel,) = plot_data(lines({"p": {"a": bands(by_place)}}, "n"))["panels"]
    assert "0.50" in [label for _, label in panel["x"]["ticks"]]


def by_distance(largest: int) -> Figure:
    lo, hi = np.array([0.0, 1, 2, largest]), np.array([1.0, 2, 4, largest + 1])
    errors = np.array([[1.0, 2, 3, 4]])
    return errors_by_distance({"p": {"a": Profile(lo, hi, errors, np.full((1, 4), 10.0))}}, "distance")


@pytest.mark.parametrize("largest", [8, 1024])
def test_the_distance_0_is_labelled_and_told(largest, tmp_path: Path):
    (panel,) = plot_data(by_distance(largest))["panels"]
    ticks = [label for _, label in panel["x"]["ticks"]]
    assert ticks[0] == "0"
    assert "0.5" not in ticks
    store = open_store(tmp_path / "store", "synthetic")
    write(store, manifest(2))
    page = write_report(store).read_text(encoding="utf-8")
    whole = re.compile(r'<div class="plot">.*?</script></div>', re.DOTALL)
    page = whole.sub(lambda _: str(plot(by_distance(largest))), page, count=1)
    script = """const holder = document.querySelector(".plot-panel > div:last-child"), live = document.querySelector(".plot-live");
    told.said = [];
    for (let i = 0; i < 12; i++) {
      holder.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
      told.said.push(live.textContent);
    }"""
    said = asked(page, script, tmp_path, 800)["said"]
    found = {pair for text in said for pair in re.findall(r"distance (\S+), error rate (\S+)", text)}
    assert found == {("0", "0.1"), ("1", "0.2"), ("2.45", "0.3"), (f"{largest:,}", "0.4")}


def test_a_point_of_values_tells_its_condition_seed_and_value():
    values = {"cost": {"a": np.array([3.0, 0.5]), "b": np.array([2e-7])}}
    figure = values_by_condition(values, {"cost": False}, {"cost": {"a": [(0, 7), (1, 9)], "b": [(2, 7)]}})
    (panel,) = plot_data(figure)["panels"]
    points = [mark for mark in panel["marks"] if "texts" in mark]
    assert [mark["texts"] for mark in points] == [["a: seed 7, cost 3", "a: seed 9, cost 0.5"], ["b: seed 7, cost 2×10⁻⁷"]]
    assert [mark["rows"] for mark in points] == [[0, 1], [2]]
    assert {mark["name"] for mark in panel["marks"]} == {"a", "b"}  # bars are hidden with the points


def test_a_curve_of_values_tells_its_condition():
    figure = curves_by_condition({"a": [(np.array([1.0, 2]), np.array([1.0, 3]))]}, "cost", False)
    (panel,) = plot_data(figure)["panels"]
    assert {mark["name"] for mark in panel["marks"]} == {"a"}


def test_long_names_are_broken_in_the_list_that_a_phone_shows(tmp_path: Path):
    store = open_store(tmp_path / "store", "synthetic")
    write(store, manifest(2, names=("transformer", LONG)))
    page = write_report(store).read_text(encoding="utf-8")
    page, rows = re.subn(r'(<th scope="row">)sparse', rf"\g<1>{LONG}", page)  # as experiments name their conditions
    assert rows
    script = """const table = document.getElementById("summary-table");
    told.wide = table.parentElement.scrollWidth - table.parentElement.clientWidth;"""
    assert asked(page, script, tmp_path, 500)["wide"] <= 0
