"""The wrong reads of a replicate on its evaluation sets, the same strings that its rows were counted on."""

from dataclasses import dataclass
from typing import cast

import torch

from harness.planning.pack import ScoredSet
from harness.probes.flipflop.wrong_reads import RESTRICTED, wrong_reads
from harness.tracing.flipflop.prompt import Prompt, prompt_of
from models.transformer.transformer import Decoder
from tasks.flipflop.flipflop import FlipFlop


@dataclass(frozen=True)
class Glitch:
    """A read whose likeliest symbol is wrong (`read_restricted`): number of its string in the set, position of the read's instruction."""

    set: str
    string: int
    position: int
    prompt: Prompt

    @property
    def name(self) -> str:
        return f"{self.set} {self.string} {self.position}"


def glitches(model: Decoder, scored: ScoredSet, count: int, device: torch.device) -> list[Glitch]:
    """The first wrong read of each of the first `count` strings that have one; model is a pack with R = 1.

    Left out are reads with fewer than two events before them, where there is nothing to trace.
    """
    traceable: list[Glitch] = []
    for reads in wrong_reads(model, scored, RESTRICTED, device):
        wrong = reads.wrong & (reads.position >= 4)
        places = torch.where(wrong, reads.position, scored.task.length).amin(-1)
        for row in torch.nonzero(wrong.any(-1))[:, 0].tolist():
            position, tokens = int(places[row]), reads.batch.inputs[0, row].cpu()
            traceable.append(
                Glitch(scored.name, reads.first + row, position, prompt_of(cast(FlipFlop, scored.task), tokens, position))
            )
            if len(traceable) == count:
                return traceable
    return traceable
