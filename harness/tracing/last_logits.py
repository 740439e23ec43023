"""What a model says at one position of each string, strings of many lengths in few passes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_TOKENS = 2**14  # of a forward pass

Model = Callable[..., Tensor]  # tokens int64 [R, B, T], needed → logits; R = 1


@torch.no_grad()
def logits_at(model: Model, tokens: Tensor, query: Tensor, size: int | None = None) -> Tensor:
    """Logits float64 [N, V] of what follows position query[i] of string i; tokens int64 [N, T], what stands behind it is not read.

    size: strings of a forward pass.
    """
    logits = []
    device = _device(model)
    size = size or max(1, _TOKENS // tokens.shape[1])
    order = query.argsort(stable=True)  # strings of like lengths together
    for rows in order.split(size):
        ends = query[rows].to(device)
        part = tokens[rows, : int(ends.max()) + 1].to(device)
        logits.append(model(part[None], needed=(ends[None, :, None],))[0, :, 0].double().cpu())
    return torch.cat(logits)[order.argsort()]


def _device(model: object) -> torch.device:
    return next(model.parameters()).device if isinstance(model, nn.Module) else torch.device("cpu")
