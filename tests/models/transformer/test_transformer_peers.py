"""Outputs and gradients of the options against x-transformers and torch.nn.TransformerEncoderLayer, on copied weights."""

import pytest
import torch
from torch import nn

import models
from harness.draw import Draw
from tests.rounding import assert_same

LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS = 24, 5, 32, 4, 2


def _pack(**fields):
    """Two replicates in which no parameter has a special value, but the biases that x-transformers has not are 0."""
    slots = torch.tensor([3, 4])
    model = models.configure("transformer", **{"layers": LAYERS, "width": WIDTH, "heads": HEADS} | fields).make(
        Draw(slots, "init"), VOCABULARY, LENGTH
    )
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter += (Draw(slots, "init", number).uniform(parameter.shape[1:]) - 0.5) * 0.2
    return model


def _tokens():
    return Draw(torch.tensor([1, 2]), "data", 4).integers(VOCABULARY, (3, LENGTH))


def _x_transformers(pack, slot, options):
    """Their model with our weights, and pairs (our gradient, their parameter)."""
    from x_transformers import Decoder, Encoder, TransformerWrapper

    config = pack.config
    options = dict(options)
    names = ("tie_embedding", "tie_embedding_scale", "scaled_sinu_pos_emb", "use_abs_pos_emb")
    wrapper = {name: options.pop(name) for name in names if name in options}
    kind = Decoder if config.causal else Encoder
    layers = kind(dim=WIDTH, depth=LAYERS, heads=HEADS, attn_dim_head=WIDTH // HEADS, **options)
    peer = TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=LENGTH, attn_layers=layers, **wrapper)
    theirs = dict(peer.named_parameters())
    pairs = {"token_emb.emb.weight": (pack.tokens, lambda x: x)}
    if pack.positions is not None:
        pairs["pos_emb.emb.weight"] = (pack.positions, lambda x: x)
    if pack.norm is not None:
        pairs["attn_layers.final_norm.gamma"] = (pack.norm.gain, lambda x: x)
    if not config.tied:
        pairs["to_logits.weight"] = (pack.head.weight, lambda x: x.T)
    for i, block in enumerate(pack.blocks):
        attention, forward = f"attn_layers.layers.{2 * i}", f"attn_layers.layers.{2 * i + 1}"
        place = 2 if config.norm == "post" else 0
        pairs[f"{attention}.0.{place}.gamma"] = (block.norm1.gain, lambda x: x)
        pairs[f"{forward}.0.{place}.gamma"] = (block.norm2.gain, lambda x: x)
        for name, ours in (("to_q", block.query), ("to_k", block.key), ("to_v", block.value), ("to_out", block.out)):
            pairs[f"{attention}.1.{name}.weight"] = (ours.weight, lambda x: x.T)
        up = f"{forward}.1.ff.0.proj" if block.activation.gated else f"{forward}.1.ff.0.0"
        pairs[f"{up}.weight"], pairs[f"{up}.bias"] = (block.up.weight, lambda x: x.T), (block.up.bias, lambda x: x)
        pairs[f"{forward}.1.ff.2.weight"] = (block.down.weight, lambda x: x.T)
        pairs[f"{forward}.1.ff.2.bias"] = (block.down.bias, lambda x: x)
    unmatched = set(theirs) - set(pairs) - {"pos_emb.scale"}  # its scale is trained, ours is fixed at its initial value
    assert not unmatched, unmatched
    with torch.no_grad():
        for name, (ours, turn) in pairs.items():
            # gains are stored as offsets from one
            theirs[name].copy_(turn(ours[slot]) - (1 if name.endswith("gamma") else 0))
    return peer, [(turn, ours, theirs[name], name) for name, (ours, turn) in pairs.items()]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of that library's dependencies
