"""The transformer on clauses: with one layer it is the `clauses` model, with more it is the transformer, and packs change no bits."""

import itertools

import pytest
import torch

from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.models.lego.clause_strings import VOCABULARY, clause_sentences
from tests.rounding import assert_same

ARMS = [
    {"width": 20},
    {"width": 35, "heads": 5, "layers": 2, "feed_forward": 9, "positions": "rotary", "head_dim": 2, "bias": False},
    {"width": 15, "heads": 1, "layers": 2, "norm": "post", "positions": "alibi", "activation": "gelu"},
]


@pytest.mark.parametrize(("residual", "norm"), [(True, "pre"), (False, "none")])
def test_one_layer_is_the_clauses_model(residual, norm):
    fields = {"heads": 2, "feed_forward": 24, "residual": residual, "norm": norm}
    theirs = build("clauses", [3, 4], VOCABULARY, 99, width=8, **fields).double()
    ours = build("lego_transformer", [5, 6], VOCABULARY, 99, width=40, final_norm=norm == "pre", **fields).double()
    with torch.no_grad():
        for number, parameter in enumerate(theirs.parameters()):
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
        names = {
            name: name if name in ("tokens", "norm.gain", "norm.bias", "head.weight", "head.bias") else f"blocks.0.{name}"
            for name, _ in theirs.named_parameters()
        }
        mine = dict(ours.named_parameters())
        assert sorted(names.values()) == sorted(mine)
        for name, parameter in theirs.named_parameters():
            mine[names[name]].copy_(parameter)
    clauses = torch.stack([clause_sentences(4, 3, seed=seed) for seed in (0, 1)])
    assert_same(ours(clauses), theirs(clauses))
    maps = [[], []]
    for pack, seen in zip((ours, theirs), maps, strict=True):
        pack(clauses, attend=lambda layer, weights, seen=seen: seen.append(weights))
    assert_same(maps[0][0], maps[1][0])


@pytest.mark.parametrize("fields", ARMS)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_replicate_is_the_same_in_any_pack(fields, batch):
    clauses = strings(3, batch, 7, 5, vocabulary=VOCABULARY)
    check_same_in_any_pack("lego_transformer", clauses, VOCABULARY, 7, **fields)
    check_same_in_any_pack("lego_transformer", clauses, VOCABULARY, 7, [torch.arange(3, 6).expand(3, batch, -1)], **fields)


@pytest.mark.parametrize("fields", ARMS)
def test_needed_clauses_alone_equal_the_full_computation(fields):
    clauses = torch.stack([clause_sentences(4, 3, seed=seed) for seed in range(3)])
    blocks = [strings(3, 4, 3, vocabulary=7, seed=seed) for seed in (1, 2)]
    maps = check_needed_equals_full("lego_transformer", clauses, VOCABULARY, 99, blocks, **fields)
    assert [layer for layer, _ in maps] == list(range(fields.get("layers", 1)))


def test_the_order_of_predicates_changes_no_answer_of_one_layer_without_positions():
    clauses = clause_sentences(4, 3)[None]
    for fields, same in (
        ({}, True),
        ({"positions": "rotary"}, False),
        ({"layers": 2}, False),
    ):  # a second layer sees the causal mask
        pack = build("lego_transformer", [3], VOCABULARY, 99, width=20, **fields).double()
        before = pack(clauses)[:, :, 3:]
        moved = [
            (pack(torch.cat([clauses[:, :, list(order)], clauses[:, :, 3:]], dim=2))[:, :, 3:] - before).abs().max()
            for order in itertools.permutations(range(3))
        ]
        assert (max(moved) < 1e-9) == same


def test_the_blank_is_the_zero_vector():
    pack = build("lego_transformer", [3], VOCABULARY, 4, width=20)
    blanks = torch.zeros(1, 2, 30, 5, dtype=torch.long)
    assert pack(blanks).shape == (1, 2, 30, 5, VOCABULARY)
    pack(blanks).square().sum().backward()
    assert (pack.tokens.grad == 0).all()
    assert pack.tokens.shape == (1, VOCABULARY - 1, 4)


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        ((VOCABULARY, 7), {"width": 32}, "model.width = 32 must be a multiple of 5"),
        ((VOCABULARY, 7), {"positions": "learned"}, "no rows for lengths beyond the training's"),
        ((VOCABULARY, 7), {"tied": True}, "a clause has five: write false"),
        ((1, 7), {}, "at least one other token"),
    ],
)
def test_bad_models_are_refused(arguments, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("lego_transformer", [0], *arguments, **fields)


def test_tokens_that_are_not_clauses_are_refused():
    with pytest.raises(ValueError, match="5 a clause"):
        build("lego_transformer", [0], VOCABULARY, 7)(strings(1, 2, 7, vocabulary=VOCABULARY))
