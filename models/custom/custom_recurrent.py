"""torch.nn.RNN, GRU and LSTM under vmap, which has no rule for their fused operations: they are unrolled, step by step."""

from typing import Any

import torch
from torch import Tensor, nn
from torch._decomp import decomposition_table, decompositions
from torch.overrides import TorchFunctionMode

_FUSED = ("gru", "rnn_tanh", "rnn_relu")


def has_recurrence(module: nn.Module) -> bool:
    """Whether any layer needs `Unrolled`."""
    return any(isinstance(layer, nn.RNNBase) for layer in module.modules())


class Unrolled(TorchFunctionMode):
    """A context in which the fused recurrences run as torch's own decompositions, made of operations that vmap supports.

    A packed sequence is left as it is, and vmap refuses it.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        # (input, hidden, weights, has_biases, …); of a packed sequence the fourth is the weights
        if name in (*_FUSED, "lstm") and isinstance(args[3], bool):
            if name == "lstm":
                return _lstm(*args)
            return decomposition_table[getattr(torch.ops.aten, name).input](*args)
        return func(*args, **(kwargs or {}))


def _lstm(
    x: Tensor,
    start: Any,
    flat: Any,
    biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Torch's decomposition of the LSTM, always with the plain layer: on a CPU torch would take oneDNN's, for which vmap has no rule."""
    hidden, cell = start
    weights = decompositions.gather_params(flat, biases, hidden.size(2) != cell.size(2))
    states, last = decompositions._rnn_helper(
        x,
        list(zip(hidden, cell, strict=True)),
        weights,
        biases,
        layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        decompositions.one_layer_lstm,
    )
    hidden, cell = zip(*last, strict=True)
    return states, torch.stack(hidden), torch.stack(cell)