@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"positions": "rotary"}, {"rotary_pos_emb": True, "rotary_emb_dim": WIDTH // HEADS, "use_abs_pos_emb": False}),
        ({"positions": "alibi"}, {"alibi_pos_bias": True, "use_abs_pos_emb": False}),
        ({"positions": "sinusoidal"}, {"scaled_sinu_pos_emb": True}),
        ({"positions": "none"}, {"use_abs_pos_emb": False}),
        ({"activation": "geglu"}, {"ff_glu": True}),
        ({"activation": "swiglu"}, {"ff_glu": True, "ff_swish": True}),
        ({"feed_forward": 48}, {"ff_mult": 1.5}),
        ({"tied": True}, {"tie_embedding": True, "tie_embedding_scale": 1.0}),
        ({"norm": "post"}, {"pre_norm": False}),
        ({"causal": False}, {}),
        ({"causal": False, "positions": "alibi"}, {"alibi_pos_bias": True, "use_abs_pos_emb": False}),
    ],
    ids=str,
)
def test_outputs_and_gradients_equal_x_transformers(fields, options):
    pack, tokens = _pack(head_bias=False, **fields), _tokens()
    with torch.no_grad():  # that library's norms have no bias
        for name, parameter in pack.named_parameters():
            if "norm" in name and name.endswith("bias"):
                parameter.zero_()
    logits = pack(tokens)
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    (logits * weights).sum().backward()
    for slot in range(2):
        peer, pairs = _x_transformers(pack, slot, options)
        theirs = peer(tokens[slot])
        assert_same(logits[slot], theirs)
        (theirs * weights[slot]).sum().backward()
        for turn, ours, other, name in pairs:
            assert_same(turn(ours.grad[slot]), other.grad, name)


@pytest.mark.parametrize(("norm", "activation"), [("post", "relu"), ("post", "gelu"), ("pre", "gelu")])
@pytest.mark.parametrize("causal", [False, True])
def test_outputs_and_gradients_equal_torch_layers(norm, activation, causal):
    """Embedding norm, BERT's head and biases everywhere, with torch's own encoder layers in the middle."""
    pack, tokens = (
        _pack(norm=norm, activation=activation, causal=causal, bias=True, embedding_norm=True, head="transform"),
        _tokens(),
    )
    logits = pack(tokens)
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    (logits * weights).sum().backward()
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH) if causal else None
    function = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}[activation]
    for slot in range(2):
        pairs = []

        def put(theirs, *ours, slot=slot, pairs=pairs):
            with torch.no_grad():
                theirs.copy_(_turned(ours, slot))
            pairs.append((ours, theirs))

        def put_map(theirs, ours):
            put(theirs.weight, ours.weight)
            put(theirs.bias, ours.bias)

        def put_norm(theirs, ours):
            put(theirs.weight, ours.gain)
            put(theirs.bias, ours.bias)

        layers = [
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, activation, batch_first=True, norm_first=norm == "pre")
            for _ in range(LAYERS)
        ]
        for layer, block in zip(layers, pack.blocks, strict=True):
            attention = layer.self_attn
            put(attention.in_proj_weight, block.query.weight, block.key.weight, block.value.weight)
            put(attention.in_proj_bias, block.query.bias, block.key.bias, block.value.bias)
            for theirs, ours in ((attention.out_proj, block.out), (layer.linear1, block.up), (layer.linear2, block.down)):
                put_map(theirs, ours)
            put_norm(layer.norm1, block.norm1)
            put_norm(layer.norm2, block.norm2)
        first, last, transform, head = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 5)
        put_norm(first, pack.embedding_norm)
        put_norm(last, pack.transform_norm)
        put_map(transform, pack.transform)
        put_map(head, pack.head)
        table, places = pack.tokens[slot].detach().requires_grad_(), pack.positions[slot].detach().requires_grad_()
        final = nn.LayerNorm(WIDTH) if norm == "pre" else nn.Identity()
        if norm == "pre":
            put_norm(final, pack.norm)
        x = first(table[tokens[slot]] + places * WIDTH**-0.5)
        for layer in layers:
            x = layer(x, mask, is_causal=causal)
        theirs = head(last(function(transform(final(x)))))
        assert_same(logits[slot], theirs)
        (theirs * weights[slot]).sum().backward()
        assert_same(pack.tokens.grad[slot], table.grad)
        assert_same(pack.positions.grad[slot], places.grad)
        for ours, other in pairs:
            mine = _turned([parameter.grad for parameter in ours], slot)
            assert_same(mine, other.grad)


