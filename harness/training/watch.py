"""What `evaluate.watch` measures of a pack on the way, for each replicate: the weights, their gradients, where the heads look.

Names of what it finds, with P a parameter: "norm P" and "gradient P", L2 norms of a parameter and of the last step's gradient; "sample
gradient P", that on a fixed sample of the replicate's own strings; "lag L.H.q", the mean weight that head H of layer L gives to the token
q before the one it reads from, over the positions that have `lags` tokens before them.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from harness.planning.pack import Pack
from harness.training.key_mask import hiding
from harness.training.optimizer import FlatParameters
from harness.training.training_strings import Feed, Strings
from models.model import config_of
from results.plain_values import Tree

_BATCH = 512  # strings of the sample in one forward pass


class Watcher:
    """`look()` measures the pack as it is; it leaves the gradients of the sample behind, which the next step overwrites."""

    def __init__(self, model: nn.Module, flat: FlatParameters, feed: Feed, pack: Pack):
        self.model, self.flat, self.feed, self.watch = model, flat, feed, pack.watch
        self._sample: list[Strings] | None = None

    def look(self, losses: Callable[[Strings], Tensor], last_gradient: bool = True) -> dict[str, Tensor]:
        """Numbers [R] by name.

        losses: of strings, [R]; it is not kept, since it belongs to the training that holds this watcher. last_gradient: whether the last
        step has left its gradient, which the compiled loop does not.
        """
        watch = self.watch
        if watch is None:
            return {}
        with torch.no_grad():
            numbers = {f"norm {name}": _norm(parameter) for name, parameter in self.model.named_parameters()}
            numbers |= self._gradients("gradient") if last_gradient else {}
        if watch.sequences:
            self.flat.gradient.zero_()
            for strings in self._strings():
                share = strings.inputs.shape[1] / watch.sequences
                (share * losses(strings).sum()).backward()
            with torch.no_grad():
                numbers |= self._gradients("sample gradient")
        return numbers | self._lags(watch.lags, watch.strings) if watch.lags >= 0 else numbers

    def _gradients(self, title: str) -> dict[str, Tensor]:
        norms = {name: _norm(parameter.grad) for name, parameter in self.model.named_parameters() if parameter.grad is not None}
        whole = torch.stack([norm.square() for norm in norms.values()]).sum(0).sqrt()
        return {title: whole} | {f"{title} {name}": norm for name, norm in norms.items()}

    def _strings(self) -> list[Strings]:
        """The same at every look: those of the monitor, which no one reports."""
        if self._sample is None:
            count = max(self.watch.sequences, self.watch.strings) if self.watch is not None else 0
            self._sample = self.feed.monitored(count, min(_BATCH, count))
        return self._sample

    @torch.no_grad()
    def _lags(self, lags: int, strings: int) -> dict[str, Tensor]:
        config = config_of(self.model)
        if config is None or not config.attends:
            return {}
        masses_by_lag: dict[str, Tensor] = {}

        def attend(layer: int, weights: Tensor) -> None:
            """weights [R, B, H, T, T]"""
            for lag in range(lags + 1):
                masses = torch.diagonal(weights, -lag, -2, -1)[..., lags - lag :].double().mean((1, -1))  # [R, H]
                for head, mass in enumerate(masses.unbind(-1)):
                    masses_by_lag[f"lag {layer}.{head}.{lag}"] = mass

        first = self._strings()[0]
        hidden = None if first.hidden is None else first.hidden[:, :strings]
        extra: Tree = hiding(self.model, hidden)
        self.model(first.inputs[:, :strings], None, None, attend, **extra)
        return masses_by_lag


def _norm(values: Tensor) -> Tensor:
    """[R, …] → [R]"""
    return values.flatten(1).double().square().sum(1).sqrt()
