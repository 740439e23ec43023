"""Tokens that nobody attends to: against the fused kernel with an explicit mask, BERT's rule by hand, and without the tokens at all."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from models.transformer.attention import mix, visible
from models.transformer.forward_pass import Scene
from tests.models.transformer.variants import BATCH, FAMILY, LENGTH, blocks, family, noise, seeds, tokens
from tests.rounding import assert_same

SLOTS = seeds(3)


def _hidden(slots=SLOTS, share=3):
    """bool [R, B, T]: about one in `share`, another set a string; never the first token, so that every causal query sees one."""
    hidden = (tokens(slots + 1) * 7 + tokens(slots + 2)) % share == 0
    hidden[..., 0] = False
    return hidden


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("attend", [False, True])
@pytest.mark.parametrize("positions", ["none", "alibi"])
def test_attention_equals_the_fused_kernel_with_an_explicit_mask(causal, attend, positions):
    config = family("default", SLOTS, causal=causal, positions=positions).config
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, BATCH * LENGTH, 32) for _ in range(3))
    hidden = _hidden()
    scene = Scene(
        config,
        BATCH,
        LENGTH,
        attend=(lambda layer, weights: None) if attend else None,
        hidden=hidden.flatten(0, 1)[:, None, None],
    )
    scene = Scene(**vars(scene) | {"mask": visible(scene, torch.arange(LENGTH)[:, None])})
    mixed = mix(query, key, value, scene, 0)
    index = torch.arange(LENGTH)
    for replicate in range(3):
        for string in range(BATCH):
            rows = slice(string * LENGTH, (string + 1) * LENGTH)
            parts = [each[replicate, rows].view(LENGTH, 4, 8).transpose(0, 1) for each in (query, key, value)]
            seen = (~hidden[replicate, string]).expand(LENGTH, LENGTH) & ((index <= index[:, None]) | (not causal))
            added = torch.zeros(4, LENGTH, LENGTH).masked_fill(~seen, -math.inf)
            if positions == "alibi":  # slopes of four heads: 2^-2, 2^-4, 2^-6, 2^-8
                added -= torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None] * (index[:, None] - index).abs()
            wanted = scaled_dot_product_attention(*parts, attn_mask=added).transpose(0, 1).flatten(1)
            assert_same(mixed[replicate, rows], wanted)


def test_bert_adds_the_lowest_number_to_the_scores_of_hidden_keys():
    """The layer of Hugging Face's BertSelfAttention by hand: (1 - attention_mask) · min is added to query · key / √d."""
    config = family("bert", SLOTS).config
    torch.manual_seed(1)
    query, key, value = (torch.randn(1, LENGTH, 32) for _ in range(3))
    hidden = _hidden()[:1, :1]
    scene = Scene(config, 1, LENGTH, hidden=hidden.flatten(0, 1)[:, None, None])
    scene = Scene(**vars(scene) | {"mask": visible(scene, torch.arange(LENGTH)[:, None])})
    q, k, v = (each.view(LENGTH, 4, 8).transpose(0, 1) for each in (query, key, value))
    scores = q @ k.transpose(1, 2) / 8**0.5 + hidden[0, 0] * torch.finfo(torch.float32).min
    wanted = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    assert_same(mix(query, key, value, scene, 0)[0], wanted)


@pytest.mark.parametrize("name", FAMILY)
def test_hidden_tokens_change_no_logit_of_the_others(name):
    """What stands at a hidden position is not read, by queries everywhere or at needed positions alone."""
    model, hidden, read = family(name, SLOTS), _hidden(), tokens(SLOTS)
    other = torch.where(hidden, (read + 1) % 5, read)
    needed = blocks(SLOTS, 4)
    few, everywhere = ([model(each, part, hidden=hidden) for each in (read, other)] for part in (needed, None))
    shown = ~hidden
    torch.testing.assert_close(everywhere[0][shown], everywhere[1][shown], rtol=0, atol=0)
    order = torch.cat(needed, dim=-1)
    assert_same(few[0], everywhere[0].gather(2, order[..., None].expand(-1, -1, -1, 5)))
    kept = shown.gather(-1, order)
    torch.testing.assert_close(few[0][kept], few[1][kept], rtol=0, atol=0)
    if model.config.layers > 1 and not model.config.causal:
        assert not torch.allclose(model(read)[shown], everywhere[0][shown], atol=1e-4), "hiding tokens changes nothing"


@pytest.mark.parametrize("name", ["bert", "encoder, alibi", "alibi", "rotary", "average"])
def test_hidden_padding_is_as_if_it_were_not_there(name):
    model, read = family(name, SLOTS), tokens(SLOTS)
    hidden = (torch.arange(LENGTH) >= 7).expand(3, BATCH, LENGTH)
    assert_same(model(read, hidden=hidden)[:, :, :7], model(read[..., :7]))


@pytest.mark.parametrize("name", FAMILY)
def test_where_nothing_is_hidden_the_mask_changes_nothing_but_rounding(name):
    model, read = family(name, SLOTS), tokens(SLOTS)
    assert_same(model(read, hidden=torch.zeros(3, BATCH, LENGTH, dtype=torch.bool)), model(read))


@pytest.mark.parametrize("name", ["bert", "encoder, alibi", "alibi", "default", "dropout"])
@pytest.mark.parametrize("attend", [False, True])
def test_a_query_without_keys_reads_zeros_and_gives_finite_gradients(name, attend):
    model, read = family(name, SLOTS), tokens(SLOTS)
    hidden = _hidden()
    hidden[0], hidden[1, 0, :4] = True, True  # all of some strings, and the first tokens, which causal queries alone see
    seen = []
    scene = noise(model, SLOTS) if name == "dropout" else None
    logits = model(read, None, scene, (lambda layer, weights: seen.append(weights)) if attend else None, hidden)
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    for weights in seen:
        assert (weights[0] == 0).all()
        assert (weights.transpose(2, 4)[hidden] == 0).all(), "a hidden key has weight"
        sums = weights.sum(-1).transpose(2, 3)[~hidden]
        torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize(
    "name", ["bert", "encoder, alibi", "default", "odd sizes, alibi", "odd sizes", "dropout everywhere else"]
)
def test_a_replicate_is_the_same_in_any_pack(name):
    def run(slots):
        model = family(name, slots)
        hidden = _hidden()[[SLOTS.tolist().index(slot) for slot in slots.tolist()]]
        logits = model(tokens(slots), blocks(slots, 4), noise(model, slots), None, hidden)
        logits.square().sum().backward()
        return logits.detach(), [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    together, gradients = run(SLOTS)
    for which in ([0], [1], [2, 0]):
        alone, others = run(SLOTS[which])
        assert torch.equal(alone, together[which])
        for one, whole in zip(others, gradients, strict=True):
            assert torch.equal(one, whole[which])


def test_dropout_of_hidden_tokens_is_that_of_the_others():
    """Masks of dropout belong to places: at needed positions alone they are those of the full call."""
    model, hidden = family("dropout", SLOTS, causal=False), _hidden()
    read, scene = tokens(SLOTS), noise(model, SLOTS)
    needed = blocks(SLOTS, 4)[0]
    whole = model(read, None, scene, None, hidden)
    part = model(read, (needed,), scene, None, hidden)
    assert_same(part, whole.gather(2, needed[..., None].expand(-1, -1, -1, 5)))
