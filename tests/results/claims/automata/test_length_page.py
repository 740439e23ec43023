"""The numbers in the section "Positions at twice the length" of docs/studies/automata are those of the rows."""

import re
from collections import Counter
from pathlib import Path
from statistics import median

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import committed, open_store, read

PAGE = Path("docs/studies/automata/README.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("## Positions at twice the length")[2].partition("\n## ")[0].split())


def measured(study):
    """The verdict on A8, the medians by condition and set, and P with its interval on the gridworld and on (abab)*."""
    (verdict,) = scoreboard(open_store("docs/studies/automata", study))
    found = verdict.finding.measured
    medians = {(name, on): float(value) for name, value, on in re.findall(r"(\w+): best \S+, median (\S+) on (\w+)", found)}
    assert len(medians) == 8
    return verdict.verdict, medians, re.findall(r"\(P = (\S+ \[\S+ \S+\])\)", found)


def test_at_the_thesis_own_length():
    verdict, medians, (grid, abab) = measured("a8-length-40")
    assert f"at that of the training: *{verdict}*, by twelve fresh seeds" in SECTION
    assert {medians[f"Grid9_{kind}", "in_distribution"] for kind in ("sinusoidal", "linear")} == {0.998}
    assert "to 99.8 % of the states in the median" in SECTION
    right = [f"{100 * medians[f'Grid9_{kind}', 'twice']:.1f} %" for kind in ("sinusoidal", "linear")]
    assert f"{right[0]} are right with sinusoidal and {right[1]} with linear positions" in SECTION
    assert f"one of the second with P = {grid}" in SECTION
    own, twice = ([medians[f"abab_{kind}", on] for kind in ("sinusoidal", "linear")] for on in ("in_distribution", "twice"))
    assert f"sinusoidal positions ({own[0]:.3f}) and not with linear ones ({own[1]:.3f}, medians): P = {abab}" in SECTION
    assert f"At 80 tokens the medians are {twice[0]:.3f} and {twice[1]:.3f}: nearer to each other" in SECTION
    assert twice[0] - twice[1] < own[0] - own[1]


def test_on_shorter_words():
    verdict, _, (grid, _) = measured("a8")
    assert f"(`a8`) it was *{verdict}* with 30 seeds. On Grid9 neither errs more on 32 tokens, P = {grid}" in SECTION


def test_who_learns_abab():
    store = open_store("docs/studies/automata", "a8-length-40")
    learned = Counter(
        replicate.condition
        for replicate in read_study(store, manifest_of(store)).replicates
        if replicate.error("in_distribution") <= 0.01
    )
    assert f"{learned['abab_sinusoidal']} of 12 seeds of the first and none of the second have 99 % right." in SECTION
    assert learned["abab_linear"] == 0


def test_a6_shares_replicates_with_a7():
    section = " ".join(PAGE.partition("## Other numbers of ones")[2].partition("\n## ")[0].split())
    stores = {name: open_store("docs/studies/automata", name) for name in ("a6-40-seeds", "a7")}
    rows = {name: committed(store).to_pylist() for name, store in stores.items()}
    known = {row["key"] for row in rows["a7"]}
    own = {row["key"]: row["condition"] for row in rows["a6-40-seeds"]}
    assert Counter(own[key] for key in known & own.keys()) == {"sinusoidal": 10, "lstm": 10, "scratchpad_recency": 10}
    fresh = {key for key, condition in own.items() if condition == "sinusoidal"} - known
    assert len(fresh) == 30
    assert "Thirty of the transformers are new. The other ten, and the LSTMs and scratchpads, are replicates of" in section
    scores = [row for row in read(stores["a6-40-seeds"], "evaluations").to_pylist() if row["key"] in fresh]
    rare, frequent = (median(1 - row["errors"] / row["count"] for row in scores if row["set"] == p) for p in ("p_05", "p_95"))
    assert f"The thirty alone have medians of {rare:.3f} where ones are rare, and of {frequent:.2f} where" in section
