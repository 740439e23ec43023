"""The packed in-context n-gram models against their equations for one model, and the explicit constructions of Varre et al. 2025."""

import math

import pytest
import torch

from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.rounding import assert_same

S, T = 3, 12  # tokens and length in most tests


def _causal(scores):
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -math.inf).softmax(-1)


def _one_hot(tokens, size):
    return torch.eye(size, dtype=torch.float64)[tokens]


def _simple(weights, tokens):
    """Section 2.2 of the paper for one model: tokens [B, T] → log p [B, T, S]."""
    r0 = _one_hot(tokens, S)
    length = tokens.shape[1]
    heads = [_causal(a[:length, :length]) @ r0 @ v for a, v in zip(weights["scores"], weights["value"], strict=True)]
    r1 = torch.cat([r0, *heads], -1)
    both = weights["merged"] if "merged" in weights else weights["query"] @ weights["key"].T
    return torch.log(_causal(r1 @ both @ r1.transpose(1, 2)) @ r0 + 1e-8)


def _heads(weights, i, x, heads):
    """σ(x Q_h K_h x) x V_h of layer i for each head."""
    parts = [weights[f"layers.{i}.{name}"].chunk(heads, -1) for name in ("query", "key", "value")]
    return [_causal(x @ q @ (x @ k).transpose(1, 2)) @ (x @ v) for q, k, v in zip(*parts, strict=True)]


def _embedding(weights, tokens, add):
    batch, length = tokens.shape
    if "tokens" not in weights:
        return torch.cat([_one_hot(tokens, S), torch.eye(T, dtype=torch.float64)[:length].expand(batch, -1, -1)], -1)
    positions = weights["positions"][:length].expand(batch, -1, -1)
    return weights["tokens"][tokens] + positions if add else torch.cat([weights["tokens"][tokens], positions], -1)


def _general(weights, tokens, heads, log=False):
    """Definition 2.2."""
    r = _embedding(weights, tokens, add=False)
    for i, count in enumerate(heads):
        r = torch.cat([r, *_heads(weights, i, r, count)], -1)
    z = r @ weights["head"]
    return torch.log(z.abs() + 1e-8) if log else z


def _residual(weights, tokens, heads, mlp=False):
    """Figures 4 and 7."""
    x = _embedding(weights, tokens, add=True)
    root = math.sqrt(x.shape[-1])
    for i, count in enumerate(heads):
        total = sum(_heads(weights, i, x, count))
        if mlp:
            up, up_bias, down, down_bias = (weights[f"mlps.{i}.{n}"] for n in ("up", "up_bias", "down", "down_bias"))
            total = torch.relu(total @ up + root * up_bias) @ down + root * down_bias
        x = x + total
    return x @ weights["head"]


CASES = [
    ("simple_disentangled", {}, _simple),
    ("simple_disentangled", {"m": 3, "qk_width": 2, "v_init": "identity"}, _simple),
    ("simple_disentangled", {"m": 1, "merged_qk": True}, _simple),
    ("disentangled", {"heads": (2, 1)}, lambda w, t: _general(w, t, (2, 1))),
    ("disentangled", {"heads": (1, 2), "embed": "learned", "qk_width": 5}, lambda w, t: _general(w, t, (1, 2))),
    ("disentangled", {"heads": (2,), "output": "log"}, lambda w, t: _general(w, t, (2,), log=True)),
    ("attn_only", {}, lambda w, t: _residual(w, t, (2, 1))),
    ("attn_only", {"heads": (3, 1), "embed": "learned", "w_init": "normal"}, lambda w, t: _residual(w, t, (3, 1))),
    ("attn_mlp", {}, lambda w, t: _residual(w, t, (2, 1), mlp=True)),
    ("attn_mlp", {"embed": "learned"}, lambda w, t: _residual(w, t, (2, 1), mlp=True)),
]


@pytest.mark.parametrize(("name", "fields", "peer"), CASES)
@pytest.mark.parametrize("length", [T, 7])
def test_outputs_and_gradients_equal_the_equations(name, fields, peer, length):
    pack = build(name, [3, 4], S, T, **fields).double()  # near z = 0 the slope of log |z| magnifies rounding
    with torch.no_grad():  # away from the zeros it starts at
        for number, parameter in enumerate(pack.parameters()):
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)).double())
    tokens = strings(2, 4, length, vocabulary=S)
    logits = pack(tokens)
    logits.square().mean((1, 2, 3)).sum().backward()
    for slot in range(2):
        weights = {key: value[slot].detach().clone().requires_grad_() for key, value in pack.named_parameters()}
        theirs = peer(weights, tokens[slot])
        torch.testing.assert_close(logits[slot], theirs, rtol=1e-8, atol=1e-10)
        theirs.square().mean().backward()
        for key, parameter in pack.named_parameters():
            torch.testing.assert_close(parameter.grad[slot], weights[key].grad, rtol=1e-8, atol=1e-10, msg=key)


