"""The numbers in the section "Longer training" of docs/studies/automata are those of the rows."""

import re
from pathlib import Path

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.statistics.intervals import quantile
from results.store.manifest import manifest_of
from results.store.tables import open_store, read

PAGE = Path("docs/studies/automata/README.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Longer training: D8 with 2 layers")[2].partition("\n## ")[0]
TEXT = " ".join(SECTION.split())


def accuracies(study):
    """Accuracies of all seeds by automaton and number of layers."""
    store = open_store("docs/studies/automata", study)
    found = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        machine, layers = re.fullmatch(r"task\.automaton=(\w+), model\.layers=(\d)", replicate.condition).groups()
        found.setdefault((machine, int(layers)), []).append(1 - replicate.error("in_distribution"))
    return found


def test_the_table_has_the_best_and_the_median_of_twenty_seeds():
    found = accuracies("a1-order")
    for layers in (1, 2):
        cells = []
        for machine in ("Dyck_4_2", "Grid9", "D8", "Q8"):
            seeds = found[machine, layers]
            assert len(seeds) == 20
            cells.append(f"{100 * max(seeds):.1f} / {100 * quantile(seeds, 0.5):.1f}")
        assert f"| {layers} | {' | '.join(cells)} |" in SECTION


def test_how_many_seeds_learn_d8_with_two_layers():
    assert "D8 with 2 layers is right in 6 seeds of 20." in TEXT
    assert sum(accuracy >= 0.99 for accuracy in accuracies("a1-order")["D8", 2]) == 6


def test_the_ten_seeds_after_which_the_steps_were_chosen():
    store = open_store("docs/studies/automata", "a1-order")
    rows = read_study(store, manifest_of(store)).replicates
    first = {row.key: row for row in rows if row.condition == "task.automaton=D8, model.layers=2" and row.seeds[0] < 310}
    learned = {key for key, row in first.items() if row.error("in_distribution") <= 0.01}
    assert (len(first), len(learned)) == (10, 4)
    curves = read(store, "curves").select(["key", "metric", "step", "value"]).to_pylist()
    below = [row for row in curves if row["key"] in learned and row["metric"] == "loss" and row["value"] < 0.05]
    steps = [min(row["step"] for row in below if row["key"] == key) for key in learned]
    assert "Four of them had learned D8" in TEXT
    assert f"fell below 0.05 after {min(steps):,} to {max(steps):,} steps" in TEXT


def test_the_order_of_the_four():
    (verdict,) = scoreboard(open_store("docs/studies/automata", "a1-order"))
    assert f"**A1-order**: *{verdict.verdict}*." in TEXT
    assert "layers that suffice: Dyck_4_2 1, Grid9 1, D8 2, Q8 more than 2" in verdict.finding.measured
    assert "Dyck and Grid9 need 1 layer, D8 needs 2, and Q8 more than 2" in TEXT


def test_the_best_seed_and_the_median():
    (verdict,) = scoreboard(open_store("docs/studies/automata", "a1-seeds"))
    (seeds,) = accuracies("a1-seeds").values()
    assert f"**A1-seeds**: *{verdict.verdict}*, by twenty fresh seeds" in TEXT
    least = re.search(r"at least (\S+) above the median", verdict.finding.measured)[1]
    assert len(seeds) == 20
    assert f"The best has {100 * max(seeds):.1f} % of the states right, at least {least} more than the median" in TEXT
