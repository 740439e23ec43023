"""A training whose process is gone at a chosen step or has no memory, and studies without the steps that take longer than they do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch

import harness.executing.run_pack
import harness.planning.throughput
import harness.run
import harness.training.train
from harness.planning.pack import Pack
from harness.training.pack_state import Training
from harness.training.train import train


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed(patch: pytest.MonkeyPatch, when: Callable[[Training], bool]) -> Iterator[list[str]]:
    """Within, a training ends as its process would at the first step of which `when` is true; a checkpoint is written at every step.

    Gives a list that gets the pack's id.
    """
    advance, seen = Training.advance, list[str]()

    def dying(training: Training) -> None:
        if not training.pack.id.startswith("probe") and when(training):
            seen.append(training.pack.id)
            raise Killed
        advance(training)

    with patch.context() as patched:
        patched.setattr(harness.executing.run_pack, "train", partial(train, checkpoint_s=0.0))
        patched.setattr(harness.training.train, "CHECKPOINT_SHARE", 1e9)
        patched.setattr(Training, "advance", dying)
        with pytest.raises(Killed):
            yield seen


def out_of_memory(patch: pytest.MonkeyPatch) -> None:
    """Let every pack of several replicates run out of memory."""
    real = harness.executing.run_pack.train

    def small_only(pack: Pack, *rest: Any, **more: Any) -> Any:
        if len(pack.replicates) > 1:
            raise torch.OutOfMemoryError("planted")
        return real(pack, *rest, **more)

    patch.setattr(harness.executing.run_pack, "train", small_only)


def untimed(patch: pytest.MonkeyPatch) -> None:
    """Before a study, time two steps instead of a second of them."""
    patch.setattr(harness.planning.throughput, "_BUDGET_S", 0.0)


def without_report(patch: pytest.MonkeyPatch) -> None:
    """Leave out the report and the timing of steps, which take longer than these trainings."""
    untimed(patch)
    patch.setattr(harness.run, "_report", lambda store: ["report: none"])
