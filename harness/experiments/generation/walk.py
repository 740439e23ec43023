"""VGB: a random walk on the tree of prefixes that a value guides and that can step back (Li 2025, algorithm 2).

At a prefix y the walk stays with a chance of 1/2. Else it goes to the child (y, a) with a weight of π(a | y)·V̂(y, a), or to the parent
with a weight of V̂(y); each such step asks the generator once, and the verifier about all children and the prefix itself.
"""

from dataclasses import replace

import torch
from torch import Tensor

from harness.draw import Draw
from harness.experiments.generation.samplers import Samples, Uniforms, chosen
from tasks.generation.processes import Process

_TIMES = 2**30  # first step of the draws of the times at which walks are looked at; the draws of their moves begin at 0


class _Walks:
    """R·B walks with the states on the way from the root to each."""

    def __init__(self, process: Process, value: Tensor, draw: Draw, batch: int):
        count = draw.replicates * batch
        self.process, self.value, self.batch = process, value, batch
        self.uniforms = Uniforms(draw, batch)
        self.heights = torch.zeros(count, dtype=torch.int64)
        self.strings = torch.zeros(count, process.horizon, dtype=torch.int64)
        self.path = torch.zeros(count, process.horizon + 1, dtype=torch.int64)
        self.steps, self.queries, self.checks = (torch.zeros(count, dtype=torch.int64) for _ in range(3))
        self.number = 0

    def step(self, alive: Tensor) -> None:
        """One step of the walks that are `alive`, bool [R·B]."""
        rows = alive.nonzero()[:, 0]
        uniform = self.uniforms.at(self.number, rows, alive)
        self.number += 1
        self.steps[rows] += 1
        moves = uniform >= 0.5
        rows, uniform = rows[moves], 2 * uniform[moves] - 1
        height, process = self.heights[rows], self.process
        state = self.path[rows, height]
        of_value, of_law = (
            rows // self.batch if len(each) > 1 else torch.zeros_like(rows) for each in (self.value, process.law)
        )
        inner = height < process.horizon
        below = height.clamp(max=process.horizon - 1)
        children = (
            process.law[of_law, below, state] * self.value[of_value[:, None], (below + 1)[:, None], process.successor[state]]
        )
        parent = torch.where(height > 0, self.value[of_value, height, state], 0.0)
        choice = chosen(torch.cat([parent[:, None], children * inner[:, None]], dim=1), uniform)
        down, token = choice > 0, (choice - 1).clamp(min=0)
        self.strings[rows[down], height[down]] = token[down]
        self.path[rows[down], height[down] + 1] = process.successor[state[down], token[down]]
        self.heights[rows] += torch.where(down, 1, -1)
        self.queries[rows] += 1
        self.checks[rows] += process.tokens * inner + (height > 0)

    def samples(self, finished: Tensor) -> Samples:
        none = torch.zeros_like(self.steps)
        return Samples(self.strings, self.heights, self.queries, self.checks, none, finished)


def until_leaf(process: Process, value: Tensor, draw: Draw, batch: int, most: int = 10**6) -> tuple[Samples, Tensor]:
    """The first leaf that each walk reaches, and its steps, those that stay included, [R·B]."""
    walks = _Walks(process, value, draw, batch)
    while (alive := (walks.heights < process.horizon) & (walks.steps < most)).any():
        walks.step(alive)
    return walks.samples(walks.heights == process.horizon), walks.steps


def uniform_time(process: Process, value: Tensor, draw: Draw, batch: int, length: int, runs: int) -> tuple[Samples, Tensor]:
    """Where each walk is at a time that is uniform in 1 … `length`, run anew where that is no leaf, at most `runs` times.

    The walk after that time changes nothing and is not walked. Also the number of runs [R·B]; the chance that a run ends at a leaf is the
    mass of the leaves.
    """
    walks = _Walks(process, value, draw, batch)
    times = Uniforms(replace(draw, step=_TIMES), batch)
    run = torch.zeros_like(walks.steps)
    until = torch.zeros_like(walks.steps)
    done = torch.zeros(len(run), dtype=torch.bool)
    starting = torch.arange(len(run))
    while (alive := ~done & (run < runs)).any():
        if len(starting):
            until[starting] += 1 + (length * times.at(walks.number, starting, alive)).to(torch.int64)
        walks.step(alive)
        ended = (alive & (walks.steps == until)).nonzero()[:, 0]
        run[ended] += 1
        at_leaf = walks.heights[ended] == process.horizon
        done[ended[at_leaf]] = True
        starting = ended[~at_leaf & (run[ended] < runs)]
        walks.heights[starting] = 0
    return walks.samples(done), run
