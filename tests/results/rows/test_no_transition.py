"""Students whose teacher never made its transition have no number: they are counted beside, and are neither missing nor diverged."""

from collections import Counter

import numpy as np
import pytest

from results.rows.error_by_step import online_bands
from results.rows.study_rows import read_study
from results.rows.summary import summarise
from results.store.manifest import manifest_of
from results.store.tables import open_store, read


@pytest.fixture(scope="module")
def both_temperatures():
    """A committed study with nine of them and no diverged replicate."""
    store = open_store("docs/studies/distillation", "p8-both-temperatures")
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
