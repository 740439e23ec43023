"""In-context n-grams against the definition, written out with loops, and against the card's table of baseline losses."""

import itertools

import numpy as np
import pytest
import torch

import tasks
from harness.draw import Draw
from tasks.ngrams import estimators
from tasks.ngrams.in_context import InContextNgram

SMALL = {"alphabet": 3, "order": 3, "length": 9, "alpha": 0.5}


def _task(**fields):
    return tasks.build("in_context_ngram", **SMALL | fields)


def _draw(*seeds, **rest):
    return Draw(torch.tensor(seeds), **rest)


def _contexts(tokens, order, alphabet):
    """The number of the n - 1 tokens up to each place."""
    for place in range(order - 2, len(tokens)):
        last = tokens[place - order + 2 : place + 1]
        yield place, sum(token * alphabet ** (order - 2 - i) for i, token in enumerate(last))


@pytest.mark.parametrize("fields", [{}, {"order": 1}, {"order": 2, "alphabet": 2}, {"order": 4, "alpha": 1.0}])
@pytest.mark.parametrize("labels", ["last", "every"])
def test_tokens_and_labels_are_those_of_the_strings_own_language(fields, labels):
    task = _task(**fields, labels=labels)
    draw = _draw(5, 6, step=3)
    batch, laws = task.sample(draw, 20), task.languages(draw, 20)
    words = draw.words((20, task.length), 2)
    assert batch.targets.shape == (2, 20, task.length if labels == "every" else 1, task.alphabet)
    for r, b in itertools.product(range(2), range(20)):
        tokens, seen = batch.inputs[r, b].tolist(), {task.length - 1}
        for place, context in _contexts(tokens, task.order, task.alphabet):
            law = laws[r, b, context]
            if place + 1 < task.length:
                reached = (law.cumsum(0)[:-1] * 2**32 <= words[r, b, place + 1]).sum()
                assert tokens[place + 1] == reached
            if labels == "every" or place == task.length - 1:
                torch.testing.assert_close(batch.targets[r, b, place if labels == "every" else 0], law.float())
                seen.add(place)
        first = max(0, task.order - 2) if labels == "every" else task.length - 1
        assert batch.weights[r, b].nonzero()[:, 0].tolist() == list(range(first, task.length))


def test_the_first_tokens_are_uniform_or_stationary():
    tokens = _task(order=2, length=2).sample(_draw(1), 30_000).inputs[0, :, 0]
    assert np.abs(np.bincount(tokens) / 30_000 - 1 / 3).max() < 0.012
    task = _task(order=3, first="stationary")
    laws = task.languages(_draw(1), 50)
    found = task.stationary(laws)
    assert torch.allclose(found.sum(-1), torch.ones(1, 50, dtype=torch.float64))
    for law, pi in zip(laws[0], found[0], strict=True):
        after = torch.zeros(9, dtype=torch.float64)
        for old, new in itertools.product(range(9), range(3)):
            after[(3 * old + new) % 9] += pi[old] * law[old, new]
        torch.testing.assert_close(after, pi, rtol=0, atol=1e-10)
    # one language, many strings: the words that choose the tokens alone differ
    inputs = task.sample(_draw(*range(300)), 1).inputs
    assert inputs.shape == (300, 1, 9)


@pytest.mark.parametrize("fields", [{}, {"alpha": 1.0}, {"alpha": 0.3, "first": "stationary"}])
def test_a_string_is_a_function_of_its_seed_and_row(fields, monkeypatch):
    task = _task(**fields)
    together = task.sample(_draw(7, 8, 9, step=4), 6)
    monkeypatch.setattr("tasks.ngrams.in_context._NUMBERS", 1)  # each replicate's languages by themselves
    alone = task.sample(_draw(8, step=4).rows(2), 3)
    assert torch.equal(alone.inputs[0], together.inputs[1, 2:5])
    assert torch.equal(alone.targets[0], together.targets[1, 2:5])
    picked = task.sample(_draw(7, 9, step=4).pick(torch.tensor([[5], [0]])), 1)
    assert torch.equal(picked.targets[:, 0], torch.stack([together.targets[0, 5], together.targets[2, 0]]))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_estimators_count_what_followed_the_same_tokens(order):
    """Definition 2.1 and section F.2, places counted from 1, those before the n-th left out."""
    tokens = torch.randint(0, 2, (1, 30, 9), generator=torch.Generator().manual_seed(order))
    names = []
    for lags in estimators.lag_sets(order):
        names.append(estimators.name(lags))
        for last in (True, False):
            counts = estimators.counts(tokens, lags, 2, order, last)[0]
            for string, found in zip(tokens[0].tolist(), counts.tolist(), strict=True):
                x = dict(enumerate(string, 1))
                for position, row in zip([9] if last else range(1, 10), found, strict=True):
                    wanted = [0, 0]
                    for i in range(order, position + 1):
                        wanted[x[i]] += all(position + 1 - h >= 1 and x[i - h] == x[position + 1 - h] for h in lags)
                    if position >= order - 1:  # an earlier one has no whole context, and is not scored
                        assert row == wanted
    assert names[:order] == [f"{k}-gram" for k in range(1, order + 1)]
    assert len(set(names)) == 2 ** (order - 1)
    assert order < 4 or {"lags 2", "lags 3", "lags 1,3", "lags 2,3"} == set(names[4:])


