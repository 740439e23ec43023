"""What must hold on a GPU before anything is timed there: one line of JSON per check.

A check that breaks does not stop the others: the exit status is then 1, and the same command makes it again.

python -m benchmarks.first_gpu.correctness --out OUT
"""

import argparse
import json
import shutil
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.cases import CASES, Case, pack
from harness.draw import Draw
from harness.machine.device import prepare, release, resolve
from harness.planning.throughput import measure
from harness.training.cuda_graph import agree
from harness.training.pack_state import Training
from models.lstm import LSTM
from models.transformer.transformer import Transformer
from results.plain_values import Row
from tasks.flipflop.flipflop import FlipFlop

_FILE = "correctness.jsonl"
Found = Row


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_gpu.correctness", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal at sizes of a second")
    parser.add_argument("--work", type=Path, default=Path("build/first_gpu/work"), help="folder of the checks that are done")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    for folder in (options.work, options.out):
        folder.mkdir(parents=True, exist_ok=True)
    device = resolve(options.device)
    prepare(device)
    path = options.work / _FILE
    lines = path.read_text().splitlines() if path.exists() else []
    rows = {row["check"]: row for row in map(json.loads, lines) if not _broke(row)}
    for name, check in _checks(device, options.tiny):
        if name not in rows:
            rows[name] = _row(name, check)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
            print(json.dumps(rows[name])[:600], flush=True)
            release(device)
        shutil.copy(path, options.out / _FILE)
    return int(any(map(_broke, rows.values())))


def _broke(row: Found) -> bool:
    return "error" in row["found"]


def _row(name: str, check: Callable[[], Found]) -> Found:
    """The result of a check, or the error that ended it, and the warnings meanwhile."""
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = check()
        except Exception as error:  # whatever breaks on a machine that nobody has seen is what this looks for
            found = {"error": f"{type(error).__name__}: {error}"[:400], "at": traceback.format_exc().splitlines()[-6:]}
    warned = sorted({str(each.message)[:160] for each in heard})
    return {"check": name, "seconds": round(time.perf_counter() - began, 2), "found": found, "warned": warned}


def _checks(device: torch.device, tiny: bool) -> Iterator[tuple[str, Callable[[], Found]]]:
    length = 16 if tiny else 128
    steps = 3 if tiny else 30
    small = Case("small", Transformer(2, 64, 4), FlipFlop(length=length), 4 if tiny else 16)
    lstm = Case("lstm", LSTM(32), FlipFlop(length=length), 4)
    large = small if tiny else CASES["L6-d512-T512"]
    launched = small if tiny else CASES["L1-d64-T512"]
    yield "versions", partial(_versions, device)
    yield "draws equal the CPU's", partial(_draws, device)
    yield "losses equal the CPU's up to rounding", partial(_beside_the_cpu, small, device)
    for precision in ("fp32", "bf16") if device.type == "cpu" else ("fp32", "tf32", "bf16"):
        for deterministic in (True, False):
            name = f"packs {precision}{'' if deterministic else ', kernels free to choose'}"
            yield name, partial(_packs, small, device, steps, precision, deterministic)
    for precision in ("fp32", "bf16"):
        yield f"packs of an LSTM {precision}", partial(_packs, lstm, device, steps, precision, True)
        yield f"gradients again, large {precision}", partial(_gradients, large, 2, device, precision)
        yield f"gradients again, launch-bound {precision}", partial(_gradients, launched, 4 if tiny else 64, device, precision)
        yield f"memory, large {precision}", partial(_memory, large, 2 if tiny else 8, device, precision)
        yield f"memory, launch-bound {precision}", partial(_memory, launched, 4 if tiny else 256, device, precision)
    for field in ("residual_dropout", "attention_dropout"):
        case = Case(field, Transformer(2, 64, 4, **{field: 0.1}), small.task, 4)
        yield f"packs with {field} bf16", partial(_packs, case, device, steps, "bf16", True)
    yield "more strings than one attention call takes", partial(_wide, device, 64 if tiny else 65_536)
    if not tiny:
        yield "compiled", partial(_compiled, small, device)


def _versions(device: torch.device) -> Found:
    gpu = {"gpu": torch.cuda.get_device_name(device), "cudnn": torch.backends.cudnn.version()} if device.type == "cuda" else {}
    return {"torch": torch.__version__, "cuda": torch.version.cuda} | gpu


