"""The device a pack runs on: its threads, its allocator, and what rows record of it."""

import ctypes
import importlib.metadata
import json
import os
import platform
from pathlib import Path

import torch

from results.errors import StudyError

_LAYOUT = "packed, norms folded, needed positions, 64-byte lines, lstm by torch on cpu"
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def resolve(name: str) -> torch.device:
    """auto | cpu | cuda | cuda:N. Raises ValueError where the device is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise StudyError(f"device = {name!r} is not auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise StudyError(f"device = {name} but torch sees no CUDA device: use cpu or auto")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise StudyError(
            f"device = {name} but torch sees {torch.cuda.device_count()} CUDA devices, counted from 0: write a lower number"
        )
    return device


def prepare(device: torch.device, share: int = 1) -> None:
    """Make this process a slot: one thread on a CPU, deterministic kernels, an allocator that keeps its pages.

    share: slots on its GPU. The allocator then raises out of memory beyond its part, since Ray limits no memory.
    """
    if device.type == "cpu":
        torch.set_num_threads(1)
        tune_allocator()
    else:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before the first product
        torch.cuda.init()  # memory statistics cannot be reset before
        torch.cuda.set_device(torch.cuda.current_device() if device.index is None else device.index)
        torch.use_deterministic_algorithms(True)  # with warn_only attention would keep its backward pass of no fixed order
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # 300 passes over memory a step
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass has no deterministic form
        if share > 1:
            torch.cuda.set_per_process_memory_fraction(1 / share)


def allow_unordered(device: torch.device, allowed: bool) -> None:
    """Let operations without a fixed order of sums run on a GPU, or make them raise. A person's own model may need them."""
    if device.type == "cuda" and torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(True, warn_only=allowed)


def _deterministic() -> bool:
    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()


def finish(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def release(device: torch.device) -> None:
    """Give back what a pack's tensors have left in the allocator, so that the next pack finds all of the device free."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def tune_allocator() -> bool:
    """Have glibc keep freed memory: by default it hands large blocks back each step and packs spend 9–35 % on page faults.

    It holds for the main thread's arena alone: packs run there (elsewhere a packed LSTM step took 1.5 times as long). Returns whether
    this C library has the switch; memory is then kept until the process ends.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    taken = [libc.mallopt(name, value) for name, value in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1))]
    return all(taken)


def describe(device: torch.device) -> str:
    """The device's name as rows record it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return f"cpu: {line.split(':', 1)[1].strip()}"
    return f"cpu: {platform.processor() or platform.machine()}"


def machine(device: torch.device | str) -> str:
    """The device and what decides how fast it is beside the numerics: measurements are kept by this name."""
    device = torch.device(device)
    return describe(device) + (" (MKL's Intel kernels)" if device.type == "cpu" and forced_kernels() else "")


def forced_kernels() -> bool:
    """Whether MKL was made to treat this processor as one of Intel's, which changes its kernels and so the bits.

    docs/reference/training.md says how.
    """
    cpuinfo = Path("/proc/cpuinfo")
    if not torch.backends.mkl.is_available() or not cpuinfo.exists() or "GenuineIntel" in cpuinfo.read_text():
        return False
    asked = getattr(ctypes.CDLL(None), "mkl_serv_intel_cpu_true", None)
    return asked is not None and bool(asked())


def planned_numerics(kind: str, compiled: bool = False) -> dict[str, object]:
    """What a plan can know of the numerics before a worker starts; pack ids follow from it. kind: cpu | cuda."""
    version = importlib.metadata.version("torch").partition("+")[0]
    return {"compile": compiled, "device": kind, "layout": _LAYOUT, "threads": 1, "torch": version}


def numerics(device: torch.device, precision: str, compiled: bool = False, graph: bool = False, loop: str = "") -> str:
    """What the bits of a replicate may depend on, as JSON: recorded in the row, not hashed. loop: the compiled one, if it was used."""
    return json.dumps(
        ({"loop": loop} if loop else {})
        | ({"mkl": "Intel's kernels, forced"} if device.type == "cpu" and forced_kernels() else {})
        | ({"deterministic": _deterministic()} if device.type == "cuda" else {})
        | {
            "capability": torch.backends.cpu.get_cpu_capability()
            if device.type == "cpu"
            else torch.cuda.get_device_capability(device),
            "compile": compiled,
            "device": device.type,
            "graph": graph,
            "layout": _LAYOUT,
            "optimizer": "torch fused",
            "precision": precision,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        },
        sort_keys=True,
    )
