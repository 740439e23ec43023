"""The training strings of a pack: fresh ones every step, or a fixed pool in shuffled epochs; several steps are drawn at once.

A string depends on its replicate's data seed and the step alone, so neither the chunk nor the pack changes it.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from harness.draw import Draw
from harness.planning.pack import Pack
from harness.training.loss_positions import Needed, needed, slices
from harness.training.self_labels import Annotator, seeds_at
from tasks.batch import Batch, View, join

_TOKENS = {"cpu": 2**18, "cuda": 2**23}  # drawn at once, at most, where a step has fewer
_STEPS = 64


@dataclass(frozen=True)
class Strings:
    """What a training step reads: inputs [R, B, T], the positions that its loss needs, and the tokens that nobody attends to.

    soft [R, B, N, …, V]: the probabilities that a teacher gives at those positions, instead of the targets. view: the strings in another
    form, with places and weights of the needed positions alone, [R, B, N].
    """

    inputs: Tensor
    needed: Needed
    hidden: Tensor | None = None
    soft: Tensor | None = None
    view: View | None = None


class Feed:
    """The training strings of a pack, `at(step)`. Its conditions may draw from different distributions of one shape."""

    def __init__(self, pack: Pack, device: torch.device, annotator: Annotator | None = None):
        """annotator: what answers the strings instead of the task."""
        self.device, self.annotator = device, annotator
        self.train = pack.replicates[0].condition.train
        self.tasks = [replicate.condition.task for replicate in pack.replicates]
        self.seeds = data_seeds(pack, device)
        self.count = 1 if self.train.positions == "last" else self.tasks[0].scored_positions()
        self._chunk = drawn_steps(pack, device)
        self._first, self.drawn = 0, []  # type: int, list[Strings]
        self._orders: dict[int, Tensor] = {}  # the pool's order, [R, pool] by epoch

    def at(self, step: int) -> Strings:
        """The strings of `step`, counted from 1."""
        if not self._first <= step < self._first + len(self.drawn):
            self.draw(step)
        return self.drawn[step - self._first]

    def monitored(self, sequences: int, batch: int) -> list[Strings]:
        """The monitor's strings of every replicate, in batches of at most `batch`."""
        draw = Draw(self.seeds, "monitor")
        batches = []
        for first in range(0, sequences, batch):
            whole = self._sample(draw.rows(first), min(batch, sequences - first), 1)
            batches.append(Strings(whole.inputs, needed(whole, self.count), whole.hidden))
        return batches

    def batch(self, first: int, count: int) -> Batch:
        """The strings of `count` steps from `first` on, whose leading axis is count · R."""
        step = torch.arange(first, first + count, device=self.device)
        seeds = self.seeds.repeat(count)  # [count · R]: the steps of a chunk are further replicates
        rows = self._pool_rows(first, count) if self.train.pool else None
        fresh = Draw(seeds, "data", step.repeat_interleave(len(self.tasks)))
        draw = fresh if rows is None else Draw(seeds, "pool").pick(rows)
        return self._sample(draw, self.train.batch, count, rows)

    def draw(self, first: int) -> None:
        """Draw the strings of step `first` and of the steps after it that are drawn with it, into `drawn`."""
        count = max(1, min(self._chunk, self.train.steps + 1 - first))
        whole = self.batch(first, count)
        self._first = first
        hidden = [None] * count if whole.hidden is None else whole.hidden.chunk(count)
        parts = zip(whole.inputs.chunk(count), slices(needed(whole, self.count), count), hidden, strict=True)
        self.drawn = [Strings(*part) for part in parts]
        consistency = self.train.consistency
        if consistency is not None and consistency.weight:
            self.drawn = [self._viewed(strings, step) for step, strings in enumerate(self.drawn, first)]

    def _viewed(self, strings: Strings, step: int) -> Strings:
        """The strings with the task's view of their needed positions. Fields of a task that may differ within a pack change no view."""
        view = self.tasks[0].view(Draw(self.seeds, "view", step), strings.inputs)
        wanted = strings.needed
        compared = wanted.of(view.weights)
        if wanted.order is not None:
            # a block is filled up with positions that are not scored, and another replicate's string may add a block of them
            compared = compared * (wanted.weights > 0)
        return replace(strings, view=View(view.inputs, wanted.of(view.places), compared))

    def _sample(self, draw: Draw, batch: int, count: int, rows: Tensor | None = None) -> Batch:
        """The strings of `draw`, whose replicates are `count` times the pack's, each from its own task. rows: their numbers in the pool."""
        if self.annotator is not None:
            return self._last(self.annotator.batch(draw, batch, count, rows))
        kinds = list(dict.fromkeys(self.tasks))
        if len(kinds) == 1:
            return self._last(kinds[0].sample(draw, batch))
        parts, places = [], []
        for kind in kinds:
            members = torch.tensor([task == kind for task in self.tasks], device=self.device).repeat(count).nonzero()[:, 0]
            parts.append(kind.sample(draw.of(members), batch))
            places.append(members)
        order = torch.cat(places).argsort()
        return self._last(join(parts).take(order))

    def _last(self, batch: Batch) -> Batch:
        """Only each string's last scored position, where the training asks for it."""
        if self.train.positions == "scored":
            return batch
        index = torch.arange(1, batch.weights.shape[-1] + 1, device=self.device)
        last = (batch.weights > 0).mul(index).argmax(-1, keepdim=True)
        only = torch.zeros_like(batch.weights).scatter(-1, last, batch.weights.gather(-1, last))
        return replace(batch, weights=only)

    def _pool_rows(self, first: int, count: int) -> Tensor:
        """Numbers of the pool's strings that `count` steps read, int64 [count · R, B]."""
        batch, pool = self.train.batch, self.train.pool
        place = torch.arange((first - 1) * batch, (first - 1 + count) * batch, device=self.device)
        epochs = range((first - 1) * batch // pool, ((first - 1 + count) * batch - 1) // pool + 1)
        self._orders = {epoch: self._orders[epoch] if epoch in self._orders else self._order(epoch) for epoch in epochs}
        orders = torch.stack(list(self._orders.values()))  # [epochs, R, pool]
        rows = orders[place // pool - epochs[0], :, place % pool]  # [count · B, R]
        return rows.view(count, batch, -1).transpose(1, 2).flatten(0, 1)

    def _order(self, epoch: int) -> Tensor:
        return Draw(self.seeds, "shuffle", epoch).permutation(self.train.pool)


def drawn_steps(pack: Pack, device: torch.device) -> int:
    """How many steps have their strings drawn at once."""
    first = pack.replicates[0].condition
    tokens = len(pack.replicates) * first.train.batch * first.task.tokens
    return max(1, min(_STEPS, _TOKENS[device.type] // tokens))


def data_seeds(pack: Pack, device: torch.device) -> Tensor:
    """What the training strings of a pack are drawn by, int64 [R]."""
    return seeds_at(torch.tensor([replicate.data_seed for replicate in pack.replicates], device=device), pack.stage, 1)
