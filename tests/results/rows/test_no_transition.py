"""Students whose teacher never made its transition have no number: they are counted beside, and are neither missing nor diverged."""

from collections import Counter

import numpy as np
import pytest

from results.report.contrasts import show_contrasts
from results.rows.error_by_step import online_bands
from results.rows.study_rows import read_study
from results.rows.summary import summarise
from results.statistics.equivalence import main
from results.store.manifest import manifest_of
from results.store.tables import open_store, read

FOLDER, STUDY = "docs/studies/distillation", "p8-both-temperatures"


@pytest.fixture(scope="module")
def both_temperatures():
    """A committed study with nine of them and no diverged replicate."""
    store = open_store(FOLDER, STUDY)
    manifest = manifest_of(store)
    replicates = read_study(store, manifest).replicates
    assert Counter(each.status for each in replicates) == {"finished": 191, "no_transition": 9}
    return manifest, replicates, read(store, "evaluations")


def test_the_bands_by_step_leave_them_out(both_temperatures):
    """They were counted as diverged there, with an infinite error."""
    manifest, replicates, evaluations = both_temperatures
    bands = online_bands(manifest, evaluations, replicates)
    assert {band["diverged"] for band in bands} == {0}
    assert np.isfinite([band["error_max"] for band in bands]).all()
    lost = Counter((each.condition, each.stage) for each in replicates if each.status == "no_transition")
    assert {(b["condition"], b["stage"]): 40 - b["replicates"] for b in bands if b["replicates"] < 40} == lost


def test_the_summary_does_not_take_them_for_missing(both_temperatures):
    manifest, replicates, _ = both_temperatures
    rows = [row for row in summarise(manifest, replicates).to_pylist() if row["no_transition"]]
    assert sum(row["no_transition"] for row in rows) == 9 * len({row["set"] for row in rows}) > 0
    for row in rows:
        assert row["zero_error_of"] == row["planned"] - row["no_transition"]
        assert row["zero_error_least"] == row["zero_error_most"] == row["zero_error"]
        assert row["median_if_missing_zero"] == row["median_if_missing_diverge"] == row["error_median"]


def test_a_comparison_says_that_it_leaves_them_out():
    """31 pairs of 40 seeds with none missing: without the sentence, nobody sees that nine are gone."""
    said = []
    show_contrasts(open_store(FOLDER, STUDY), "one_shot", said.append)
    (line,) = [line for line in said if line.startswith("| two_shot_1e_4")]
    assert "| 31 pairs | 0 |" in line
    sentence = "Left out, and not counted as missing, as their teacher never met the rule of its stage: 9 replicates of "
    assert f"{sentence}two_shot_1e_4, stage 1." in said
    said.clear()
    show_contrasts(open_store(FOLDER, STUDY), "teacher", said.append)
    assert not any(line.startswith("Left out") for line in said)  # those students are not compared


def test_the_test_of_equivalence_does_not_ask_to_finish_what_has_ended(capsys):
    assert main([FOLDER, STUDY, "one_shot", "two_shot_1e_4", "--sets", "test", "--margin", "0.15"]) == 2
    assert "9 of 40 replicates of two_shot_1e_4 have no number on test, since their teacher never" in capsys.readouterr().err
