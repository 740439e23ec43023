"""The first hour on a new kind of GPU, as six commands of at most ten minutes each. They need torch, numpy, pyarrow and safetensors.

On a machine with all dependencies:    python -m benchmarks.first_gpu manifests
On the GPU, in this order:             python -m benchmarks.first_gpu correctness --out OUT
                                       python -m benchmarks.first_gpu path --out OUT
                                       python -m benchmarks.first_gpu throughput --out OUT
                                       python -m benchmarks.first_gpu lstm --out OUT
                                       python -m benchmarks.first_gpu baseline --out OUT
                                       python -m benchmarks.first_gpu peers --out OUT

Results of a command stay in --work, and the same command continues from there. --device cpu --tiny rehearses it.
"""

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("correctness", "path", "throughput", "lstm", "baseline", "peers")
_LIMIT_S = 570.0  # of a command
_SAVE_S = 25.0  # that a training may take to write its checkpoint once it is asked to stop
_CASES = ["L1-d64-T512", "L6-d512-T512", "L2-d64-T512", "L1-d64-T128"]
_PEERS = {"L6-d512-T512": "16", "L1-d64-T512": "64"}  # replicates of a pack beside plain PyTorch and x-transformers
_LARGEST = 16 * 2**20  # bytes of a file that is brought back


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first_gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("manifests", *PARTS))
    parser.add_argument("--out", type=Path, default=Path("build/first_gpu/out"), help="folder of what is to be brought back")
    parser.add_argument(
        "--work", type=Path, default=Path("build/first_gpu/work"), help="folder of what a later command goes on from"
    )
    parser.add_argument("--manifests", type=Path, default=Path("first_gpu_manifests"), help="folder that `manifests` writes")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal: the same calls at sizes of a second")
    options = parser.parse_args(arguments)
    if options.part == "manifests":
        from benchmarks.first_gpu.manifests import write

        for path in write(options.manifests, options.tiny):
            print(path)
        return 0
    options.out, options.work = options.out.resolve(), options.work.resolve()  # the commands below run in the project's folder
    for folder in (options.out, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + _LIMIT_S
    if options.part in ("path", "lstm", "baseline"):
        return _train(options, ends)
    status = 0
    for command in _commands(options):
        status |= _run(command, ends - time.monotonic())
    return status


def _commands(options: argparse.Namespace) -> list[list[str]]:
    """The commands of a part that trains no study, each with a folder of its own in --out."""
    device, out, work = ["--device", options.device], str(options.out), str(options.work)

    def places(name: str) -> list[str]:
        return ["--work", f"{work}/{name}.jsonl", "--out", f"{out}/{name}"]

    if options.part == "correctness":
        tiny = ["--tiny"] if options.tiny else []
        return [["benchmarks.first_gpu.correctness", *device, *tiny, "--work", work, "--out", out]]
    quick = [
        "--several",
        "0",
        "--rounds",
        *(("2", "--seconds", "0.01", "--processes", "1") if options.tiny else ("2", "--seconds", "0.5")),
    ]
    cases = ["tiny"] if options.tiny else _CASES
    sizes = ["2"] if options.tiny else ["1", "4", "16", "64"]
    timed = ["benchmarks.throughput", *device, *quick]
    packed = [*timed, "--kinds", "packed"]
    if options.part == "throughput":
        memory = ["tiny"] if options.tiny else ["L1-d64-T512", "L6-d512-T128"]
        fewest = ["1", *sizes] if options.tiny else sizes[:3]
        auto = ["--no-auto"] if options.tiny else []
        return [
            [*packed, *auto, "--cases", *cases, "--sizes", *sizes, *places("throughput")],
            ["benchmarks.memory", *device, "--cases", *memory, "--sizes", *fewest, "--out", f"{out}/memory"],
        ]
    peers = [*timed, "--kinds", "plain", "x-transformers", "packed", "--needed", "--no-auto"]
    if options.tiny:  # compiling takes a minute on a CPU
        return [[*peers, "--cases", *cases, "--sizes", *sizes, *places("peers")]]
    return [
        [*peers, "--compile", "packed", "--cases", case, "--sizes", size, *places(f"peers-{case}")]
        for case, size in _PEERS.items()
    ]


def _run(command: Sequence[str], seconds: float) -> int:
    """Run `python -m command`, asked to stop when its time is over; 1 where it failed."""
    if seconds <= 0:
        print(f"no time is left for {command[0]}: give the same command again", flush=True)
        return 1
    process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT)
    try:
        return int(process.wait(seconds) != 0)
    except subprocess.TimeoutExpired:
        print(f"{command[0]} is stopped after {seconds:.0f} s: give the same command again", flush=True)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_SAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return 1


def _train(options: argparse.Namespace, ends: float) -> int:
    """Train the part's manifest, as far as the time goes, and pack what is committed for the way back."""
    manifest = options.manifests / f"{options.part}.json"
    if not manifest.is_file():
        print(
            f"{manifest} is missing: run `python -m benchmarks.first_gpu manifests` where omegaconf is, and bring the folder here"
        )
        return 2
    store = options.work / "runs"
    seconds = ends - time.monotonic() - _SAVE_S
    status = _run(["harness.local", str(manifest.resolve()), str(store.resolve()), "--device", options.device], seconds)
    archive = options.out / f"{options.part}.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for path in sorted(store.rglob("*")) if store.is_dir() else ():
            if path.is_file() and "checkpoints" not in path.parts:
                made.add(path, path.relative_to(store.parent))
    print(f"{archive}: {os.path.getsize(archive):,} bytes; unpack it and `manyseeds merge` its runs into a store")
    if archive.stat().st_size > _LARGEST:
        print(f"{archive} is larger than {_LARGEST:,} bytes: compact the store, or bring its folders back one by one")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
