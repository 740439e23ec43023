"""The figure of one error against another: every replicate stands in it, and the Pareto front is marked."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from results.report import drawings
from results.report.family import compared_sets
from results.report.family_sections import FAMILIES
from results.report.interactive import plot
from results.report.plots import pareto
from results.report.plots.plot_data import plot_data
from results.report.report import write_report
from results.rows.summary import Replicate, Score, replicates_of
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.results.report.browser import EVIL, asked
from tests.results.synthetic import manifest, write

ASK = """
const figure = document.getElementById("figure-scatter"), live = figure.querySelector(".plot-live");
const holder = figure.querySelector(".plot-panel > div:last-child"), over = figure.querySelector(".u-over");
const press = (key) => {
  holder.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  return live.textContent;
};
told.end = press("End"); told.left = press("ArrowLeft"); told.home = press("Home");
const ring = figure.querySelector(".plot-ring"), area = over.getBoundingClientRect();
const at = [area.left + parseFloat(ring.style.left), area.top + parseFloat(ring.style.top)];
press("Escape");
over.dispatchEvent(new MouseEvent("mousemove", { clientX: at[0], clientY: at[1], bubbles: true, view: window }));
await new Promise((done) => setTimeout(done, 100));
told.hover = live.textContent;
holder.click();
told.clicked = live.textContent;
const names = [...figure.querySelectorAll(".plot-legend button")], shown = () => names.map((name) => name.ariaPressed);
names[1].dispatchEvent(new MouseEvent("click", { shiftKey: true })); told.alone = shown();
names[1].dispatchEvent(new MouseEvent("click", { shiftKey: true })); told.again = shown();
names[0].dispatchEvent(new MouseEvent("click", { detail: 1 })); told.without = shown();
names[0].dispatchEvent(new MouseEvent("click", { detail: 2 })); told.twice = shown();
told.short = [0.9996, 1, -0.99999, 0.12345, 1.5, 12345].map((value) => short(value));
told.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
told.requests = performance.getEntriesByType("resource").length;
"""


def scattered(plan: dict[str, Any], known: list[Replicate]) -> drawings.Drawing:
    """The figure of a study of which nothing but the last step was scored."""
    nothing = [SCHEMAS[table].empty_table() for table in ("replicates", "evaluations", "profiles", "curves")]
    return next(drawing for drawing in drawings.draw_all(plan, known, *nothing, FAMILIES) if drawing.name == "scatter")


def many(seeds: int, conditions: int) -> tuple[dict[str, Any], list[Replicate]]:
    """A plan and its replicates with rates of their own."""
    plan, rng = manifest(seeds, names=tuple(f"condition {i}" for i in range(conditions))), np.random.default_rng(0)
    known = []
    for key, condition, init_seed, data_seed in plan["replicates"]:
        rates = 10 ** rng.normal(-3, 1, 2)
        scores = {n: Score(1, 1000, 100, float(r), 0.0, 1.0) for n, r in zip(("sparse", "dense"), rates, strict=True)}
        name = plan["conditions"][condition]["name"]
        known.append(Replicate(name, 0, key, init_seed, data_seed, "finished", 0.1, None, scores))
    return plan, known


def test_every_replicate_stands_at_its_rates_and_zero_and_diverged_in_bands_of_their_own(tmp_path: Path) -> None:
    store, plan = open_store(tmp_path, "synthetic"), manifest(12, names=("transformer", EVIL))
    write(store, plan)
    evaluations = read(store, "evaluations", filter=pc.field("metric") == "read")
    known = replicates_of(plan, committed(store), evaluations, read(store, "failures"))
    (panel,) = plot_data(scattered(plan, known).made())["panels"]
    marks = [mark for mark in panel["marks"] if "rows" in mark]
    assert [mark["name"] for mark in sorted(marks, key=lambda mark: mark["rows"])] == ["transformer", EVIL]
    assert sorted(row for mark in marks for row in mark["rows"]) == list(range(24))
    for axis, name in (("x", "sparse"), ("y", "dense")):
        assert panel[axis]["label"] == f"error rate, {name}"
        spans = [mark["ends"] for mark in panel["marks"] if mark.get("span") == axis]
        bands = {label: ends for place, label in panel[axis]["ticks"] for ends in spans if ends[0] < place < ends[1]}
        assert bands.keys() == {"0", "diverged"}
        seen = {"0": 0, "diverged": 0}
        for mark in marks:
            for row, place in zip(mark["rows"], mark[axis], strict=True):
                error = known[row].error(name)
                assert error is not None
                if 0 < error < np.inf:
                    assert place == pytest.approx(np.log10(error), abs=2e-3)
                    assert bands["0"][1] < place < bands["diverged"][0]
                else:
                    category = "0" if error == 0 else "diverged"
                    assert bands[category][0] < place < bands[category][1]
                    seen[category] += 1
        assert seen["diverged"] == 2  # the last of each condition that is no LSTM
        assert seen["0"] >= 6


def test_the_front_is_what_no_replicate_dominates() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, (2, 200)) / 30.0
    y = np.where(x + y < 0.4, 0.5, y)  # keeps the corner free
    x[:5], y[3:8] = np.inf, np.inf
    finite = {(a, b) for a, b in zip(x, y, strict=True) if np.isfinite(a) and np.isfinite(b)}
    best = sorted((a, b) for a, b in finite if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in finite))
    assert len(best) > 2
    assert [tuple(row) for row in pareto.front(x, y)] == best
    assert len(pareto.front(np.array([np.inf]), np.array([np.inf]))) == 0
    said = pareto.caption({"a": (x[:90], y[:90]), "b": (x[90:], y[90:])}, "s", "t")
    assert f"{len(best)} pairs of rates" in said


def test_the_front_is_a_stepped_line_with_a_circle_a_pair() -> None:
    rates = np.array([[0.001, 0.01, 0.1, 0.1], [0.1, 0.02, 0.003, 0.5]])
    marks = plot_data(pareto.draw({"a": tuple(rates)}, "s", "t", {"a": [0, 1, 2, 3]}))["panels"][0]["marks"]
    (front,) = [mark for mark in marks if mark.get("s")]
    assert (front["m"], front["hollow"], front["w"] > 0) == ("o", 1, True)
    assert "name" not in front  # a page points at the replicates, not at it
    np.testing.assert_allclose([front["x"], front["y"]], np.log10(rates[:, :3]), atol=1e-3)


def test_a_caption_says_how_many_have_no_error_and_of_bands_only_where_there_are_some() -> None:
    corner = pareto.caption({"a": (np.array([0.0, 0.0, 0.1]), np.array([0.0, 0.0, 0.2]))}, "s", "t")
    assert "corner: 2 replicates" in corner
    assert "band" in corner
    plain = pareto.caption({"a": (np.array([0.1]), np.array([0.2]))}, "s", "t")
    assert "1 pair of rates" in plain
    assert "band" not in plain
    assert "front" not in pareto.caption({"a": (np.array([np.inf]), np.array([np.inf]))}, "s", "t")


def test_the_sets_are_a_familys_by_what_they_draw_else_the_first_two_and_one_set_has_no_figure() -> None:
    plan = manifest(2)
    plan["sets"] = {name: plan["sets"][name] for name in ("dense", "sparse_online", "sparse")}
    assert compared_sets(plan, FAMILIES) == ("sparse", "dense")
    assert compared_sets(plan, ()) == ("dense", "sparse")
    del plan["sets"]["dense"]
    assert compared_sets(plan, FAMILIES) is None


def test_ten_thousand_replicates_of_hundreds_of_conditions_are_all_drawn_and_stay_small() -> None:
    plan, known = many(25, 426)
    figure = scattered(plan, known).made()
    assert not figure.legends  # no eye tells so many apart
    text = plot(figure)
    assert text is not None
    assert len(text.encode()) < 400_000
    data = json.loads(re.sub(r"</?(div|script)[^>]*>", "", text))
    assert sum(len(mark["rows"]) for mark in data["panels"][0]["marks"] if "rows" in mark) == 10_650


def test_a_page_tells_of_the_replicate_pointed_at_and_shows_a_condition_alone_at_the_width_of_a_phone(tmp_path: Path) -> None:
    store, plan = open_store(tmp_path / "store", "synthetic"), manifest(12)
    write(store, plan)
    told = asked(write_report(store).read_text(encoding="utf-8"), ASK, tmp_path, 400)
    diverged = plan["replicates"][11]
    assert told["end"] == f"transformer: init seed 11, data seed 11, key {diverged[0][:12]} · diverged"
    assert told["left"] != told["end"]
    assert told["home"] == told["hover"]
    key = re.search(r"key (\w{12}) · sparse: 0 of 3,540 wrong \(0\) · dense: [\d,]+ of 46,120 wrong", told["home"])
    assert key
    assert told["clicked"].endswith(f"manyseeds report STORE synthetic --key {key[1]}")
    assert (told["alone"], told["again"]) == (["false", "true"], ["true", "true"])
    assert (told["without"], told["twice"]) == (["false", "true"], ["true", "false"])
    assert told["short"] == ["0.9996", "1", "-0.99999", "0.123", "1.5", "12,345"]
    assert told["wide"] <= 0
    assert told["requests"] == 0
