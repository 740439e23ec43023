"""The numbers of the section "When a rare pair is learned" of docs/studies/subsequences are those of its rows."""

from pathlib import Path

import numpy as np
import pytest

from results.claims.compare import median
from results.claims.subsequences.growth import LEARNED
from results.statistics.survival_slope import beyond_onset
from results.store.tables import committed, open_store, read

PAGE = " ".join(Path("docs/studies/subsequences/README.md").read_text(encoding="utf-8").split())


def gaps_of(study):
    """The kept steps, the frequencies, and gaps as [replicates of SGD, steps, pairs]."""
    store = open_store("docs/studies/subsequences", study)
    sgd = {row["key"] for row in committed(store).to_pylist() if row["condition"] == "sgd"}
    rows = read(store, "probes").select(["key", "step", "item", "value"]).to_pandas()
    rows[["pair", "name"]] = rows["item"].str.extract(r"pair=(\d+) (\w+)")
    rows["pair"] = rows["pair"].astype(int)
    rows = rows[rows["key"].isin(sgd)]
    wide = rows[rows["name"] == "gap"].pivot_table(index=["key", "step"], columns="pair", values="value")
    steps = np.array(sorted(rows["step"].unique()))
    often = rows[rows["name"] == "frequency"].groupby("pair")["value"].first().to_numpy()
    return steps, often, wide.to_numpy().reshape(len(sgd), len(steps), len(often))


@pytest.fixture(scope="module")
def both():
    """The gaps of the two studies, the one with fewer kept steps first."""
    return [gaps_of(study) for study in ("subsequence-long-tail", "subsequence-kept-steps")]


def exponents(gaps, kept):
    steps, often, values = gaps
    fits = []
    for replicate in values[:, kept]:
        below = replicate < LEARNED
        first = below.argmax(0)
        high = np.where(below.any(0), steps[kept][first].astype(float), np.inf)
        low = np.where(below.any(0), np.append(0, steps[kept])[first], steps[kept][-1])
        fits.append(beyond_onset(np.log(often), low, high)[1])
    return np.array(fits)


def middle(gaps, kept):
    return median(exponents(gaps, kept), 0.95, least=-np.inf)


def test_the_exponent_depends_less_on_the_kept_steps_where_there_are_more(both):
    said = []
    for gaps in both:
        every = np.arange(len(gaps[0]))
        halves = (np.unique(np.r_[0, every[1:-1][begin::2], every[-1]]) for begin in (0, 1))
        said.append([f"{middle(gaps, kept).value:.2f}" for kept in halves])
    few, many = both
    assert f"{middle(few, np.arange(len(few[0]))):.2f} with SGD" in PAGE
    every = np.arange(len(many[0]))
    assert f"has a median of {middle(many, every):.2f}" in PAGE
    assert (
        f"the median is {said[0][0]} or {said[0][1]} in the first study, depending on which, and {said[1][0]} or {said[1][1]} in"
        in PAGE
    )
    assert f"standard deviation of {exponents(many, every).std(ddof=1):.2f}" in PAGE


def test_most_gaps_rise_again(both):
    shares = []
    for gaps in both:
        below = gaps[2] < LEARNED
        first = below.argmax(1)
        fell = below.any(1)
        after = np.arange(len(gaps[0]))[None, :, None] > first[:, None]
        again = fell & (after & ~below).any(1)
        shares.append(100 * again.sum() / fell.sum())
    assert (
        f"{shares[0]:.0f} % and {shares[1]:.0f} % of the gaps that fell below 0.1 are above it again at a later kept step."
        in PAGE
    )
