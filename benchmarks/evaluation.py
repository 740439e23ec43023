"""Strings per second of scoring replicates on a fixed set, packed and one by one, and how long 100,000 strings take.

python -m benchmarks.evaluation --device cpu --out benchmarks/results/cpu
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn

from benchmarks import plain
from benchmarks.cases import CASES, Case, EveryPosition
from benchmarks.tables import add_device, conditions, number, precision_of, ratio, show
from harness.machine.device import prepare, resolve
from harness.machine.precision import autocast, set_matmul
from harness.planning.pack import ScoredSet
from harness.training.evaluate import batch_size, score, strings
from harness.training.loss_positions import needed as needed_of
from results.markdown_table import markdown_table
from results.plain_values import Row

_STRINGS = 100_000
_CASES = ("tiny", "L1-d64-T128", "L1-d64-T512", "L2-d64-T512", "lstm128-T512", "mlp1000", "L6-d512-T512")

Chunk = Callable[[int], list[int]]


def scored_set(case: Case, needed: bool, sequences: int, number: int) -> ScoredSet:
    """The chunk with this number; no two chunks share strings."""
    task = case.task.evaluation()
    return ScoredSet("speed", task if needed else EveryPosition(task), sequences, None, f"{number:015x}0")


def packed(case: Case, size: int, needed: bool, device: torch.device, precision: str, sequences: int) -> Chunk:
    """A function that scores a chunk for `size` replicates at initialisation and returns the errors of each."""
    model = plain.packed_model(case, 0, size, device)

    def chunk(number: int) -> list[int]:
        scores = score(model, [scored_set(case, needed, sequences, number)] * size, device, precision)
        if scores is None:
            raise RuntimeError("a score that nobody asked to stop has stopped")
        first = next(iter(scores[0][0].sums.values()))
        return first[:, 0].tolist()

    return chunk


def alone(case: Case, needed: bool, device: torch.device, precision: str, sequences: int, seed: int = 0) -> Chunk:
    """The same for one replicate as a plain model."""
    model: nn.Module = plain.make(case)
    plain.load(model, plain.packed_model(case, seed, 1, torch.device("cpu")), 0)
    model.to(device)
    ends = not plain.has_variants(case)

    @torch.no_grad()
    def chunk(number: int) -> list[int]:
        wrong = torch.zeros((), dtype=torch.int64, device=device)
        scored = scored_set(case, needed, sequences, number)
        for batch in strings(scored, device):
            wanted = needed_of(batch, 1 if ends else scored.task.scored_positions())
            positions = None if ends or wanted.order is None else wanted.order[0]
            with autocast(device, precision):
                logits = model(batch.inputs[0], positions)
            errors = next(iter(scored.task.wrong(logits.float()[None], wanted.targets).values()))
            wrong += (errors & (wanted.weights > 0)).sum()
        return [int(wrong)]

    return chunk


def measure(case: Case, sizes: Sequence[int], device: torch.device, precision: str, total: int, limit: float) -> list[Row]:
    """Score chunks in turn until each variant has scored `total` strings or run for `limit` seconds; medians of the chunks' rates."""
    set_matmul(precision)
    sequences = min(total, batch_size(scored_set(case, True, total, 0), device))
    ways: dict[tuple[str, int], Chunk] = {}
    if plain.has_variants(case):
        ways["plain full", 1] = alone(case, False, device, precision, sequences)
    ways["plain needed", 1] = alone(case, True, device, precision, sequences)
    for size in sizes:
        ways["packed needed", size] = packed(case, size, True, device, precision, sequences)
    times: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
    for chunk in ways.values():
        chunk(0)  # warm-up
    number = 0
    waiting = set(ways)
    while waiting:
        number += 1
        for key in [way for way in ways if way in waiting]:
            times[key].append(_timed(ways[key], number, device))
            if sum(times[key]) >= limit or len(times[key]) * sequences >= total:
                waiting.remove(key)
    reference = ("plain full", 1) if ("plain full", 1) in ways else ("plain needed", 1)
    base = sequences / statistics.median(times[reference])
    rows = []
    for (name, size), taken in times.items():
        rate = size * sequences / statistics.median(taken)
        rows.append(
            {
                "case": case.name,
                "way": name,
                "size": size,
                "strings": len(taken) * sequences,
                "rate": rate,
                "of_plain": rate / base,
                "hundred_thousand_s": _STRINGS / rate,
            }
        )
    return rows


def _timed(chunk: Chunk, number: int, device: torch.device) -> float:
    began = time.perf_counter()
    chunk(number)  # its counts are read, so a GPU has finished
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluation", description=__doc__)
    add_device(parser, "evaluation")
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=list(_CASES), metavar="CASE", help=f"of {', '.join(CASES)}"
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 4, 16], help="replicates a pack")
    parser.add_argument("--strings", type=int, default=_STRINGS, help="that each way scores at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="that each way takes at most")
    options = parser.parse_args(arguments)
    if min(options.strings, options.seconds, *options.sizes) <= 0:
        parser.error("--strings, --seconds and --sizes must be above 0")
    precision = precision_of(options)
    device = resolve(options.device)
    prepare(device)
    header = conditions(options.device, precision, processes=1)
    rows: list[Row] = []
    for name in options.cases:
        print(f"{name} …", flush=True)
        rows += measure(CASES[name], options.sizes, device, precision, options.strings, options.seconds)
    table = [
        [
            row["case"],
            row["way"],
            row["size"],
            row["strings"],
            number(row["rate"]),
            ratio(row["of_plain"]),
            number(row["hundred_thousand_s"]),
        ]
        for row in rows
    ]
    columns = ("case", "way", "R", "strings", "replicate-strings/s", "of plain", "s for 100,000 a replicate")
    text = "\n\n".join(
        ["# Throughput of evaluation", header, "One process, chunks in turn, medians.", markdown_table(columns, table)]
    )
    show(options.out, "evaluation", text, rows)


if __name__ == "__main__":
    main()
