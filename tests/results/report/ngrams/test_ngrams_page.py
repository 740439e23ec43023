"""The report's part on in-context n-grams holds the numbers of the committed study's rows."""

import itertools
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from results.claims.claim import Settled
from results.claims.evidence import gather
from results.claims.ngrams.courses import courses, heads_of
from results.report.citations import references
from results.report.ngrams import FAMILY, page
from results.report.plots.figure_files import svg
from results.rows.looks import averages, watched
from results.rows.summary import replicates_of
from results.statistics.comparison import holm
from results.statistics.survival import log_rank
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read


def _opened(folder, name):
    store = open_store(folder, name)
    manifest, finished = newest_manifest(store)[1], committed(store)
    known = replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures"))
    return store, manifest, known, finished


@pytest.fixture(scope="module")
def opened():
    return _opened("docs/studies/ngrams", "ngram-stages")


@pytest.fixture(scope="module")
def drawn(opened):
    return {each[0]: each for each in page.drawings(*opened)}


@pytest.fixture(scope="module")
def rows(opened):
    """By metric: values by key and step of the set that is scored on the way."""
    store, _, _, finished = opened
    found = {}
    for row in averages(store, finished).filter(pc.field("set") == "online").to_pylist():
        found.setdefault(row["metric"], {}).setdefault(row["key"], {})[row["step"]] = row["value"]
    return found


def _panel(drawing):
    return drawing[3].axes[0]


def test_the_loss_has_every_seed_the_median_and_the_k_grams(drawn, rows):
    panel = _panel(drawn["ngram-losses"])
    (bold,) = (line for line in panel.lines if line.get_linewidth() == 2)
    steps = sorted(next(iter(rows["loss"].values())))
    assert bold.get_xdata().tolist() == steps
    every = np.array([[own[step] for step in steps] for own in rows["loss"].values()])
    np.testing.assert_allclose(bold.get_ydata(), np.median(every, 0))
    assert sum(line.get_linewidth() == 0.7 for line in panel.lines) == len(every) == 25
    broken = [line.get_ydata()[0] for line in panel.lines if line.get_linewidth() == 1]
    levels = [next(iter(rows[f"baseline {k}-gram a=1"].values())) for k in (1, 2, 3)]
    assert broken == [next(iter(each.values())) for each in levels]


def test_seeds_that_share_no_step_are_drawn_without_a_median(opened):
    """The sets of a study can be scored at other steps than before, so that old and new rows have no step in common."""
    store, manifest, known, finished = opened
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    first, second = courses(evidence, evidence.conditions[0])[:2]
    *_, figure = page._losses({"a": [first, replace(second, steps=second.steps + 1)]})
    panel = figure.axes[0]
    (bold,) = (line for line in panel.lines if line.get_linewidth() == 2)
    assert bold.get_xdata().size == 0
    assert sum(line.get_linewidth() == 0.7 for line in panel.lines) == 2
    assert {text.get_position()[0] for text in panel.texts} == {1.02 * (second.steps[-1] + 1)}


def test_the_names_of_levels_touch_neither_a_curve_nor_each_other(opened):
    """The name of the 2-gram lay over the losses that stay there."""
    store, manifest, known, finished = opened
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    first = courses(evidence, evidence.conditions[0])[0]
    last = float(first.loss[-1])
    levels = {f"{k}-gram a={first.alpha:g}": last + 1e-3 * k for k in (1, 2, 3)}
    *_, figure = page._losses({"a": [replace(first, levels=levels)]})
    svg(figure)
    panel, renderer = figure.axes[0], FigureCanvasAgg(figure).get_renderer()
    boxes = sorted((text.get_window_extent(renderer) for text in panel.texts), key=lambda box: box.y0)
    assert len(boxes) == 3
    assert all(below.y1 < above.y0 for below, above in itertools.pairwise(boxes))
    end = panel.transData.transform((first.steps[-1], 0))[0]
    assert all(end < box.x0 and box.x1 <= panel.get_window_extent().x1 for box in boxes)


def test_the_name_of_the_highest_level_lies_within_its_panel(opened):
    """A page draws nothing outside a panel, and a level just above the losses lay at its edge."""
    store, manifest, known, finished = opened
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    first = courses(evidence, evidence.conditions[0])[0]
    levels = {f"1-gram a={first.alpha:g}": float(first.loss.max() + 0.04 * np.ptp(first.loss))}
    *_, figure = page._losses({"a": [replace(first, levels=levels)]})
    svg(figure)
    panel, renderer = figure.axes[0], FigureCanvasAgg(figure).get_renderer()
    assert max(text.get_window_extent(renderer).y1 for text in panel.texts) <= panel.get_window_extent().y1


