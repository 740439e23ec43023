"""The figure of errors against queries has the values of the store's rows."""

import re

import numpy as np
import pyarrow.compute as pc
import pytest

from harness.run import run
from harness.study.load import from_tree
from results.claims.evidence import Condition, Evidence
from results.claims.generation.backtracking import values_by_item
from results.report.citations import references
from results.report.generation import FAMILY, page, thesis_tables
from results.report.report import write_report
from results.rows.summary import Replicate, replicates_of
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read

CONDITIONS = {
    "plain": {"experiment": {"sampler": "plain"}},
    "rejection": {"experiment": {"sampler": "rejection"}},
    "tokenwise": {"experiment": {"sampler": "tokenwise"}},
}
STUDY = {
    "name": "costs",
    "question": "What does a string cost?",
    "source": {"paper": "verified_generation", "card": "section 3.1"},
    "experiment": {"name": "verified_sampling", "process": "some_zero", "horizon": 3, "samples": 200},
    "conditions": CONDITIONS,
    "replicates": 5,
    "executor": "local",
    "wandb": "off",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("costs")
    assert run(from_tree(STUDY, [f"store={root}"]), say=lambda text: None) == 0
    return open_store(root, "costs")


def drawn(store, manifest=None):
    manifest, finished = manifest or newest_manifest(store)[1], committed(store)
    known = replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures"))
    return page.drawings(store, manifest, known, finished)


def test_every_seed_and_every_median_is_drawn_at_its_values(store):
    ((name, _, _, figure),) = drawn(store)
    assert name == "error-by-queries"
    generator, verifier = figure.axes
    keys = {row["key"]: row["condition"] for row in committed(store).to_pylist()}
    values = {}
    for row in read(store, "evaluations").to_pylist():
        values.setdefault((keys[row["key"]], row["metric"]), []).append(row["value"])
    for panel, metric, conditions in (
        (generator, "generator_queries", CONDITIONS),
        (verifier, "verifier_queries", list(CONDITIONS)[1:]),
    ):
        lines = panel.lines[1:]
        assert len(lines) == 2 * len(conditions)  # plain asks no verifier
        for place, condition in enumerate(conditions):
            seeds, median = lines[2 * place : 2 * place + 2]
            x, y = values[condition, metric], values[condition, "distance"]
            assert sorted(zip(*seeds.get_data(), strict=True)) == sorted(zip(x, y, strict=True))
            assert [each[0] for each in median.get_data()] == [np.median(x), np.median(y)]
        assert panel.get_xscale() == "log"


@pytest.mark.parametrize(("lost", "left"), [("distance", ["plain"]), ("generator_queries", ["plain"]), ("wrong", [])])
def test_a_condition_that_lacks_rows_of_a_seed_is_left_out(store, monkeypatch, lost, left):
    plain = [row["key"] for row in committed(store).to_pylist() if row["condition"] == "plain"]

    def lacking(*asked, **more):
        rows = read(*asked, **more)
        return rows.filter(~((pc.field("metric") == lost) & (pc.field("key") == plain[0])))

    monkeypatch.setattr(page, "read", lacking)
    shown = {text.get_text() for each in drawn(store) for legend in each[3].legends for text in legend.get_texts()}
    assert {"plain"} - shown == set(left)


def test_the_line_joins_what_no_other_condition_beats():
    points = {
        "cheap": (np.array([1.0, 2.0, 9.0]), np.array([0.5, 0.5, 0.5])),
        "good": (np.array([5.0]), np.array([0.1])),
        "beaten": (np.array([6.0]), np.array([0.2])),
        "as dear and worse": (np.array([5.0]), np.array([0.3])),
        "between": (np.array([3.0]), np.array([0.4])),
    }
    assert page.front(points) == ["cheap", "between", "good"]


def test_the_report_shows_it_and_cites_the_thesis(store):
    text = write_report(store, families=[FAMILY]).read_text()
    assert 'id="figure-error-by-queries"' in text
    assert "<h2>The paper shows</h2><p>Where one string alone is valid, rejecting whole strings costs H·2ᴴ" in text
    # on a narrow screen the table is a list, whose numbers need names
    cells = re.findall(r"<td[^>]*>", text[text.index('id="summary-table"') : text.index("The last value that each replicate")])
    assert cells
    assert all("data-label=" in cell for cell in cells)
    (entry,) = references({"paper": "verified_generation"}, FAMILY.references)
    assert "CMU-ML-25-120" in entry.line


def test_another_experiment_has_no_such_figure(store):
    manifest = newest_manifest(store)[1]
    conditions = [each | {"settings": {"experiment": {"name": "my_module:measure"}}} for each in manifest["conditions"]]
    assert drawn(store, manifest | {"conditions": conditions}) == []


def test_a_generator_stands_at_the_mean_over_its_verifiers():
    where = "fresh top=0.9 thesis Q=4 B=4"
    values = {
        f"{where} verifier=0": {"wrong": 0.02, "generator_queries": 4.0, "verifier_queries": 2.0},
        f"{where} verifier=1": {"wrong": 0.04, "generator_queries": 6.0, "verifier_queries": 3.0},
        "fresh top=0.9 plain": {"wrong": 0.1, "generator_queries": 3.0, "verifier_queries": 0.0},
    }
    probes = {
        f"seed {seed}": {
            ("backtracking", None, None, f"{arm} {metric}"): value * (1 + seed)
            for arm, metrics in values.items()
            for metric, value in metrics.items()
        }
        for seed in (0, 1)
    }
    own = tuple(Replicate("one", 0, f"seed {seed}", seed, seed, "finished", None, None, {}) for seed in (0, 1, 2))
    condition = Condition("one", {}, own)
    points = page.points_of_generators(values_by_item(Evidence((condition,), {}, {}, probes), condition))
    of_generator, of_verifier = (f"nucleus 0.9: queries of the {who} per string" for who in ("generator", "verifier"))
    assert set(points) == {of_generator, of_verifier}
    assert set(points[of_verifier]) == {"backtracking"}  # plain asks no verifier
    queries, wrong = points[of_generator]["backtracking"]
    assert queries == pytest.approx([5, 10])
    assert wrong == pytest.approx([0.03, 0.06])
    queries, wrong = points[of_generator]["no verifier"]
    assert wrong == pytest.approx([0.1, 0.2])


def test_tables_of_the_thesis_stand_beside_the_same_numbers_here():
    """Generator g has 0.01 (g + 1) times the place of a sampler among the thesis' as its share of errors."""
    generators = []
    for g in range(3):
        values = {form.replace("{n}", "7"): 0.01 * (g + 1) * place for place, form in enumerate(thesis_tables.ERRORS, 1)}
        values |= {
            f"error thesis Q={q} B={b} verifier={n} right": (q + b + g + n) / 20
            for q in (1, 2, 4)
            for b in (2, 4, 6)
            for n in (0, 1)
        }
        values |= {form.replace("{n}", "7"): g + place for place, form in enumerate(thesis_tables.DISTINCT, 1)}
        generators.append(values | {f"error once B={b} right": (b + g) / 10 for b in (1, 2, 4, 8)})
    errors, distinct, quotas, cuts = thesis_tables.drawings(generators)

    def bold_of(drawing):
        (panel,) = drawing[3].axes
        return [line for line in panel.lines if line.get_markersize() in (8, 9)]

    assert [line.get_ydata()[0] for line in bold_of(distinct)] == [2, 5.47, 3, 5.84, 4, 5.52]
    bold = bold_of(errors)
    assert [line.get_ydata()[0] for line in bold[::2]] == pytest.approx([200, 400, 600, 800, 1000])
    assert [line.get_ydata()[0] for line in bold[1::2]] == [240.0, 179.4, 245.8, 461.8, 200.0]
    here, theirs = ([text.get_text() for text in each.texts] for each in quotas[3].axes)
    assert here == [f"{100 * (q + b + 1.5) / 20:.1f}" for q in (1, 2, 4) for b in (2, 4, 6)]
    assert theirs == ["42.1", "50.0", "60.4", "45.7", "63.4", "76.2", "51.8", "76.2", "92.1"]
    assert [[text.get_text() for text in each.texts] for each in cuts[3].axes] == [
        ["20.0", "30.0", "50.0", "90.0"],
        ["36.6", "43.8", "59.1", "79.0"],
    ]
    for values in generators:
        del values["error once B=8 right"], values["fresh top=1 plain wrong"]
    assert [name for name, *_ in thesis_tables.drawings(generators)] == ["distinct-beside", "quota-and-stride"]
    assert thesis_tables.drawings([]) == []
