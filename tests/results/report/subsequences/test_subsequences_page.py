"""The report's part on subsequences and on traced reads holds the numbers of the rows: those of the committed studies, and planned ones."""

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy import stats

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.report.subsequences import page as subsequences_page
from results.report.subsequences import tracing_page
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.results.claims.planned_rows import replicates
from tests.results.report.panel_lines import bold_lines
from tests.rounding import rounded

NONE = SCHEMAS["replicates"].empty_table()


def plans(name, *overrides):
    study = load(find_study("subsequences", name), list(overrides))
    return manifests.build(plan(study, None, 16, numerics={}), {}, {}, None, None)


def opened(folder, name):
    store = open_store(f"docs/studies/{folder}", name)
    manifest, finished = newest_manifest(store)[1], committed(store)
    return store, manifest, replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures")), finished


def drawn(page, folder, name):
    return {each[0]: each for each in page.drawings(*opened(folder, name))}


def values(store, probe, ending):
    """By key, in the order of the pairs."""
    found = {}
    for row in read(store, "probes", filter=pc.field("probe") == probe).to_pylist():
        if row["item"].startswith("pair=") and row["item"].endswith(ending):
            found.setdefault(row["key"], {})[int(row["item"].split()[0][5:])] = row["value"]
    return np.array([[items[pair] for pair in sorted(items)] for items in found.values()])


def bold(figure):
    """x and y of the only bold line, by panel title."""
    lines = {panel.get_title(loc="left"): [each for each in panel.lines if each.get_linewidth() == 2] for panel in figure.axes}
    return {title: (one.get_xdata().tolist(), one.get_ydata().tolist()) for title, (one,) in lines.items()}


def cells(panel):
    return [text.get_text() for text in panel.texts]


def test_depth_has_the_share_that_solves_and_the_median_by_length_and_layers(tmp_path):
    manifest = plans("depth", "replicates=4")

    def rates(settings, _definition):
        length, layers = len(settings["task.automaton.table"]) - 1, settings["model.layers"]
        return [0.0, 0.004, 0.1, 0.3] if length > 2**layers else [0.0, 0.0, 0.002, 0.2]

    known = replicates(manifest, rates)
    ((name, _, caption, figure),) = subsequences_page.drawings(open_store(tmp_path, manifest["study"]), manifest, known, NONE)
    assert name == "subsequence-depth"
    assert "2 for 2, 3 for 3, 3 for 4, 4 for 8, 5 for 16" in caption
    share, median = figure.axes
    lengths, layers = (2, 3, 4, 8, 16), (1, 2, 3, 4, 5)
    few = [[length > 2**depth for depth in layers] for length in lengths]
    assert [text.get_text() for text in share.get_yticklabels()] == [f"η = {length}" for length in lengths]
    assert cells(share) == ["50.0" if each else "75.0" for row in few for each in row]
    assert cells(median) == ["94.8" if each else "99.9" for row in few for each in row]


def test_capacity_is_accuracy_by_number_of_pairs(tmp_path):
    manifest = plans("capacity", "scale=laptop", "replicates=2")
    known = replicates(
        manifest,
        lambda settings, _: settings["task.pairs"] / 1000 / settings["model.width"] * settings["model.feed_forward"] / 32,
    )
    ((name, _, _, figure),) = subsequences_page.drawings(open_store(tmp_path, manifest["study"]), manifest, known, NONE)
    assert name == "pairs-held"
    found = bold_lines(figure, "width 8")
    assert set(found) == {"inner width 32", "inner width 128"}
    for panel, (pairs, accuracy) in found.items():
        assert accuracy == pytest.approx([1 - min(n / 8000 * int(panel.split()[-1]) / 32, 1) for n in pairs], abs=2e-5)


