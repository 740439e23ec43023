"""The packed decoder against x-transformers, the thesis' own library, and against the explicit construction of Proposition 3."""

import math

import pytest
import torch
from torch import nn

import models
import tasks
from harness.draw import Draw
from harness.training.loss_positions import needed
from tests.models.transformer.flip_flop_construction import flip_flop_construction
from tests.rounding import assert_same


def _pack(replicates=2, vocabulary=5, length=24, **fields):
    fields = {"layers": 2, "width": 32, "heads": 4} | fields
    seeds = torch.arange(replicates) + 3
    return models.build("transformer", Draw(seeds, "init"), vocabulary=vocabulary, length=length, **fields)


def _peer(pack, slot, length, layers, width, heads):
    from x_transformers import Decoder, TransformerWrapper

    peer = TransformerWrapper(
        num_tokens=5,
        max_seq_len=length,
        attn_layers=Decoder(dim=width, depth=layers, heads=heads, attn_dim_head=width // heads),
    )
    copies = {"token_emb.emb.weight": pack.tokens[slot], "pos_emb.emb.weight": pack.positions[slot]}
    copies |= {"attn_layers.final_norm.gamma": pack.norm.gain[slot] - 1, "to_logits.weight": pack.head.weight[slot].T}
    for i, block in enumerate(pack.blocks):
        attention, forward = f"attn_layers.layers.{2 * i}", f"attn_layers.layers.{2 * i + 1}"
        copies[f"{attention}.0.0.gamma"] = block.norm1.gain[slot] - 1  # stored as the offset from one
        copies[f"{forward}.0.0.gamma"] = block.norm2.gain[slot] - 1
        for theirs, ours in (("to_q", block.query), ("to_k", block.key), ("to_v", block.value), ("to_out", block.out)):
            copies[f"{attention}.1.{theirs}.weight"] = ours.weight[slot].T
        copies[f"{forward}.1.ff.0.0.weight"], copies[f"{forward}.1.ff.0.0.bias"] = block.up.weight[slot].T, block.up.bias[slot]
        copies[f"{forward}.1.ff.2.weight"], copies[f"{forward}.1.ff.2.bias"] = block.down.weight[slot].T, block.down.bias[slot]
    peer.load_state_dict({name: value.detach().clone() for name, value in copies.items()}, strict=True)
    return peer


@pytest.fixture
def batch():
    return tasks.build("flipflop", length=24).sample(Draw(torch.tensor([1, 2]), "data", 4), 5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of that library's dependencies
def test_outputs_and_gradients_equal_x_transformers(batch):
    pack = _pack()
    with torch.no_grad():
        pack.head.bias.zero_()  # that library's head and norms have no bias now
        for block in pack.blocks:
            block.norm1.gain.mul_(1.3)
            block.norm2.gain.mul_(0.8)
    logits = pack(batch.inputs)
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    (logits * weights).sum().backward()
    for slot in range(2):
        peer = _peer(pack, slot, 24, 2, 32, 4)
        theirs = peer(batch.inputs[slot])
        assert_same(logits[slot], theirs)
        (theirs * weights[slot]).sum().backward()
        block = pack.blocks[0]
        for ours, other in (
            (pack.tokens.grad[slot], peer.token_emb.emb.weight.grad),
            (pack.positions.grad[slot], peer.pos_emb.emb.weight.grad),
            (block.query.weight.grad[slot].T, peer.attn_layers.layers[0][1].to_q.weight.grad),
            (block.norm1.gain.grad[slot], peer.attn_layers.layers[0][0][0].gamma.grad),
            (block.norm2.gain.grad[slot], peer.attn_layers.layers[1][0][0].gamma.grad),
            (block.up.weight.grad[slot].T, peer.attn_layers.layers[1][1].ff[0][0].weight.grad),
            (pack.blocks[1].down.bias.grad[slot], peer.attn_layers.layers[3][1].ff[2].bias.grad),
            (pack.head.weight.grad[slot].T, peer.to_logits.weight.grad),
        ):
            assert_same(ours, other)


class _Plain(nn.Module):
    """The same decoder for one model in textbook modules: biases in norms and head, masked attention written out."""

    def __init__(self, layers, width, heads, length):
        super().__init__()
        self.heads = heads
        self.tokens, self.positions = nn.Embedding(5, width), nn.Embedding(length, width)
        self.norm1 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.norm2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.maps = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(width, width, bias=False) for name in ("query", "key", "value", "out")})
            for _ in range(layers)
        )
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def load(self, pack, slot):
        def put(mine, theirs):
            mine.weight.copy_(theirs.weight[slot].T)
            if mine.bias is not None:
                mine.bias.copy_(theirs.bias[slot])

        def put_norm(mine, theirs):
            mine.weight.copy_(theirs.gain[slot])
            mine.bias.copy_(theirs.bias[slot])

        with torch.no_grad():
            self.tokens.weight.copy_(pack.tokens[slot])
            self.positions.weight.copy_(pack.positions[slot])
            put_norm(self.norm, pack.norm)
            put(self.head, pack.head)
            for i, block in enumerate(pack.blocks):
                put_norm(self.norm1[i], block.norm1)
                put_norm(self.norm2[i], block.norm2)
                put(self.up[i], block.up)
                put(self.down[i], block.down)
                for name, mine in self.maps[i].items():
                    put(mine, getattr(block, name))

    def forward(self, tokens):
        batch, length = tokens.shape
        width = self.tokens.weight.shape[1]
        x = self.tokens(tokens) + self.positions.weight[:length] * width**-0.5
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        for i, maps in enumerate(self.maps):
            y = self.norm1[i](x)
            q, k, v = (maps[n](y).view(batch, length, self.heads, -1).transpose(1, 2) for n in ("query", "key", "value"))
            scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
            x = x + maps["out"]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            x = x + self.down[i](nn.functional.gelu(self.up[i](self.norm2[i](x))))
        return self.head(self.norm(x))


