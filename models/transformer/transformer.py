"""The transformer family, decoders and encoders, with a replicate axis on everything.

The default is the baseline of Liu et al. 2023 (section 3.5.6 of the thesis), the x-transformers decoder of its time:
pre-norm, GELU feed-forward of 4·D, no bias in attention, learned absolute positions scaled by D^-1/2, final norm, untied head with bias;
19,170,309 parameters at 6 layers, width 512 and length 512. Other options give GPT-2, BERT and the thesis' other models.

A new position encoding goes into `positions.py`, a new activation into `feedforward.py`, a new place for norms into `block.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from models.aligned import product
from models.draws import Draw
from models.linear import Bias, Linear, Norm, embed, parameter
from models.model import Attend, Blocks
from models.noise import Noise
from models.transformer.attention import visible
from models.transformer.block import Block
from models.transformer.feedforward import ACTIVATIONS
from models.transformer.forward_pass import Scene
from models.transformer.options import Options
from models.transformer.positions import ENCODINGS, waves
from models.unfit import UnfitModel


@dataclass(frozen=True)
class Transformer(Options):
    """The configuration of a `Decoder`; its options are those of `options.py`."""

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Decoder":
        """A pack of draw.replicates for strings of `length` tokens of `vocabulary` kinds, with `outputs` classes (None: vocabulary)."""
        outputs = vocabulary if outputs is None else outputs
        if self.tied and outputs != vocabulary:
            raise ValueError(
                f"model.tied = true needs one output class a token, and the task has {outputs} classes for {vocabulary} tokens: write false"
            )
        return Decoder(self, draw, vocabulary, length, outputs)


class Decoder(nn.Module):
    """A pack of transformers, causal or not."""

    def __init__(self, config: Transformer, draw: Draw, vocabulary: int, length: int, outputs: int):
        super().__init__()
        self.config, self.length = config, length
        width, std = config.width, config.std
        # kaiming_normal_ of a [V, D] table: fan_in = D
        self.tokens = parameter(draw, "tokens", (vocabulary, width), "normal", (2 / width) ** 0.5 if std is None else std)
        self.positions = None
        if ENCODINGS[config.positions].table:
            rows = length + config.shift
            self.positions = parameter(draw, "positions", (rows, width), "normal", 1.0 if std is None else std)
        self.embedding_norm = Norm(draw, "embedding_norm", width) if config.embedding_norm else None
        self.blocks = nn.ModuleList(Block(config, draw, layer) for layer in range(config.layers))
        self.norm = Norm(draw, "norm", width) if config.final_norm and config.norm in ("pre", "branch") else None
        transform = config.head == "transform"
        self.transform = Linear(draw, "transform", width, width, True, std) if transform else None
        self.transform_norm = Norm(draw, "transform_norm", width) if transform else None
        self.head: Linear | Bias | None
        if not config.tied:
            self.head = Linear(draw, "head", width, outputs, config.head_bias, std)
        else:
            self.head = Bias(draw, "head", outputs) if config.head_bias else None

    def forward(
        self,
        tokens: Tensor,
        needed: Blocks = None,
        noise: Noise | None = None,
        attend: Attend | None = None,
        hidden: Tensor | None = None,
    ) -> Tensor:
        """tokens int64 [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V].

        noise: dropout and position shift of a training step, None when scoring. attend(layer, weights [R, B, H, T, T]) is called with
        each layer's attention, after the softmax and before dropout; it is part of the graph. hidden, bool [R, B, T]: tokens that no
        query attends to, themselves included, as with BERT's attention mask; a query that is left without keys reads zeros. Raises
        ValueError for strings longer than a learned table of positions.
        """
        batch, length = tokens.shape[1:3]
        shift = noise.shift(self.config.shift) if noise is not None and self.config.shift else None
        scene = self._scene(batch, length, shift, noise, attend, tokens.device, hidden)
        x = scene.drop(self._embedded(tokens, shift), "embedding_dropout", 0)
        for block in self.blocks[:-1]:
            x = block(x, scene)
        last = cast(Block, self.blocks[-1])
        if needed is None:
            return self._logits(last(x, scene), batch)
        # block by block: another K would change the bits of every weight gradient
        return torch.cat([self._logits(part, batch) for part in last.at(x, scene, tuple(needed))], dim=2)

    def states(self, tokens: Tensor, hidden: Tensor | None = None) -> Tensor:
        """The head's input when scoring, [R, B, T, D]: the last layer's output, after the final norm where there is one."""
        batch, length = tokens.shape[1:3]
        scene = self._scene(batch, length, None, None, None, tokens.device, hidden)
        x = self._embedded(tokens, None)
        for block in self.blocks:
            x = block(x, scene)
        return (x if self.norm is None else self.norm(x)).unflatten(1, (batch, length))

    def head_weight(self) -> Tensor:
        """The weight of the last map, [R, D, V]."""
        return self.head.weight if isinstance(self.head, Linear) else self.tokens.transpose(1, 2)

    def position_vectors(self, length: int, shift: Tensor | None = None) -> Tensor | None:
        """The position vectors that are added to `length` tokens, [1 or R, T, D]; None where none are. shift: int64 [R].

        Raises UnfitModel for strings longer than a learned table.
        """
        vectors = ENCODINGS[self.config.positions].vectors
        if vectors is not None:
            return self._at(lambda index: vectors(index, self.config.width, self.length), length, shift)
        if self.positions is None:
            return None
        rows = self.positions.shape[1] - (0 if shift is None else self.config.shift)
        if length > rows:
            raise UnfitModel(
                f"strings of {length} tokens are longer than the {rows} positions of this model (model.positions other than learned "
                "have no such limit)"
            )
        table = self.positions[:, :length] if shift is None else embed(self.positions, self._index(length, shift))
        return table if self.config.initial == "gpt2" else table * self.config.width**-0.5

    def _index(self, length: int, shift: Tensor) -> Tensor:
        """The shifted indices, int64 [R, T]."""
        return torch.arange(length, device=shift.device) + shift[:, None]

    def _at(self, fixed: Callable[[Tensor], Tensor], length: int, shift: Tensor | None) -> Tensor:
        """Evaluate `fixed`, index float32 [T] → [T, …], at the indices of each replicate: [1 or R, T, …]."""
        # one table for all, then its rows: the bits of a sine depend on what is computed beside it
        last = length if shift is None else length + self.config.shift
        table = fixed(torch.arange(last, device=self.tokens.device, dtype=torch.float32))
        return table[None] if shift is None else table[self._index(length, shift)]

    def _scene(
        self,
        batch: int,
        length: int,
        shift: Tensor | None,
        noise: Noise | None,
        attend: Attend | None,
        device: torch.device,
        hidden: Tensor | None,
    ) -> Scene:
        config, encoding = self.config, ENCODINGS[self.config.positions]
        turn, angles = encoding.angles, None
        if turn is not None:
            head_dim = config.head_dim or config.width // config.heads
            cos, sin = self._at(lambda index: waves(turn(index, head_dim)), length, shift).unbind(2)
            angles = cos, sin
        keys = None if hidden is None else hidden.flatten(0, 1)[:, None, None]
        scene = Scene(config, batch, length, noise, attend, angles, hidden=keys)
        if not scene.explicit and encoding.bias is None and keys is None:
            return scene  # the fused kernel knows the causal mask
        return replace(scene, mask=visible(scene, torch.arange(length, device=device)[:, None]))

    def _embedded(self, tokens: Tensor, shift: Tensor | None) -> Tensor:
        """[R, B, T] → [R, B·T, D]"""
        x = self._vectors(tokens)
        vectors = self.position_vectors(tokens.shape[2], shift)
        if vectors is not None:
            x = x + vectors[:, None]
        x = x.flatten(1, 2)
        return x if self.embedding_norm is None else self.embedding_norm(x)

    def _vectors(self, tokens: Tensor) -> Tensor:
        """[R, B, T] → [R, B, T, D]"""
        return embed(self.tokens, tokens)

    def _logits(self, x: Tensor, batch: int) -> Tensor:
        """[R, B·K, D] → [R, B, K, V]"""
        norm = self.norm
        if self.transform is not None:
            x = _after(norm, x, self.transform.weight, self.transform.bias)
            x, norm = ACTIVATIONS[self.config.activation](x), self.transform_norm
        logits = _after(norm, x, self.head_weight(), None if self.head is None else self.head.bias)
        return logits.view(x.shape[0], batch, -1, logits.shape[-1])


def _after(norm: Norm | None, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The linear map of norm(x), with the norm's gain and bias folded in: [R, N, D] → [R, N, out]."""
    if norm is None:
        return product(x, weight, bias)
    weight, bias = norm.fold(weight, bias)
    return product(layer_norm(x, x.shape[-1:]), weight, bias)
