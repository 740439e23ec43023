"""The packed clause transformer against a plain single model in textbook modules, and its invariances (card, traps T2 to T7)."""

import itertools
import math

import pytest
import torch
from torch import nn

from models.lego.clauses import SLOTS
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.models.lego.clause_strings import VOCABULARY, clause_sentences
from tests.rounding import assert_same


class _Plain(nn.Module):
    """One model, written from the reference code of the card's section 13; `Z` [B, N, 5], queries from clause `first` on."""

    def __init__(self, pack, slot, vocabulary, outputs):
        super().__init__()
        config, width = pack.config, 5 * pack.config.width
        self.residual, self.heads, self.outputs = config.residual, config.heads, outputs
        self.activation = {"relu": nn.ReLU(), "gelu": nn.GELU()}[config.activation]
        self.emb = nn.Embedding(vocabulary, config.width, padding_idx=0)
        self.maps = nn.ModuleDict()
        for name in ("query", "key", "value", "out", "up", "down", "head"):
            theirs = getattr(pack, name)
            self.maps[name] = nn.Linear(*theirs.weight.shape[1:])
            self.maps[name].weight.data.copy_(theirs.weight[slot].T)
            self.maps[name].bias.data.copy_(theirs.bias[slot])
        self.emb.weight.data[1:].copy_(pack.tokens[slot])
        self.norms = nn.ModuleDict()
        for name in ("norm1", "norm2", "norm"):
            theirs = getattr(pack, name)
            self.norms[name] = nn.Identity() if theirs is None else nn.LayerNorm(width)
            if theirs is not None:
                self.norms[name].weight.data.copy_(theirs.gain[slot])
                self.norms[name].bias.data.copy_(theirs.bias[slot])

    def forward(self, clauses, first):
        batch, count, _ = clauses.shape
        h0 = self.emb(clauses).reshape(batch, count, -1)
        h = self.norms["norm1"](h0)
        q, k, v = (
            self.maps[name](part).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for name, part in (("query", h[:, first:]), ("key", h), ("value", h))
        )
        mask = torch.ones(count - first, count, dtype=torch.bool).tril(first)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -math.inf).softmax(-1)
        o = self.maps["out"]((weights @ v).transpose(1, 2).flatten(2)) + (h0[:, first:] if self.residual else 0)
        f = self.maps["down"](self.activation(self.maps["up"](self.norms["norm2"](o)))) + (o if self.residual else 0)
        return self.maps["head"](self.norms["norm"](f)).view(batch, count - first, 5, self.outputs), weights


ARMS = [
    {"width": 8, "feed_forward": 24},
    {"width": 7, "heads": 5, "feed_forward": 9, "residual": False, "norm": "none"},
    {"width": 3, "heads": 1, "feed_forward": 1, "residual": False, "activation": "gelu"},
]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("fields", ARMS)
@pytest.mark.parametrize("outputs", [None, 4])
def test_outputs_gradients_and_attention_equal_a_plain_single_model(fields, outputs):
    pack = build("clauses", [3, 4], VOCABULARY, 99, outputs, **fields).double()
    with torch.no_grad():
        for number, parameter in enumerate(pack.parameters()):
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    clauses = torch.stack([clause_sentences(4, 3, seed=seed) for seed in (0, 1)])
    maps = []
    logits = pack(clauses, attend=lambda layer, weights: maps.append(weights))
    logits[:, :, 3:].square().mean((1, 2, 3, 4)).sum().backward()
    for slot in range(2):
        plain = _Plain(pack, slot, VOCABULARY, outputs or VOCABULARY)
        theirs, weights = plain(clauses[slot], 3)
        assert_same(logits[slot, :, 3:], theirs)
        assert_same(maps[0][slot, :, :, 3:], weights)
        theirs.square().mean().backward()
        assert_same(pack.tokens.grad[slot], plain.emb.weight.grad[1:])
        for name, linear in plain.maps.items():
            ours = getattr(pack, name)
            assert_same(ours.weight.grad[slot].T, linear.weight.grad)
            assert_same(ours.bias.grad[slot], linear.bias.grad)
        for name, norm in plain.norms.items():
            if isinstance(norm, nn.LayerNorm):
                ours = getattr(pack, name)
                assert_same(ours.gain.grad[slot], norm.weight.grad)
                assert_same(ours.bias.grad[slot], norm.bias.grad)


