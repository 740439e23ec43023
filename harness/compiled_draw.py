"""The keyed draws of `harness.draw` in C (compiled_draw.c): equal in every bit, and many times as fast on a CPU.

The source is compiled once per process, as soon as the process has drawn enough words to repay it. Until then, and wherever there is no C
compiler, on a GPU and inside torch.compile, torch draws.
"""

import ctypes
import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode

from harness.machine.compiler import compiled

_SOURCE = Path(__file__).with_suffix(".c")
_PAYS = 2**23  # words: torch draws them in the time that the compiler takes, about a fifth of a second
_SIZE, _POINTER = ctypes.c_int64, ctypes.c_void_p


class Progress:
    """Words that this process has drawn on a CPU."""

    words = 0


def prepare() -> None:
    """Compile now, so that a measurement which follows is as fast as a long training."""
    Progress.words = max(Progress.words, _PAYS)


def refusal() -> str:
    """Why the source can't be compiled here, in words; "" where it can, or where there was no need yet."""
    if Progress.words < _PAYS:
        return ""
    library, why = _library()
    return why if library is None else ""


def draws(count: int, *tensors: Tensor | None) -> bool:
    """Whether C draws the next `count` words from these tensors. Words of a CPU are added to `Progress`."""
    if not lie_on("cpu", *tensors):
        return False
    Progress.words += count
    return Progress.words >= _PAYS and _library()[0] is not None


def lie_on(device: str, *tensors: Tensor | None) -> bool:
    """Whether a function that writes to memory can draw from these tensors: on this kind of device, and neither traced nor fake."""
    if torch.compiler.is_compiling() or detect_fake_mode() is not None:
        return False
    return all(tensor is None or (tensor.device.type == device and type(tensor) is Tensor) for tensor in tensors)


def words(seeds: Tensor, step: Tensor, selector: int, start: int, rows: int, per_row: int, picked: Tensor | None) -> Tensor:
    """uint32 words in int64 [R, rows, per_row]: elements from `start` on, or with picked [R, rows] the rows with these numbers."""
    return _drawn("words", torch.int64, seeds, step, selector, start, rows, per_row, picked)


def quantiles(seeds: Tensor, step: Tensor, selector: int, start: int, rows: int, per_row: int, picked: Tensor | None) -> Tensor:
    """(word + 1/2) / 2^32 of the same words, float64."""
    return _drawn("quantiles", torch.float64, seeds, step, selector, start, rows, per_row, picked)


def factors(seeds: Tensor, step: Tensor, selector: int, count: int, rates: Tensor) -> Tensor:
    """Factors of dropout at rates, float32 [R], in float32 [R, count]."""
    out = torch.empty(len(seeds), count)
    arguments = [seeds.contiguous(), step.expand(len(seeds)).contiguous(), rates.contiguous()]
    _function("factors")(len(seeds), count, selector, *_pointers(*arguments, out))
    return out


def chains(laws: Tensor, context: Tensor, words: Tensor, kept: int) -> None:
    """Turn words [R, B, T] from place `kept` on into the tokens of Markov chains, in place. laws [R, B, contexts, S]."""
    contexts, symbols = laws.shape[-2:]
    laws, context = laws.contiguous(), context.clone(memory_format=torch.contiguous_format)
    _function("chains")(context.numel(), words.shape[-1], kept, contexts, symbols, *_pointers(laws, context, words))


def _drawn(name: str, kind: torch.dtype, seeds, step, selector, start, rows, per_row, picked) -> Tensor:
    out = torch.empty(len(seeds), rows, per_row, dtype=kind)
    arguments = [seeds.contiguous(), step.expand(len(seeds)).contiguous(), None if picked is None else picked.contiguous()]
    _function(name)(len(seeds), rows, per_row, start, selector, *_pointers(*arguments, out))
    return out


def _pointers(*tensors: Tensor | None) -> list[int | None]:
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def _function(name: str) -> Any:
    library, why = _library()
    if library is None:
        raise RuntimeError(why)
    return getattr(library, name)


@functools.cache
def _library() -> tuple[ctypes.CDLL | None, str]:
    """The compiled source, or None and why there is none."""
    library, why = compiled(_SOURCE)
    if library is not None:
        for name, numbers, pointers in (("words", 5, 4), ("quantiles", 5, 4), ("factors", 3, 4), ("chains", 5, 3)):
            function = getattr(library, name)
            function.argtypes, function.restype = [_SIZE] * numbers + [_POINTER] * pointers, None
    return library, why
