"""The section on 22 choices says what their rows and the verdict on R7 say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.statistics.intervals import quantile
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

SETS = ("in_distribution", "sparse", "dense")
WORDS = {
    "baseline": "baseline",
    "wide": "width 64",
    "dropout_10": "embedding dropout 0.1",
    "decay_0": "weight decay 0",
    "sinusoidal": "sinusoidal positions",
    "entropy": "penalty on entropy",
    "lr_2e-3": "learning rate 2e-3",
    "longer": "6,000 steps, of 35",
    "heads_2": "2 heads",
    "attention_dropout_10": "attention dropout 0.1",
    "rotary": "rotary positions",
    "l2": "l2 penalty",
    "lr_5e-4": "learning rate 5e-4",
    "layers_3": "3 layers",
    "decay_1": "weight decay 1",
    "geglu": "GEGLU",
    "beta1_85": "β1 0.85",
    "feed_forward_dropout_10": "feed-forward dropout 0.1",
    "alibi": "ALiBi",
    "beta2_95": "β2 0.95",
    "batch_8": "batch 8",
    "dropout_20": "embedding dropout 0.2",
    "swiglu": "SwiGLU",
}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/flipflop"), "fflm-sweep")


@pytest.fixture(scope="module")
def trained(store):
    """The replicates by condition."""
    found = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        found.setdefault(replicate.condition, []).append(replicate)
    assert {name: len(members) for name, members in found.items()} == dict.fromkeys(WORDS, 15) | {"longer": 35}
    return found


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/flipflop/README.md").read_text()
    (found,) = re.findall(r"\n## Twenty-two choices.*?(?=\n## )", page, re.DOTALL)
    return " ".join(found.split())


def _better(trained, name):
    """How many replicates of a condition are better than both of the baseline's medians."""
    middle = {part: quantile([each.error(part) for each in trained["baseline"]], 0.5) for part in ("sparse", "dense")}
    return sum(all(each.error(part) < middle[part] for part in middle) for each in trained[name])


def test_the_table_has_the_wrong_reads_of_the_rows(trained, section):
    for name, words in WORDS.items():
        errors = [[each.scores[part].errors for each in trained[name]] for part in SETS]
        cells = " | ".join(f"{wrong.count(0)}; {median(wrong):,g}; {max(wrong):,}" for wrong in errors)
        better = "–" if name == "baseline" else _better(trained, name)
        assert f"| {words} | {cells} | {better} |" in section
    for part, told in zip(SETS, ("reads in distribution", "sparse", "dense"), strict=True):
        (reads,) = {each.scores[part].reads for members in trained.values() for each in members}
        assert f"{reads:,} {told}" in section


def test_the_sentences_have_the_numbers_of_the_rows(trained, section):
    lower = [
        name
        for name in WORDS
        if all(
            quantile([each.error(part) for each in trained[name]], 0.5)
            < quantile([each.error(part) for each in trained["baseline"]], 0.5)
            for part in ("sparse", "dense")
        )
    ]
    assert len(lower) == 10
    assert "In ten of the 22 both medians are lower than the baseline's" in section
    shares = {name: _better(trained, name) / len(trained[name]) for name in WORDS}
    assert max(shares, key=shares.get) == "longer"
    words = f"Twice the steps come closest: {_better(trained, 'longer')} of 35 replicates are better than both medians"
    assert f"{words}, and so are {_better(trained, 'baseline')} of the 15 baselines themselves" in section
    assert not any(each.scores["dense"].errors for each in trained["rotary"])
    least = min(each.error("sparse") for each in trained["rotary"])
    assert f"each misreads at least {int(100 * least)} % of the sparse reads" in section


def test_the_verdict_is_that_of_the_command(store, section):
    found = {verdict.claim.id: verdict for verdict in scoreboard(store)}["R7"]
    assert f"improves both, is *{found.verdict}*" in section
    assert found.finding.measured.startswith("22 of the thesis' 405 settings, or others of their kinds; the best, longer,")
    (most,) = re.findall(r"in less than 95% of its replicates \(at most ([\d.]+)%\)", found.finding.reason)
    assert f"in at most {most} % of its replicates; 95 % would count as reliably" in section
    k, n, low, high = re.search(r"in (\d+) of (\d+) \[([\d.]+)%, ([\d.]+)%\] of its", found.finding.measured).groups()
    assert f"The highest share is {100 * int(k) / int(n):.0f} % [{low} %, {high} %], with 6,000 steps." in section