@pytest.mark.parametrize(("name", "fields", "peer"), CASES)
@pytest.mark.parametrize("batch", [1, 4])
def test_a_replicate_is_the_same_in_any_pack(name, fields, peer, batch):
    tokens = strings(3, batch, T, vocabulary=S)
    check_same_in_any_pack(name, tokens, S, T, **fields)
    last = torch.full((3, batch, 1), T - 1)  # the paper's loss
    check_same_in_any_pack(name, tokens, S, T, [last], **fields)


@pytest.mark.parametrize(("name", "fields", "peer"), CASES)
def test_needed_positions_alone_and_attention_on_request_change_nothing(name, fields, peer):
    blocks = [strings(3, 4, 3, vocabulary=T, seed=seed) for seed in (1, 2)]
    maps = check_needed_equals_full(name, strings(3, 4, T, vocabulary=S), S, T, blocks, **fields)
    heads = fields.get("heads", (2, 1)) if name != "simple_disentangled" else (fields.get("m", 2), 1)
    assert [layer for layer, _ in maps] == list(range(len(heads)))
    for (_, weights), count in zip(maps, heads, strict=True):
        assert weights.shape == (3, 4, count, T, T)
        assert weights.requires_grad
        assert_same(weights.sum(-1), torch.ones(3, 4, count, T, dtype=torch.float64))
        assert (weights.triu(1) == 0).all()


def _zeroed(name, length, **fields):
    pack = build(name, [0], S, length, **fields)
    with torch.no_grad():
        for parameter in pack.parameters():
            parameter.zero_()
    return pack


def _lag(length, lag, c):
    """[T, T] with c at (l, max(l - lag, 0))."""
    rows = torch.arange(length)
    out = torch.zeros(length, length)
    out[rows, (rows - lag).clamp(min=0)] = c
    return out


def _put_k_gram(pack, k, c, length, m=2):
    """θ*_k of equations 8 and 10: head h copies lag h; scores are c times the number of matching tokens."""
    block = [slice(h * S, (h + 1) * S) for h in range(m + 1)]
    with torch.no_grad():
        for h in range(1, k):
            pack.scores[0, h - 1] = _lag(length, h, c)
            pack.value[0, h - 1] = torch.eye(S)
            pack.query[0, block[h - 1], block[h]] = math.sqrt(c) * torch.eye(S)  # Q^T
            pack.key[0, block[h], block[h]] = math.sqrt(c) * torch.eye(S)
    return pack


def _estimates(tokens, k):
    """p̂_k [B, S] of Definition 2.1, and which strings have a match and none among the first k - 1 keys."""
    length = tokens.shape[1]
    matches = torch.ones(tokens.shape, dtype=torch.bool)
    for h in range(1, k):
        source = (torch.arange(length) - h).clamp(min=0)  # early positions copy token 0
        matches &= tokens[:, source] == tokens[:, length - h, None]
    clear = matches[:, k - 1 :].any(1) & ~matches[:, : k - 1].any(1)
    counts = (_one_hot(tokens, S) * matches[..., None]).sum(1)
    return (counts / counts.sum(-1, keepdim=True).clamp(min=1)).float(), clear


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_construction_is_the_k_gram_estimator(k):
    """Section 3.3 of the card, on strings with a match and no match at the boundary."""
    length = 40
    tokens = strings(1, 400, length, vocabulary=S)
    pack = _put_k_gram(_zeroed("simple_disentangled", length), k, 40.0, length)
    estimate, clear = _estimates(tokens[0], k)
    assert clear.sum() > 100
    last = torch.full((1, 400, 1), length - 1)
    for logits in (pack(tokens)[0, :, -1], pack(tokens, [last])[0, :, 0]):
        torch.testing.assert_close(logits.softmax(-1)[clear], estimate[clear], rtol=1e-4, atol=1e-5)


def test_a_soft_construction_is_not_the_estimator():
    tokens = strings(1, 400, 40, vocabulary=S)
    pack = _put_k_gram(_zeroed("simple_disentangled", 40), 3, 1.0, 40)
    estimate, clear = _estimates(tokens[0], 3)
    assert (pack(tokens)[0, :, -1].softmax(-1) - estimate)[clear].abs().max() > 0.1


def test_the_unigram_is_a_stationary_point():
    """At θ*_1 attention is uniform, and the gradient with respect to every weight but K is zero; K's is too as Q = 0."""
    tokens = strings(1, 50, 40, vocabulary=S)
    pack = _put_k_gram(_zeroed("simple_disentangled", 40), 1, 8.0, 40)
    torch.nn.functional.cross_entropy(pack(tokens)[0, :, -1], tokens[0, :, 0]).backward()
    assert all((parameter.grad == 0).all() for parameter in pack.parameters())
    other = _put_k_gram(_zeroed("simple_disentangled", 40), 2, 8.0, 40)
    torch.nn.functional.cross_entropy(other(tokens)[0, :, -1], tokens[0, :, 0]).backward()
    assert other.key.grad.abs().max() > 1e-3