def test_smoothing_with_the_priors_alpha_is_the_bayes_predictor():
    """Of a unigram language: (count + α) / (T + S α) is the mean of the law given the string."""
    task = _task(order=1, length=4, alphabet=2, alpha=2.0)
    batch = task.sample(_draw(0), 40_000)
    said = task.references(batch)["1-gram"][0, 0, :, 0, 0]  # the prior's smoothing comes first
    ones = (batch.inputs[0] == 0).sum(-1)
    for count in range(5):
        truth = batch.targets[0, ones == count, 0, 0]
        assert said[ones == count][0] == pytest.approx((count + 2) / 8)
        assert truth.mean() == pytest.approx((count + 2) / 8, abs=5 * float(truth.std()) / len(truth) ** 0.5)


# section 3.2 of the card: S, n, T, α → entropy, then the losses of the k-grams; then its best-smoothing losses
TABLE = [
    ((5, 3, 32, 0.5), [1.056, 1.630, 1.619, 1.436], [1.593, 1.550, 1.441]),
    ((5, 3, 32, 1.0), [1.282, 1.645, 1.641, 1.550], [1.605, 1.592, 1.548]),
    ((5, 3, 64, 0.5), [1.055, 1.600, 1.569, 1.349], [1.586, 1.525, 1.351]),
    ((5, 3, 64, 1.0), [1.281, 1.621, 1.620, 1.507], [1.603, 1.581, 1.507]),
    ((5, 3, 128, 0.5), [1.059, 1.585, 1.521, 1.262], [1.581, 1.502, 1.259]),
    ((5, 3, 128, 1.0), [1.281, 1.608, 1.590, 1.452], None),
    ((3, 3, 32, 1.0), [0.818, 1.079, 1.041, 0.952], [1.069, 1.028, 0.953]),
    ((3, 4, 64, 0.5), [0.640, 1.064, 1.037, 0.970, 0.828], None),
    ((3, 4, 128, 0.5), [0.639, 1.060, 1.020, 0.930, 0.761], [1.057, 1.011, 0.920]),
    ((3, 4, 256, 0.5), [0.639, 1.053, 1.005, 0.903, 0.711], None),
]


def _check_table(setting, losses, best, sequences):
    alphabet, order, length, alpha = setting
    task = InContextNgram(alphabet, order, length, alpha)
    parts = [task.baselines(task.sample(_draw(77).rows(first), 1024)) for first in range(0, sequences, 1024)]
    found = {name: torch.cat([part[name] for part in parts], 1).double().flatten() for name in parts[0]}
    # the table has an error of its own, 0.003
    error = {name: 3 * (float(each.std()) ** 2 / sequences + 0.003**2) ** 0.5 for name, each in found.items()}
    wanted = dict(zip(["entropy", *(f"{k}-gram a={alpha:g}" for k in range(1, order + 1))], losses, strict=True))
    for name, loss in wanted.items():
        assert float(found[name].mean()) == pytest.approx(loss, abs=error[name]), (setting, name)
    for k, loss in enumerate(best or [], 1):
        own = min(float(each.mean()) for name, each in found.items() if name.startswith(f"{k}-gram"))
        assert own == pytest.approx(loss, abs=error[f"{k}-gram a=1"]), (setting, k)
    assert float(found["uniform"][0]) == pytest.approx(np.log(alphabet))


def test_baseline_losses_are_the_papers_for_the_smallest_setting():
    _check_table(*TABLE[6], 2048)


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_baseline_losses_are_the_papers(row):
    _check_table(*row, 2**15)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"alphabet": 1}, "task.alphabet = 1 must be at least 2"),
        ({"order": 0}, "task.order = 0 must be at least 1"),
        ({"length": 2}, "task.length = 2 must be at least 3 with task.order = 3"),
        ({"alphabet": 100, "order": 4, "length": 9}, "makes 100,000,000 probabilities"),
        ({"alpha": 0.0}, "task.alpha = 0 must be a number from 0.001 to 1000"),
        ({"labels": "all"}, "task.labels = 'all' must be last or every"),
        ({"first": "zero"}, "task.first = 'zero' must be uniform or stationary"),
        ({"first": "stationary", "alpha": 0.1}, "write task.alpha of at least 0.2, or task.first = 'uniform'"),
    ],
)
def test_what_cannot_be_is_refused(fields, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        _task(**fields)