# the last: a product whose rows alone are padded, so that only a single replicate's part is contiguous
@pytest.mark.parametrize("fields", [*ARMS, {"width": 3, "heads": 1, "feed_forward": 16, "activation": "gelu"}])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_replicate_is_the_same_in_any_pack(fields, batch):
    clauses = strings(3, batch, 7, SLOTS, vocabulary=VOCABULARY)
    check_same_in_any_pack("clauses", clauses, VOCABULARY, 7, **fields)
    answers = torch.arange(3, 6).expand(3, batch, -1)
    check_same_in_any_pack("clauses", clauses, VOCABULARY, 7, [answers], **fields)


@pytest.mark.parametrize("fields", ARMS)
def test_needed_clauses_alone_equal_the_full_computation(fields):
    clauses = torch.stack([clause_sentences(4, 3, seed=seed) for seed in range(3)])
    blocks = [strings(3, 4, 3, vocabulary=7, seed=seed) for seed in (1, 2)]
    maps = check_needed_equals_full("clauses", clauses, VOCABULARY, 99, blocks, **fields)
    assert [(layer, tuple(weights.shape)) for layer, weights in maps] == [(0, (3, 4, fields.get("heads", 2), 7, 7))]
    assert maps[0][1].requires_grad


@pytest.mark.parametrize("fields", ARMS)
def test_the_order_of_predicates_changes_no_answer(fields):
    """Trap T7: a failure means that positions leaked, or that the mask hides predicates."""
    pack = build("clauses", [3], VOCABULARY, 99, **fields).double()
    clauses = clause_sentences(4, 3)[None]
    answers = torch.arange(3, 7).expand(1, 4, -1)
    before = pack(clauses)[:, :, 3:]
    for order in itertools.permutations(range(3)):
        shuffled = torch.cat([clauses[:, :, list(order)], clauses[:, :, 3:]], dim=2)
        assert_same(pack(shuffled)[:, :, 3:], before)
        assert_same(pack(shuffled, [answers]), before)
    changed = clauses.clone()
    changed[:, :, 2, 1] = 1 + (changed[:, :, 2, 1] % 3) + 12  # another action in the last predicate: every answer sees it
    assert ((pack(changed)[:, :, 3:] - before).abs().amax(-1) > 1e-7).all()


def test_an_answer_does_not_see_later_ones():
    pack = build("clauses", [3], VOCABULARY, 99, width=8)
    clauses = clause_sentences(4, 3)[None]
    changed = clauses.clone()
    changed[:, :, 5:] = 1
    torch.testing.assert_close(pack(changed)[:, :, :5], pack(clauses)[:, :, :5])


def test_the_blank_is_the_zero_vector_and_strings_may_have_any_length():
    pack = build("clauses", [3], VOCABULARY, 4, width=8, residual=True, norm="none")
    blanks = torch.zeros(1, 2, 30, SLOTS, dtype=torch.long)
    logits = pack(blanks)
    assert logits.shape == (1, 2, 30, SLOTS, VOCABULARY)
    logits.square().sum().backward()
    assert (pack.tokens.grad == 0).all()
    assert (pack.query.weight.grad == 0).all()


def test_the_defaults_have_the_parameters_of_the_card():
    for vocabulary, count in ((1 + 200 + 6 + 6, 0.49e6), (1 + 200 + 120 + 5, 0.58e6)):  # C6 and S5, section 11
        pack = build("clauses", [0], vocabulary, 11)
        assert sum(parameter.numel() for parameter in pack.parameters()) == pytest.approx(count, rel=0.01)
    assert pack.tokens.std().item() == pytest.approx(1, rel=0.05)
    assert pack.down.weight.abs().max().item() == pytest.approx(640**-0.5, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        ((VOCABULARY, 7), {"width": 0}, "model.width = 0 must be at least 1"),
        ((VOCABULARY, 7), {"feed_forward": 0}, "model.feed_forward = 0 must be at least 1"),
        ((VOCABULARY, 7), {"heads": 3}, "model.heads = 3 does not divide a clause's 5 · model.width = 160"),
        ((VOCABULARY, 7), {"norm": "post"}, "model.norm = 'post' must be one of pre, none"),
        ((VOCABULARY, 7), {"activation": "tanh"}, "must be one of relu, gelu"),
        ((1, 7), {}, "at least one other token"),
        ((VOCABULARY, 7, 0), {}, "at least 1 output"),
    ],
)
def test_bad_models_are_refused(arguments, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("clauses", [0], *arguments, **fields)


def test_tokens_that_are_not_clauses_are_refused():
    with pytest.raises(ValueError, match="5 a clause"):
        build("clauses", [0], VOCABULARY, 7, width=8)(strings(1, 2, 7, vocabulary=VOCABULARY))