def test_every_head_may_copy_the_same_lag():
    """The explicit bigram of equation 30, corrected as in the card: all heads copy lag 1."""
    length, c, m = 40, 12.0, 2
    pack = _zeroed("simple_disentangled", length)
    with torch.no_grad():
        for h in range(1, m + 1):
            block = slice(h * S, (h + 1) * S)
            pack.scores[0, h - 1] = _lag(length, 1, 40.0)
            pack.value[0, h - 1] = math.sqrt(c) * torch.eye(S)
            pack.query[0, :S, block] = math.sqrt(c) * torch.eye(S)
            pack.key[0, block, block] = math.sqrt(c) * torch.eye(S)
    tokens = strings(1, 400, length, vocabulary=S)
    estimate, clear = _estimates(tokens[0], 2)
    torch.testing.assert_close(pack(tokens)[0, :, -1].softmax(-1)[clear], estimate[clear], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_the_general_model_holds_the_construction(k):
    """Appendix F.1: positions find the lags, the second layer matches the copied tokens, logits are log(|z| + 1e-8)."""
    length, c, width = 24, 60.0, S + 24
    pack = _zeroed("disentangled", length, heads=(2, 1), output="log")
    first, second = pack.layers
    block = [slice(0, S), slice(width, width + S), slice(2 * width, 2 * width + S)]  # the token, one and two before it
    with torch.no_grad():
        for h in (1, 2):
            columns = slice((h - 1) * width, h * width)
            first.query[0, S:, columns] = torch.cat([torch.zeros(length, S), _lag(length, h, c)], dim=1)
            first.key[0, S:, columns] = torch.cat([torch.zeros(length, S), torch.eye(length)], dim=1)
            first.value[0, :S, (h - 1) * width : (h - 1) * width + S] = torch.eye(S)
        for h in range(1, k):
            second.query[0, block[h - 1], block[h]] = c * torch.eye(S)
            second.key[0, block[h], block[h]] = torch.eye(S)
        second.value[0, :S, :S] = torch.eye(S)
        pack.head[0, 3 * width : 3 * width + S] = torch.eye(S)
    tokens = strings(1, 400, length, vocabulary=S)
    estimate, clear = _estimates(tokens[0], k)
    assert clear.sum() > 100
    torch.testing.assert_close(pack(tokens)[0, :, -1].softmax(-1)[clear], estimate[clear], rtol=1e-4, atol=1e-5)


def test_initial_weights_are_the_papers():
    simple = build("simple_disentangled", [0, 1], 30, 8)
    assert (simple.scores == 0).all()
    assert simple.value.std().item() == pytest.approx(30**-0.5, rel=0.05)
    assert simple.query.std().item() == pytest.approx(90**-0.5, rel=0.05)
    assert simple.query.shape == (2, 90, 90)
    assert (build("simple_disentangled", [0], 5, 8, merged_qk=True).merged == 0).all()
    assert torch.equal(build("simple_disentangled", [0], 5, 8, v_init="identity").value[0, 1], torch.eye(5))
    tokens = strings(1, 4, 32, vocabulary=3)
    assert (build("attn_only", [0], 3, 32)(tokens) == 0).all()  # the loss starts at ln S exactly
    mlp = build("attn_mlp", [0], 3, 32)
    assert torch.equal(mlp.mlps[0].up, mlp.mlps[1].up)  # one key for both layers
    assert (mlp.mlps[0].down == 0).all()
    assert mlp.layers[0].value.std().item() == pytest.approx(35**-0.5, rel=0.05)
    assert (mlp(tokens) != 0).any()


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("simple_disentangled", {"m": 0}, "model.m = 0 must be at least 1"),
        ("simple_disentangled", {"qk_width": 0}, "model.qk_width = 0 must be at least 1"),
        ("simple_disentangled", {"qk_width": 5, "merged_qk": True}, "no meaning with model.merged_qk = true"),
        ("simple_disentangled", {"v_init": "ones"}, "model.v_init = 'ones' must be one of normal, identity"),
        ("simple_disentangled", {"outputs": 2}, "2 outputs are not possible"),
        ("disentangled", {"heads": ()}, "must list the heads of each layer"),
        ("disentangled", {"output": "soft"}, "must be one of linear, log"),
        ("disentangled", {"output": "log", "w_init": "zero"}, "has no gradient"),
        ("disentangled", {"qk_width": -1}, "model.qk_width = -1 must be at least 1"),
        ("attn_only", {"heads": (2, 0)}, "at least 1 in each"),
        ("attn_only", {"heads": 3}, "model.heads = 3 must list"),
        ("attn_only", {"embed": "hot"}, "must be one of one_hot, learned"),
        ("attn_mlp", {"w_init": "one"}, "must be one of zero, normal"),
        ("attn_mlp", {"outputs": 0}, "at least 1 output"),
    ],
)
def test_bad_models_are_refused(name, fields, sentence):
    fields = dict(fields)
    outputs = fields.pop("outputs", None)
    with pytest.raises(ValueError, match=sentence):
        build(name, [0], S, T, outputs, **fields)


@pytest.mark.parametrize("name", ["simple_disentangled", "disentangled", "attn_only", "attn_mlp"])
def test_strings_longer_than_the_positions_are_refused(name):
    with pytest.raises(ValueError, match="13 tokens are longer than the 12 positions"):
        build(name, [0], S, T)(strings(1, 2, 13, vocabulary=S))