@pytest.mark.usefixtures("float64")
def test_outputs_and_gradients_equal_a_plain_single_model(batch):
    pack = _pack().double()
    with torch.no_grad():
        for i, parameter in enumerate(pack.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(i)))
    logits = pack(batch.inputs)
    logits.square().sum().backward()
    for slot in range(2):
        plain = _Plain(2, 32, 4, 24)
        plain.load(pack, slot)
        theirs = plain(batch.inputs[slot])
        assert_same(logits[slot], theirs)
        theirs.square().sum().backward()
        for ours, other in (
            (pack.blocks[0].norm1.bias.grad[slot], plain.norm1[0].bias.grad),
            (pack.blocks[1].norm2.bias.grad[slot], plain.norm2[1].bias.grad),
            (pack.norm.bias.grad[slot], plain.norm.bias.grad),
            (pack.head.bias.grad[slot], plain.head.bias.grad),
            (pack.blocks[1].value.weight.grad[slot].T, plain.maps[1]["value"].weight.grad),
            (pack.tokens.grad[slot], plain.tokens.weight.grad),
        ):
            assert_same(ours, other)


@pytest.mark.parametrize("name", ["transformer", "lstm"])
@pytest.mark.parametrize("count", [8, 1])
def test_needed_positions_alone_equal_the_full_computation(name, count, batch):
    fields = {"layers": 2, "width": 32, "heads": 4} if name == "transformer" else {"width": 16}
    draw = Draw(torch.tensor([0, 1]), "init")
    few, full = (models.build(name, draw, vocabulary=5, length=24, **fields).double() for _ in range(2))
    wanted = needed(batch, count)  # count = 1: every string overflows into further blocks
    assert len(wanted.blocks) > (1 if count == 1 else 0)
    picked = few(batch.inputs, wanted.blocks) * wanted.weights[..., None]
    everything = full(batch.inputs) * batch.weights[..., None]
    order = wanted.order[..., None].expand(-1, -1, -1, 5)
    assert_same(picked, everything.gather(2, order))
    picked.square().sum().backward()
    everything.square().sum().backward()
    for one, other in zip(few.parameters(), full.parameters(), strict=True):
        assert_same(one.grad, other.grad)


