"""Replicate-steps per second of packed training beside what a user would run instead, in the same run.

python -m benchmarks.throughput --device cpu --out benchmarks/results/cpu
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import report
from benchmarks.cases import CASES, Case, bytes_of
from benchmarks.tables import add_device, conditions, precision_of, write
from benchmarks.variants import KINDS, Variant
from benchmarks.worker import Failed, Worker, job_of
from harness.machine.device import describe, resolve
from harness.machine.memory import free_memory
from harness.machine.provenance import code_state
from harness.planning.throughput import SIZES
from results.plain_values import Row

_ROOM = 0.8  # of the free memory that resident processes may take together
_REFERENCES = ("plain full", "plain needed")


def variants_of(case: Case, sizes: Iterable[int], kinds: Sequence[str], processes: int, several: int) -> list[Variant]:
    """All variants of a case, the references first. several: number of processes of another row of (a) and (b), 0 for no such row."""
    alone = [Variant("plain", False), Variant("plain", True), Variant("x-transformers", False)]
    variants = [replace(variant, processes=processes) for variant in alone]
    if several > processes:
        variants += [replace(variant, processes=several) for variant in alone]
    for size in sizes:
        for kind in ("vmap", "packed"):
            variants += [Variant(kind, needed, size, processes) for needed in (False, True)]
    return [variant for variant in variants if variant.kind in kinds or variant.name in _REFERENCES]


def with_compiled(variants: Sequence[Variant], kinds: Sequence[str]) -> list[Variant]:
    """All as they are, and those of these kinds that can be compiled through torch.compile as well."""
    compiled = [replace(variant, compiled=True) for variant in variants if variant.kind in kinds and variant.kind != "vmap"]
    return [*variants, *compiled]


@dataclass(frozen=True)
class Group:
    """Variants that are measured in turn. resident: all at once in memory; else each block has processes of its own."""

    variants: tuple[Variant, ...]
    resident: bool = True


def groups(case: Case, variants: Sequence[Variant], device: str, room: int) -> tuple[list[Group], dict[Variant, str]]:
    """Variants that fit into `room` bytes together, each group with the references first, and why others can't run at all."""
    first = [variant for variant in variants if _is_reference(variant)]
    rest = [variant for variant in variants if not _is_reference(variant)]
    refused: dict[Variant, str] = {}
    shared: list[list[Variant]] = []
    single: list[Variant] = []
    taken = sum(_bytes(case, variant, device) for variant in first)
    used = room
    for variant in rest:
        size = _bytes(case, variant, device)
        if size > room:
            refused[variant] = f"not run, about {size / 1e9:.1f} GB of the {room / 1e9:.1f} GB there are"
        elif taken + size > room:
            single.append(variant)
        elif used + size > room:
            shared.append([variant])
            used = taken + size
        else:
            shared[-1].append(variant)
            used += size
    together = [Group((*first, *members)) for members in shared]
    if single or not together:
        together.append(Group((*first, *single), resident=taken <= room and not single))
    return together, refused


def _is_reference(variant: Variant) -> bool:
    return variant.name in _REFERENCES and not variant.compiled


def _bytes(case: Case, variant: Variant, device: str) -> int:
    return variant.processes * bytes_of(case, variant.size, variant.kind, device)


def measure(
    case: Case,
    group: Group,
    device: str,
    precision: str,
    seconds: float,
    rounds: int,
    say: Callable[[str], None],
) -> list[Row]:
    """Rows of a group: blocks of `seconds` in turn, `rounds` times, medians.

    rate: replicate-steps/s of all processes; startup_s: from asking for the process to its first step; build_s: of it, making the model,
    capturing or compiling, and the first step; memory: bytes of one process; rates: of every round. A variant that fails has `note`.
    """
    running: dict[Variant, list[Worker]] = {}
    rows = {variant: _row(case, variant, device, precision) for variant in group.variants}

    def start(variant: Variant) -> None:
        say(f"{case.name}: starting {variant.name}, R = {variant.size}, {variant.processes} process(es)")
        job = job_of(variant, case.name, device, precision)
        running[variant] = [Worker(job) for _ in range(variant.processes)]
        _try(running, rows, variant, _started)

    try:
        for variant in group.variants if group.resident else ():
            start(variant)
        for turn in range(rounds):
            say(f"{case.name}: round {turn + 1} of {rounds}")
            for variant in group.variants:
                if rows[variant]["note"]:
                    continue
                if not group.resident:
                    start(variant)
                if variant in running:
                    _try(running, rows, variant, partial(_block, variant, seconds))
                if not group.resident:
                    _end(running.pop(variant, []))
    finally:
        for workers in running.values():
            _end(workers)
    for row in rows.values():
        row["rate"] = statistics.median(row["rates"]) if row["rates"] else None
    _compare(rows)
    return list(rows.values())


