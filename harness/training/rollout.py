"""Answers that a model feeds back to itself: counted on evaluation sets, and as labels for a later stage.

In a study the same is an evaluation set with `decode: greedy`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from harness.draw import Draw
from harness.planning.pack import ScoredSet
from harness.training.evaluate import Scores, batch_size, score
from models.model import config_of, refuse_blind
from tasks.lego.continuation import continued
from tasks.task import Continued


@dataclass(frozen=True)
class Rollout:
    """One replicate's free-running answers on a set: the counts of `number` among `scores`.

    `evaluation_rows`, `profile_rows`: those of `Scores`, with the metrics rollout (values) and rollout_clause (all five slots).
    """

    scores: Scores
    number: int

    @property
    def steps(self) -> list[int]:
        """Strings whose value of answer l is wrong, at l - 1; the last is of the final value."""
        return self.scores.bins["position"][0][self.number].tolist()

    def evaluation_rows(self, diverged: bool) -> list[dict]:
        """sequences_wrong: strings of which not all L answers are right."""
        names = {"read": "rollout", "clause": "rollout_clause"}
        return [row | {"metric": names[row["metric"]]} for row in self.scores.evaluation_rows(self.number, diverged)]

    def profile_rows(self) -> list[dict]:
        """Errors of the values by position, 0 … L-1."""
        return self.scores.profile_rows(self.number)


def rollout(
    model: nn.Module,
    sets: Sequence[ScoredSet],
    device: torch.device,
    precision: str,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Rollout] | None:
    """Run replicate r freely through the whole of sets[r], sets of equal shape; None where asked to stop on the way.

    The strings are those that `harness.training.evaluate.score` reads of the same sets, so that the two can be compared string by
    string. Memory is that of `score`: parts of the set, one pass at a time.
    """
    for one in sets:
        refuse_task(one.task)
    # the strings follow from the hash, which stays
    free = [replace(one, task=replace(one.task, decode="greedy")) for one in sets]
    found = score(model, free, device, precision, should_stop)
    return None if found is None else [Rollout(scores, number) for scores, number in found]


@dataclass(frozen=True)
class Labels:
    """answers: what the models say, int64 [R, N, L, 5]; exact: strings whose answers are all true, int64 [R], for the record alone."""

    answers: Tensor
    exact: Tensor


def label(model: nn.Module, task: Any, draw: Draw, sequences: int) -> Labels:
    """The greedy answers of replicate r to the first `sequences` sentences of `task` that its seed draws, such as at length 2L.

    A function of weights, seed and the sentence's number: sentences are answered in parts of one size, so that how many are asked for
    changes no bits. No true answer is used. What such answers train on: `task.batch(prompt, answers)`, with the prompts of
    `task.sentences(draw, …)`.
    """
    refuse_task(task)
    if (config := config_of(model)) is not None:
        refuse_blind(config)
    size = batch_size(ScoredSet("", task, sequences, None, ""), draw.seeds.device)
    answers, exact = [], torch.zeros(draw.replicates, dtype=torch.int64, device=draw.seeds.device)
    for first in range(0, sequences, size):
        count = min(size, sequences - first)
        prompt, truth = task.sentences(draw.rows(first), size)
        said = continued(model, prompt, task.length, task.draft)[:, :count]
        answers.append(said)
        exact += (said == truth[:, :count]).flatten(2).all(-1).sum(-1)
    return Labels(torch.cat(answers, dim=1), exact)


def refuse_task(task: Any) -> None:
    """ValueError for a task without sentences that a model could go on with."""
    if not isinstance(task, Continued):
        raise ValueError(f"{type(task).__name__} has no answers that are fed back: a rollout needs a task such as lego")
