"""How fast a pack of a given size trains here and what memory it takes: a few real steps and a real part of every evaluation set.

The steps are thrown away; nothing of a probe reaches a store.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

import harness.artifacts as artifacts
from harness.evaluate import batch_size, score
from harness.memory import Memory, free_memory
from harness.pack import Pack, ScoredSet
from harness.parents import annotates
from harness.train import Training
from models.custom_checks import UnfitModule
from results.errors import StudyError, settings_errors

_BUDGET_S = 1.0  # of timed steps a size
_SIZES = {"cpu": (1, 4, 16, 64), "cuda": (1, 4, 16, 64, 256)}
_GAIN = 1.05  # a larger pack must be this much faster a replicate
_MARGIN = 0.85  # of the free memory that a pack may take by prediction


@dataclass(frozen=True)
class Rate:
    """Measured: seconds of a training step of the whole pack and of all its evaluations of a whole training, bytes at the peak.

    weights: bytes of the file of one replicate's weights, 0 where the pack keeps none.
    """

    size: int
    step_s: float
    evaluate_s: float
    memory: int = 0
    weights: int = 0

    def pack_seconds(self, steps: int) -> float:
        return self.step_s * steps + self.evaluate_s


def sizes(device: str) -> tuple[int, ...]:
    """Pack sizes that are tried on a kind of device."""
    return _SIZES[device]


def measure(pack: Pack, device: torch.device) -> Rate:
    """Time the pack: one step to warm up, then up to `_BUDGET_S` of steps (at least two), and a part of every evaluation set.

    A part that would take longer than that is not taken: the first one, after which memory is known, says as much. Of what a model
    answers with its own words fed back one pass is timed, and as many counted as it may take: an untrained one takes them all.
    """
    with settings_errors(UnfitModule):
        return _measured(pack, device)


def _measured(pack: Pack, device: torch.device) -> Rate:
    firsts: list[tuple[int, float]] = []
    scored = [*map(_in_one_pass, pack.sets), *_labelled(pack)]
    with Memory(device) as memory:
        training = Training(pack, device)
        training.advance()
        for sets, _ in scored:
            first = min(sets[0].sequences, batch_size(sets[0], device))
            firsts.append((first, _timed(device, partial(_score, training, sets, device, first))))
    step_s, steps = _step_seconds(training, device), training.train.steps
    evaluate_s = 0.0
    for (sets, passes), (part, seconds) in zip(scored, firsts, strict=True):
        whole, every = sets[0].sequences, sets[0].every
        wanted = min(whole, max(1, 2**15 // sets[0].task.length))
        if seconds * wanted <= _BUDGET_S * part:
            part, seconds = wanted, _timed(device, partial(_score, training, sets, device, wanted))
        rounds = 1 + (steps - 1) // every if every else 1
        evaluate_s += seconds * passes * whole / part * rounds
    weights = len(artifacts.content(pack, training.model, 0)) if pack.keep else 0
    return Rate(len(pack.replicates), step_s, evaluate_s, memory.peak(), weights)


def _step_seconds(training: Training, device: torch.device) -> float:
    """The median of a step's; of the compiled loop the mean over the steps whose strings are drawn at once."""
    if training.loop is not None:
        first, window = training.step, min(training.loop.window, training.train.steps)

        def whole() -> None:
            while training.step < first + window:
                training.advance()

        return _timed(device, whole) / (training.step - first)
    times: list[float] = []
    while len(times) < 2 or (sum(times) < _BUDGET_S and len(times) < 50):
        times.append(_timed(device, training.advance))
    return sorted(times)[len(times) // 2]


def _in_one_pass(sets: Sequence[ScoredSet]) -> tuple[Sequence[ScoredSet], int]:
    """The sets as one pass scores them, and the passes that they take at most."""
    passes = getattr(sets[0].task, "passes", 1)
    return (sets, 1) if passes == 1 else ([replace(each, task=each.task.forced()) for each in sets], passes)


def _labelled(pack: Pack) -> list[tuple[Sequence[ScoredSet], int]]:
    """As `_in_one_pass`, the strings of the pool, or of all steps, that the stage before answers."""
    if not annotates(pack):
        return []
    train = pack.replicates[0].condition.train
    strings = train.pool or train.steps * train.batch
    tasks = [each.condition.task.evaluation() for each in pack.replicates]
    return [([ScoredSet("labels", task, strings, None, "0") for task in tasks], tasks[0].length)]


def _score(training: Training, sets: Sequence[ScoredSet], device: torch.device, sequences: int) -> None:
    score(training.model, [replace(each, sequences=sequences) for each in sets], device, training.train.precision)


def predicted_memory(rates: Sequence[Rate], size: int) -> int:
    """Bytes that a pack of `size` takes, on the line through the two largest measured (through zero where there is one alone)."""
    last = rates[-1]
    if len(rates) == 1:
        return last.memory * size // last.size
    each = (last.memory - rates[-2].memory) / (last.size - rates[-2].size)
    return round(last.memory + each * (size - last.size))


def room_of(free: int, share: int = 1) -> int:
    """Bytes that tensors may take in each of `share` slots that divide `free` bytes."""
    return int(free * _MARGIN) // share


def room(device: torch.device, share: int = 1) -> int:
    """As `room_of`, of what the device or this machine has: all of a GPU that slots share, where others may be at work."""
    whole = device.type == "cuda" and share > 1
    return room_of(torch.cuda.mem_get_info(device)[1] if whole else free_memory(device), share)


def best_rate(
    of_size: Callable[[int], Pack], largest: int, device: torch.device, share: int = 1, most: int | None = None
) -> Rate:
    """The smallest pack that is about as fast a replicate as any up to `largest`; it ends where memory or the gain does.

    of_size(n) makes a pack of n replicates of the shape in question. share: slots that divide this machine's memory. most: bytes that a
    pack may take instead; a pack of one is measured all the same.
    """
    space = room(device, share) if most is None else most
    best: Rate | None = None
    seen: list[Rate] = []
    for size in sizes(device.type):
        if seen and (size > largest or predicted_memory(seen, size) > space):
            break
        try:
            rate = measure(of_size(size), device)
        except torch.OutOfMemoryError:
            break
        if best is not None and rate.step_s / size * _GAIN > best.step_s / best.size:
            break
        best = rate
        seen.append(rate)
    if best is None:
        raise StudyError("one replicate alone does not fit into the memory of this device: choose a smaller model or batch")
    return best


def _timed(device: torch.device, run: Callable[[], None]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started
