"""The numbers of the section "How many layers longer words need" of docs/studies/automata are those of its rows."""

from pathlib import Path

import numpy as np
import pytest

from results.store.tables import committed, open_store, read

PAGE = Path("docs/studies/automata/README.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## How many layers longer words need")[2].partition("\n## ")[0]
LAYERS = (1, 2, 4, 6, 7, 8)


@pytest.fixture(scope="module")
def accuracies():
    """Accuracies of ten seeds by automaton, length and layers."""
    store = open_store("docs/studies/automata", "depth-by-length")
    condition = {row["key"]: row["condition"] for row in committed(store).to_pylist()}
    found = {}
    for row in read(store, "evaluations").to_pylist():
        if row["step"] == 6000 and row["set"] == "in_distribution":
            options = dict(part.split("=") for part in condition[row["key"]].split(", "))
            place = options["task.automaton"], int(options["task.length"]), int(options["model.layers"])
            found.setdefault(place, []).append(1 - row["errors"] / row["count"])
    return {place: np.array(values) for place, values in found.items()}


def percent(share):
    return "100" if share >= 0.99995 else f"{100 * share:.1f}"


def test_the_table_holds_best_and_median_of_ten_seeds(accuracies):
    assert {values.size for values in accuracies.values()} == {10}
    assert len(accuracies) == 3 * 2 * len(LAYERS)
    for layers in LAYERS:
        cells = [
            f"{percent(accuracies[group, length, layers].max())} / {percent(np.median(accuracies[group, length, layers]))}"
            for length in (4, 16)
            for group in ("A4", "D60", "A5")
        ]
        assert f"| {layers} | {' | '.join(cells)} |" in SECTION


def test_the_page_counts_the_seeds_that_are_right(accuracies):
    right = {place: int((values >= 0.99).sum()) for place, values in accuracies.items()}
    section = " ".join(SECTION.split())
    of_a5, of_a4 = ([right[group, 16, layers] for layers in (7, 8)] for group in ("A5", "A4"))
    assert f"with 7 layers {of_a5[0]} of 10 seeds of A5 have 99 %, and with 8 layers {of_a5[1]} of 10." in section
    assert f"Of A4 these are {of_a4[0]} and {of_a4[1]}." in section
    fewest = {group: min(layers for layers in LAYERS if right[group, 16, layers]) for group in ("A4", "D60", "A5")}
    assert fewest == {"A4": 8, "D60": 4, "A5": 7}
    assert "grows from 1 to 8 for A4, to 7 for A5, and to 3 or 4 for D60" in section