def test_the_heads_are_those_of_one_seed_at_its_stages(drawn, opened):
    store, manifest, known, finished = opened
    _, title, caption, figure = drawn["ngram-heads-alpha_1"]
    assert "alpha_1" in title
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    own = courses(evidence, evidence.conditions[0])
    begins = sorted(course.begins(3) for course in own)
    place = next(i for i, course in enumerate(own) if course.begins(3) == begins[12])
    seeds = evidence.conditions[0].replicates[place]
    assert f"init seed {seeds.init_seed} and data seed {seeds.data_seed}:" in caption
    values = {
        (row["metric"], row["step"]): row["value"] for row in watched(store, finished).to_pylist() if row["key"] == seeds.key
    }
    for panel in figure.axes:
        if not panel.axison:
            continue
        step = int(panel.get_title(loc="left").split("step ")[1].replace(",", ""))
        shown = [text.get_text() for text in panel.texts]
        assert shown == [f"{100 * values[f'lag 0.{h}.{q}', step]:.1f}" for h in range(2) for q in range(4)]


def test_the_survival_falls_where_seeds_escape(drawn, opened):
    store, manifest, known, finished = opened
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    times = [course.escape(2) for course in courses(evidence, evidence.conditions[0])]
    (line,) = (each for each in _panel(drawn["ngram-survival"]).lines if each.get_linewidth() == 1.8)
    for x, share in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert share == pytest.approx(np.mean([time is None or time > x for time in times]))
    assert line.get_xdata()[-1] == 16384


def test_two_conditions_are_compared_by_log_rank_tests_with_holms_correction(opened):
    """The second has the courses of every other seed, one that diverged, and leaves at once; the third leaves as the first."""
    store, manifest, known, finished = opened
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    own = courses(evidence, evidence.conditions[0])
    soon = [replace(course, loss=course.loss - np.where(course.steps > 3000, 0.02, 0)) for course in own[::2]]
    times = [[np.inf if (at := course.escape(2)) is None else at for course in group] for group in (own, soon)]
    values = holm([log_rank(times[0], [*times[1], np.inf], (16384, 16384)), 1.0])
    ((_, _, caption, figure),) = page._survivals({"a": own, "b": soon, "c": own}, {"a": 0, "b": 1, "c": 0})
    plt.close(figure)
    said = "p < 0.0001" if values[0] < 1e-4 else f"p = {values[0]:.2g}"
    assert f"Log-rank tests against a, with Holm's correction: b {said}; c p = 1." in caption
    assert f"a {np.median(times[0]):,.0f} [" in caption


def test_the_ribbon_is_the_share_of_seeds_by_nearest_estimator(drawn, rows):
    panel = _panel(drawn["ngram-nearest"])
    step = 8192
    distances = np.array([[rows[f"kl {k}-gram"][key][step] for k in (1, 2, 3)] for key in rows["loss"]])
    shares = [(distances.argmin(1) == k).mean() for k in range(3)]
    edges = np.cumsum([0, *shares])
    for k, ribbon in enumerate(panel.collections):
        path = ribbon.get_paths()[0].vertices
        assert {edges[k], edges[k + 1]} <= set(path[np.abs(path[:, 0] - step) <= 8, 1].tolist())


def test_rows_of_a_foreign_store_that_are_missing_or_named_oddly_leave_out_what_needs_them(opened):
    store, manifest, known, finished = opened
    own = {known[0].key, known[1].key}
    evidence = gather(manifest, known, averages=averages(store, finished), watched=watched(store, finished))
    (condition, *_) = evidence.conditions
    two = replace(condition, replicates=tuple(r for r in condition.replicates if r.key in own))
    looks, means = (rows.filter(pc.field("key").isin(sorted(own))) for rows in (evidence.watched, evidence.averages))
    odd = looks.set_column(2, "metric", pc.replace_substring(looks["metric"], "lag 0.0.0", "lag 0.x"))
    assert len(heads_of(replace(evidence, watched=looks), two)) == 2
    one_look = (pc.field("metric") == "lag 0.1.2") & (pc.field("step") == 16384)
    for rows in (odd, looks.filter(~one_look)):
        with pytest.raises(Settled, match="need"):
            heads_of(replace(evidence, watched=rows), two)
    whole = replace(evidence, watched=looks, averages=means)
    shown = {condition.name: (two, courses(whole, two), [])}
    assert len(page._nearest(whole, shown)) == 1
    for lost in (pc.field("metric") == "kl 2-gram", (pc.field("metric") == "kl 2-gram") & (pc.field("step") == 16384)):
        assert page._nearest(replace(whole, averages=means.filter(~lost)), shown) == []
    twice = pa.concat_tables([means, means.slice(0, means.num_rows // 2)])
    with pytest.raises(Settled, match="two losses of one look"):
        courses(replace(whole, averages=twice), two)


def test_a_study_of_another_task_has_none_of_it():
    assert page.drawings(*_opened("docs/studies/lego", "lego-c6")) == []


def test_a_study_of_the_paper_cites_it(opened):
    (paper,) = references(opened[1]["source"], FAMILY.references)
    assert "arXiv:2508.12837" in paper.line
    assert paper.bibtex.startswith("@inproceedings{varre2025learning,")
