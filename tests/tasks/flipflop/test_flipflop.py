"""The generator against Definition 11, the card's statistics, and a simulation that walks token by token."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks
from harness.draw import Draw

WRITE, READ, IGNORE = 0, 1, 2


def _sample(batch, seed=0, **fields):
    return tasks.build("flipflop", **fields).sample(Draw(torch.tensor([seed])), batch)


def _walk(tokens):
    """Replay one string as the paper defines it: (valid, scored positions, distances to write and to event by position)."""
    memory = write = event = None
    reads, since_write, since_event = [], {}, {}
    valid = tokens[0] == WRITE and tokens[-2] == READ
    for pair in range(len(tokens) // 2):
        instruction, symbol = tokens[2 * pair], tokens[2 * pair + 1]
        valid = valid and instruction in (WRITE, READ, IGNORE) and symbol >= 3
        if instruction == READ:
            valid = valid and symbol == memory
            reads.append(2 * pair)
            since_write[2 * pair], since_event[2 * pair] = pair - write, pair - event
        if instruction == WRITE:
            memory, write = symbol, pair
        if instruction != IGNORE:
            event = pair
    return valid, reads, since_write, since_event


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.integers(2, 40),
    p_ignore=st.one_of(
        st.sampled_from([0.0, 0.1, 0.8, 0.98, 1.0]), st.lists(st.floats(0, 1), min_size=1, max_size=3).map(tuple)
    ),
    symbols=st.integers(2, 5),
    seed=st.integers(0, 2**62),
)
def test_every_string_is_a_flip_flop_string(pairs, p_ignore, symbols, seed):
    batch = _sample(4, seed, length=2 * pairs, p_ignore=p_ignore, symbols=symbols)
    for row in range(4):
        tokens = batch.inputs[0, row].tolist()
        valid, reads, since_write, since_event = _walk(tokens)
        assert valid
        assert max(tokens) < 3 + symbols
        assert batch.weights[0, row].nonzero().flatten().tolist() == reads
        for t in reads:
            assert batch.targets[0, row, t] == tokens[t + 1]
            assert batch.about["since_write"][0, row, t] == since_write[t]
            assert batch.about["since_event"][0, row, t] == since_event[t]


@pytest.mark.parametrize(
    ("p_ignore", "percentiles"), [(0.8, (7, 22, 43)), (0.98, (54, 167, 255)), (0.1, (2, 4, 8))]
)  # card 1.2, 50/90/99 %
def test_statistics_match_the_card(p_ignore, percentiles):
    batch = _sample(6000, length=512, p_ignore=p_ignore)
    reads = batch.weights.sum(-1).flatten()
    expected = 1 + 254 * (1 - p_ignore) / 2
    assert abs(reads.mean().item() - expected) < 4 * reads.std().item() / math.sqrt(len(reads))
    distance = batch.about["since_write"][batch.weights > 0].numpy()
    np.testing.assert_allclose(np.percentile(distance, (50, 90, 99)), percentiles, atol=1.01)
    if p_ignore == 0.98:
        one_write = ((batch.inputs[..., ::2] == WRITE).sum(-1) == 1).float().mean().item()
        assert abs(one_write - 0.99**254) < 4 * math.sqrt(0.99**254 / 6000)


def test_symbols_and_instructions_are_fair():
    batch = _sample(3000, length=512, p_write=0.2, p_read=0.3, p_ignore=0.5)
    inner = batch.inputs[0, :, 2:-2]
    counts = torch.bincount(inner[:, ::2].flatten(), minlength=3).numpy()
    assert scipy.stats.chisquare(counts, counts.sum() * np.array([0.2, 0.3, 0.5])).pvalue > 1e-3
    free = inner[:, 1::2][inner[:, ::2] != READ]
    assert scipy.stats.binomtest(int((free == 3).sum()), len(free)).pvalue > 1e-3


def test_a_mixture_draws_one_law_a_string():
    ignores = (_sample(3000, length=512, p_ignore=(0.9, 0.98, 0.1)).inputs[0, :, 2:-2:2] == IGNORE).float().mean(-1)
    near = torch.stack([(ignores - p).abs() < 0.15 for p in (0.1, 0.94)])
    assert near.any(0).all()
    assert scipy.stats.binomtest(int(near[0].sum()), 3000, 1 / 3).pvalue > 1e-3


def test_generative_mode_scores_every_next_token_and_evaluates_reads():
    task = tasks.build("flipflop", length=16, mode="generative")
    batch = task.sample(Draw(torch.tensor([0])), 5)
    assert batch.weights.sum().item() == 5 * 15
    assert task.scored_positions() is None
    assert task.evaluation() == tasks.build("flipflop", length=16)


@pytest.mark.parametrize("p_ignore", [0.8, 0.98, 0.1, (0.9, 0.98, 0.1)])
def test_needed_positions_are_a_high_quantile_of_the_reads(p_ignore):
    task = tasks.build("flipflop", length=512, p_ignore=p_ignore)
    law = max(read for _, read, _ in task.laws())
    exact = 1 + scipy.stats.binom.ppf(0.999, 254, law)
    assert 0 <= task.scored_positions() - exact < 8


def test_both_argmaxes_are_scored():
    task = tasks.build("flipflop", length=4)
    logits = torch.tensor([[9.0, 0, 0, 1, 2], [0, 0, 0, 5, 1]])
    wrong = task.wrong(logits, torch.tensor([4, 4]))
    assert wrong["read"].tolist() == [True, True]
    assert wrong["read_restricted"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"length": 511}, "task.length = 511 is not an even number"),
        ({"length": 2}, "at least 4"),
        ({"p_write": 0.5, "p_read": 0.5, "p_ignore": 0.8}, "sum to 1"),
        ({"p_ignore": 1.2}, "task.p_ignore = 1.2 must be a probability"),
        ({"p_ignore": (0.5, -0.1)}, "task.p_ignore = -0.1 must be a probability"),
        ({"p_write": 0.3}, "give p_write and p_read as null, half of the rest each"),
        ({"p_ignore": ()}, "empty list"),
        ({"mode": "noisy"}, "deterministic or generative"),
        ({"symbols": 1}, "at least 2"),
        ({"p_ignor": 0.8}, "did you mean p_ignore"),
    ],
)
def test_bad_tasks_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks.build("flipflop", **fields)


def test_what_is_left_may_be_nothing():
    # 1 - 0.9 - 0.1 is negative in floating point
    assert tasks.build("flipflop", p_ignore=0.9, p_write=0.1).laws() == [(0.1, 0.0, 0.9)]
    assert tasks.build("flipflop", p_ignore=[0.5, 0.8], p_read=0.2).laws() == [(0.3, 0.2, 0.5), (0.0, 0.2, 0.8)]


def test_an_unknown_task_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean flipflop"):
        tasks.build("flipflops")
