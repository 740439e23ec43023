"""Every member of the transformer family: bits do not depend on the pack, needed positions and attention are those of the full pass."""

import zlib

import pytest
import torch

import models
from harness.draw import Draw
from models.noise import Noise
from models.transformer.feedforward import ACTIVATIONS
from models.transformer.forward_pass import Rows
from tests.models.transformer.variants import BATCH, DROPOUT, FAMILY, LENGTH, VOCABULARY, blocks, family, noise, seeds, tokens
from tests.rounding import assert_same

members = pytest.mark.parametrize("name", FAMILY)


def _losses(model, slots, needed=None, attend=None, noisy=True):
    logits = model(tokens(slots), needed, noise(model, slots) if noisy else None, attend)
    kind = torch.arange(logits.shape[2]) % VOCABULARY
    return -logits.log_softmax(-1).gather(-1, kind[None, None, :, None].expand(*logits.shape[:3], 1)).flatten(1).mean(1)


def _gradients(model, losses):
    model.zero_grad()
    losses.sum().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@members
@pytest.mark.parametrize("count", [None, 4, 1])
def test_no_bit_depends_on_the_pack_or_the_position_in_it(name, count):
    everyone = seeds(4)
    packs = [everyone, everyone.flip(0)[:3], everyone[2:3], everyone[:1]]
    found = []
    for slots in packs:
        model = family(name, slots)
        losses = _losses(model, slots, None if count is None else blocks(slots, count))
        found.append((losses.detach(), _gradients(model, losses)))
    for (losses, gradients), slots in zip(found[1:], packs[1:], strict=True):
        places = [everyone.tolist().index(slot) for slot in slots.tolist()]
        assert torch.equal(losses, found[0][0][places])
        for parameter, gradient in gradients.items():
            assert torch.equal(gradient, found[0][1][parameter][places]), parameter
            assert gradient.any(), f"nothing reaches {parameter}"


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 3])
def test_an_activation_has_the_same_bits_where_a_product_padded_its_rows(name, rows):
    """Only the part of a single replicate is then contiguous, for which torch may take another kernel."""
    padded = torch.randn(3, 8, 128, generator=torch.Generator().manual_seed(0))

    def run(slots):
        x = padded[slots].requires_grad_()
        out = ACTIVATIONS[name](x[:, :rows])
        (gradient,) = torch.autograd.grad(out.square().sum(), x)
        return out.detach(), gradient

    together, gradients = run([0, 1, 2])
    for slot in range(3):
        alone, gradient = run([slot])
        assert torch.equal(alone[0], together[slot])
        assert torch.equal(gradient[0], gradients[slot])


@members
@pytest.mark.parametrize("watched", [False, True])
def test_needed_positions_alone_equal_the_full_computation_with_its_noise(name, watched):
    """In float64, where another order of a sum is far below any other difference."""
    slots, seen = seeds(2), []
    model, wanted = family(name, slots).double(), blocks(slots, 4)
    attend = (lambda layer, weights: seen.append((layer, weights))) if watched else None
    few = model(tokens(slots), wanted, noise(model, slots), attend)
    assert [layer for layer, _ in seen] == ([0, 1] if watched else [])
    full = model(tokens(slots), None, noise(model, slots))
    places = torch.cat(wanted, dim=-1)[..., None].expand(-1, -1, -1, VOCABULARY)
    assert_same(few, full.gather(2, places))
    one = _gradients(model, few.square())
    other = _gradients(model, full.gather(2, places).square())
    for parameter, gradient in one.items():
        assert_same(gradient, other[parameter], parameter)


@members
@pytest.mark.parametrize("count", [None, 4])
def test_attention_that_is_watched_changes_nothing_and_is_a_distribution(name, count):
    slots, seen = seeds(2), {}
    model = family(name, slots).double()
    wanted = None if count is None else blocks(slots, count)
    fused = model(tokens(slots), wanted)
    watched = model(tokens(slots), wanted, None, seen.__setitem__)
    assert_same(watched, fused)
    one, other = _gradients(model, fused.square()), _gradients(model, watched.square())
    for parameter, gradient in one.items():
        assert_same(gradient, other[parameter], parameter)
    assert sorted(seen) == [0, 1]
    for weights in seen.values():
        assert weights.shape == (2, BATCH, model.config.heads, LENGTH, LENGTH)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=torch.float64))
        hidden = weights[..., torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)]
        assert bool((hidden == 0).all()) == model.config.causal


