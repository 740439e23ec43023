"""Run one pack on the device of this process and commit it: what every executor does."""

import datetime
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import torch

import harness.training.checkpoint as checkpoints
from harness.experiments.entries import BadResult
from harness.experiments.measure import measure
from harness.experiments.script import ScriptFailed
from harness.machine.device import release
from harness.machine.exit_guard import no_exit
from harness.machine.logs import logged
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack
from harness.study.custom_tasks import own_errors
from harness.study.running_code import refuse_other_code
from harness.training.pack_state import Stopped
from harness.training.train import train
from models.custom.custom_checks import with_line
from results.errors import DamagedFile, StoreError
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, read


@dataclass(frozen=True)
class Outcome:
    """How a pack ended. status: committed | stopped | failed | raised | oom | unstored; `message` says why where it is not committed."""

    pack: str
    status: str
    replicates: int
    diverged: int = 0
    step: int = 0
    message: str = ""


@logged
def run_pack(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None],
    should_stop: Callable[[], bool],
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Train, commit, remove the checkpoints. Nothing is raised: a study goes on past a pack that fails.

    A replicate that raises is recorded in `failures`, also where it raises an OSError that no store caused, or calls sys.exit. A pack of
    several that raises is returned as `raised`, and one that runs out of memory, the device's or by a MemoryError the host's, as `oom`: to
    be split. A store that refuses is tried again for minutes (`harness.machine.store_retry`, which tells `say`), and then the pack is
    `unstored`, to be run again.
    """
    size = len(pack.replicates)
    reached = 0

    def at(step: int) -> None:
        nonlocal reached
        reached = step

    def note(step: int) -> None:
        at(step)
        report(step)

    try:
        for condition in {replicate.condition.name: replicate.condition for replicate in pack.replicates}.values():
            refuse_other_code(condition)
        run = partial(train, begins=at) if pack.experiment is None else measure
        with no_exit("the training" if pack.experiment is None else "the experiment"), _own_errors(pack):
            tables = run(pack, store, device, note, should_stop, say=say)
        patiently(lambda: commit(store, pack.id, tables), should_stop, say)
        _clear(store, pack, say)
    except Stopped as stopped:
        return Outcome(pack.id, "stopped", size, step=stopped.step, message=str(stopped))
    except torch.OutOfMemoryError as error:
        return Outcome(pack.id, "oom", size, step=reached, message=str(error))
    except Exception as error:
        short = isinstance(error, MemoryError)
        kind = error.kind if isinstance(error, ScriptFailed) else "oom" if short else "raised"
        if isinstance(error, StoreError) and not isinstance(error, DamagedFile):
            return Outcome(pack.id, "unstored", size, step=reached, message=str(error))
        message = ": ".join(filter(None, (type(error).__name__, _said(pack, error))))
        if size > 1:
            return Outcome(pack.id, "oom" if short else "raised", size, step=reached, message=message)
        trace = traceback.format_exc()
        try:
            patiently(lambda: record_failure(store, pack, kind, reached, message, trace), should_stop, say)
        except StoreError as refused:
            message = f"{message}; this is not recorded ({refused}), so the same command tries it again"
        return Outcome(pack.id, "failed", size, step=reached, message=message)
    finally:
        release(device)
    diverged = sum(status == "diverged" for status in tables["replicates"]["status"].to_pylist())
    return Outcome(pack.id, "committed", size, diverged, reached)


def _own_errors(pack: Pack) -> AbstractContextManager[None]:
    return own_errors(pack.replicates[0].condition.task) if pack.experiment is None else nullcontext()


def _said(pack: Pack, error: Exception) -> str:
    """The message of an error, with the line of the person's own function that raised it."""
    if pack.experiment is None or isinstance(error, BadResult | ScriptFailed):
        return str(error)
    return with_line(pack.experiment.name, error).strip()


def _clear(store: Store, pack: Pack, say: Callable[[str], None]) -> None:
    try:
        checkpoints.clear(store, pack.id)
    except StoreError as error:  # the pack is committed: only space is lost
        say(f"checkpoints/{pack.id} could not be removed and can be deleted: {error}")


def record_failure(store: Store, pack: Pack, kind: str, step: int, exception: str, trace: str) -> None:
    """Write the pack's row of `failures`."""
    row = {
        "pack": pack.id,
        "attempt": pack.attempt,
        "keys": [replicate.key for replicate in pack.replicates],
        "stage": pack.stage,
        "step": step,
        "kind": kind,
        "exception": exception,
        "traceback": trace,
        "at": datetime.datetime.now(datetime.UTC),
    }
    commit(store, f"{pack.id}-{pack.attempt}", {"failures": pa.Table.from_pylist([row], SCHEMAS["failures"])})


def attempts(store: Store) -> dict[str, int]:
    """Failed attempts so far, by pack id."""
    failures = read(store, "failures", ["pack", "attempt"])
    latest = failures.group_by("pack").aggregate([("attempt", "max")])
    return dict(zip(latest["pack"].to_pylist(), latest["attempt_max"].to_pylist(), strict=True))


def halves(pack: Pack) -> list[Pack]:
    """The pack as two, after memory ran out, it raised, or a replicate kept killing it; [] for a pack of one."""
    middle = len(pack.replicates) // 2
    if not middle:
        return []
    parts = (pack.replicates[:middle], pack.replicates[middle:])
    return [pack.part(part) for part in parts]
