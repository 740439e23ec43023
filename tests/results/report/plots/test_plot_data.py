"""Figures as data that a page draws, and what the page tells of a replicate that is pointed at."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from results.report.interactive import plot
from results.report.plots.palette import COLOURS
from results.report.plots.plot_data import NotDrawable, plot_data, tell
from results.report.report import write_report
from results.store.tables import open_store
from tests.results.report.browser import EVIL, asked
from tests.results.synthetic import manifest, write

ASK = """
const holders = document.querySelectorAll(".plot-panel > div:last-child"), live = document.querySelector(".plot-live");
const press = (key) => {
  holders[0].dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  return live.textContent;
};
told.figures = document.querySelectorAll(".plot").length;
told.canvases = document.querySelectorAll(".plot canvas").length;
told.texts = window.texts;
told.legends = [...document.querySelectorAll(".plot-legend")].map((legend) =>
  [...legend.querySelectorAll("button")].map((button) => button.dataset.name));
told.first = press("ArrowRight"); told.second = press("ArrowRight");
told.opened = press("Enter");
const over = document.querySelector(".u-over"), area = over.getBoundingClientRect(), ring = document.querySelector(".plot-ring");
const at = [area.left + parseFloat(ring.style.left), area.top + parseFloat(ring.style.top)];
press("Escape");
told.closed = live.textContent;
over.dispatchEvent(new MouseEvent("mousemove", { clientX: at[0], clientY: at[1], bubbles: true, view: window }));
await new Promise((done) => setTimeout(done, 100));
told.hover = live.textContent;
const buttons = [...document.querySelectorAll(".plot-legend button")].filter((button) => button.dataset.name === NAME);
buttons[0].click();
told.pressed = buttons.map((button) => button.getAttribute("aria-pressed"));
press("Escape"); told.other = press("ArrowRight");
told.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""


# what is drawn onto canvases from here on
RECORD = """<head><script>
const fill = CanvasRenderingContext2D.prototype.fillText;
window.texts = [];
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) { window.texts.push(text); fill.call(this, text, ...place); };
</script>"""