def _end(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.end()


def _try(running: dict[Variant, list[Worker]], rows: dict[Variant, Row], variant: Variant, run: Callable) -> None:
    try:
        run(running[variant], rows[variant])
    except Failed as error:
        rows[variant] |= {"note": f"failed: {error}", "rates": []}
        _end(running.pop(variant))


def _started(workers: Sequence[Worker], row: Row) -> None:
    answers = []
    for worker in workers:
        answer = worker.answer()
        answers.append(answer | {"startup": time.perf_counter() - worker.started})
    row["startup_s"] = max(answer["startup"] for answer in answers)
    row["build_s"] = max(answer["build"] for answer in answers)
    row["warnings"] = sorted({said for answer in answers for said in answer["warnings"]})


def _block(variant: Variant, seconds: float, workers: Sequence[Worker], row: Row) -> None:
    for worker in workers:
        worker.ask(seconds)
    answers = [worker.answer() for worker in workers]
    row["rates"] = row["rates"] + [sum(variant.size * answer["steps"] / answer["elapsed"] for answer in answers)]
    row["memory"] = max(answer["memory"] for answer in answers)


def _row(case: Case, variant: Variant, device: str, precision: str) -> Row:
    return {
        "case": case.name,
        "variant": variant.name,
        "size": variant.size,
        "processes": variant.processes,
        "device": device,
        "precision": precision,
        "auto": False,
        "rate": None,
        "rates": [],
        "of_full": None,
        "of_needed": None,
        "of_best": None,
        "startup_s": None,
        "build_s": None,
        "memory": None,
        "warnings": [],
        "note": None,
    }


def _compare(rows: dict[Variant, Row]) -> None:
    """Medians over rounds of each round's ratio to the plain model in full, with needed positions, and to the better of the two."""
    rates: dict[str, list[float]] = {}
    for variant, row in rows.items():
        if _is_reference(variant) and row["rates"]:
            # the fewest processes: a row with more comes after them
            rates.setdefault(variant.name, row["rates"])
    if not rates:
        return
    full, needed = rates.get("plain full"), rates.get("plain needed")
    best = [max(ratios) for ratios in zip(*rates.values(), strict=True)]
    for row in rows.values():
        for column, reference in (("of_full", full), ("of_needed", needed), ("of_best", best)):
            if reference is not None and row["rates"]:
                row[column] = statistics.median(own / theirs for own, theirs in zip(row["rates"], reference, strict=True))


def auto_size(case: Case, device: str, precision: str, largest: int, processes: int) -> int:
    """What `pack.size: auto` chooses when so many slots share this machine. Raises Failed."""
    worker = Worker({"case": case.name, "device": device, "precision": precision, "largest": largest, "share": processes})
    try:
        return worker.answer()["size"]
    finally:
        worker.end()


def run(
    options: argparse.Namespace, say: Callable[[str], None], keep: Callable[[list[Row]], None] = lambda rows: None
) -> list[Row]:
    """The rows of all cases that were asked for; keep(rows so far) is called after each case.

    A case in the file --work that was measured with the same options, device and code is not measured again.
    """
    rows: list[Row] = []
    asked = _asked(options)
    before = _measured_before(options.work, asked)
    for name in options.cases:
        if name in before:
            say(f"{name}: measured before; remove {options.work} to measure it again")
            rows += before[name]
        else:
            fresh = _rows_of(name, options, say)
            rows += fresh
            if options.work:
                with open(options.work, "a") as file:
                    file.write(json.dumps({"asked": asked, "case": name, "rows": fresh}) + "\n")
        keep(rows)
    return rows


def _rows_of(name: str, options: argparse.Namespace, say: Callable[[str], None]) -> list[Row]:
    """Measure a case: the rows of its groups, and those of variants that can't run, with the reason."""
    rows: list[Row] = []
    case = CASES[name]
    sizes, chosen = list(options.sizes), None
    if options.auto and "packed" in options.kinds:
        say(f"{name}: what auto chooses")
        try:
            chosen = auto_size(case, options.device, options.precision, SIZES[options.device][-1], options.processes)
            sizes = sorted({*sizes, chosen})
        except Failed as error:
            say(f"{name}: auto failed: {error}")
            rows.append(
                _row(case, Variant("packed", True, 0, options.processes), options.device, options.precision)
                | {"auto": True, "note": f"auto failed: {error}"}
            )
    wanted = variants_of(case, sizes, options.kinds, options.processes, options.several)
    if options.needed:
        wanted = [variant for variant in wanted if variant.needed or variant.kind not in ("vmap", "packed")]
    wanted = with_compiled(wanted, options.compile)
    lacking = {variant: reason for variant in wanted if (reason := variant.missing(case)) is not None}
    room = options.memory or int(free_memory(resolve(options.device)) * _ROOM)
    together, refused = groups(case, [variant for variant in wanted if variant not in lacking], options.device, room)
    for number, group in enumerate(together):
        measured = measure(case, group, options.device, options.precision, options.seconds, options.rounds, say)
        rows += [row | {"group": number} for row in measured if number == 0 or row["variant"] not in _REFERENCES]
    for variant, reason in (lacking | refused).items():
        rows.append(_row(case, variant, options.device, options.precision) | {"note": reason})
    for row in rows:
        if row["variant"] == "packed needed" and row["size"] == chosen:
            row["auto"] = True
    return [{"group": None} | row for row in rows]


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What the rows of a case depend on, in types that JSON gives back."""
    names = "precision sizes kinds seconds rounds processes several auto compile needed memory".split()
    where = {"device": describe(resolve(options.device)), "torch": torch.__version__, "code": list(code_state())}
    return where | {name: getattr(options, name) for name in names}


def _measured_before(work: str | None, asked: dict[str, Any]) -> dict[str, list[Row]]:
    """The rows in the file `work` that were asked for in the same way, by case."""
    if not work or not Path(work).exists():
        return {}
    lines = map(json.loads, Path(work).read_text().splitlines())
    return {line["case"]: line["rows"] for line in lines if line["asked"] == asked}


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    add_device(parser, "throughput")
    parser.add_argument("--work", help="file that keeps each measured case, so that the same command goes on after a stop")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--sizes", nargs="+", type=int, help="replicates a pack (default: 1 4 16 64, on CUDA 256 too)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="the plain models always run")
    parser.add_argument("--seconds", type=float, default=0.8, help="of a block (a step at least)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, help="at the same time (default: the cores of a CPU, at most 2; one on CUDA)")
    parser.add_argument(
        "--several", type=int, help="one more row of plain and x-transformers with so many (default: 4 on CUDA)"
    )
    parser.add_argument("--no-auto", dest="auto", action="store_false", help="leave out what pack.size: auto chooses")
    parser.add_argument(
        "--compile", nargs="+", choices=KINDS, default=[], help="kinds to be timed through torch.compile as well"
    )
    parser.add_argument("--needed", action="store_true", help="packed and vmap with needed positions alone")
    parser.add_argument("--memory", type=int, help="bytes that resident processes may take (default: most of what is free)")
    parser.add_argument("--study-steps", type=int, default=10_000, help="of a training, for the cost of 100 replicates")
    parser.add_argument("--peak", type=float, help="FLOP/s that utilisation is a part of (default: of an H200; none on a CPU)")
    options = parser.parse_args(arguments)
    cuda = options.device == "cuda"
    options.sizes = options.sizes or list(SIZES[options.device])
    options.processes = options.processes or (1 if cuda else min(2, os.cpu_count() or 1))
    options.several = (4 if cuda else 0) if options.several is None else options.several
    options.precision = precision_of(options)
    if options.work and not Path(options.work).absolute().parent.is_dir():
        parser.error(f"--work {options.work}: there is no folder {Path(options.work).parent}; make it first")
    for name in ("seconds", "rounds", "processes", "study_steps"):
        value = getattr(options, name)
        if not (math.isfinite(value) and value > 0):
            parser.error(f"--{name.replace('_', '-')} {value} must be above 0")
    if min(options.sizes) < 1 or options.several < 0:
        parser.error("--sizes must be at least 1 and --several at least 0")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = options_of(arguments)
    header = conditions(
        options.device,
        options.precision,
        processes=options.processes,
        blocks=f"{options.rounds} rounds of {options.seconds} s",
    )
    began = time.perf_counter()

    def text_of(rows: list[Row]) -> tuple[str, list[Row]]:
        rows = report.complete(rows, options.peak, options.study_steps)
        return report.text(rows, header, options.study_steps), rows

    def keep(rows: list[Row]) -> None:
        if options.out:  # a machine that fails later loses no case that was measured
            write(options.out, "throughput", *text_of(rows))

    rows = run(options, lambda text: print(f"{time.perf_counter() - began:7.1f} s  {text}", flush=True), keep)
    print(text_of(rows)[0])


if __name__ == "__main__":
    main()
