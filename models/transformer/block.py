"""One layer of a transformer: attention, then a feed-forward, each a branch beside the residual stream x [R, B·T, D].

pre           x + f(norm(x))                 GPT-2
post          norm(x + f(x))                 BERT
branch        x + norm(f(x))                 Liu's thesis, equation 3.23
feed_forward  attention as in none, the feed-forward as in pre: the models of brackets in Li's thesis
none          x + f(x)
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from models.aligned import product
from models.draws import Draw
from models.linear import Linear, Norm
from models.transformer.attention import mix
from models.transformer.feedforward import ACTIVATIONS
from models.transformer.forward_pass import ATTENTION_BRANCH, FEED_FORWARD_BRANCH, HIDDEN, Rows, Scene, site
from models.transformer.options import Options


class Block(nn.Module):
    """Layer number `layer`, from 0. `block(x, scene)` is its output everywhere, `block.at` at needed positions alone."""

    def __init__(self, config: Options, draw: Draw, layer: int):
        super().__init__()
        self.config, self.layer = config, layer
        name, width, bias, std = f"blocks.{layer}", config.width, config.bias, config.std
        head_dim = config.head_dim or width // config.heads
        inner, joined = config.heads * head_dim, head_dim if config.join == "average" else config.heads * head_dim
        hidden = 4 * width if config.feed_forward is None else config.feed_forward
        self.activation = ACTIVATIONS[config.activation]
        self.norm1 = Norm(draw, f"{name}.norm1", width) if config.norm not in ("none", "feed_forward") else None
        self.norm2 = Norm(draw, f"{name}.norm2", width) if config.norm != "none" and hidden else None
        self.query = Linear(draw, f"{name}.query", width, inner, bias, std)
        self.key = Linear(draw, f"{name}.key", width, inner, bias, std)
        self.value = Linear(draw, f"{name}.value", width, inner, bias, std)
        # GPT-2: what adds to the residual stream is smaller the more layers do
        last = None if std is None else std / (2 * config.layers) ** 0.5
        self.out = Linear(draw, f"{name}.out", joined, width, bias, last)
        self.up = Linear(draw, f"{name}.up", width, hidden * (2 if self.activation.gated else 1), True, std) if hidden else None
        self.down = Linear(draw, f"{name}.down", hidden, width, True, last) if hidden else None

    def forward(self, x: Tensor, scene: Scene) -> Tensor:
        """The outputs at all positions, [R, B·T, D]."""
        return self._finish(x, self._mixed(x, scene, None), scene, None)

    def at(self, x: Tensor, scene: Scene, needed: tuple[Tensor, ...]) -> list[Tensor]:
        """The outputs at each block of positions [R, B, K] alone, [R, B·K, D]. Only keys and values are computed everywhere."""
        outputs = []
        everywhere = None if scene.attend is None else self._mixed(x, scene, None)
        for block in needed:
            rows = Rows(block, scene.length)
            mixed = self._mixed(x, scene, rows) if everywhere is None else rows.of(everywhere)
            outputs.append(self._finish(rows.of(x), mixed, scene, rows))
        return outputs

    def _mixed(self, x: Tensor, scene: Scene, rows: Rows | None) -> Tensor:
        """Attention up to its last projection: x [R, B·T, D] → [R, B·Q, H·K], or [R, B·Q, K] where heads are averaged."""
        normal = layer_norm(x, x.shape[-1:]) if self.config.norm == "pre" else x
        if rows is None:
            query, key, value = self._project(normal, (self.query, self.key, self.value))
        else:
            (query,) = self._project(rows.of(normal), (self.query,))
            key, value = self._project(normal, (self.key, self.value))
        return mix(query, key, value, scene, self.layer, rows)

    def _finish(self, x: Tensor, mixed: Tensor, scene: Scene, rows: Rows | None) -> Tensor:
        """The rest of the layer, position by position; x and mixed at all positions, or at `rows` alone."""
        x = self._merge(x, self.out(mixed), self.norm1, scene, ATTENTION_BRANCH, rows)
        if self.up is None or self.down is None:
            return x
        if self.norm2 is None or self.config.norm not in ("pre", "feed_forward"):
            hidden = self.up(x)
        else:
            hidden = product(layer_norm(x, x.shape[-1:]), *self.norm2.fold(self.up.weight, self.up.bias))
        hidden = scene.drop(self.activation(hidden), "feed_forward_dropout", site(self.layer, HIDDEN), rows)
        return self._merge(x, self.down(hidden), self.norm2, scene, FEED_FORWARD_BRANCH, rows)

    def _merge(self, x: Tensor, branch: Tensor, norm: Norm | None, scene: Scene, place: int, rows: Rows | None) -> Tensor:
        """The residual stream with a branch added, [R, N, D]. Dropout is the branch's last step, after its norm where it has one."""
        if norm is not None and self.config.norm == "branch":
            branch = norm(branch)
        branch = scene.drop(branch, "residual_dropout", site(self.layer, place), rows)
        x = x + branch if self.config.residual else branch
        return norm(x) if norm is not None and self.config.norm == "post" else x

    def _project(self, normal: Tensor, maps: tuple[Linear, ...]) -> tuple[Tensor, ...]:
        """Several maps of the same input as one product; [R, N, D] → [R, N, H·K] each."""
        weight = torch.cat([linear.weight for linear in maps], dim=-1)
        bias = torch.cat([cast(Tensor, linear.bias) for linear in maps], dim=-1) if self.config.bias else None
        if self.norm1 is not None and self.config.norm == "pre":
            weight, bias = self.norm1.fold(weight, bias)
        return product(normal, weight, bias).chunk(len(maps), dim=-1)
