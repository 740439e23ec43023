"""Score a pack on an evaluation set: integer counts per replicate, and errors by distance.

Where a task's labels are laws, the loss and the distance to each of the task's `references` are averaged too.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from harness.draw import Draw
from harness.machine.precision import autocast
from harness.planning.pack import ScoredSet
from harness.training.key_mask import hiding
from harness.training.loss_positions import Needed, needed
from models.aligned import product
from models.model import config_of, refuse_blind
from results.errors import settings_errors
from tasks.batch import Batch, join

_KEPT_TOKENS = 2**17  # most tokens of a set whose strings are kept between looks
_TOKENS = {"cpu": 2**14, "cuda": 2**16}  # of a forward pass per replicate: the same in any pack, so that counts are too

# upper ends (exclusive) of the distance bins of `profiles`: single steps up to 4, then about four bins an octave … open end
_EDGES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256)


def strings(scored: ScoredSet, device: torch.device) -> Iterator[Batch]:
    """The set's strings as batches with R = 1. They follow from the set's hash alone, whatever the batch size."""
    seed = torch.tensor([int(scored.hash[:15], 16)], device=device)
    draw = Draw(seed, "evaluate")
    size = batch_size(scored, device)
    for first in range(0, scored.sequences, size):
        yield scored.task.sample(draw.rows(first), min(size, scored.sequences - first))


@dataclass(frozen=True)
class Prepared:
    """A batch of a set as it is scored: its positions, and what the task's references answer at the scored ones, [A, B, N, V] by name;
    elsewhere they are 0."""

    batch: Batch
    wanted: Needed
    references: dict[str, Tensor]


def prepared(scored: ScoredSet, device: torch.device) -> Iterable[Prepared]:
    """The batches of a set; those of a small set that is scored on the way are kept from one look to the next."""
    if scored.every is not None and scored.sequences * scored.task.tokens <= _KEPT_TOKENS:
        return _kept(scored, device)
    return (_prepare(scored, batch) for batch in strings(scored, device))


@functools.lru_cache(maxsize=16)
def _kept(scored: ScoredSet, device: torch.device) -> list[Prepared]:
    return [_prepare(scored, batch) for batch in strings(scored, device)]


def _prepare(scored: ScoredSet, batch: Batch) -> Prepared:
    wanted = needed(batch, scored.task.scored_positions())
    valid = (wanted.weights[0] > 0)[..., None]
    references = scored.task.references(batch) if scored.task.soft else {}
    return Prepared(
        batch,
        wanted,
        {name: torch.stack([wanted.of(one)[0] * valid for one in laws]) for name, laws in references.items()},
    )


@functools.lru_cache(maxsize=256)
def baseline_losses(scored: ScoredSet, device: torch.device) -> dict[str, float]:
    """The mean loss of each of the task's baselines on a set, "baseline NAME" by name."""
    sums: dict[str, Tensor] = {}
    for batch in strings(scored, device):
        wanted = needed(batch, scored.task.scored_positions())
        for name, losses in scored.task.baselines(batch).items():
            scored_losses = wanted.of(losses)[wanted.weights > 0].double()
            part = torch.stack([scored_losses.sum(), torch.full_like(scored_losses.sum(), scored_losses.numel())])
            sums[name] = sums[name] + part if name in sums else part
    return {f"baseline {name}": float(total / count) for name, (total, count) in sums.items()}


