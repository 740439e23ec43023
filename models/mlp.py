"""A multi-layer perceptron over whole strings of bits, for sparse and hierarchical parity.

Panigrahi et al. 2025 (sections 4.2.7.1 and 4.2.7.3 of the thesis): one hidden ReLU layer, teachers 50,000 wide, students 100 and 1,000;
linear layers start as in torch.nn.Linear.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.draws import Draw
from models.linear import Linear
from models.model import Attend, Blocks, Model, refuse_below
from models.noise import Noise
from models.unfit import UnfitModel


@dataclass(frozen=True)
class MLP(Model):
    """Options of the perceptron. width: units in each hidden layer, up to 50,000 in the paper. layers: number of hidden layers."""

    width: int = 1000
    layers: int = 1

    def __post_init__(self) -> None:
        refuse_below(self, width=1, layers=1)

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Perceptron":
        """Raises ValueError for a vocabulary other than two tokens and for fewer than two outputs."""
        outputs = vocabulary if outputs is None else outputs
        if vocabulary != 2:
            raise ValueError(
                f"the mlp reads bits, and this task has {vocabulary} tokens: give it a task with a vocabulary of 2"
            )
        if outputs < 2:
            raise ValueError(f"the mlp needs at least 2 outputs, one a class, not {outputs}")
        return Perceptron(self, draw, length, outputs)


class Perceptron(nn.Module):
    """tokens [R, B, T] of 0 and 1, read as +1 and -1 → logits [R, B, T, V]; with `needed`, blocks [R, B, K] → [R, B, sum of K, V].

    It reads the whole string at once, so it answers at the last position alone: at every other one the logits are zero, the uniform
    guess, and no gradient comes from there. T is the length it was made for.
    """

    def __init__(self, config: MLP, draw: Draw, length: int, outputs: int):
        super().__init__()
        self.length = length
        width = config.width
        self.layers = nn.ModuleList(Linear(draw, f"layers.{i}", width if i else length, width) for i in range(config.layers))
        self.head = Linear(draw, "head", width, outputs)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        if attend is not None:
            raise ValueError("the mlp has no attention to hand out: leave out the penalty or probe that asks for it")
        if tokens.shape[-1] != self.length:
            raise UnfitModel(f"this mlp reads strings of {self.length} tokens, not of {tokens.shape[-1]}")
        x = (1 - 2 * tokens).to(self.head.weight.dtype)
        for layer in self.layers:
            x = torch.relu(layer(x))
        logits = self.head(x)[:, :, None]  # [R, B, 1, V]
        positions = torch.arange(self.length, device=tokens.device) if needed is None else torch.cat(tuple(needed), dim=-1)
        last = (positions == self.length - 1)[..., None]  # [T, 1] or [R, B, sum of K, 1]
        return torch.where(last, logits, torch.zeros_like(logits))
