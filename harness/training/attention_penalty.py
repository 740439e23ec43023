"""Attention-sharpening penalties: CE + λ(t) · mean of R(α) over heads, layers, query rows and strings (Liu's thesis, 3.5.4.2)."""

import torch
from torch import Tensor

from results.errors import StudyError


class Sharpness:
    """Collects the attention of a forward pass: pass `self` as the model's `attend`, then read `mean()`.

    kind: entropy, H(α) = -Σ α log α in nats; l2, -‖α‖₂; linf, -‖α‖_∞. All are minimised, so all favour one-hot rows.
    layers: the layers that count (0 is the first), None for all.
    """

    def __init__(self, kind: str, layers: tuple[int, ...] | None):
        self.kind, self.layers = kind, layers
        self._seen: set[int] = set()
        self._sums: list[Tensor] = []

    def __call__(self, layer: int, weights: Tensor) -> None:
        """weights [R, B, H, Q, T], rows that sum to 1. A causal row's invisible keys have weight 0 and add nothing."""
        self._seen.add(layer)
        if self.layers is not None and layer not in self.layers:
            return
        self._sums.append(row_penalty(self.kind, weights.float()).flatten(1).mean(1))

    def mean(self) -> Tensor:
        """Mean over layers of each layer's mean over strings, heads and rows, [R]."""
        if self.layers is not None and not self._seen.issuperset(self.layers):
            raise StudyError(
                f"train.sharpen.layers = {list(self.layers)} names a layer that the model lacks: the last one is {max(self._seen)}"
            )
        return torch.stack(self._sums).mean(0)


def row_penalty(kind: str, weights: Tensor) -> Tensor:
    """R(α) of each row, [..., T] → [...]."""
    if kind == "entropy":
        # an invisible key has weight 0, where the slope of -α log α is infinite and its product with the softmax's not a number
        return -(weights * weights.clamp_min(torch.finfo(weights.dtype).tiny).log()).sum(-1)
    if kind == "l2":
        return -torch.linalg.vector_norm(weights, dim=-1)
    if kind == "linf":
        return -weights.amax(-1)
    raise ValueError(f"train.sharpen.kind = {kind!r} must be entropy, l2 or linf")
