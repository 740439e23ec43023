"""What a stage inherits from the previous one, on the device that trains it: seeds, weights out of the store, and answers.

All of it is a function of the parent's artifact and the replicate's seeds, so none of it is saved: a resumed stage makes it again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn

from harness.draw import Draw
from harness.planning.pack import Pack, ScoredSet
from harness.study.stages import link_of, parent_of
from harness.training import weights as artifacts
from harness.training.evaluate import batch_size
from results.errors import DamagedFile
from results.store.tables import Store
from tasks.batch import Batch, join
from tasks.continuation import continued

Weights = Sequence[Mapping[str, Tensor]]  # of the replicates of a pack, by name, without the replicate axis


def seeds_at(seeds: Tensor, stage: int, site: int) -> Tensor:
    """The seeds, int64 [R], that a stage draws by: the replicate's in the first, independent ones of 62 bits in each later stage.

    site: 0 for initialisation and dropout, 1 for data. With equal seeds a student would begin from its teacher's initial weights, on the
    same strings.
    """
    if not stage:
        return seeds
    words = Draw(seeds, "stage", stage).words((2,), site)
    return (words[:, 0] & (1 << 30) - 1) << 32 | words[:, 1]


def steps_of(pack: Pack) -> list[int]:
    """The last step of every replicate's parent, whose weights are taken; [] for a first stage."""
    teachers = (parent_of(replicate.condition) for replicate in pack.replicates)
    return [parent.train.steps for parent in teachers if parent is not None]


def read(store: Store, pack: Pack) -> Weights:
    """The weights that the parents of a pack ended with. ValueError naming the file that is not there or is another's."""
    weights = []
    for replicate, step in zip(pack.replicates, steps_of(pack), strict=True):
        if replicate.parent is None:
            raise ValueError(f"replicate {replicate.key} of stage {pack.stage} has no parent")
        weights.append(load(artifacts.data(store, replicate.parent, pack.stage - 1, step)))
    return weights


@torch.no_grad()
def fill(model: nn.Module, weights: Weights) -> None:
    """Copy these weights into a packed model. ValueError naming the tensor that does not fit."""
    for name, parameter in model.named_parameters():
        shapes = {tuple(tensors[name].shape) if name in tensors else () for tensors in weights}
        if shapes != {tuple(parameter.shape[1:])}:
            raise DamagedFile(
                f"the weights of the stage before do not fit: {name} is {shapes} and the model's {parameter.shape[1:]}"
            )
        parameter.copy_(torch.stack([tensors[name] for tensors in weights]))


def broken(weights: Weights, device: torch.device) -> Tensor:
    """bool [R]: which replicates have a parent that diverged, so that nothing can follow it."""
    return torch.tensor([not all(bool(t.isfinite().all()) for t in tensors.values()) for tensors in weights], device=device)


class Annotator:
    """Labels training strings by the greedy answers of the previous stage's models.

    model: R replicates in evaluation; still(): called between parts of a pool, and may raise. Answers are made for the strings of one step
    or part at once, so that the pack changes none.
    """

    def __init__(self, model: nn.Module, tasks: Sequence[Any], seeds: Tensor, pool: int, still: Callable[[], None]):
        self.model, self.tasks, self.seeds, self.pool, self.still = model, tasks, seeds, pool, still
        self._answers: Tensor | None = None
        self._right = torch.zeros(len(tasks), device=seeds.device)

    def batch(self, draw: Draw, size: int, count: int, rows: Tensor | None = None) -> Batch:
        """`size` strings of `draw`, whose replicates are `count` times R, with these answers. rows: their numbers in the pool."""
        prompts = self._sentences(draw, size)[0]
        if rows is None:
            answers = torch.cat([self._said(part) for part in prompts.chunk(count)])
        else:
            replicate = torch.arange(len(self.tasks), device=rows.device).repeat(count)[:, None]
            answers = self._of_pool()[replicate, rows].to(torch.int64)
        parts, places = [], []
        for task, members in self._places(count):
            parts.append(task.batch(prompts[members], answers[members]))
            places.append(members)
        return join(parts).take(torch.cat(places).argsort())

    def right(self) -> list[float]:
        """The share of each replicate's pool of strings that is answered right throughout."""
        self._of_pool()
        return (self._right / self.pool).tolist()

    def _of_pool(self) -> Tensor:
        """The answers to all strings of the pool, int32 [R, pool, L, 5]."""
        if self._answers is None:
            part = batch_size(ScoredSet("", self.tasks[0], self.pool, None, ""), self.seeds.device)
            answers = []
            self._right.zero_()
            for first in range(0, self.pool, part):
                self.still()
                prompts, truth = self._sentences(Draw(self.seeds, "pool").rows(first), part)
                said = self._said(prompts)
                answers.append(said.to(torch.int32))
                self._right += (said == truth).flatten(2).all(-1)[:, : self.pool - first].sum(1)
            self._answers = torch.cat(answers, dim=1)[:, : self.pool]
        return self._answers

    def _said(self, prompts: Tensor) -> Tensor:
        return continued(self.model, prompts, self.tasks[0].length, self.tasks[0].draft)

    def _sentences(self, draw: Draw, size: int) -> tuple[Tensor, Tensor]:
        """The strings' prompts, and their true answers."""
        parts, places = [], []
        for task, members in self._places(draw.replicates // len(self.tasks)):
            parts.append(task.sentences(draw.of(members), size))
            places.append(members)
        order = torch.cat(places).argsort()
        prompts, answers = zip(*parts, strict=True)
        return torch.cat(prompts)[order], torch.cat(answers)[order]

    def _places(self, count: int) -> list[tuple[Any, Tensor]]:
        """Every distinct task, and the numbers of its replicates among `count` times R, int64."""
        device = self.seeds.device
        return [
            (kind, torch.tensor([task == kind for task in self.tasks], device=device).repeat(count).nonzero()[:, 0])
            for kind in dict.fromkeys(self.tasks)
        ]


def annotates(pack: Pack) -> bool:
    """Whether the labels of a pack are answers of the previous stage."""
    link = link_of(pack.replicates[0].condition)
    return link is not None and link.labels == "previous"


def begins(pack: Pack) -> bool:
    """Whether the weights of a pack begin as those of the previous stage."""
    link = link_of(pack.replicates[0].condition)
    return link is not None and link.init == "previous"
