"""n-gram measures of models: of ones whose use of their context is known, and of a transformer against passes one by one."""

import pytest
import torch

import models
from harness.draw import Draw
from harness.probes.distillation.ngrams import NGrams, ngrams
from harness.probes.strings import strings
from tasks.distillation.pcfg import MASK, PADDING, PCFG
from tests.rounding import rounded

MASKED = PCFG(root=13, length=28)
NEXT = PCFG(root=13, length=28, objective="next")
SOME = NGrams(every=3, last=12, largest=4)


def by_item(rows):
    return {row["item"]: row["value"] for row in rows}


class Copies:
    """Says the token `offset` places from the predicted one for sure, or the uniform law where it does not see it."""

    def __init__(self, offset, next_token=False):
        self.offset, self.next_token = offset, next_token

    def __call__(self, inputs, needed, hidden):
        place = needed[0] + self.offset + self.next_token  # [1, N, 1]
        seen = inputs.gather(2, place)
        unseen = hidden.gather(2, place) | (seen == MASK)
        logits = torch.nn.functional.one_hot(seen, 8) * 100.0
        return torch.where(unseen[..., None], torch.zeros(8), logits)


WHOLE = rounded(7 / 8)  # from certainty to the uniform law over 8 tokens, half the L1 distance


def test_a_model_that_copies_its_neighbour_needs_nothing_but_the_window():
    found = by_item(ngrams(Copies(-1), MASKED, 20, SOME))
    for n in (2, 3, 4):
        assert found[f"close n={n} tv"] == rounded(0)
        assert found[f"robust n={n} tv"] == WHOLE
        assert found[f"robust n={n} l1"] == rounded(7 / 4)


def test_windows_reach_further_back_than_ahead():
    ahead, back = (by_item(ngrams(Copies(offset), MASKED, 20, SOME)) for offset in (1, -2))
    assert [ahead[f"robust n={n} tv"] for n in (2, 3, 4)] == [rounded(0), WHOLE, WHOLE]
    assert [back[f"robust n={n} tv"] for n in (2, 3, 4)] == [rounded(0), rounded(0), WHOLE]
    assert [back[f"close n={n} tv"] for n in (2, 3, 4)] == [WHOLE, WHOLE, rounded(0)]


def test_a_causal_model_keeps_its_last_token():
    last, before = (by_item(ngrams(Copies(offset, next_token=True), NEXT, 20, SOME)) for offset in (-1, -2))
    assert all(last[f"{measure} n={n} tv"] == rounded(0) for measure in ("robust", "close") for n in (2, 3, 4))
    assert [before[f"close n={n} tv"] for n in (2, 3, 4)] == [WHOLE, rounded(0), rounded(0)]
    assert [before[f"robust n={n} tv"] for n in (2, 3, 4)] == [rounded(0), WHOLE, WHOLE]


@pytest.mark.parametrize("case", ["masked", "masked, attended to", "next"])
def test_a_transformer_is_measured_as_by_passes_one_by_one(case):
    task = NEXT if case == "next" else MASKED
    options = {"layers": 2, "width": 16, "heads": 2, "causal": case == "next"}
    model = models.build("transformer", Draw(torch.tensor([1]), "init"), vocabulary=8, length=28, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    settings = NGrams(every=4, last=8, largest=3, hide_masked=case != "masked, attended to")
    found = by_item(ngrams(model, task, 6, settings))
    (batch,) = strings(task, 6, 6)
    whole = (batch.inputs if case == "next" else batch.targets)[0]

    def law(tokens, place, gone):
        """The prediction of one token of one string, with these positions gone."""
        gone = torch.tensor([each in gone for each in range(28)])
        read = tokens if case == "next" else torch.where(gone & (tokens != PADDING), MASK, tokens)
        hidden = tokens == PADDING if case == "masked, attended to" else gone | (tokens == PADDING)
        with torch.no_grad():
            return model(read[None, None], hidden=hidden[None, None])[0, 0, place - (case == "next")].softmax(-1)

    for n in (2, 3):
        distances = {"robust": [], "close": []}
        for tokens in whole:
            for place in (4, 8):
                if tokens[place] == PADDING:
                    continue
                string = [each for each in range(1, 28) if tokens[each] != PADDING]
                if case == "next":
                    alone, window = set(), set(range(place - n + 1, place))
                    gone = {"robust": window - {place - 1}, "close": set(range(place)) - window}
                else:
                    alone, window = {place}, {place - 1, place} | ({place + 1} if n == 3 else set())
                    gone = {"robust": window, "close": (set(string) - window) | {place}}
                for measure, hide in gone.items():
                    distances[measure].append(float((law(tokens, place, alone) - law(tokens, place, hide)).abs().sum()))
        for measure, values in distances.items():
            middle = sorted(values)[(len(values) - 1) // 2], sorted(values)[len(values) // 2]
            assert found[f"{measure} n={n} l1"] == pytest.approx(sum(middle) / 2, abs=1e-5)
            assert found[f"{measure} n={n} tv"] == pytest.approx(sum(middle) / 4, abs=1e-5)
        assert found["predictions"] == len(values)
    assert found["close n=2 l1"] > 1e-3


def test_masked_tokens_are_attended_to_as_in_training():
    trained = PCFG(root=13, length=28, hide_selected_from_attention=True)
    model = models.build(
        "transformer", Draw(torch.tensor([1]), "init"), vocabulary=8, length=28, layers=1, width=8, causal=False, heads=2
    )

    def measured(task, hide):
        return by_item(ngrams(model, task, 3, NGrams(every=6, last=6, largest=2, hide_masked=hide)))

    assert measured(trained, None) == measured(trained, True) != measured(trained, False)
    assert measured(MASKED, None) == measured(MASKED, False) == measured(trained, False)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match=r"cfg3b from 13 .*position 27"):
        ngrams(Copies(-1), MASKED, 4, NGrams(every=27, last=27))
    with pytest.raises(ValueError, match="hide_masked = false applies only to masked prediction"):
        ngrams(Copies(-1), NEXT, 4, NGrams(hide_masked=False))
    with pytest.raises(ValueError, match="every = 0"):
        NGrams(every=0)
    with pytest.raises(ValueError, match="largest = 1"):
        NGrams(largest=1)
