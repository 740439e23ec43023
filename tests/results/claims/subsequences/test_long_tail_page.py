"""The numbers of the section "When a rare pair is learned" of docs/studies/subsequences are those of its rows."""

import re
from pathlib import Path

import numpy as np
import pytest

from results.claims import scoreboard
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


STUDIES = ("subsequence-long-tail", "subsequence-kept-steps", "subsequence-40-seeds")


@pytest.fixture(scope="module")
def studies():
    """The gaps of the three studies."""
    return [gaps_of(study) for study in STUDIES]


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


def middle(found):
    return median(found, 0.95, least=-np.inf)


def test_the_exponents_are_those_of_the_rows(studies):
    deviations = []
    for name, gaps in zip(STUDIES, studies, strict=True):
        found = exponents(gaps, np.arange(len(gaps[0])))
        assert re.search(rf"\| `{name}`, SGD \| {len(found)}[a-z ]* \| {re.escape(f'{middle(found):.2f}')} \|", PAGE)
        deviations.append(f"{found.std(ddof=1):.2f}")
    assert f"standard deviation of {deviations[1]} between those of the second study, and of {deviations[2]} between" in PAGE


@pytest.mark.slow
def test_with_every_second_kept_step_they_are_those_of_the_page(studies):
    said = []
    for gaps in studies:
        every = np.arange(len(gaps[0]))
        halves = (np.unique(np.r_[0, every[1:-1][begin::2], every[-1]]) for begin in (0, 1))
        said += [f"{middle(exponents(gaps, kept)).value:.2f}" for kept in halves]
    assert (
        f"the median is {said[0]} or {said[1]} in the first, depending on which, {said[2]} or {said[3]} in the second, and "
        f"{said[4]} or {said[5]} in the third" in PAGE
    )


def test_pairs_that_are_not_learned_are_counted(studies):
    never = [int((~(gaps[2] < LEARNED).any(1)).sum()) for gaps in studies]
    pairs = [gaps[2][:, 0].size for gaps in studies]
    assert pairs[0] == pairs[1]
    assert f"{never[0]} and {never[1]} of the {pairs[0]:,} pairs, and {never[2]} of the {pairs[2]:,}, are not learned" in PAGE


def test_many_gaps_rise_again(studies):
    shares = []
    for gaps in studies:
        below = gaps[2] < LEARNED
        first = below.argmax(1)
        fell = below.any(1)
        after = np.arange(len(gaps[0]))[None, :, None] > first[:, None]
        again = fell & (after & ~below).any(1)
        shares.append(f"{100 * again.sum() / fell.sum():.0f} %")
    assert f"{shares[0]}, {shares[1]} and {shares[2]} of the gaps that fell below 0.1 are above it again at a later" in PAGE


def test_where_the_order_of_gradients_is_below_its_threshold():
    (verdict,) = [each for each in scoreboard(open_store("docs/studies/subsequences", STUDIES[0])) if each.claim.id == "S4"]
    _, adamw = verdict.finding.measured.split("adamw: ")
    medians = {int(step): float(value) for step, value in re.findall(r"(\d+): (\d\.\d\d)", adamw.partition("by step: ")[2])}
    below = [step for step, value in medians.items() if value < verdict.terms.value]
    said = f"below its threshold of {verdict.terms.value} at {len(below)} of the {len(medians)} kept steps"
    assert f"{said} ({below[0]:,} to {below[-1]:,}), and falls to {min(medians.values()):.2f}" in PAGE