def _turned(ours, slot):
    """Maps [R, in, out] side by side as torch's [sum of out, in], biases [R, out] as [sum of out]."""
    return torch.cat([one[slot].T if one.dim() == 3 else one[slot] for one in ours])


def _written_out(pack, slot, tokens):
    """One replicate of the options that no library has, in the plainest words: one head at a time."""
    config, width = pack.config, pack.config.width
    take = {name: parameter[slot] for name, parameter in pack.named_parameters()}
    head_dim = width // config.heads

    def norm(x, name):
        return nn.functional.layer_norm(x, (width,), take[f"{name}.gain"], take[f"{name}.bias"])

    x = take["tokens"][tokens] + take["positions"] * width**-0.5
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    for i in range(config.layers):
        name, outputs = f"blocks.{i}", []
        for h in range(config.heads):
            part = slice(h * head_dim, (h + 1) * head_dim)
            q, k, v = (x @ take[f"{name}.{each}.weight"][:, part] for each in ("query", "key", "value"))
            scores = (q @ k.transpose(-1, -2) / head_dim**0.5).masked_fill(hidden, -torch.inf)
            outputs.append(scores.softmax(-1) @ v)
        joined = sum(outputs) / config.heads if config.join == "average" else torch.cat(outputs, dim=-1)
        branch = joined @ take[f"{name}.out.weight"]
        branch = norm(branch, f"{name}.norm1") if config.norm == "branch" else branch
        x = x + branch if config.residual else branch
        if config.feed_forward != 0:
            read = norm(x, f"{name}.norm2") if config.norm == "feed_forward" else x
            up = read @ take[f"{name}.up.weight"] + take[f"{name}.up.bias"]
            if config.activation == "glu":
                up = up[..., : 4 * width] * torch.sigmoid(up[..., 4 * width :])
            elif config.activation == "reglu":
                up = up[..., : 4 * width] * up[..., 4 * width :].clamp(min=0)
            else:
                up = nn.functional.gelu(up)
            branch = up @ take[f"{name}.down.weight"] + take[f"{name}.down.bias"]
            branch = norm(branch, f"{name}.norm2") if config.norm == "branch" else branch
            x = x + branch if config.residual else branch
    x = norm(x, "norm") if config.norm == "branch" and config.final_norm else x
    return x @ take["head.weight"] + take["head.bias"]


@pytest.mark.parametrize(
    "fields",
    [
        {"norm": "branch"},
        {"norm": "branch", "final_norm": False, "feed_forward": 0, "residual": False},  # Dyck, figure 3.39a
        {"norm": "none", "join": "average"},
        {"norm": "none", "activation": "glu"},
        {"norm": "none", "activation": "reglu"},
        {"norm": "branch", "residual": False},
        {"norm": "feed_forward"},  # the Dyck models of Li's thesis
    ],
    ids=str,
)
def test_outputs_and_gradients_equal_what_is_written_out(fields):
    pack, tokens = _pack(**fields), _tokens()
    ours = pack(tokens)
    for slot in range(2):
        theirs = _written_out(pack, slot, tokens[slot])
        assert_same(ours[slot], theirs)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0))
    mine = torch.autograd.grad((ours * weights).sum(), list(pack.parameters()))
    alone = sum((_written_out(pack, slot, tokens[slot]) * weights[slot]).sum() for slot in range(2))
    for one, other in zip(mine, torch.autograd.grad(alone, list(pack.parameters())), strict=True):
        assert_same(one, other)