def test_the_baseline_has_the_parameters_of_the_paper():
    with torch.device("meta"):
        shapes = models.configure("transformer", layers=6, width=512, heads=8)
    pack = shapes.make(Draw(torch.tensor([0]), "init"), 5, 512)
    assert sum(parameter.numel() for parameter in pack.parameters()) == 19_170_309  # card, section 2


def test_initial_weights_do_not_depend_on_what_else_the_model_has():
    shallow, deep = _pack(layers=1), _pack(layers=3)
    assert torch.equal(shallow.blocks[0].up.weight, deep.blocks[0].up.weight)
    assert torch.equal(shallow.head.weight, deep.head.weight)


def test_initial_weights_follow_the_library_the_paper_used():
    pack = _pack(width=128, length=64)
    assert pack.tokens.std().item() == pytest.approx((2 / 128) ** 0.5, rel=0.1)
    assert pack.positions.std().item() == pytest.approx(1, rel=0.05)
    for linear in (pack.blocks[0].query, pack.blocks[0].up, pack.head):
        assert linear.weight.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)
    assert pack.blocks[0].down.weight.abs().max().item() == pytest.approx(512**-0.5, rel=0.01)


@pytest.mark.parametrize("p_ignore", [0.8, 0.98, 0.1])
def test_the_explicit_construction_never_errs_at_512(p_ignore):
    """Proposition 3 (card T1): two layers, one head each, d = 7, k = 2."""
    task = tasks.build("flipflop", length=512, p_ignore=p_ignore)
    batch = task.sample(Draw(torch.tensor([0]), "evaluate"), 60)
    pack = flip_flop_construction(512)
    wrong = task.wrong(pack(batch.inputs), batch.targets)["read"] & (batch.weights > 0)
    assert wrong.sum().item() == 0
    assert batch.weights.sum().item() > 200


def test_the_construction_errs_when_its_attention_is_too_soft():
    """Card T1: at a quarter of the sharpness T the construction fails, so the test above can."""
    task = tasks.build("flipflop", length=512, p_ignore=0.98)
    batch = task.sample(Draw(torch.tensor([0]), "evaluate"), 60)
    wrong = task.wrong(flip_flop_construction(512, sharpness=512 / 4)(batch.inputs), batch.targets)["read"] & (
        batch.weights > 0
    )
    assert wrong.sum().item() / batch.weights.sum().item() > 0.1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"heads": 5}, "heads = 5 does not divide model.width = 32"),
        ({"layers": 0}, "model.layers = 0"),
        ({"positions": "rotery"}, "learned, none"),
        ({"laters": 3}, "did you mean layers"),
    ],
)
def test_bad_models_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        _pack(**fields)


def test_strings_longer_than_the_positions_are_refused(batch):
    with pytest.raises(ValueError, match="24 tokens are longer than the 8 positions"):
        _pack(length=8)(batch.inputs)


@pytest.mark.parametrize("options", [{}, {"positions": "alibi"}, {"causal": False}])
def test_more_strings_than_an_attention_kernel_takes_go_in_parts(options, monkeypatch):
    """CUDA's kernels refuse more than 65,535 strings a call: the parts have the whole's results and gradients, bit by bit."""
    from models.transformer import attention

    batch = tasks.build("flipflop", length=16).sample(Draw(torch.tensor([1, 2, 3])), 5)
    results = []
    for most in (attention.STRINGS, 4):
        monkeypatch.setattr(attention, "STRINGS", most)
        pack = models.build(
            "transformer",
            Draw(torch.tensor([4, 5, 6]), "init"),
            vocabulary=5,
            length=16,
            layers=2,
            width=16,
            heads=2,
            **options,
        )
        logits = pack(batch.inputs)
        logits.square().sum().backward()
        results.append([logits, *(parameter.grad for parameter in pack.parameters())])
    assert all(torch.equal(whole, parts) for whole, parts in zip(*results, strict=True))
