"""The figures of Dyck studies have the values of the store's rows."""

import numpy as np
import pyarrow as pa
import pytest

import results.report.dyck.page as page
from results.claims.evidence import gather
from results.report.dyck import FAMILY, thesis
from results.report.plots.lines_and_maps import attention_squares
from results.store.schema import SCHEMAS
from tests.results.claims.planned_rows import planned, replicates


@pytest.fixture(scope="module")
def studies():
    return {name: planned("dyck", name) for name in ("balance", "lengths", "variation")}


def drawn(manifest, rows, monkeypatch):
    """The figures by name of a study whose replicates have these rows: rows(condition, seed) → (probe, item, value, layer)."""
    known = replicates(manifest, lambda settings, changed: 0.2 if changed else 0.001)
    table = [
        {
            "key": each.key,
            "stage": 0,
            "pack": "p",
            "step": 1,
            "probe": probe,
            "layer": layer,
            "head": 0,
            "item": item,
            "value": value,
        }
        for each in known
        for probe, item, value, layer in rows(each.condition, each.init_seed)
    ]
    monkeypatch.setattr(page, "read", lambda store, name, winning: pa.Table.from_pylist(table, SCHEMAS[name]))
    found = page.drawings(None, manifest, known, None)
    return known, {name: (caption, figure) for name, _, caption, figure in found}


def test_every_replicate_stands_at_its_violation_and_accuracy(studies, monkeypatch):
    known, figures = drawn(
        studies["balance"],
        lambda name, seed: [("balance", "beta_mean", seed / 1000, 0), ("balance", "beta_max", 1.0, 0)],
        monkeypatch,
    )
    assert list(figures) == ["balance-accuracy"]
    assert [panel.get_title(loc="left") for panel in figures["balance-accuracy"][1].axes] == ["long", "long_open"]
    assert (
        "training by these settings: long: complete = false, length = 500, first = 400; long_open: "
        in figures["balance-accuracy"][0]
    )
    lines = figures["balance-accuracy"][1].axes[0].lines
    names = list(dict.fromkeys(each.condition for each in known))
    assert len(lines) == 2 * len(names)
    for number, name in enumerate(names):
        seeds, median = (line.get_xydata() for line in lines[2 * number : 2 * number + 2])
        wanted = np.array([(each.init_seed / 1000, 1 - each.error("long")) for each in known if each.condition == name])
        assert np.array_equal(seeds, wanted)
        assert np.array_equal(median[0], np.median(wanted, axis=0))


def test_violation_stands_at_one_over_the_training_length(studies, monkeypatch):
    _, figures = drawn(
        studies["lengths"], lambda name, seed: [("balance", "beta_mean", (seed - 299) / float(name[1:]), 0)], monkeypatch
    )
    (panel,) = figures["balance-length"][1].axes
    *seeds, median, slope = (line.get_xydata() for line in panel.lines)
    assert sorted(len(each) for each in seeds) == [40] * 5
    assert median == pytest.approx(np.array([(1 / n, 20.5 / n) for n in (136, 80, 48, 28, 16)]))
    assert slope == pytest.approx(median)  # the violation is exactly proportional to 1/N


def test_maps_are_of_the_last_layer_of_the_first_seeds_with_their_accuracy(studies, monkeypatch):
    def rows(name, seed):
        last = 0 if name == "minimal" else 1
        found = [("map", f"{i},{j}", (i + j + seed) / 1000, last) for i in range(3) for j in range(i + 1)]
        return found + ([("map", "0,0", 9.0, 0)] if last else [])

    known, figures = drawn(studies["variation"], rows, monkeypatch)
    panels = figures["attention-maps"][1].axes
    assert len(panels) == 12
    first = panels[4].collections[0].get_array()
    seed, own = 200, [each for each in known if each.condition == "standard_none"]
    assert (
        panels[4].get_title(loc="left")
        == f"standard_none, seed {seed}, {100 * (1 - own[0].error('in_distribution')):.4g} % right"
    )
    assert first.filled(-1) == pytest.approx(
        np.array([[seed, -1000, -1000], [seed + 1, seed + 2, -1000], [seed + 2, seed + 3, seed + 4]]) / 1000
    )


