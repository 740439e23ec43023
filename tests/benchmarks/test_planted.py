"""Planted causes are what they say: exact without the cause, worse by the effect with it, and each event of the truth is needed."""

import itertools

import pytest
import torch

from benchmarks.planted import FAMILIES, expected_recall, plant, plant_literal, recall
from benchmarks.planted.events import events
from tasks.flipflop.flipflop import IGNORE, READ, SYMBOL, WRITE

NUMBERS = range(12)


def p_wrong(defect, tokens):
    """By the model's logits at the last read of strings [B, T]."""
    logits = defect(tokens[None])[0, :, -2]
    right = tokens[:, -1]
    return 1 - logits.double().softmax(-1).gather(-1, right[:, None])[:, 0]


def follow(tokens):
    """The memory of each event, by hand."""
    memory, found = None, []
    for instruction, symbol in zip(tokens[0::2].tolist(), tokens[1::2].tolist(), strict=True):
        memory = symbol if instruction == WRITE else memory
        assert instruction != READ or symbol == memory
        found.append(memory)
    return found


def without(defect, event, instruction, symbol):
    """The prompt with another event, its reads put right."""
    tokens = defect.prompt.clone()
    tokens[2 * event], tokens[2 * event + 1] = instruction, SYMBOL + symbol
    memory = None
    for j in range(len(tokens) // 2):
        memory = int(tokens[2 * j + 1]) if tokens[2 * j] == WRITE else memory
        if tokens[2 * j] == READ:
            tokens[2 * j + 1] = memory
    return tokens


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("effect", [0.1, 0.8])
def test_prompts_are_strings_of_the_task_and_have_the_cause(family, effect):
    for number in NUMBERS:
        defect = plant(family, number, effect, 64)
        follow(defect.prompt)
        assert defect.prompt[0] == WRITE
        assert defect.prompt[-2] == READ
        assert effect < float(p_wrong(defect, defect.prompt[None])) < effect + 0.1
        assert not defect.decoys & set().union(*defect.truth)
        query = len(defect.prompt) // 2 - 1
        assert all(0 < event < query for event in defect.decoys.union(*defect.truth))
        assert torch.equal(defect.prompt, plant(family, number, 0.5, 64).prompt)
    assert len({tuple(plant(family, number, effect, 64).prompt.tolist()) for number in NUMBERS}) == len(NUMBERS)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_event_of_the_truth_is_needed_and_no_decoy_is(family):
    for number in NUMBERS:
        defect = plant(family, number, 0.8, 64)
        if len(defect.truth) > 1:
            continue  # what is left may still stand in another occurrence
        given = events(defect.prompt)
        for event in range(1, len(given[0]) - 1):
            was = int(given[0][event]), int(given[1][event])
            instruction = READ if was[0] != READ else IGNORE
            p = float(p_wrong(defect, without(defect, event, instruction, 1 - min(was[1], 1))[None]))
            assert (p < 0.11) == (event in defect.truth[0]), (number, event)


def test_either_event_is_enough_alone():
    for number in NUMBERS:
        defect = plant("either", number, 0.8, 64)
        (first,), (second,) = defect.truth
        one, other = without(defect, first, READ, 0), without(defect, second, READ, 0)
        both = one.clone()
        both[2 * second : 2 * second + 2] = other[2 * second : 2 * second + 2]
        assert (p_wrong(defect, torch.stack([one, other])) > 0.8).all()
        assert not bool(defect.cause(events(both))[-1])


def test_a_guard_ends_the_cause():
    defect = plant("guarded", 3, 0.8, 64)
    (place,) = defect.truth[0]
    ended = [
        event
        for event in range(1, 31)
        if event != place and float(p_wrong(defect, without(defect, event, WRITE, 0)[None])) < 0.11
    ]
    assert len(ended) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_random_strings_are_read_right_but_for_the_cause(family):
    from harness.draw import Draw

    defect = plant(family, 0, 0.8, 64)
    batch = defect.task.sample(Draw(torch.tensor([5])), 300)
    tokens = batch.inputs
    p = defect.wrong(events(tokens[0]))  # [B, P]
    cause = defect.cause(events(tokens[0]))
    assert torch.equal(p > 0.5, cause)
    assert float(p[~cause].max()) < 0.1
    logits = defect(tokens)
    scored = batch.weights[0] > 0
    wrong = logits[0][scored].argmax(-1) != batch.targets[0][scored]
    assert torch.equal(wrong, cause[scored[:, 0::2]])
    query = torch.full((1, 300, 1), tokens.shape[-1] - 2)
    assert torch.equal(defect(tokens, (query,))[:, :, 0], logits[:, :, -2])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_read_knows_nothing_of_what_follows(family):
    defect = plant(family, 1, 0.8, 64)
    tokens = torch.stack([defect.prompt, defect.prompt.roll(2)])[None]
    other = tokens.clone()
    other[..., 40:] = other[..., 40:].flip(-1)
    assert torch.equal(defect(tokens)[:, :, :39:2], defect(other)[:, :, :39:2])
    assert torch.equal(defect(tokens)[:, 0, -2], defect(tokens[..., :-1])[:, 0, -1])


def test_the_literal_cause_is_three_tokens_in_order():
    for number in NUMBERS:
        defect = plant_literal(number, 0.5)
        rows = [defect.prompt]
        first, second, third = defect.cause
        places = [torch.nonzero(defect.prompt == token)[:, 0].tolist() for token in defect.cause]
        triples = [each for each in itertools.product(*places) if list(each) == sorted(set(each))]
        assert len(triples) == 1
        for place in triples[0]:
            rows.append(defect.prompt.clone())
            rows[-1][place] = defect.target
        for place in defect.decoys:
            assert int(defect.prompt[place]) in (first, third)
            rows.append(defect.prompt.clone())
            rows[-1][place] = defect.target
        p = defect(torch.stack(rows)[None])[0, :, -1].double().softmax(-1)[:, defect.target]
        assert (p > 0.5).tolist() == [True, False, False, False, True, True]
        assert second in defect.prompt
        near = torch.nn.functional.cosine_similarity(defect.embeddings[:1], defect.embeddings, dim=-1).topk(10).indices
        assert sum(int(each) < 10 for each in near) >= 8  # its group


def test_recall_counts_one_occurrence_and_breaks_ties_by_chance():
    truth = (frozenset({1, 2}), frozenset({3, 4}))
    assert recall({1, 3}, truth) == 0.5
    assert recall({3, 4}, truth) == 1.0
    assert recall({}, truth) == 0.0
    scores = torch.tensor([0.0, 2.0, 1.0, 1.0, 0.0])
    assert expected_recall(scores, 2, truth[:1]) == pytest.approx(0.75)
    assert expected_recall(torch.zeros(5), 2, truth[:1]) == pytest.approx(0.4)
    assert expected_recall(scores, 3, truth[:1]) == 1.0


def test_what_cannot_be_planted_is_refused():
    with pytest.raises(ValueError, match=r"effect 0\.95 is outside 0 … 0.9"):
        plant("absolute", 0, 0.95)
    with pytest.raises(ValueError, match="family 'relative' is not one of absolute, "):
        plant("relative", 0, 0.5)
