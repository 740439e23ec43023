"""Weights written by hand are the k-gram estimators, and the loss is almost stationary there (Varre et al. 2025, section 4)."""

import math

import pytest
import torch

from benchmarks.ngram_theory import exponent
from benchmarks.theory.ngram_constructions import answer, estimate, gradients, lag_set
from harness.draw import Draw
from harness.experiments.ngrams.constructions import k_gram
from tasks.ngrams import estimators
from tasks.ngrams.in_context import InContextNgram

TASK = InContextNgram(alphabet=3, order=3, length=40, alpha=1.0)


@pytest.fixture(scope="module")
def tokens():
    return TASK.sample(Draw(torch.tensor([3])), 400).inputs[0]


@pytest.mark.parametrize("lags", [(), (1,), (1, 2), (2,)])
def test_the_constructions_are_the_estimators(tokens, lags):
    known, clear = estimate(tokens, lags, 3, itself=True)
    torch.testing.assert_close(answer(lag_set(TASK, lags, 40.0), tokens)[clear], known[clear], rtol=0, atol=1e-9)
    known, clear = estimate(tokens, lags, 3)
    assert clear.sum() > 100
    if lags != (2,):  # which no k-gram has alone
        torch.testing.assert_close(answer(k_gram(TASK, len(lags) + 1, 40.0), tokens)[clear], known[clear], rtol=0, atol=1e-9)
    counts = estimators.counts(tokens[None], lags, 3, 3, last=True)[0, :, 0].double()  # leaves the first two places out
    same = clear & (len(lags) > 0)
    torch.testing.assert_close((counts / counts.sum(-1, keepdim=True))[same], known[same])


def test_a_soft_construction_is_not_the_estimator(tokens):
    known, clear = estimate(tokens, (1, 2), 3)
    assert (answer(k_gram(TASK, 3, 1.0), tokens) - known)[clear].abs().max() > 0.1


def test_the_gradient_at_the_unigram_is_zero():
    assert all(norm == floor == 0 for norm, floor in gradients(k_gram(TASK, 1, 24.0), TASK, 1024).values())


@pytest.mark.parametrize("k", [2, 3])
def test_at_a_k_gram_only_the_keys_pull_in_proportion_to_the_root_of_c(k):
    one, two = (gradients(k_gram(TASK, k, c), TASK, 1024) for c in (32.0, 64.0))
    assert two["key"][0] / one["key"][0] == pytest.approx(math.sqrt(2), rel=1e-3)
    assert one["key"][0] > 1e6 * one["scores"][0]
    assert one["key"][0] > 2 * one["query"][0]
    assert one["key"][1] > 0


def test_the_gradient_falls_with_the_length():
    tasks = [InContextNgram(3, 3, length, 1.0) for length in (24, 192)]
    short, long = (gradients(k_gram(task, 2, 32.0), task, 2048)["key"] for task in tasks)
    assert short[0] > 2 * long[0]
    assert short[0] > 2 * short[1], "it is above the Monte-Carlo floor"


def test_the_exponent_is_that_of_a_power_law():
    points = [(length, length**-1.5, 0.0) for length in (64, 128, 256)]
    assert exponent(points) == pytest.approx(-1.5)
    assert math.isnan(exponent([(64, 1.0, 0.0), (128, 0.1, 0.1)]))
