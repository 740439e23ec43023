"""Peak memory of a pack in a fresh process, against 1.15 · R · parameters · 16 bytes + activations, and against what the probe predicts.

python -m benchmarks.memory --device cpu --out benchmarks/results/cpu

On a CPU the peak is the growth of the resident set since before the pack; on CUDA it is what the tensors took.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

import torch

from benchmarks.cases import CASES, bytes_of, pack
from benchmarks.tables import add_device, conditions, number, precision_of, ratio, show
from benchmarks.worker import environment, peak_bytes
from harness.machine.device import finish, prepare, resolve
from harness.machine.memory import Memory, free_memory
from harness.planning.throughput import Rate, predicted_memory
from harness.training.pack_state import Training
from models.noise import Noise
from results.markdown_table import markdown_table
from results.plain_values import Row

_STEPS = 3
_ALLOWED = 1.15  # of weights, gradients and two moments in fp32
_STATE = 16  # bytes a parameter of them
_ROOM = 0.8


def saved_bytes(training: Training) -> int:
    """Activations: the storages that one forward pass keeps for its backward pass, without parameters."""
    own = {parameter.untyped_storage().data_ptr() for parameter in training.model.parameters()}
    seen: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    strings = training.feed.at(1)
    noise: Noise | None = None
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = training.losses(strings, noise).sum()
    loss.backward()
    return sum(seen.values())


def measure(case: str, size: int, device: torch.device, precision: str) -> Row:
    """Measure one pack in a process that has done nothing else: bytes of the peak, of parameters, of activations, and as the probe
    counts them."""
    prepare(device)
    torch.ones(64, 64, device=device).mm(torch.ones(64, 64, device=device))  # libraries of the first product
    before = peak_bytes(device)
    training = Training(pack(CASES[case], size, precision=precision), device)
    for _ in range(_STEPS):
        training.advance()
    finish(device)
    peak = peak_bytes(device) - before
    parameters, activations = training.flat.count, saved_bytes(training)
    del training
    with Memory(device) as counted:
        Training(pack(CASES[case], size, precision=precision), device).advance()
    return {
        "case": case,
        "size": size,
        "peak": peak,
        "parameters": parameters,
        "activations": activations,
        "counted": counted.peak(),
    }


def judged(rows: Sequence[Row]) -> list[Row]:
    """With the bound, the peak as a part of it, and what the probe would predict of this size from the smaller ones."""
    judged_rows: list[Row] = []
    for row in rows:
        bound = _ALLOWED * row["size"] * row["parameters"] * _STATE + row["activations"]
        before = [other for other in judged_rows if other["case"] == row["case"]]
        smaller = [Rate(other["size"], 1.0, 0.0, other["counted"]) for other in before]
        predicted = predicted_memory(smaller, row["size"]) if smaller else None
        judged_rows.append(row | {"bound": bound, "of_bound": row["peak"] / bound, "predicted": predicted})
    return judged_rows


def _in_fresh_process(case: str, size: int, device: str, precision: str) -> Row | str:
    """The result of `measure` in a fresh process, or the reason for its failure."""
    job = json.dumps({"case": case, "size": size, "device": device, "precision": precision})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", "--job", job],
        capture_output=True,
        text=True,
        env=environment(device),
    )
    if done.returncode:
        return (done.stderr.strip() or f"ended by signal {-done.returncode}").splitlines()[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    add_device(parser, "memory")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=CASES,
        default=["L1-d64-T128", "L1-d64-T512", "L2-d64-T512", "L6-d512-T128"],
        metavar="CASE",
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.job:
        job = json.loads(options.job)
        print(json.dumps(measure(job["case"], job["size"], resolve(job["device"]), job["precision"])))
        return
    if min(options.sizes) < 1:
        parser.error("--sizes must be at least 1")
    precision = precision_of(options)
    header = conditions(options.device, precision)
    room = free_memory(resolve(options.device)) * _ROOM
    rows, notes = [], []
    for name in options.cases:
        for size in sorted(options.sizes):
            wanted = bytes_of(CASES[name], size, "packed", options.device)
            if wanted > room:
                notes.append(f"- {name}, R = {size}: not run, about {wanted / 1e9:.1f} GB of {room / 1e9:.1f} GB.")
                continue
            measured = _in_fresh_process(name, size, options.device, precision)
            if isinstance(measured, str):
                notes.append(f"- {name}, R = {size}: failed: {measured}")
            else:
                rows.append(measured)
    rows = judged(rows)
    table = [
        [
            row["case"],
            row["size"],
            f"{row['parameters']:,}",
            number(row["activations"] / 1e9),
            number(row["bound"] / 1e9),
            number(row["peak"] / 1e9),
            ratio(row["of_bound"]),
            number(row["counted"] / 1e9),
            None if row["predicted"] is None else f"{row['predicted'] / row['counted'] - 1:+.1%}",
        ]
        for row in rows
    ]
    columns = (
        "case",
        "R",
        "parameters",
        "activations, GB",
        "bound, GB",
        "peak, GB",
        "peak / bound",
        "counted by the probe, GB",
        "its prediction",
    )
    parts = ["# Memory of a pack", header, markdown_table(columns, table), *(["\n".join(notes)] if notes else [])]
    text = "\n\n".join(parts)
    show(options.out, "memory", text, rows)


if __name__ == "__main__":
    main()
