"""Position encodings by themselves, against x-transformers and by hand."""

import math

import pytest
import torch

from models.transformer.positions import ENCODINGS, alibi, linear, rotary, rotate, sinusoidal

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of that library's dependencies


def _rotated(x, index):
    angles = rotary(index, x.shape[-1])[:, None]
    return rotate(x, angles.cos(), angles.sin())


def test_sinusoidal_is_that_of_x_transformers():
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    index = torch.arange(50).float()
    theirs = ScaledSinusoidalEmbedding(12)(torch.zeros(1, 50, 12)).detach()
    torch.testing.assert_close(sinusoidal(index, 12, 50), theirs, rtol=1e-6, atol=1e-6)
    assert sinusoidal(torch.tensor([3.0]), 12, 50)[0, 0].item() == pytest.approx(math.sin(3) * 12**-0.5)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12])
def test_alibi_is_that_of_x_transformers(heads):
    from x_transformers.x_transformers import AlibiPositionalBias

    index = torch.arange(9)
    ours = alibi((index[:, None] - index).abs(), heads)
    torch.testing.assert_close(ours, AlibiPositionalBias(heads)(9, 9), rtol=1e-6, atol=1e-6)


def test_alibi_slopes_of_eight_heads_are_those_of_the_paper():
    assert alibi(torch.tensor([[1]]), 8).flatten().tolist() == [-(2.0**-h) for h in range(1, 9)]


def test_rotary_is_that_of_x_transformers():
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    x = torch.randn(2, 3, 9, 4, 8, generator=torch.Generator().manual_seed(0))  # [R, B, T, H, K]
    frequencies, _ = RotaryEmbedding(8)(torch.arange(9))
    theirs = apply_rotary_pos_emb(x.flatten(0, 1).transpose(1, 2), frequencies).transpose(1, 2).unflatten(0, (2, 3))
    ours = _rotated(x, torch.arange(9.0))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_rotation_keeps_lengths_and_makes_scores_relative():
    query, key = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))

    def at(x, index):
        return _rotated(x.view(1, 1, 1, 1, 6), torch.tensor([float(index)])).flatten()

    assert at(query, 7).norm().item() == pytest.approx(query.norm().item(), rel=1e-6)
    assert (at(query, 9) @ at(key, 4)).item() == pytest.approx((at(query, 5) @ at(key, 0)).item(), rel=1e-4)
    assert (at(query, 9) @ at(key, 4)).item() != pytest.approx((at(query, 9) @ at(key, 0)).item(), rel=1e-2)


def test_linear_is_one_scalar_feature():
    vectors = linear(torch.arange(8.0), 3, 4)
    assert vectors[:, 2].tolist() == [
        0,
        0.25,
        0.5,
        0.75,
        1,
        1.25,
        1.5,
        1.75,
    ]  # T_max = 4; beyond it, further on the same line
    assert not vectors[..., :2].any()


def test_which_encodings_a_shift_can_move():
    assert {name for name, encoding in ENCODINGS.items() if not encoding.absolute} == {"none", "alibi"}
