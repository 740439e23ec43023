"""How fast a pack of a given size trains here and what memory it takes: a few real steps and a real batch of every evaluation set.

The steps are thrown away; nothing of a probe reaches a store.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

import harness.training.weights as artifacts
from harness import compiled_draw
from harness.machine.device import finish
from harness.machine.exit_guard import no_exit
from harness.machine.memory import Memory, free_memory
from harness.planning.pack import Pack, ScoredSet
from harness.study.custom_tasks import own_errors
from harness.training.evaluate import batch_size, score
from harness.training.pack_state import Training
from harness.training.self_labels import annotates
from models.unfit import UnfitModel
from results.errors import StudyError

_BUDGET_S = 0.5  # seconds of timed steps per size, and of batches that are timed again
PRECISION = 0.05  # relative standard error of a step's seconds that is good enough
_WORTH_STEPS = 500  # steps that must be left to a slot for a larger pack to be worth measuring
SIZES = {"cpu": (1, 4, 16, 64), "cuda": (1, 4, 16, 64, 256)}
_GAIN = 1.05  # a larger pack must be this many times faster per replicate
_MARGIN = 0.85  # share of the free memory that a pack is allowed to take, as predicted


@dataclass(frozen=True)
class Rate:
    """What was measured of a pack of `size` replicates.

    step_s: seconds of a training step of the whole pack; evaluate_s: of all evaluations of a whole training; memory: bytes at the peak;
    weights: bytes of the file of one replicate's weights, 0 where the pack keeps none. precision: relative standard error of step_s.
    """

    size: int
    step_s: float
    evaluate_s: float
    memory: int = 0
    weights: int = 0
    precision: float = 0.0

    def pack_seconds(self, steps: int) -> float:
        return self.step_s * steps + self.evaluate_s


def sizes(device: str) -> tuple[int, ...]:
    """Pack sizes that are tried on a kind of device."""
    return SIZES[device]


def measure(pack: Pack, device: torch.device) -> Rate:
    """Time the pack: one step to warm up, then steps until their mean is known to `PRECISION`, and one batch of every distinct
    evaluation set, from which the whole set follows.

    Where a model's answers are fed back to it, one pass is timed and counted as often as it may be taken: an untrained model takes all.
    """
    if pack.experiment is not None:
        return Rate(len(pack.replicates), float(len(pack.replicates)), 0.0)  # a second each: nobody knows before it has run
    condition = pack.replicates[0].condition
    with own_errors(condition.task), no_exit(f"the training of {condition.label}"):
        try:
            return _measured(pack, device)
        except UnfitModel as error:
            raise StudyError(f"the training of {condition.label} asks too much of its model: {error}") from error


def _measured(pack: Pack, device: torch.device) -> Rate:
    if device.type == "cpu":
        compiled_draw.prepare()
    scored = [*map(in_one_pass, pack.sets), *_labelled(pack)]
    seconds: dict[Any, float] = {}  # seconds of a string, by task
    run: dict[Any, Callable[[], float]] = {}
    with Memory(device) as memory:
        training = Training(pack, device)
        training.advance()
        if training.loop is None and (wide := training.overflowing_strings()) is not None:
            training.flat.differentiate(training.losses(wide).sum())  # on a GPU beside the graph, whose memory stays its own
        for sets, _ in scored:
            task, strings = sets[0].task, min(sets[0].sequences, batch_size(sets[0], device))
            if task not in seconds:
                run[task] = partial(_seconds_of_a_string, training, sets, device, strings)
                try:
                    seconds[task] = run[task]()
                except UnfitModel as error:
                    name = pack.replicates[0].condition.name
                    raise StudyError(f"the evaluation set {sets[0].name} asks too much of {name}: {error}") from error
                if seconds[task] * strings > _BUDGET_S / len(scored):
                    del run[task]  # timed well enough, though the first time counts memory
    seconds |= {task: again() for task, again in run.items()}
    step_s, precision = _step_seconds(training, device)
    steps, monitor = training.train.steps, training.train.monitor
    evaluate_s = 0.0
    for sets, passes in scored:
        rounds = 1 + (steps - 1) // sets[0].every if sets[0].every else 1
        evaluate_s += seconds[sets[0].task] * sets[0].sequences * passes * rounds
    if monitor is not None:
        evaluate_s += _timed(device, training.monitored) * (steps // monitor.every)
    watch = pack.watch
    if watch is not None:
        evaluate_s += _timed(device, partial(training.watcher.look, training.losses)) * -(-steps // watch.every)
    weights = len(artifacts.content(pack, training.model, 0)) if pack.keep else 0
    return Rate(len(pack.replicates), step_s, evaluate_s, memory.peak(), weights, precision)


def _seconds_of_a_string(training: Training, sets: Sequence[ScoredSet], device: torch.device, strings: int) -> float:
    return _timed(device, partial(_score, training, sets, device, strings)) / strings


def _step_seconds(training: Training, device: torch.device) -> tuple[float, float]:
    """(mean seconds of a step, its relative standard error); for the compiled loop the mean over the steps whose strings are drawn at once.

    Elsewhere too the strings of several steps are drawn at once, and the steps that are timed may have none to draw: so a step is timed
    without its draw, and a draw apart.
    """
    if training.loop is not None:
        first, window = training.step, min(training.loop.window, training.train.steps)

        def whole() -> None:
            while training.step < first + window:
                training.advance()

        return _timed(device, whole) / (training.step - first), 0.0
    feed = training.feed
    draw_s = _timed(device, lambda: feed.draw(training.step + 1)) / len(feed.drawn)
    times: list[float] = []
    while len(times) < 3 or (sum(times) < _BUDGET_S and _relative_error(times) > PRECISION):
        feed.at(training.step + 1)
        times.append(_timed(device, training.advance))
    return statistics.mean(times) + draw_s, _relative_error(times)


def _relative_error(times: Sequence[float]) -> float:
    """The standard error of a mean, as a share of it."""
    return statistics.stdev(times) / math.sqrt(len(times)) / statistics.mean(times)


def in_one_pass(sets: Sequence[ScoredSet]) -> tuple[Sequence[ScoredSet], int]:
    """The sets as one pass scores them, and how many passes they take at most."""
    passes = sets[0].task.passes
    return (sets, 1) if passes == 1 else ([replace(scored, task=scored.task.forced()) for scored in sets], passes)


def _labelled(pack: Pack) -> list[tuple[Sequence[ScoredSet], int]]:
    """As `in_one_pass`, for the strings that the previous stage answers: those of the pool, or of all steps."""
    if not annotates(pack):
        return []
    train = pack.replicates[0].condition.train
    strings = train.pool or train.steps * train.batch
    tasks = [replicate.condition.task.evaluation() for replicate in pack.replicates]
    return [([ScoredSet("labels", task, strings, None, "0") for task in tasks], tasks[0].length)]


def _score(training: Training, sets: Sequence[ScoredSet], device: torch.device, sequences: int) -> None:
    some = [replace(scored, sequences=sequences) for scored in sets]
    score(training.model, some, device, training.train.precision, compiled=training.compiled)


def predicted_memory(rates: Sequence[Rate], size: int) -> int:
    """Bytes that a pack of `size` takes, on the line through the two largest measured (through zero where there is one alone)."""
    last = rates[-1]
    if len(rates) == 1:
        return last.memory * size // last.size
    per_replicate = (last.memory - rates[-2].memory) / (last.size - rates[-2].size)
    return round(last.memory + per_replicate * (size - last.size))


def room_of(free: int, share: int = 1) -> int:
    """Bytes that tensors may take in each of `share` slots that divide `free` bytes."""
    return int(free * _MARGIN) // share


def room(device: torch.device, share: int = 1) -> int:
    """As `room_of`, for what is free on the device or in this machine.

    A GPU that slots share counts whole, since others may be at work on it.
    """
    whole = device.type == "cuda" and share > 1
    return room_of(torch.cuda.mem_get_info(device)[1] if whole else free_memory(device), share)


def best_rate(rate_of: Callable[[int], Rate], largest: int, device: str, space: Callable[[], int], steps: int) -> Rate:
    """The smallest pack that is about as fast a replicate as any up to `largest`; it ends where memory or the gain does, or where
    what is left to train is not worth another measurement.

    rate_of(n) measures a pack of n replicates; device: cpu | cuda; space(): bytes that a pack may take, a pack of one is measured all the
    same; steps: of a replicate.
    """
    best: Rate | None = None
    seen: list[Rate] = []
    for size in sizes(device):
        if seen:
            worth = steps * largest >= _WORTH_STEPS * seen[-1].size
            if size > largest or not worth or predicted_memory(seen, size) > space():
                break
        try:
            rate = rate_of(size)
        except torch.OutOfMemoryError:
            break
        if best is not None and rate.step_s / size * _GAIN > best.step_s / best.size:
            break
        best = rate
        seen.append(rate)
    if best is None:
        raise StudyError("one replicate alone does not fit into the memory of this device: choose a smaller model or batch")
    return best


def too_large(pack: Pack) -> StudyError:
    """What the person is told of a pack whose size is given and which ran out of the device's memory."""
    size, name = len(pack.replicates), pack.replicates[0].condition.label
    if size == 1:
        return StudyError(f"one replicate of {name} does not fit on the device: choose a smaller model or batch")
    return StudyError(f"a pack of {size} of {name} does not fit on the device: write a pack.size smaller than {size}")


def _timed(device: torch.device, run: Callable[[], object]) -> float:
    finish(device)
    started = time.perf_counter()
    run()
    finish(device)
    return time.perf_counter() - started
