"""n-gram measures: windows as printed, models whose use of their context is known, and both conventions of the distance."""

import math

import pytest
import torch

from tasks.distillation.ngrams import causally_hidden, hidden, median, shift, window


@pytest.mark.parametrize("length", [1, 2, 5, 9])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_windows_are_those_that_are_printed(n, length):
    for i in range(length):
        printed = [
            j for j in range(length) if max(i - math.ceil((n - 1) / 2), 0) <= j <= min(i + math.floor((n - 1) / 2), length - 1)
        ]
        first, last = window(i, n, length)
        assert list(range(first, last + 1)) == printed


def test_windows_of_the_card():
    assert window(10, 2, 20) == (9, 10)
    assert window(10, 4, 20) == (8, 11)


def _places(mask):
    return mask.nonzero()[:, 0].tolist()


def test_hidden_positions():
    alone, around = hidden("robust", 4, 3, 8)
    assert (_places(alone), _places(around)) == ([4], [3, 4, 5])
    assert _places(hidden("close", 4, 3, 8)[1]) == [0, 1, 2, 4, 6, 7]
    # with a start token in front, which stays: token 0 of the string is position 1
    assert _places(hidden("robust", 1, 3, 6, begin=1)[1]) == [1, 2]
    assert _places(hidden("close", 1, 3, 6, begin=1)[1]) == [1, 3, 4, 5]
    seen, skipped = causally_hidden("robust", 6, 4, 8)
    assert (_places(seen), _places(skipped)) == ([6, 7], [3, 4, 6, 7])
    assert _places(causally_hidden("close", 6, 4, 8)[1]) == [0, 1, 2, 6, 7]


def _measured(logits_of, measure, n, length=9, count=50):
    """A measure of a model by formula: logits_of(tokens [N, T] with -1 where hidden, place) → [N, V]."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 3, (count, length), generator=generator)
    found = []
    for place in range(3, length - 3):
        logits = [logits_of(torch.where(mask, -1, tokens), place) for mask in hidden(measure, place, n, length)]
        found.append(shift(*logits)["tv"])
    return median(torch.stack(found)[None]).item()


def _copies(offset):
    """Says the token at i + offset for sure, or the uniform law where it is hidden."""

    def logits(tokens, place):
        seen = tokens[:, place + offset]
        return torch.where((seen >= 0)[:, None], torch.nn.functional.one_hot(seen.clamp(min=0), 3) * 100.0, torch.zeros(1, 3))

    return logits


@pytest.mark.parametrize(
    ("offset", "n", "robust"), [(-1, 2, 2 / 3), (1, 2, 0), (1, 3, 2 / 3), (-2, 3, 0), (-2, 4, 2 / 3), (2, 4, 0), (2, 5, 2 / 3)]
)
def test_a_model_that_copies_a_neighbour_uses_the_window_or_what_is_beyond(offset, n, robust):
    """Certain against uniform over three tokens is a distance of 2/3: of robust where the neighbour is in the window, else of close."""
    assert _measured(_copies(offset), "robust", n) == pytest.approx(robust, abs=1e-6)
    assert _measured(_copies(offset), "close", n) == pytest.approx(2 / 3 - robust, abs=1e-6)


def test_both_conventions():
    one, other = torch.tensor([[50.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([[0.0, 50.0, 0.0], [0.0, 0.0, 0.0]])
    found = shift(one, other)
    assert found["tv"].tolist() == pytest.approx([1.0, 0.0])
    assert found["l1"].tolist() == pytest.approx([2.0, 0.0])


def test_medians_are_of_strings_and_positions_together():
    values = torch.tensor([[[4.0, 1.0], [2.0, 3.0]], [[0.0, 0.0], [0.0, 8.0]]])
    assert median(values).tolist() == [2.5, 0.0]
    assert median(torch.tensor([[[5.0], [1.0], [2.0]]])).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: window(3, 1, 8), "n = 1 must be at least 2"),
        (lambda: window(8, 2, 8), "position 8 is outside a string of 8 tokens"),
        (lambda: hidden("robust", 0, 2, 8, begin=1), "position -1 is outside a string of 7 tokens"),
        (lambda: hidden("far", 3, 2, 8), "measure = 'far' must be robust or close"),
        (lambda: causally_hidden("far", 3, 2, 8), "measure = 'far' must be robust or close"),
        (lambda: causally_hidden("close", 3, 0, 8), "n = 0 must be at least 2"),
        (lambda: shift(torch.zeros(2, 3), torch.zeros(3, 3)), "must be of the same predictions"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
