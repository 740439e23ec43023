"""The peak of the memory that tensors take, on any device, and what is free."""

import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Memory:
    """The peak of the tensors made inside the block, in bytes: by CUDA's allocator, or counted as operations make and free them.

    The count slows the block down; a process's own size says less, since allocators keep and share what was freed.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._counter = None if device.type == "cuda" else _Counter()
        self._before = 0

    def __enter__(self) -> "Memory":
        if self._counter is None:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before = torch.cuda.memory_reserved(self._device)
        else:
            self._counter.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._counter is not None:
            self._counter.__exit__(*error)

    def peak(self) -> int:
        """Bytes; on CUDA those that the allocator held, since the pools of a captured graph stay its own between replays."""
        if self._counter is None:
            return torch.cuda.max_memory_reserved(self._device) - self._before
        return self._counter.peak


def free_memory(device: torch.device) -> int:
    """Bytes that nothing uses yet, on the device or in this machine."""
    if device.type == "cuda":
        # what this process's allocator keeps for reuse counts as used there, and is free to the next pack
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        available = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable"))
        return min(int(available.split()[1]) * 1024, free_in_group())
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def free_in_group(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that the control group of this process (a container, a job) may still use; the largest number where it has no limit.

    Pages of files that the group could give back count as free, as they do in the machine's MemAvailable.
    """
    for folder, limit, used, pages in (
        (root, "memory.max", "memory.current", "inactive_file"),  # version 2
        (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),  # version 1
    ):
        try:
            most, now = (int((folder / name).read_text()) for name in (limit, used))
            counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such group, or "max"
            continue
        return max(0, most - now + int(counts.get(pages, 0)))
    return sys.maxsize


class _Counter(TorchDispatchMode):
    """Counts the bytes of living storages, of those that operations made while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler to skip it, a second or two of every process that measures a pack."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {id(leaf.untyped_storage()) for leaf in _dense(args, kwargs)}
        out = func(*args, **(kwargs or {}))
        for leaf in _dense(out):
            storage = leaf.untyped_storage()
            if id(storage) not in given and storage not in self._known:
                self._known.add(storage)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._freed, storage.nbytes())
        return out

    def _freed(self, size: int) -> None:
        self.now -= size


def _dense(*tree: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested arguments or results; sparse ones, which have no storage of their own, are left out."""
    for leaf in tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
            yield leaf