def test_what_attend_is_shown_is_before_dropout_and_has_a_gradient():
    slots, seen = seeds(2), {}
    model = family("dropout", slots)
    model(tokens(slots), blocks(slots, 2), noise(model, slots), seen.__setitem__)
    torch.testing.assert_close(seen[1].sum(-1), torch.ones(seen[1].shape[:-1]))
    seen[1].square().sum().backward()
    assert model.blocks[1].query.weight.grad.abs().sum() > 0


def test_the_default_is_what_it_was_before_there_were_options():
    slots = torch.tensor([3, 8])
    model = models.build("transformer", Draw(slots, "init"), vocabulary=5, length=11, layers=2, width=32, heads=4)
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    assert zlib.crc32(weights) == 1108446629  # all three from the code of the first release
    logits = model(Draw(slots, "data", 2).integers(5, (3, 11)))
    logits.square().sum().backward()
    assert logits.double().square().sum((1, 2, 3)).tolist() == pytest.approx([37.73587586268759, 24.658913905027696], rel=1e-5)
    gradients = sum(parameter.grad.double().abs().flatten(1).sum(1) for parameter in model.parameters())
    assert gradients.tolist() == pytest.approx([30913.829975455104, 21532.270565866573], rel=1e-5)


@members
def test_noise_of_rate_0_and_no_noise_are_the_same(name):
    slots = seeds(2)
    model = family(name, slots, **dict.fromkeys(DROPOUT, 0.0), shift=0)
    assert torch.equal(_losses(model, slots), _losses(model, slots, noisy=False))


@pytest.mark.parametrize("option", DROPOUT)
def test_each_dropout_acts_where_its_rate_is_above_0(option):
    slots = seeds(2)
    model = family("default", slots, **{option: 0.5})
    assert not torch.isclose(_losses(model, slots), _losses(model, slots, noisy=False), rtol=1e-4).any()


def _only(option, slots, rate, step=9):
    rates = {name: torch.zeros(len(slots)) for name in DROPOUT} | {option: torch.tensor(rate)}
    return Noise(Draw(slots, "dropout", step), Draw(slots, "shift", step), rates)


