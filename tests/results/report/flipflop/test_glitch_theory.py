"""Bounds and margins on the page are the rows that the probes left, beside what the glitches themselves say."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from results.report.flipflop import glitches
from results.report.flipflop.glitch_page import write_glitch_page
from results.report.flipflop.glitch_theory import dilution, dilution_figure, margin_figure, margins
from results.rows.probe_values import add
from results.store.tables import Store, committed, open_store
from tests.results.report.flipflop.glitch_rows import about, rows
from tests.results.synthetic import manifest, write


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A replicate with 1 layer of 2 heads and its sisters, with rows of both probes of the first three, and one without."""
    store, plan = open_store(tmp_path_factory.mktemp("runs"), "synthetic"), manifest(4, names=("one", "two"))
    write(store, plan)
    found = committed(store).filter(pc.field("status") == "finished").sort_by("init_seed").to_pylist()
    own = [row for row in found if row["condition"] == "one"][:3]
    for n, row in enumerate(own):
        at = {"key": row["key"], "stage": 0, "step": 1000, "layer": 0}
        items = {f"T={t} {kind}": value / t for t in (8, 16) for kind, value in (("bound", 8), ("largest", 4), ("mean", 2))}
        values = [
            at | {"head": head, "item": item, "value": value / (1 + head)} for head in (0, 1) for item, value in items.items()
        ]
        add(store, row["pack"], "dilution", values)
        drift = {"margin": 0.5 - n / 2, "cosine": 0.25, "a errors": 0.25 * n, "b errors": 0.5, "b p=9 recent": 0.9}
        drift |= {"b p=9 right": 0.05, "b p=9 early": 0.05, "b p=4 recent": 0.0} | ({"a onset": 7.0} if n else {})
        add(store, row["pack"], "drift", [at | {"head": 0, "item": item, "value": value} for item, value in drift.items()])
    return store


def replicate(store: Store, condition: str, number: int) -> str:
    rows_ = committed(store).filter((pc.field("condition") == condition) & (pc.field("status") == "finished"))
    return str(rows_.sort_by("init_seed")["key"][number])


def test_the_page_shows_the_rows_of_the_probes_beside_the_glitches(study: Store) -> None:
    key = replicate(study, "one", 1)
    told = about(key=key, study="synthetic", condition="one", layers=1, heads=2, length=64, step=1000, kept=4)
    glitches.write(study, told, rows(told, 20))
    text = write_glitch_page(study, key, "dense").read_text(encoding="utf-8")
    listed = glitches.read(study, key, "dense")
    assert listed is not None
    on_write = [[row["weights"][4 * head] for row in listed[1].to_pylist()] for head in (0, 1)]
    heads = re.findall(r"<tr><td>L1 H(\d)</td><td>([\d.]+)</td><td>([\d.]+)</td><td>([\d.]+)</td><td>([\d.]+)</td></tr>", text)
    expected = [[1, 0.5, 0.25, 0.125, sum(on_write[0]) / 20], [2, 0.25, 0.125, 0.062, sum(on_write[1]) / 20]]
    assert [[float(each) for each in row] for row in heads] == [pytest.approx(row, abs=6e-4) for row in expected]
    assert "Every head at T = 16" in text
    seeds = re.search(r'id="drifts">.*?<tbody>(.*?)</tbody>', text, re.S)
    assert seeds is not None
    lines = [re.findall(r"<td>(.*?)</td>", line) for line in seeds[1].strip().split("\n")]
    assert [line[1:] for line in lines] == [
        ["0", "0.250", "25.0 %", "7", "50.0 %", "recent no-ops"],
        ["0.5", "0.250", "0.0 %", "none", "50.0 %", "recent no-ops"],
        ["-0.5", "0.250", "50.0 %", "7", "50.0 %", "recent no-ops"],
    ]
    assert lines[0][0].endswith(" (this)")
    assert text.count("<svg") == 2


def test_without_rows_there_is_nothing_to_say(study: Store, tmp_path: Path) -> None:
    key = replicate(study, "two", 0)
    told = about(key=key, study="synthetic", condition="two", layers=1, heads=2, length=64, kept=4)
    glitches.write(study, told, rows(told, 2))
    text = write_glitch_page(study, key, "dense", tmp_path).read_text(encoding="utf-8")
    assert "dilution" not in text
    assert "<svg" not in text


def test_the_figures_hold_every_head_every_seed_and_the_errors_by_length(study: Store) -> None:
    key = replicate(study, "one", 0)
    told = about(
        key=key, study="synthetic", condition="one", layers=1, heads=2, length=16, step=1000, kept=4, errors=5, reads=20
    )
    found = dilution(study, told, glitches.SCHEMA.empty_table())
    assert found is not None
    assert found.on_write == {}
    assert found.errors[16] == 0.25
    bounds, errors = dilution_figure(found).axes[:2]
    assert sorted(line.get_ydata().tolist() for line in bounds.lines) == sorted(
        [[1, 0.5], [0.5, 0.25], [0.5, 0.25], [0.25, 0.125]]
    )
    assert dict(zip(*errors.lines[0].get_data(), strict=True)) == found.errors
    drift = margins(study, told)
    assert drift is not None
    others, own = (each.get_offsets().tolist() for each in margin_figure(drift).axes[0].collections)
    assert (own, others) == ([[0.5, 0.0]], [[0.0, 0.25], [-0.5, 0.5]])