def test_times_and_orders_are_those_of_the_probed_pairs():
    figures = drawn(subsequences_page, "subsequences", "subsequence-long-tail")
    store = open_store("docs/studies/subsequences", "subsequence-long-tail")
    rows = read(store, "probes")
    condition_of = {row["key"]: row["condition"] for row in committed(store).to_pylist()}
    found = {}  # by key and step, by item
    for key, step, item, value in zip(*(rows[name].to_pylist() for name in ("key", "step", "item", "value")), strict=True):
        found.setdefault((key, step), {})[item] = value
    often = {item.split(" ")[0]: value for item, value in next(iter(found.values())).items() if item.endswith(" frequency")}
    for condition in ("sgd", "adamw"):
        own = {at: items for at, items in found.items() if condition_of[at[0]] == condition}
        gaps = {}
        for (key, step), items in own.items():
            for pair in often:
                gaps.setdefault((pair, key), []).append((step, items[f"{pair} gap"]))
        first = {at: min([step for step, gap in looks if gap < 0.1], default=max(looks)[0]) for at, looks in gaps.items()}
        expected = sorted(
            (often[pair], np.median([step for (other, _), step in first.items() if other == pair])) for pair in often
        )
        x, y = bold(figures["pairs-learned"][3])[condition]
        assert sorted(zip(x, y, strict=True)) == expected
        steps, correlations = bold_lines(figures["gradient-order"][3], "frequency × gap")[condition]
        keys = sorted({key for _, key in gaps})
        step = steps[len(steps) // 2]
        ranks = []
        for key in keys:
            mine = own[key, step]
            pull = [mine[f"{pair} frequency"] * mine[f"{pair} gap"] for pair in often]
            ranks.append(stats.spearmanr([mine[f"{pair} gradient"] for pair in often], pull).statistic)
        assert correlations[len(steps) // 2] == rounded(np.median(ranks))


def test_alignment_is_s_rep_against_the_generators_own_probability():
    figures = drawn(subsequences_page, "subsequences", "alignment")
    store = open_store("docs/studies/subsequences", "alignment")
    exact, said = np.median(values(store, "alignment", " exact"), 0), np.median(values(store, "alignment", " srep"), 0)
    ((x, y),) = bold(figures["alignment"][3]).values()
    assert (x, y) == (rounded(np.sort(exact)), rounded(said[np.argsort(exact)]))


def test_a_replicate_without_the_rows_of_a_pair_is_left_out(monkeypatch):
    def lacking(*asked, **more):
        rows = read(*asked, **more)
        first = rows["key"][0]
        return rows.filter(~((pc.field("key") == first) & (pc.field("item") == "pair=0 srep")))

    monkeypatch.setattr(subsequences_page, "read", lacking)
    (_, _, caption, _), *_ = drawn(subsequences_page, "subsequences", "alignment").values()
    assert "Pearson's correlation over pairs" in caption


def test_methods_stand_with_their_median_of_replicates_the_search_first():
    ((name, _, caption, figure),) = drawn(tracing_page, "subsequences", "additivity").values()
    panel, *theirs = figure.axes
    rows = read(
        open_store("docs/studies/subsequences", "additivity"), "probes", filter=pc.field("item") == "median srep"
    ).to_pylist()
    by = {}
    for row in rows:
        by.setdefault(row["probe"].removeprefix("trace-"), []).append(row["value"])
    order = [text.get_text() for text in panel.get_xticklabels()]
    assert (name, order[0], order[-1], set(order)) == ("traced", "trace", "reagent", {*by, "reagent"})
    assert {len(each) for each in by.values()} == {10}
    bars = [line.get_ydata()[0] for line in panel.lines if line.get_linewidth() == 2.2]
    assert bars == rounded([np.median(by[method]) for method in order[:-1]])
    assert bars[1:] == sorted(bars[1:], reverse=True)
    assert "A point is a replicate" in caption
    averages = [46.5, 19.8, 15.9, 19.2], [42.5, 24.0, 19.1, 27.5, 23.7]  # as table 2 has them
    for model, means in zip(theirs, averages, strict=True):
        points = [np.mean(line.get_ydata()) for line in model.lines if line.get_marker() == "o"]
        assert sorted(points) == pytest.approx(sorted(np.array(means) / 100), abs=8e-4)
        assert not [line for line in model.lines if line.get_linewidth() == 1]  # domains are not drawn at random


def test_few_replicates_have_no_interval_and_a_study_without_rows_no_figure(tmp_path):
    figure = tracing_page.by_method({"one": {"trace": [0.2, 0.4], "random": [0.1] * 5}, "two": {"random": [0.3] * 6}})
    assert [sum(line.get_linewidth() == 1 for line in panel.lines) for panel in figure.axes] == [0, 1]
    for name in ("depth", "long_tail"):
        manifest = plans(name)
        assert subsequences_page.drawings(open_store(tmp_path, manifest["study"]), manifest, [], NONE) == []
        assert tracing_page.drawings(open_store(tmp_path, manifest["study"]), manifest, [], NONE) == []
