"""The numbers in the section "Learning from a part of the labels" of docs/studies/automata are those of the rows."""

import re
from pathlib import Path

import numpy as np

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store

PAGE = Path("docs/studies/automata/README.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("## Learning from a part of the labels")[2].partition("\n## ")[0].split())


def positions(study):
    """The verdict on A4-positions, and by law of words: seeds that learn with linear positions, their median, P and its interval."""
    (verdict,) = (each for each in scoreboard(open_store("docs/studies/automata", study)) if each.claim.id == "A4-positions")
    found = re.findall(
        r"learned by 10 of 10 with sinusoidal positions, by (\d+) of 10 with linear ones .*?_linear: best [\d.]+, median ([\d.]+); "
        r"linear errs \S+ \(P = ([\d.]+) \[([\d.]+), ([\d.]+)\]\)",
        verdict.finding.measured,
    )
    assert len(found) == 2
    return verdict.verdict, found


def test_positions_on_the_thesis_own_length():
    verdict, (alone, half) = positions("a4-positions")
    assert f"harder to learn: *{verdict}*, by ten fresh seeds" in SECTION
    assert (alone[0], half[0]) == ("0", "0")
    assert f"Their medians are {alone[1]} and {half[1]}" in SECTION
    assert alone[2:] == half[2:]
    assert f"P = {alone[2]} [{alone[3]}, {alone[4]}] on either distribution" in SECTION


def test_positions_on_shorter_words():
    verdict, (alone, half) = positions("a4")
    assert f"(`a4`) it was *{verdict}*: with linear positions {alone[0]} and {half[0]} of 10 seeds" in SECTION
    assert f"the medians are {alone[1]} and {half[1]}." in SECTION


def test_the_more_frequent_label_is_right_as_often_as_the_page_says():
    """Of 40 tokens of ababab… every fourth is accepted; a uniform word still is one at token 4k with probability 16^-k."""
    alone = 1 - 10 / 40
    half = (alone + 1 - sum(16.0**-k for k in range(1, 11)) / 40) / 2
    assert f"has about {alone:.2f} and {half:.2f} right" in SECTION


def few_labels(study):
    """The verdict on A5, and the accuracies of all seeds by condition, the best first."""
    store = open_store("docs/studies/automata", study)
    found = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        found.setdefault(replicate.condition, []).append(1 - replicate.error("in_distribution"))
    (verdict,) = (each for each in scoreboard(store) if each.claim.id == "A5")
    return verdict, {condition: sorted(seeds, reverse=True) for condition, seeds in found.items()}


def test_few_labels_where_the_group_was_not_learned():
    verdict, seeds = few_labels("a5")
    assert f"stands in for S5, it is *{verdict.verdict}*: even with every label," in SECTION
    assert f"an accuracy of {seeds['S5, task.p_reveal=1'][0]:.3f}, and the claim asks for {verdict.terms.value:g}." in SECTION


def test_few_labels_where_it_was():
    verdict, seeds = few_labels("a5-20000-steps")
    assert f"it is *{verdict.verdict}*." in SECTION
    assert {len(of_condition) for of_condition in seeds.values()} == {10}
    assert min(seeds["S5, task.p_reveal=1"]) >= 0.99
    few = seeds["S5, task.p_reveal=0.2"]
    right = sum(accuracy >= 0.99 for accuracy in few)
    assert f"{right} of 10 are, which is too many for the claim" in SECTION
    assert f"the others have {few[8]:.3f} and {few[9]:.3f}." in SECTION
    times = re.search(r"which errs ([\d.]+)× ", verdict.finding.measured)[1]
    assert f"The median error is then {float(times):g} times as large." in SECTION
    assert min(seeds["lstm_S5, task.p_reveal=0.2"] + seeds["lstm_C2, task.p_reveal=0.2"]) >= 0.99
    assert max(seeds["C2, task.p_reveal=0.2"]) >= 0.99


def test_fewer_labels_still():
    verdict, seeds = few_labels("a5-fewer-labels")
    assert f"(`a5-fewer-labels`, twelve fresh seeds) it is *{verdict.verdict}* too." in SECTION
    assert {len(of_condition) for of_condition in seeds.values()} == {12}
    assert {*seeds["lstm_S5, task.p_reveal=0.12"], *seeds["lstm_C2, task.p_reveal=0.12"]} == {1.0}
    assert "all 24 make no error" in SECTION
    group, parity = seeds["S5, task.p_reveal=0.12"], seeds["C2, task.p_reveal=0.12"]
    assert f"The best transformer on the group has {group[0]:.3f} and the median {np.median(group):.3f}" in SECTION
    assert f"the median is {np.median(parity):.3f} and the worst seed has {parity[-1]:.3f}" in SECTION
    assert min(seeds["C2, task.p_reveal=1"]) >= 0.998