def batch_size(scored: ScoredSet, device: torch.device) -> int:
    """Strings of one forward pass."""
    return max(1, _TOKENS[device.type] // scored.task.tokens)


@torch.no_grad()
def score(
    model: nn.Module,
    sets: Sequence[ScoredSet],
    device: torch.device,
    precision: str,
    should_stop: Callable[[], bool] = lambda: False,
    compiled: Callable[..., Tensor] | None = None,
) -> "list[tuple[Scores, int]] | None":
    """Run replicate r through the whole of sets[r], sets of equal shape; None where asked to stop on the way.

    compiled: the model as it answers whole batches with one block of needed positions; others are too few to be compiled for.

    Returns for each replicate the scores of all replicates with its set, and its number among them.
    """
    distinct = list(dict.fromkeys(sets))
    slots = [[slot for slot, scored in enumerate(sets) if scored == one] for one in distinct]
    scores = [Scores(len(own_slots), one) for own_slots, one in zip(slots, distinct, strict=True)]
    which = torch.tensor([distinct.index(scored) for scored in sets], device=device)
    task, config, whole = distinct[0].task, config_of(model), batch_size(distinct[0], device)
    if task.fed_back and config is not None:
        with settings_errors():
            refuse_blind(config)
    for parts in zip(*(prepared(one, device) for one in distinct), strict=True):
        if should_stop():
            return None
        batch = join([part.batch for part in parts])
        wanted = parts[0].wanted if len(parts) == 1 else needed(batch, task.scored_positions())
        blocks = None if wanted.blocks is None else tuple(_spread(block, which) for block in wanted.blocks)
        inputs = _spread(batch.inputs, which)
        hidden = hiding(model, None if batch.hidden is None else _spread(batch.hidden, which))
        usual = inputs.shape[1] == whole and (blocks is None or len(blocks) == 1)
        answering = compiled if compiled is not None and usual and not task.fed_back else model
        with autocast(device, precision):
            logits = task.answers(partial(answering, **hidden), inputs, blocks)
        about = {axis: wanted.of(values) for axis, values in batch.about.items()}
        for index, own_slots in enumerate(slots):
            valid = wanted.weights[index] > 0
            here = logits if len(distinct) == 1 else logits[own_slots]
            wrong = distinct[index].task.wrong(here.float(), wanted.targets[index : index + 1])
            scores[index].add(
                {metric: values & valid for metric, values in wrong.items()},
                valid,
                {axis: values[index] for axis, values in about.items()},
            )
            if task.soft:
                scores[index].average(here.float(), wanted.targets[index : index + 1], valid, parts[index])
    place = {slot: (scores[index], number) for index, own_slots in enumerate(slots) for number, slot in enumerate(own_slots)}
    return [place[slot] for slot in range(len(sets))]


def _spread(values: Tensor, which: Tensor) -> Tensor:
    """[sets, …] → [R, …] by the number of each replicate's set; no copy where there is one set."""
    return values.expand(len(which), *values.shape[1:]) if len(values) == 1 else values[which]


class Scores:
    """Sums over the strings of a set for the replicates that it scores, all int64."""

    def __init__(self, replicates: int, scored: ScoredSet):
        self.replicates, self.scored = replicates, scored
        self.count = self.count_sq = 0
        self.sums: dict[str, Tensor] = {}  # metric → [R, 4]: errors, sequences wrong, errors², errors·count
        self.bins: dict[str, tuple[Tensor, Tensor]] = {}  # axis → errors [R, bins], count [bins]; of the first metric
        self.totals: dict[str, Tensor] = {}  # what is averaged → sums over scored positions by variant, float64 [R, A]

    def add(self, wrong: dict[str, Tensor], valid: Tensor, about: dict[str, Tensor]) -> None:
        """wrong: [R, B, N] by metric; valid and about: [B, N]."""
        counts = valid.sum(-1)
        self.count += int(counts.sum())
        self.count_sq += int((counts**2).sum())
        for metric, values in wrong.items():
            errors = values.sum(-1)  # [R, B]
            sums = torch.stack([errors.sum(-1), (errors > 0).sum(-1), (errors**2).sum(-1), (errors * counts).sum(-1)], dim=-1)
            self.sums[metric] = self.sums[metric] + sums if metric in self.sums else sums
        first = next(iter(wrong.values()))
        for axis, distance in about.items():
            edges = torch.tensor(self._edges(axis), dtype=torch.int64, device=valid.device)
            bin_of = torch.bucketize(distance[valid], edges, right=True)
            count = torch.bincount(bin_of, minlength=len(edges) + 1)
            # sums of integers: the order of a GPU's additions changes nothing
            errors = torch.zeros(len(first), len(count), dtype=torch.int64, device=valid.device)
            errors.index_add_(1, bin_of, first[:, valid].to(torch.int64))
            if axis in self.bins:
                errors, count = self.bins[axis][0] + errors, self.bins[axis][1] + count
            self.bins[axis] = (errors, count)

    def average(self, logits: Tensor, truth: Tensor, valid: Tensor, part: Prepared) -> None:
        """Add the losses of logits [R, B, N, V], and for each reference KL(variant || model) and the total variation from its first."""
        said = logits.log_softmax(-1)
        share = torch.where(valid[..., None], said.exp(), 0.0)
        losses = torch.where(valid, -(truth * said).sum(-1), 0.0)
        totals = {"loss": losses.flatten(1).double().sum(-1, keepdim=True)}
        numbers = torch.where(valid[..., None], said, 0.0).flatten(1)[..., None]  # [R, B·N·V, 1]
        for name, reference in part.references.items():
            rows = reference.flatten(1)  # [A, B·N·V]
            crossed = product(rows.expand(len(numbers), -1, -1), numbers)[..., 0].double()
            totals[f"kl {name}"] = torch.special.xlogy(rows, rows).double().sum(-1) - crossed
            totals[f"tv {name}"] = (reference[0] - share).abs().flatten(1).double().sum(-1, keepdim=True) / 2
        for name, sums in totals.items():
            self.totals[name] = self.totals[name] + sums if name in self.totals else sums

    def averages(self, slot: int) -> dict[str, float]:
        """The means over the scored positions, of distances the least over the variants; {} where the task's labels are classes."""
        return {name: float(total[slot].min()) / self.count for name, total in self.totals.items()}

    def _edges(self, axis: str) -> Sequence[int]:
        """Upper ends (exclusive) of all bins but the last, which is open; every position has its own."""
        return range(1, self.scored.task.length) if axis == "position" else _EDGES

    def evaluation_rows(self, slot: int, diverged: bool) -> list[dict]:
        """One row per metric; counts are null for a replicate that has diverged, since a NaN is no prediction."""
        rows = []
        for metric, sums in self.sums.items():
            errors, sequences_wrong, errors_sq, errors_x_count = [None] * 4 if diverged else sums[slot].tolist()
            rows.append(
                {
                    "set": self.scored.name,
                    "set_hash": self.scored.hash,
                    "length": self.scored.task.length,
                    "metric": metric,
                    "errors": errors,
                    "count": None if diverged else self.count,
                    "sequences": self.scored.sequences,
                    "sequences_wrong": sequences_wrong,
                    "errors_sq": errors_sq,
                    "errors_x_count": errors_x_count,
                    "count_sq": None if diverged else self.count_sq,
                    "value": None,
                }
            )
        return rows

    def profile_rows(self, slot: int) -> list[dict]:
        """One row per distance bin that holds any read."""
        rows = []
        for axis, (errors, count) in self.bins.items():
            lows = (0, *self._edges(axis))
            highs = (*self._edges(axis), self.scored.task.length)
            for lo, hi, wrong, reads in zip(lows, highs, errors[slot].tolist(), count.tolist(), strict=True):
                if reads:
                    rows.append(
                        {"set": self.scored.name, "set_hash": self.scored.hash, "axis": axis, "lo": lo, "hi": hi}
                        | {"errors": wrong, "count": reads}
                    )
        return rows
