"""One variant of training a case: what runs in one worker process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import plain, vmapped, xtransformers
from benchmarks.cases import CASES, Case, pack

KINDS = ("plain", "x-transformers", "vmap", "packed")


@dataclass(frozen=True)
class Variant:
    """kind: of KINDS. needed: the last layer at needed positions alone. size: replicates a process; processes: at the same time."""

    kind: str
    needed: bool
    size: int = 1
    processes: int = 1
    compiled: bool = False

    @property
    def name(self) -> str:
        """Without the number of replicates and processes."""
        name = self.kind if self.kind == "x-transformers" else f"{self.kind} {'needed' if self.needed else 'full'}"
        return f"{name} compiled" if self.compiled else name

    def missing(self, case: Case) -> str | None:
        """Why the case has no such variant, or None."""
        if self.kind == "x-transformers":
            return xtransformers.missing(case)
        if not self.needed and not plain.has_variants(case):
            return "this model answers at one position a string anyway"
        return None

    def start(self, case_name: str, device: torch.device, precision: str) -> Callable[[], Any]:
        """A function that takes one step; weights, moments and data are made, nothing has run yet (a CUDA graph is captured)."""
        case = CASES[case_name]
        if self.kind == "plain":
            return plain.start(case, self.needed, device, precision, self.compiled)
        if self.kind == "x-transformers":
            return xtransformers.start(case, device, precision, self.compiled)
        if self.kind == "vmap":
            return vmapped.start(case, self.size, self.needed, device, precision)
        if self.kind == "packed":
            from harness.training.pack_state import Training

            return Training(pack(case, self.size, self.needed, precision, self.compiled), device).advance
        raise ValueError(f"variant {self.kind!r} is not {' or '.join(KINDS)}")
