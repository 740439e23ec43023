"""The wrong reads of a replicate on its evaluation sets, the same strings that its rows were counted on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.evaluate import strings
from harness.needed import needed
from harness.pack import ScoredSet
from harness.tracing.prompt import Prompt, prompt_of


@dataclass(frozen=True)
class Glitch:
    """A read whose likeliest symbol is wrong: number of its string in the set, and position of the read's instruction."""

    set: str
    string: int
    position: int
    prompt: Prompt

    @property
    def name(self) -> str:
        return f"{self.set} {self.string} {self.position}"


def glitches(model: Any, scored: ScoredSet, count: int, device: torch.device) -> list[Glitch]:
    """The first wrong read of each of the first `count` strings that have one; model is a pack with R = 1.

    Left out are reads with fewer than two events before them, where there is nothing to trace.
    """
    found: list[Glitch] = []
    for first, wrong, inputs in _wrong(model, scored, device):
        for row in torch.nonzero(wrong.any(-1))[:, 0].tolist():
            position = int(wrong[row].to(torch.int8).argmax())
            found.append(Glitch(scored.name, first + row, position, prompt_of(scored.task, inputs[row], position)))
            if len(found) == count:
                return found
    return found


@torch.no_grad()
def _wrong(model: Any, scored: ScoredSet, device: torch.device) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """(number of the first string, bool [B, T] of wrong reads, inputs [B, T]) batch by batch."""
    first = 0
    for batch in strings(scored, device):
        wanted = needed(batch, scored.task.scored_positions())
        logits = model(batch.inputs, wanted.blocks)
        wrong = scored.task.wrong(logits.float(), wanted.targets)["read_restricted"] & (wanted.weights > 0)
        order = (
            torch.arange(batch.inputs.shape[-1], device=device).expand_as(batch.inputs)
            if wanted.order is None
            else wanted.order
        )
        at = torch.zeros_like(batch.inputs, dtype=torch.bool).scatter_(-1, order, wrong)
        at[..., :4] = False
        yield first, at[0].cpu(), batch.inputs[0].cpu()
        first += batch.inputs.shape[1]