def test_dropout_drops_its_rate_of_the_weights_and_keeps_their_mean():
    """One layer without projections of note: the value is 1 everywhere, so a mixed value is the sum of the weights that are kept."""
    slots, rate = torch.tensor([1, 2]), [0.25, 0.5]
    model = models.configure(
        "transformer",
        layers=1,
        width=2,
        heads=1,
        positions="none",
        norm="none",
        feed_forward=0,
        attention_dropout=0.1,
        causal=False,
    ).make(Draw(slots, "init"), 2, 32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.tokens.fill_(1)
        model.blocks[0].value.weight.copy_(torch.eye(2))
        model.blocks[0].out.weight.copy_(torch.eye(2))
        model.head.weight.copy_(torch.eye(2))
    logits = model(torch.zeros(2, 64, 32, dtype=torch.int64), None, _only("attention_dropout", slots, rate))
    kept = logits[..., 0] - 1  # without the residual: the share of 32 weights that is kept, over 1 - rate
    for slot in range(2):
        share = kept[slot] * (1 - rate[slot])
        assert share.mean().item() == pytest.approx(1 - rate[slot], abs=0.005)  # of 65,536 weights: 2.5 standard errors
        assert share.std().item() == pytest.approx((rate[slot] * (1 - rate[slot]) / 32) ** 0.5, rel=0.1)
    assert torch.equal(logits[..., 0], logits[..., 1])


@pytest.mark.parametrize("option", ["embedding_dropout", "residual_dropout", "feed_forward_dropout"])
def test_a_rate_is_the_share_of_zeros(option):
    slots, rate = torch.tensor([1, 2]), [0.25, 0.5]
    model = family(
        "default", slots, layers=1, norm="none", residual=False, positions="none", activation="gelu", **{option: 0.1}
    )
    caught = []
    site = {"embedding_dropout": model.blocks[0], "residual_dropout": model.head, "feed_forward_dropout": model.blocks[0].down}
    hook = site[option].register_forward_pre_hook(lambda module, inputs: caught.append(inputs[0]))
    if option == "residual_dropout":  # the head reads its weight alone
        hook.remove()
        model.head = torch.nn.Identity()
        model.head.weight = torch.eye(32).expand(2, -1, -1)
        model.head_weight, model.head.bias = (lambda: model.head.weight), None
        caught.append(model(tokens(slots, 64), None, _only(option, slots, rate)).flatten(1, 2))
    else:
        model(tokens(slots, 64), None, _only(option, slots, rate))
    zeros = (caught[0] == 0).float().flatten(1).mean(1)
    assert zeros.tolist() == pytest.approx(rate, abs=0.012)


def test_a_replicate_has_the_rate_of_its_own_configuration():
    slots = seeds(3)
    model = family("default", slots, residual_dropout=0.5)
    free, rates = _only("residual_dropout", slots, [0.0, 0.5, 0.0]), torch.tensor([True, False, True])
    same = (model(tokens(slots), None, free) == model(tokens(slots))).flatten(1).all(1)
    assert torch.equal(same, rates)


@pytest.mark.parametrize("name", ["learned, shifted", "sinusoidal", "linear"])
def test_a_shift_adds_one_integer_a_replicate_to_the_indices(name):
    slots = seeds(3)
    model, shift = family(name, slots), noise(family(name, slots), slots).shift(7)
    assert shift.min() >= 0
    assert shift.max() <= 7
    assert len(shift.unique()) > 1
    whole = model.position_vectors(LENGTH + 7)
    moved = model.position_vectors(LENGTH, shift)
    for slot, by in enumerate(shift.tolist()):
        source = whole[slot] if len(whole) > 1 else whole[0]
        torch.testing.assert_close(moved[slot], source[by : by + LENGTH], rtol=0, atol=0)


def test_a_shift_changes_no_score_of_rotary_positions():
    slots, seen, moved = seeds(3), {}, {}
    model = family("rotary, shifted", slots)
    model(tokens(slots), None, None, seen.__setitem__)
    model(tokens(slots), None, noise(model, slots), moved.__setitem__)
    assert noise(model, slots).shift(7).any()
    for layer in (0, 1):
        assert_same(moved[layer], seen[layer])
        assert not torch.equal(moved[layer], seen[layer])  # the angles do move


@pytest.mark.parametrize("name", ["sinusoidal", "linear", "rotary", "alibi", "no positions"])
def test_fixed_encodings_serve_strings_longer_than_the_model_was_made_for(name):
    slots = seeds(2)
    model = family(name, slots)
    model.double()
    long, short = model(tokens(slots, length=3 * LENGTH)), model(tokens(slots, length=3 * LENGTH)[..., :LENGTH])
    assert_same(long[:, :, :LENGTH], short)  # causal: what comes later is not seen


def test_a_learned_table_has_the_rows_of_its_shift():
    slots = seeds(2)
    model = family("learned, shifted", slots)
    assert model.positions.shape == (2, LENGTH + 7, 32)
    assert model(tokens(slots, length=LENGTH + 7)).shape[2] == LENGTH + 7
    with pytest.raises(ValueError, match="19 tokens are longer than the 18 positions"):
        model(tokens(slots, length=LENGTH + 8))
    with pytest.raises(ValueError, match="12 tokens are longer than the 11 positions"):
        model(tokens(slots, length=LENGTH + 1), None, noise(model, slots))


def test_an_encoder_sees_later_tokens_and_a_decoder_does_not():
    slots = seeds(2)
    other = tokens(slots).clone()
    other[..., -1] = (other[..., -1] + 1) % VOCABULARY
    for name, changes in (("default", False), ("bert", True), ("encoder, alibi", True), ("alibi", False)):
        model = family(name, slots)
        before = (model(tokens(slots)) == model(other))[:, :, :-1].flatten(1).all(1)
        assert before.any().item() is not changes, name


def test_classes_may_differ_from_tokens():
    model = models.configure("transformer", layers=1, width=8, heads=2).make(Draw(seeds(2), "init"), 5, 7, outputs=3)
    assert model(torch.zeros(2, 2, 7, dtype=torch.int64)).shape == (2, 2, 7, 3)


def test_rows_are_those_of_their_strings():
    x = torch.arange(2 * 3 * 4.0).view(2, 12, 1)
    needed = torch.tensor([[[3, 0], [1, 1], [2, 3]], [[0, 0], [3, 2], [1, 0]]])
    assert torch.equal(Rows(needed, 4).of(x).view(2, 3, 2), x.view(2, 3, 4).gather(2, needed))


def test_gpt2_starts_small_and_smaller_where_layers_add():
    model = models.configure("transformer", layers=8, width=64, heads=4, bias=True, initial="gpt2", head="transform").make(
        Draw(seeds(1), "init"), 60, 50
    )
    block = model.blocks[3]
    for weight in (
        model.tokens,
        model.positions,
        block.query.weight,
        block.up.weight,
        model.transform.weight,
        model.head.weight,
    ):
        assert weight.std().item() == pytest.approx(0.02, rel=0.06)
    for weight in (block.out.weight, block.down.weight):
        assert weight.std().item() == pytest.approx(0.02 / 4, rel=0.06)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
    assert torch.equal(model.position_vectors(50), model.positions)  # not scaled


@pytest.mark.parametrize("name", FAMILY)
def test_bfloat16_gives_what_float32_does_within_its_precision(name):
    slots = seeds(2)
    model = family(name, slots)
    for attend in (None, lambda layer, weights: None):
        with torch.autocast("cpu", torch.bfloat16):
            rough = model(tokens(slots), blocks(slots, 3), noise(model, slots), attend)
        exact = model(tokens(slots), blocks(slots, 3), noise(model, slots), attend)
        assert (rough.float() - exact).abs().max() < 0.1 * exact.abs().max().clamp(min=1)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"positions": "rotary", "head_dim": 5}, "needs an even model.head_dim, and it is 5"),
        ({"positions": "rotary", "width": 12}, "needs an even model.head_dim, and it is 3"),
        ({"positions": "sinusoidal", "width": 33, "heads": 3}, "needs an even model.width, and it is 33"),
        ({"activation": "swish"}, "model.activation = 'swish' must be one of gelu, relu, glu, geglu, reglu, swiglu"),
        ({"norm": "after"}, "must be one of pre, none, post, branch"),
        ({"join": "sum"}, "must be one of concatenate, average"),
        ({"head": "mlp"}, "must be one of linear, transform"),
        ({"initial": "xavier"}, "must be one of library, gpt2"),
        ({"attention_dropout": 1.0}, "model.attention_dropout = 1.0 must be at least 0 and below 1"),
        ({"embedding_dropout": -0.1}, "model.embedding_dropout = -0.1"),
        ({"residual_dropout": float("nan")}, "model.residual_dropout = nan"),
        ({"shift": -1}, "model.shift = -1 must be at least 0"),
        ({"shift": 3, "positions": "none"}, "shift = 3 changes nothing with model.positions = 'none'.*learned, sinusoidal"),
        ({"shift": 3, "positions": "alibi"}, "shift = 3 changes nothing with model.positions = 'alibi'"),
        ({"feed_forward": -1}, "model.feed_forward = -1 must be at least 1, or 0 for none"),
        ({"feed_forward": 0, "feed_forward_dropout": 0.1}, "feed_forward_dropout = 0.1 has no place"),
        ({"head": "transform", "activation": "glu"}, "can't be the gated 'glu': write gelu or relu"),
    ],
)
def test_options_that_contradict_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        models.configure("transformer", **{"layers": 2, "width": 32, "heads": 4} | fields)


def test_a_tied_head_needs_a_class_a_token():
    config = models.configure("transformer", layers=1, width=8, heads=2, tied=True)
    with pytest.raises(ValueError, match="3 classes for 5 tokens: write false"):
        config.make(Draw(seeds(1), "init"), 5, 7, outputs=3)


def test_without_positions_prefixes_of_one_token_are_answered_alike():
    """Why no such model gets all of a parity: after 1, 11, 111, … it says the same, and is wrong in every other one of these."""
    slots = torch.tensor([1, 2])
    inputs = torch.tensor([1, 1, 1, 1, 0]).expand(2, 1, 5)
    make = lambda positions: models.configure("transformer", layers=2, width=16, heads=2, positions=positions).make(  # noqa: E731
        Draw(slots, "init"), 2, 5
    )
    said = make("none")(inputs)
    torch.testing.assert_close(said[:, :, 1:4], said[:, :, :1].expand(-1, -1, 3, -1))
    assert not torch.allclose(said[:, :, 4], said[:, :, 0], atol=1e-3)
    placed = make("sinusoidal")(inputs)
    assert not torch.allclose(placed[:, :, 1], placed[:, :, 0], atol=1e-3)