def twin() -> Figure:
    """Two vertical axes, from 0 to 10 and from 0 to 5,000."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 10], label="left")
    axes.set_ylim(0, 10)
    right = axes.twinx()
    right.plot([0, 1], [2500, 5000], label="right")
    right.set_ylim(0, 5000)
    return figure


def narrow() -> Figure:
    """Axes whose ticks have more than three digits: of losses that lie close together, and of tiny and of large numbers."""
    figure = Figure()
    upper, lower = figure.subplots(2, 1)
    upper.plot([0, 1], [1.425, 1.5], label="loss")
    upper.set_yticks([1.425, 1.45, 1.475, 1.5])
    lower.plot([20000, 20001], [1e-4, 1.5e-4], label="tiny")
    lower.set_yticks([1e-4, 1.25e-4, 1.5e-4])
    lower.set_xticks([20000, 20000.5, 20001])
    return figure


def drawn() -> Figure:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    (line,) = left.plot([1, 10, 100], [0.0, np.nan, 1.0], color=COLOURS[1], marker="s", lw=2)
    left.set_xscale("log")
    left.set_xlabel("steps")
    tell(line, EVIL, [7, 8, 9])
    right.fill_between([0, 1], [0, 0], [1, 2], color="#123456", alpha=0.5)
    right.axvline(0.5, ls="--")
    right.axhspan(1.5, 2, color="k", alpha=0.1)
    right.annotate("12", (0.5, 1), (0, 15), textcoords="offset points")
    right.set_xticks([0, 1], ["a", "b"])
    figure.canvas.draw()
    return figure


def test_the_data_of_a_figure_are_what_it_draws() -> None:
    data = plot_data(drawn())
    left, right = data["panels"]
    assert data["columns"] == 2  # beside each other on a page too
    (line,) = left["marks"]
    assert (line["x"], line["y"]) == ([0, 1, 2], [0, None, 1])
    assert (line["c"], line["m"], line["w"], line["name"], line["rows"]) == (2, "s", 2.0, EVIL, [7, 8, 9])
    assert (left["x"]["kind"], left["x"]["label"]) == ("log", "steps")
    kinds = {kind: mark for mark in right["marks"] for kind in ("area", "rule", "span", "text") if kind in mark}
    assert kinds.keys() == {"area", "rule", "span", "text"}
    assert kinds["area"]["c"] == "#123456"
    assert (kinds["rule"]["rule"], kinds["rule"]["at"]) == ("x", 0.5)
    assert kinds["span"]["ends"] == [1.5, 2]
    assert (kinds["text"]["text"], kinds["text"]["shift"]) == ("12", [0, 15])
    assert [label for _, label in right["x"]["ticks"]] == ["a", "b"]
    assert right["x"]["kind"] == "names"


def test_a_second_vertical_axis_lies_in_the_places_of_the_first() -> None:
    (panel,) = plot_data(twin())["panels"]
    assert [mark["y"] for mark in panel["marks"]] == [[0, 10], [5, 10]]
    assert [place for place, label in panel["right"]["ticks"] if label == "2000"] == [pytest.approx(4)]


def test_a_tick_of_a_page_says_where_it_is(tmp_path: Path) -> None:
    plan, store = manifest(2), open_store(tmp_path / "store", "synthetic")
    write(store, plan)
    page = write_report(store).read_text(encoding="utf-8")
    before, plots, after = page.rpartition('<div class="plot">')
    page = f"{before}{plot(narrow())}{plots}{after}".replace("<head>", RECORD, 1)
    texts = set(asked(page, "told.texts = window.texts;", tmp_path, 800)["texts"])
    assert {"1.425", "1.45", "1.475", "1.5"} <= texts
    assert {"1.00×10⁻⁴", "1.25×10⁻⁴", "1.50×10⁻⁴", "20,000", "20,000.5", "20,001"} <= texts


def test_heat_maps_have_their_cells_and_what_a_page_cannot_draw_stays_an_image() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.pcolormesh(np.ma.masked_invalid([[0.25, np.nan], [0.5, 1.0]]), vmin=0, vmax=1)
    cells = plot_data(figure)["panels"][0]["marks"][0]["cells"]
    assert [[column, row, value] for column, row, _, value in cells] == [[0, 0, 0.25], [0, 1, 0.5], [1, 1, 1]]
    other = Figure()
    other.subplots().imshow(np.eye(2))
    with pytest.raises(NotDrawable):
        plot_data(other)
    assert plot(other) is None


def test_a_page_tells_of_the_replicate_that_is_pointed_at_and_hides_a_condition_everywhere(tmp_path: Path) -> None:
    plan, store = manifest(6), open_store(tmp_path / "store", "synthetic")
    write(store, plan)
    page = write_report(store).read_text(encoding="utf-8")
    before, plots, after = page.rpartition('<div class="plot">')
    page = f"{before}{plot(twin())}{plots}{after}".replace("<head>", RECORD, 1)
    told = asked(page, ASK.replace("NAME", '"transformer"'), tmp_path, 400)
    assert told["figures"] == 8
    assert told["canvases"] >= 8
    assert {"2,000", "3,000", "4,000"} <= set(told["texts"])  # beside the second axis
    assert all(legend == ["transformer", "lstm"] for legend in told["legends"] if legend != ["left", "right"])
    keys = {row[0][:12]: row for row in plan["replicates"]}
    said = re.fullmatch(
        r"(\w+): init seed (\d), data seed (\d), key (\w{12}) · (?:diverged|sparse: [\d,]+ of 3,540 wrong \(.*\))",
        told["second"],
    )
    assert said, told["second"]
    assert keys[said[4]][1:] == [("transformer", "lstm").index(said[1]), int(said[2]), int(said[3])]
    assert told["first"] != told["second"] == told["hover"]
    assert told["opened"].endswith(f"To write its page: manyseeds report STORE synthetic --key {said[4]}")
    assert told["closed"].startswith("Point at the figure")
    assert len(told["pressed"]) > 3
    assert set(told["pressed"]) == {"false"}
    assert told["other"].startswith("lstm")
    assert told["wide"] <= 0
