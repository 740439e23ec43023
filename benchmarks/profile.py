"""Where the time of a training step goes: products, attention, activation, norms and other elementwise operations, optimiser, data.

python -m benchmarks.profile --device cpu --cases L1-d64-T512 --sizes 1 16 --out benchmarks/results/cpu

Run it only as a module: a script's folder comes first on the path, and `profile` is also a module of Python's own.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks import plain
from benchmarks.cases import CASES, Case, pack
from benchmarks.tables import add_device, conditions, number, precision_of, show
from harness.machine.device import finish, prepare, resolve
from harness.training.pack_state import Training
from results.markdown_table import markdown_table
from results.plain_values import Row

PARTS = ("GEMM", "attention", "activation", "norm and elementwise", "optimiser", "data")
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "matmul", "mkldnn_linear")
_ATTENTION = ("attention", "flash", "fmha")
_ACTIVATIONS = ("gelu", "relu", "sigmoid", "tanh", "silu", "threshold_backward", "lstm", "mkldnn_rnn")
_WARM = 2


def part_of(name: str, ranges: Iterable[str]) -> str:
    """The part that an operation belongs to: the range around it, if it is in one, else by its own name."""
    for part in ranges:
        if part in PARTS:
            return part
    bare = name.rpartition("::")[2].removeprefix("_").lower()
    if any(word in bare for word in _ATTENTION):
        return "attention"
    if bare in _PRODUCTS:
        return "GEMM"
    return "activation" if any(word in bare for word in _ACTIVATIONS) else "norm and elementwise"


def split(advance: Callable[[], Any], device: torch.device, steps: int) -> dict[str, float]:
    """Milliseconds of a step by part, and `other`: time on the clock beyond operations (Python, dispatch, waiting).

    On a GPU, parts are the time of kernels. The profiler slows small operations down, so the parts are also given scaled, with `other`,
    to the time of steps without the profiler.
    """
    for _ in range(_WARM):
        advance()
    bare = _timed(advance, device, steps)
    cuda = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])) as watched:
        slow = _timed(advance, device, steps)
    parts = dict.fromkeys(PARTS, 0.0)
    for event in watched.events():
        if cuda and event.device_type != torch.autograd.DeviceType.CPU:
            continue  # counted by the operation that launched it
        spent = event.self_device_time_total if cuda else event.self_cpu_time_total
        if not spent or (event.name in PARTS and not cuda):
            continue
        parts[part_of(event.name, _around(event))] += spent / 1e3 / steps
    inside = sum(parts.values())
    parts["other"] = max(0.0, slow - inside)
    total = sum(parts.values())
    return {name: bare * spent / total for name, spent in parts.items()} | {"step": bare}


def _around(event: Any) -> list[str]:
    names = []
    while event is not None:
        names.append(event.name)
        event = event.cpu_parent
    return names


def _timed(advance: Callable[[], Any], device: torch.device, steps: int) -> float:
    """Milliseconds a step."""
    finish(device)
    began = time.perf_counter()
    for _ in range(steps):
        advance()
    finish(device)
    return (time.perf_counter() - began) * 1e3 / steps


def packed_step(case: Case, size: int, needed: bool, device: torch.device, precision: str) -> Callable[[], None]:
    """The harness' step with its optimiser and its data marked; on a GPU kernel by kernel, since a graph's launches have no names."""
    training = Training(pack(case, size, needed, precision), device)
    training.replays = []
    training.optimizer.step = _marked("optimiser", training.optimizer.step)  # type: ignore[method-assign]
    training.feed.at = _marked("data", training.feed.at)  # type: ignore[method-assign]
    return training.advance


def _marked(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*arguments: Any) -> Any:
        with record_function(name):
            return run(*arguments)

    return marked


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    add_device(parser, "profile")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["tiny", "L1-d64-T512", "L2-d64-T512"], metavar="CASE")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 16], help="replicates a pack")
    parser.add_argument("--steps", type=int, default=64, help="several are drawn at once: fewer than 64 may miss the data")
    options = parser.parse_args(arguments)
    if min(options.steps, *options.sizes) < 1:
        parser.error("--steps and --sizes must be at least 1")
    precision = precision_of(options)
    device = resolve(options.device)
    prepare(device)
    header = conditions(options.device, precision, steps=options.steps)
    rows: list[Row] = []
    for name in options.cases:
        case = CASES[name]
        wholes = (False, True) if plain.has_variants(case) else (True,)
        for needed in wholes:
            way = "needed" if needed else "full"
            times = split(plain.start(case, needed, device, precision), device, options.steps)
            rows.append({"case": name, "way": f"plain {way}", "size": 1} | times)
            for size in options.sizes:
                times = split(packed_step(case, size, needed, device, precision), device, options.steps)
                rows.append({"case": name, "way": f"packed {way}", "size": size} | times)
    kinds = (*PARTS, "other")
    table = [
        [row["case"], row["way"], row["size"], number(row["step"] / row["size"])]
        + [f"{row[kind] / row['step']:.0%}" for kind in kinds]
        for row in rows
    ]
    text = "\n\n".join(
        [
            "# Where the time of a step goes",
            header,
            "Shares of a step's wall clock; other: Python, dispatch and waiting. The plain models' optimiser and data are not marked: "
            "they count as elementwise operations and other. On a GPU without CUDA graphs, which hide the names.",
            markdown_table(("case", "way", "R", "ms a replicate-step", *kinds), table),
        ]
    )
    show(options.out, "profile", text, rows)


if __name__ == "__main__":
    main()
