"""The keyed draws of `harness.draw` on a GPU, each of them one kernel: equal in every bit to torch's, which take some 170.

Triton comes with torch for CUDA; without it this module can't be imported, and torch draws.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCKS = 256  # blocks of Philox, 4 words each, that one program draws


def words(seeds: Tensor, step: Tensor, selector: int, start: int, rows: int, per_row: int, picked: Tensor | None) -> Tensor:
    """uint32 words in int64 [R, rows, per_row]: elements from `start` on, or with picked [R, rows] the rows with these numbers."""
    out = torch.empty(len(seeds), rows, per_row, dtype=torch.int64, device=seeds.device)
    programs = triton.cdiv(per_row // 4 + 2, _BLOCKS)  # a row may begin and end inside a block
    if out.numel():
        begins = seeds if picked is None else picked  # not read where none are picked
        sources = (tensor.contiguous() for tensor in (seeds, step.expand(len(seeds)), begins))
        numbers = selector, start, rows, per_row, programs
        _words[len(seeds) * rows * programs,](out, *sources, *numbers, picked is not None, _BLOCKS)
    return out


def factors(seeds: Tensor, step: Tensor, selector: int, count: int, rates: Tensor) -> Tensor:
    """Factors of dropout at rates, float32 [R], in float32 [R, count]."""
    out = torch.empty(len(seeds), count, device=seeds.device)
    programs = triton.cdiv(count, 8 * _BLOCKS)
    if out.numel():
        sources = (tensor.contiguous() for tensor in (seeds, step.expand(len(seeds)), rates))
        _factors[len(seeds) * programs,](out, *sources, selector, count, programs, _BLOCKS)
    return out


@triton.jit
def _philox(seed, step, selector, block):
    """The words of these blocks, int64 [N], in their order: uint32 [4 N]."""
    low = block.to(tl.uint32)
    same = low * 0
    high = (block >> 32).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, low, same + step.to(tl.uint32), same + selector.to(tl.uint32), high)
    return tl.interleave(tl.interleave(w0, w2), tl.interleave(w1, w3))


# numbers of a call are no constants: each value would be compiled for itself
@triton.jit(do_not_specialize=["selector", "start", "rows", "per_row", "programs"])
def _words(out, seeds, steps, picked, selector, start, rows, per_row, programs, PICKED: tl.constexpr, BLOCKS: tl.constexpr):
    row = (tl.program_id(0) // programs).to(tl.int64)
    part = tl.program_id(0) % programs
    r = row // rows
    begin = start.to(tl.int64)
    if PICKED:
        begin = tl.load(picked + row) * per_row
    first = begin // 4 + part * BLOCKS
    drawn = _philox(tl.load(seeds + r), tl.load(steps + r), selector, first + tl.arange(0, BLOCKS))
    element = first * 4 + tl.arange(0, 4 * BLOCKS) - begin
    tl.store(out + row * per_row + element, drawn.to(tl.int64), mask=(element >= 0) & (element < per_row))


@triton.jit(do_not_specialize=["selector", "count", "programs"])
def _factors(out, seeds, steps, rates, selector, count, programs, BLOCKS: tl.constexpr):
    r = (tl.program_id(0) // programs).to(tl.int64)
    first = (tl.program_id(0) % programs).to(tl.int64) * BLOCKS
    drawn = _philox(tl.load(seeds + r), tl.load(steps + r), selector, first + tl.arange(0, BLOCKS))
    bits = tl.interleave(drawn & 0xFFFF, drawn >> 16)
    level = (tl.load(rates + r) * 65536).to(tl.int32)
    scale = tl.div_rn(1.0, 1 - level.to(tl.float32) / 65536)  # rounded as everywhere; / would not be
    element = first * 8 + tl.arange(0, 8 * BLOCKS)
    tl.store(out + r * count + element, tl.where(bits.to(tl.int32) < level, 0.0, scale), mask=element < count)