def _draws(device: torch.device) -> Found:
    """Words of rows in order and picked, factors of dropout, and strings."""
    places = (torch.device("cpu"), device)
    draws = [Draw(torch.tensor([0, 1, 2**62], device=place), "data", 17) for place in places]
    words = [draw.words((64, 513)).cpu() for draw in draws]
    picked = [draw.pick(torch.tensor([[7], [2**33], [0]], device=draw.seeds.device)).words((1, 513)).cpu() for draw in draws]
    rates = torch.tensor([0.1, 0.0, 0.5])
    factors = [draw.factors(rates.to(draw.seeds.device), (64, 513), 3).cpu() for draw in draws]
    seeds = [torch.tensor([3, 4], device=place) for place in places]
    strings = [FlipFlop(length=512).sample(Draw(each, "data", 5), 16).inputs.cpu() for each in seeds]
    same = {"words": words, "picked": picked, "factors": factors, "strings": strings}
    return {name: torch.equal(*pair) for name, pair in same.items()}


def _trained(
    case: Case,
    size: int,
    device: torch.device,
    precision: str,
    steps: int,
    first: int = 0,
    graph: bool = True,
    compiled: bool = False,
) -> tuple[Tensor, Tensor, bool]:
    """Losses [steps, R] and weights [R, P] of a pack whose seeds begin at `first`, and whether a graph was replayed."""
    training = Training(pack(case, size, True, precision, compiled, first), device)
    replayed = bool(training.replays)
    if not graph:
        training.replays = []
    for _ in range(steps):
        training.advance()
    return training.recent[1 : steps + 1].cpu().clone(), training.flat.values.detach().cpu().clone(), replayed and graph


def _same(one: tuple[Tensor, Tensor, bool], other: tuple[Tensor, Tensor, bool], mine: int = -1, its: int = -1) -> Found:
    """How two trainings differ: all of their replicates, or replicate `mine` of one and `its` of the other."""
    losses, weights = [one[0], other[0]], [one[1], other[1]]
    if mine >= 0:
        losses, weights = [one[0][:, mine], other[0][:, its]], [one[1][mine], other[1][its]]
    bitwise = torch.equal(*losses) and torch.equal(*weights)
    return {"bitwise": bitwise, "losses apart": float((losses[0] - losses[1]).abs().max()), "graph": [one[2], other[2]]}


def _packs(case: Case, device: torch.device, steps: int, precision: str, deterministic: bool) -> Found:
    """The same training again, without its graph, at another place of a pack, in a larger pack."""
    torch.use_deterministic_algorithms(deterministic and device.type == "cuda")
    try:
        train = partial(_trained, case, device=device, precision=precision, steps=steps)
        one = train(size=4)
        return {
            "again": _same(one, train(size=4)),
            "without graph": _same(one, train(size=4, graph=False)),
            "another place": _same(one, train(size=4, first=1), 1, 0),
            "another size": _same(one, train(size=8), 1, 1),
            "loss": [float(one[0][0].mean()), float(one[0][-1].mean())],
        }
    finally:
        torch.use_deterministic_algorithms(device.type == "cuda")


def _beside_the_cpu(case: Case, device: torch.device) -> Found:
    here = _trained(case, 2, device, "fp32", 20)
    return _same(here, _trained(case, 2, torch.device("cpu"), "fp32", 20))


def _gradients(case: Case, size: int, device: torch.device, precision: str) -> Found:
    """Whether the graph was taken, and how far the gradients of the same eager step are apart when it is run twice."""
    training = Training(pack(case, size, True, precision), device)
    strings, scalars = training.usual_strings(), training.scalars.at(1).clone()
    scalars[training.scalars.LR] = 0
    gradients = []
    for _ in range(2):
        training.compute(strings, scalars, 1)
        gradients.append(training.flat.gradient.detach().cpu().clone())
    one, other = gradients
    apart = ((one - other).norm(dim=1) / one.norm(dim=1)).max()
    graph = {"graph": bool(training.replays), "eager because": training.eager_because}
    return graph | {"apart": float(apart), "agree": agree(one, other, precision)}


def _memory(case: Case, size: int, device: torch.device, precision: str) -> Found:
    """Bytes that the planner's measurement counts, and what is free before and after the pack."""
    free = [_free(device)]
    rate = measure(pack(case, size, True, precision), device)
    free.append(_free(device))
    release(device)
    return {"counted": rate.memory, "step_s": rate.step_s, "free before, after, released": [*free, _free(device)]}


def _free(device: torch.device) -> int | None:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def _wide(device: torch.device, strings: int) -> Found:
    """Evaluation of more strings times replicates than the grid of CUDA's attention kernels has places."""
    case = Case("wide", Transformer(1, 16, 2), FlipFlop(length=16), 4)
    training = Training(pack(case, 2, True, "bf16"), device)
    tokens = torch.zeros(2, strings // 2 + 1, 16, dtype=torch.int64, device=device)
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        logits = training.model(tokens)
    return {"finite": bool(logits.isfinite().all()), "all equal": bool((logits == logits[:, :1]).all())}


def _compiled(case: Case, device: torch.device) -> Found:
    plain = _trained(case, 4, device, "bf16", 10)
    return _same(plain, _trained(case, 4, device, "bf16", 10, compiled=True))


if __name__ == "__main__":
    sys.exit(main())
