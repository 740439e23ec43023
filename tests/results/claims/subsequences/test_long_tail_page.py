"""The numbers of the section "When a rare pair is learned" of docs/studies/subsequences are those of its rows."""

from pathlib import Path

import numpy as np
import pytest

from results.claims.compare import median
from results.claims.subsequences.growth import LEARNED
from results.statistics.survival_slope import beyond_onset
from results.store.tables import committed, open_store, read

PAGE = " ".join(Path("docs/studies/subsequences/README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def gaps():
    """The kept steps, the frequencies, and gaps as [replicates of SGD, steps, pairs]."""
    store = open_store("docs/studies/subsequences", "subsequence-long-tail")
    sgd = {row["key"] for row in committed(store).to_pylist() if row["condition"] == "sgd"}
    rows = read(store, "probes").select(["key", "step", "item", "value"]).to_pandas()
    rows[["pair", "name"]] = rows["item"].str.extract(r"pair=(\d+) (\w+)")
    rows["pair"] = rows["pair"].astype(int)
    rows = rows[rows["key"].isin(sgd)]
    wide = rows[rows["name"] == "gap"].pivot_table(index=["key", "step"], columns="pair", values="value")
    steps = np.array(sorted(rows["step"].unique()))
    often = rows[rows["name"] == "frequency"].groupby("pair")["value"].first().to_numpy()
    return steps, often, wide.to_numpy().reshape(len(sgd), len(steps), len(often))


def exponent(gaps, kept):
    steps, often, values = gaps
    fits = []
    for replicate in values[:, kept]:
        below = replicate < LEARNED
        first = below.argmax(0)
        high = np.where(below.any(0), steps[kept][first].astype(float), np.inf)
        low = np.where(below.any(0), np.append(0, steps[kept])[first], steps[kept][-1])
        fits.append(beyond_onset(np.log(often), low, high)[1])
    return median(np.array(fits), 0.95, least=-np.inf)


def test_the_exponent_depends_on_the_kept_steps(gaps):
    every = np.arange(len(gaps[0]))
    whole = exponent(gaps, every)
    assert f"{whole:.2f} with SGD" in PAGE
    odd, even = (np.unique(np.r_[0, every[1:-1][begin::2], every[-1]]) for begin in (0, 1))
    assert f"the median is {exponent(gaps, odd).value:.2f} or {exponent(gaps, even).value:.2f}, depending on which" in PAGE


def test_half_of_the_gaps_rise_again(gaps):
    below = gaps[2] < LEARNED
    first = below.argmax(1)
    fell = below.any(1)
    after = np.arange(len(gaps[0]))[None, :, None] > first[:, None]
    again = fell & (after & ~below).any(1)
    share = 100 * again.sum() / fell.sum()
    assert f"With SGD, {share:.0f} % of the gaps that fell below 0.1 are above it again at a later kept step." in PAGE