def test_variation_is_the_mean_over_pairs_by_layer(studies, monkeypatch):
    manifest = studies["variation"]
    known = replicates(manifest, lambda settings, changed: 0.001)
    values = {}
    table = []
    for name in ("standard_linear", "minimal"):
        own = [each for each in known if each.condition == name][:3]
        for number, (one, other) in enumerate([(1, 0), (2, 0), (2, 1)]):
            for layer in range(2 if name == "standard_linear" else 1):
                for item, value in (("fixed", number + layer), ("string 0", 2.0 * number), ("string 1", 4.0 * number + layer)):
                    values.setdefault((name, layer, item), []).append(value)
                    about = {"key": own[one].key, "stage": 0, "pack": "p", "step": 1, "probe": "variation", "head": 0}
                    table.append(about | {"layer": layer, "item": item, "value": value, "other_key": own[other].key})
    monkeypatch.setattr(page, "read", lambda store, name, winning: pa.Table.from_pylist(table, SCHEMAS[name]))
    ((name, _, _, figure),) = page.drawings(None, manifest, known, None)
    assert name == "attention-variation"
    fixed, theirs, random = figure.axes
    assert [line.get_ydata() for line in marked(fixed)] == [pytest.approx([1.0, 2.0]), pytest.approx([1.0])]
    assert theirs.get_title(loc="left") == "thesis, section 2.2.3.2: the fixed string"
    assert [line.get_xydata().tolist() for line in marked(theirs)] == [[[1.975, 2.20]], [[1.025, 0.24]]]
    assert theirs.lines[-1].get_ydata() == [2.85, 2.85]
    strings = [[np.mean(values["standard_linear", layer, f"string {n}"]) for n in range(2)] for layer in range(2)]
    whiskers = [line.get_ydata() for line in random.lines[:2]]
    assert whiskers == [pytest.approx([np.mean(s) - np.std(s, ddof=1), np.mean(s) + np.std(s, ddof=1)]) for s in strings]
    assert fixed.lines[-1].get_ydata() == pytest.approx([3.1, 3.1], abs=0.01)


def marked(panel):
    return [line for line in panel.lines if line.get_marker() not in (None, "None")]


def test_each_model_of_table_2_6_stands_beside_its_own_row():
    conditions = gather(planned("dyck", "layers"), []).conditions
    rows = {each.name: thesis.on_random_strings(each.settings) for each in conditions}
    assert rows["k2_d8, model.layers=3"] == {1: (0.059, 0.011), 2: (5.560, 0.714), 3: (23.590, 0.829)}
    assert rows["k3_d4, model.layers=2"] == {1: (0.182, 0.024), 2: (9.313, 0.815)}
    assert sorted(map(str, rows.values())) == sorted(map(str, thesis.RANDOM.values()))
    standard, without, minimal = gather(planned("dyck", "variation"), []).conditions
    for complete, middles in ((True, [2.20, 2.27, 0.24]), (False, [11.92, 14.51, 0.34])):
        printed = [thesis.on_fixed_string(each.settings | {"task.complete": complete}) for each in (standard, without, minimal)]
        assert [middle for by_layer in printed for middle, _ in by_layer.values()] == middles
    assert thesis.on_random_strings(standard.settings) is None
    for change in ({"model.layers": 3}, {"task.depth": 8}, {"model.norm": "branch"}):
        assert thesis.on_fixed_string(standard.settings | change) is None


def test_studies_without_probes_or_of_another_task_have_no_such_figure(studies, monkeypatch):
    assert drawn(studies["balance"], lambda name, seed: [], monkeypatch)[1] == {}
    other = [each | {"settings": {"task": {"name": "flipflop"}}} for each in studies["balance"]["conditions"]]
    assert page.drawings(None, studies["balance"] | {"conditions": other}, [], None) == []
    assert FAMILY.sections == (page.drawings,)


def test_a_place_beyond_any_string_takes_no_room():
    values = {("map", 1, 0, "1,0"): 0.25, ("map", 1, 0, "999999999,1"): 1.0, ("balance", 0, 0, "2,2"): 1.0}
    (square,) = attention_squares(values, "map", 10).values()
    np.testing.assert_array_equal(square, [[np.nan, np.nan], [0.25, np.nan]])
