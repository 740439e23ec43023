"""The sections on parities say what their rows say."""

import re
from collections import defaultdict
from operator import eq, lt
from statistics import median

import pytest

from results.claims import scoreboard
from results.rows.accuracy_curves import watch
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import committed, open_store, read
from tests.page_code import ROOT


def opened(name):
    return open_store(str(ROOT / "docs/studies/distillation"), name)


@pytest.fixture(scope="module")
def page():
    return " ".join((ROOT / "docs/studies/distillation/README.md").read_text().split())


def test_students_of_p1_track_their_teacher_as_far_as_the_page_says(page):
    (verdict,) = scoreboard(opened("p1-pace"))
    ((low, high),) = set(re.findall(r"\[([\d.]+), ([\d.]+)\] times", verdict.finding.measured))  # the same at both widths
    assert f"is right when its teacher is: *{verdict.verdict}*, by 20 fresh seeds" in page
    assert f"its steps to 0.9 are {low} to {high} times the teacher's" in page


def test_teachers_of_p2_are_as_accurate_at_the_three_checkpoints_as_the_page_says(page):
    store = opened("p2")
    manifest = manifest_of(store)
    rows = read_study(store, manifest)
    seen = watch(rows.evaluations)
    places = {
        condition["name"]: condition["settings"]["stage"]["teacher"]["checkpoints"][0]["at"]["plus"]
        for condition in manifest["conditions"]
        if condition["name"] in ("begin", "middle", "end")
    }
    accuracies = {name: [] for name in ("begin", "middle", "end")}
    for replicate in rows.replicates:
        if replicate.condition == "teacher":
            curve = dict(seen[replicate.key])
            middle = min(step for step, value in curve.items() if value >= 0.75)
            for name, plus in places.items():
                accuracies[name].append(curve[middle + plus])
    begin, inside, end = (f"{median(values):.2f}" for values in accuracies.values())
    assert f"Teachers' accuracies there are {begin}, {inside} and {end} (medians)" in page


def test_attention_of_p9_is_that_of_the_page(page):
    rows = [row for row in read(opened("p9"), "probes").to_pylist() if row["item"] == "sum"]
    at = {
        step: sorted((round(row["value"]) for row in rows if row["step"] == step), reverse=True) for step in (0, 600, 900, 4000)
    }
    assert at[0] == [32, 32]
    assert at[600] == [33, 33]
    assert "It is 32 at the beginning and 33 at step 600" in page
    assert f"attention on the support is {at[900][0]} and {at[900][1]}" in page
    assert f"From then on it stays there, at {at[4000][0]} and {at[4000][1]}" in page


def test_levels_of_a_tree_are_told_as_the_two_studies_have_them(page):
    for name in ("p11", "p11-finer"):
        (verdict,) = scoreboard(opened(name))
        seen = verdict.finding.measured
        good, of, tied, low, high = re.search(
            r"one by one in (\d+) of (\d+), and in (\d+) more .* \[([\d.]+), ([\d.]+)\]", seen
        ).groups()
        interval = f"{100 * float(low):.1f} to {100 * float(high):.1f} %"
        row = (
            f"`{name}`, {of} seeds | {verdict.verdict} | {good} of {of} teachers, {tied} more with a shared step; {interval} |"
        )
        assert row in page
    root, *below = re.findall(r"at step ([\d,]+), ([\d.]+) times", seen)
    assert (
        f"of the root stand out most at step {root[0]}, and those of the two nodes below it at {below[0][0]} and {below[1][0]}"
        in page
    )
    assert {round(float(times)) for _, times in (root, *below)} == {6, 7}


def test_the_best_pair_of_a_tree_is_told_as_the_two_studies_have_it(page):
    said = {}
    for name in ("p12", "p12-240-seeds"):
        (verdict,) = scoreboard(opened(name))
        said[name] = (
            verdict.verdict,
            re.search(r"closest single one, .*?, (P = [\d.]+ \[[\d.]+, [\d.]+\])", verdict.finding.measured)[1],
        )
        assert "the best pair, c_d" in verdict.finding.measured
    assert f"`p12`, 40 seeds | {said['p12'][0]} | best pair against best single checkpoint: {said['p12'][1]} |" in page
    verdict, chance = said["p12-240-seeds"]
    assert f"`p12-240-seeds`, 240 seeds | {verdict} | that pair against the single checkpoint of 0.8: {chance} |" in page
    store = opened("p12-240-seeds")
    wrong = defaultdict(dict)
    for replicate in read_study(store, manifest_of(store)).replicates:
        wrong[replicate.condition.partition(",")[0]][replicate.seeds] = replicate.error("test")
    pair = wrong["c_d"]
    ahead, equal = (
        {name: sum(than(pair[seeds], error) for seeds, error in wrong[name].items()) for name in "cd"} for than in (lt, eq)
    )
    assert f"the checkpoint of 0.8 in {ahead['d']} of {len(pair)} seeds and equal in {equal['d']}." in page
    assert f"ahead of that of 0.6 in {ahead['c']} and equal in {equal['c']}." in page
    clean = {name: sum(error == 0 for error in wrong[name].values()) for name in ("c_d", *"abcde")}
    alone = max(clean[name] for name in "abcde")
    assert f"without error in {clean['c_d']} seeds, a single one in at most {alone}." in page
    middle = {name: f"{1 - median(wrong[name].values()):.3f}" for name in ("c_d", "c", "d")}
    assert middle["c"] == middle["d"]
    assert f"students end at {middle['c_d']} in the median." in page
    assert f"either checkpoint alone, the best single ones, end at {middle['c']}." in page
    assert all(wrong[f"{name}_f"] == wrong[name] for name in "cd")
    assert {name for name in wrong if name.endswith("_f")} == {"c_f", "d_f"}
    before = defaultdict(dict)
    for replicate in read_study(opened("p12"), manifest_of(opened("p12"))).replicates:
        before[replicate.condition.partition(",")[0]][replicate.seeds] = replicate.error("test")
    assert len(before["a"]) == 40
    assert all(before[f"{name}_f"] == before[name] for name in "abcde")


def keys(name, *conditions):
    return {row["key"] for row in committed(opened(name)).to_pylist() if row["condition"] in conditions}


def test_studies_that_share_replicates_are_named(page):
    assert keys("p1", "teacher", "labels", "labels_wider") == keys("p2", "teacher", "labels", "labels_wider")
    assert "Teachers and students of labels are the same replicates as in `p1`." in page
    assert keys("p1", "labels", "labels_wider") == keys("p4", "model.width=50", "model.width=100")
    assert "perceptrons of widths 50 and 100 are the same replicates as its students of labels." in page
