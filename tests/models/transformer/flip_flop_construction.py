"""Proposition 3 of Liu et al. 2023 (card T1): weights that solve flip-flop exactly, put into the packed decoder."""

import math

import torch

import models
from harness.draw import Draw


def flip_flop_construction(length: int, sharpness: float | None = None):
    """A pack of one: 2 layers, 1 head of dimension 2, D = 7, linear positions, no norm.

    Coordinates: e1 = w, e2 = r or i, e3 and e4 = bits 0 and 1, e5 = 1, e6 = t/T, e7 = "the token before me is w, or I am".
    """
    c = sharpness if sharpness is not None else length * math.log(32 * length)
    pack = models.build(
        "transformer",
        Draw(torch.tensor([0]), "init"),
        vocabulary=5,
        length=length,
        layers=2,
        width=7,
        heads=1,
        head_dim=2,
        activation="relu",
        norm="none",
    )
    e1, e2, e3, e4, e5, e6, e7 = range(7)
    with torch.no_grad():
        for parameter in pack.parameters():
            parameter.zero_()
        for token, coordinate in ((0, e1), (1, e2), (2, e2), (3, e3), (4, e4)):
            pack.tokens[0, token, coordinate] = pack.tokens[0, token, e5] = 1
        pack.positions[0, :, e6] = torch.arange(length) / length * math.sqrt(7)  # the model scales positions by D^-1/2
        first, second = pack.blocks
        for block in pack.blocks:  # the model divides scores by sqrt(2)
            block.query.weight[0, e5] = math.sqrt(2)
        # score(i -> j) = c (1.5/T [x_j = w] + j/T): the token itself, unless the one before it is a w
        first.key.weight[0, e1, 0] = 1.5 * c / length
        first.key.weight[0, e6, 1] = c
        first.value.weight[0, e1, 0] = 1
        first.out.weight[0, 0, e7] = 1
        # round the flag: relu(4x - 1) - relu(4x - 2) - x, added to the residual x
        for unit, (slope, offset, sign) in enumerate(((4, -1, 1), (4, -2, -1), (1, 0, -1))):
            first.up.weight[0, e7, unit], first.up.bias[0, unit], first.down.weight[0, unit, e7] = slope, offset, sign
        # score(i -> j) = c ([flag_j] + j/T): the symbol after the latest w
        second.key.weight[0, e7, 0] = c
        second.key.weight[0, e6, 1] = c
        second.value.weight[0, e4, 0] = 1
        second.out.weight[0, 0, e1] = 2  # reads have e1 = 0, so e1 becomes twice the remembered bit
        pack.head.weight[0, e1, 4] = 1
        pack.head.weight[0, e1, 3] = -1
        pack.head.bias[0] = torch.tensor([-9.0, -9.0, -9.0, 2.0, 0.0])
    return pack
