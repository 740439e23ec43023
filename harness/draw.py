"""Keyed randomness: every random number is a pure function of (seed, stream, step, site, element).

Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) in integer torch operations. The layout, frozen
by golden tests:

    key     = (seed low word, seed high word)
    counter = (element block low, step, stream << 16 | site, element block high)

Element e of a draw is word e % 4 of block e // 4. So any element of any batch at any step can be drawn alone, on any device, in any
pack and after any resume. Integers and uniforms are bit-identical everywhere; normals are made in float64 on the CPU and rounded.

    draw = Draw(torch.tensor([0, 1]), stream="data", step=17)
    draw.uniform((16, 256))                       # [R=2, 16, 256]
"""

import math
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch
from torch import Tensor
from torch._guards import detect_fake_mode

from harness import compiled_draw
from tasks.draws import WORD

# numbers are part of every committed result: append, never renumber
STREAMS = {
    "init": 0,
    "dropout": 1,
    "data": 2,
    "pool": 3,
    "shuffle": 4,
    "mask": 5,
    "shift": 6,
    "evaluate": 7,
    "monitor": 8,
    "stage": 9,
    "experiment": 10,
    "view": 11,
}

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LEVELS = 2**16  # of a rate of dropout


def philox4x32(counter: Tensor, key: Tensor) -> Tensor:
    """Philox-4x32-10. `counter` [..., 4] and `key` [..., 2] hold uint32 values in int64; returns [..., 4] likewise.

    Leading axes broadcast. Equal to the Random123 known-answer vectors.
    """
    return _rounds(*counter.unbind(-1), *key.unbind(-1))


def _rounds(c0: Tensor, c1: Tensor, c2: Tensor, c3: Tensor, k0: Tensor, k1: Tensor) -> Tensor:
    """The words of the counters (c0, c1, c2, c3) with the keys (k0, k1), all of which broadcast: [..., 4]."""
    # not torch.broadcast_shapes, which imports sympy
    shape = np.broadcast_shapes(c0.shape, c1.shape, c2.shape, c3.shape, k0.shape)
    c0, c1, c2, c3 = (words.expand(shape) for words in (c0, c1, c2, c3))
    for _ in range(_ROUNDS):
        # int64 multiplication wraps modulo 2^64, so both halves of the 64-bit product are exact after masking
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        # in place on what this round has made: a draw waits for memory, and this halves it
        c0 = (p1 >> 32).bitwise_and_(_MASK).bitwise_xor_(c1).bitwise_xor_(k0)
        c2 = (p0 >> 32).bitwise_and_(_MASK).bitwise_xor_(c3).bitwise_xor_(k1)
        c1, c3 = p1.bitwise_and_(_MASK), p0.bitwise_and_(_MASK)
        k0, k1 = k0 + _WEYL[0] & _MASK, k1 + _WEYL[1] & _MASK
    return torch.stack([c0, c1, c2, c3], dim=-1)


@dataclass(frozen=True)
class Draw:
    """A source of random numbers for R replicates. Every method returns tensors with a leading axis R.

    seeds: int64 [R]; stream: a name in `STREAMS`; step: 0 … 2^32 - 1, or int64 [R], one per replicate; first: number of the first row
    drawn, so that `Draw(…, first=b).uniform((1, n))` is row b of `Draw(…).uniform((B, n))`; picked: int64 [R, B], the numbers of the
    rows drawn, instead of B that follow `first`. Results live on the device of `seeds`.
    """

    seeds: Tensor
    stream: str = "data"
    step: int | Tensor = 0
    first: int = 0
    picked: Tensor | None = None

    def __post_init__(self) -> None:
        if self.stream not in STREAMS:
            raise ValueError(f"stream {self.stream!r} is not one of {', '.join(STREAMS)}")
        if isinstance(self.step, int) and not 0 <= self.step < WORD:
            raise ValueError(f"step {self.step} is outside 0 … 2^32 - 1")
        if not isinstance(self.seeds, Tensor):
            raise ValueError(f"seeds are a {type(self.seeds).__name__}, and must be int64 [R], such as torch.tensor([0, 1])")
        if self.seeds.dim() != 1 or self.seeds.dtype != torch.int64:
            raise ValueError(f"seeds must be int64 [R], got {self.seeds.dtype} {list(self.seeds.shape)}")

    @property
    def replicates(self) -> int:
        return len(self.seeds)

    @staticmethod
    def of_seed(seed: int) -> "Draw":
        """The draw of a single seed, for what all replicates share, such as a table."""
        return Draw(torch.tensor([seed]))

    def named(self, name: str) -> "Draw":
        """The draw of a named tensor (a parameter): its step is the CRC-32 of the name, so that adding one changes no other."""
        return replace(self, step=zlib.crc32(name.encode()))

    def rows(self, first: int) -> "Draw":
        return replace(self, first=first)

    def of(self, slots: Tensor) -> "Draw":
        """The draw of the replicates with these numbers, int64 [R']."""
        step = self.step[slots] if isinstance(self.step, Tensor) else self.step
        return replace(self, seeds=self.seeds[slots], step=step, picked=None if self.picked is None else self.picked[slots])

    def pick(self, rows: Tensor) -> "Draw":
        """The draw of the rows with these numbers, int64 [R, B]: `draw.pick(rows).words((B, n))[r, b]` is row rows[r, b]."""
        return replace(self, picked=rows)

    def words(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """uint32 words in int64, [R, *shape]. `site` (0 … 65535) tells the draws of one step apart."""
        count, per_row = self._sizes(shape, site)
        if (drawer := self._drawer(count)) is not None:
            return drawer.words(*self._asked(shape, site)).view(self.replicates, *shape)
        if self.picked is not None:
            return self._picked_words(shape, per_row, site)
        start = self.first * per_row
        block0 = start // 4
        blocks = (start + count + 3) // 4 - block0
        block = torch.arange(block0, block0 + blocks, device=self.seeds.device)
        words = self._blocks(block[None], site).flatten(1)
        offset = start - block0 * 4
        return words[:, offset : offset + count].reshape(self.replicates, *shape)

    def quantiles(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """Uniforms in (0, 1), float64 [R, *shape] on the CPU: the middle of the interval of 2^-32 that each word stands for.

        They are made for inverse distribution functions, which may be infinite at 0 and 1.
        """
        if self._drawer(self._sizes(shape, site)[0]) is compiled_draw:
            return compiled_draw.quantiles(*self._asked(shape, site)).view(self.replicates, *shape)
        return self.words(shape, site).cpu().to(torch.float64).add_(0.5).div_(WORD)

    def _sizes(self, shape: Sequence[int], site: int) -> tuple[int, int]:
        """(words of a replicate, words of each of its rows). ValueError for a site or picked rows that do not fit."""
        if not 0 <= site < 2**16:
            raise ValueError(f"site {site} is outside 0 … 65535")
        if isinstance(shape, int) or isinstance(count := math.prod(shape), float):
            raise ValueError(f"shape = {shape} must be a tuple of whole numbers, such as (16, 32)")
        if self.picked is not None and tuple(self.picked.shape) != (self.replicates, shape[0]):
            raise ValueError(f"picked rows {list(self.picked.shape)} must be [R, {shape[0]}]")
        return count, count // shape[0] if shape and shape[0] else 0

    def _drawer(self, count: int) -> "ModuleType | type[_Shapes] | None":
        """What draws `count` words a replicate in place of torch, with the same bits: C on a CPU, Triton on a GPU, or nothing."""
        step = self.step if isinstance(self.step, Tensor) else None
        if compiled_draw.draws(count * self.replicates, self.seeds, step, self.picked):
            return compiled_draw
        if not torch.compiler.is_compiling() and detect_fake_mode() is not None:
            return _Shapes
        return _triton() if compiled_draw.lie_on("cuda", self.seeds, step, self.picked) else None

    def _asked(self, shape: Sequence[int], site: int) -> tuple[Tensor, Tensor, int, int, int, int, Tensor | None]:
        """Arguments of the functions in C and Triton."""
        count, per_row = self._sizes(shape, site)
        rows = (1, count) if self.picked is None else (shape[0], per_row)
        return self.seeds, self._steps(), self._selector(site), self.first * per_row, *rows, self.picked

    def _steps(self) -> Tensor:
        """int64 [1 or R]"""
        return self.step if isinstance(self.step, Tensor) else self.seeds.new_full((1,), self.step)

    def _selector(self, site: int) -> int:
        return STREAMS[self.stream] << 16 | site

    def _picked_words(self, shape: Sequence[int], per_row: int, site: int) -> Tensor:
        picked = self.picked
        assert picked is not None
        start = picked * per_row
        # one block more than a row fills, since a row may begin inside a block
        blocks = torch.arange(per_row // 4 + 2, device=picked.device)
        words = self._blocks((start[..., None] // 4 + blocks).flatten(1), site).view(*picked.shape, -1)
        element = (start % 4)[..., None] + torch.arange(per_row, device=picked.device)
        return words.gather(-1, element).reshape(self.replicates, *shape)

    def _blocks(self, block: Tensor, site: int) -> Tensor:
        """Block numbers, int64 [R or 1, N] → words [R, N, 4]."""
        # filled on the device: a copy from the host could be no part of a CUDA graph
        step = self.step[:, None] if isinstance(self.step, Tensor) else torch.full_like(block[:1, :1], self.step)
        selector = torch.full_like(block[:1, :1], self._selector(site))
        keys = (self.seeds & _MASK)[:, None], (self.seeds >> 32 & _MASK)[:, None]
        return _rounds(block & _MASK, step, selector, block >> 32 & _MASK, *keys)

    def uniform(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """float32 in [0, 1) on a grid of 2^-24, [R, *shape]."""
        return (self.words(shape, site) >> 8).to(torch.float32) * 2.0**-24

    def normal(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """Standard normal float32, [R, *shape]: inverse distribution function in float64 on the CPU, then rounded.

        For initialisation only; |z| < 6.3 because a draw has 32 bits.
        """
        return torch.special.ndtri(self.quantiles(shape, site)).to(torch.float32).to(self.seeds.device)

    def integers(self, high: int, shape: Sequence[int], site: int = 0) -> Tensor:
        """int64 in 0 … high - 1, [R, *shape], by a product and a shift (each value's probability is within 2^-32 of 1/high)."""
        if not 1 <= high < 2**31:
            raise ValueError(f"high = {high} is outside 1 … 2^31 - 1")
        return self.words(shape, site) * high >> 32

    def factors(self, rates: Tensor, shape: Sequence[int], site: int = 0) -> Tensor:
        """The factors of dropout, float32 [R, *shape]: 0 with the replicate's rate, and 1 / (1 - rate) elsewhere.

        rates: float32 [R], each in [0, 1) and rounded down to 2^-16, since an element has 16 bits: the low ones of a word, then the high.
        """
        count = self._sizes(shape, site)[0]
        if self.first or self.picked is not None:
            raise ValueError("factors of dropout are drawn for all rows at once")
        if (drawer := self._drawer(0)) is not None:
            return drawer.factors(self.seeds, self._steps(), self._selector(site), count, rates).view(self.replicates, *shape)
        words = self.words((-(-count // 2),), site)
        levels = (rates * _LEVELS).floor()
        scales = 1 / (1 - levels / _LEVELS)
        bits = torch.stack([words & (_LEVELS - 1), words >> 16], dim=-1).flatten(1)[:, :count]
        return torch.where(bits < levels[:, None], 0.0, scales[:, None]).view(self.replicates, *shape)

    def categorical(self, probabilities: Tensor, shape: Sequence[int], site: int = 0) -> Tensor:
        """int64 category numbers, [R, *shape]; `probabilities` [V], or [R, V] with a law for each replicate."""
        words = self.words(shape, site)
        bounds = thresholds(probabilities)
        if bounds.dim() == 1:
            bounds = bounds.expand(self.replicates, -1)
        bounds = bounds.to(words.device)
        flat = torch.searchsorted(bounds.contiguous(), words.reshape(self.replicates, -1).contiguous(), right=True)
        return flat.reshape(words.shape)

    def chains(self, laws: Tensor, context: Tensor, length: int, site: int = 0) -> Tensor:
        """Paths of Markov chains of order n, one chain per string, int64 [R, B, length] on the CPU.

        laws: float64 [R, B, S^n, S] on the CPU, the law of the next token after each context, in which the latest token counts 1, the one
        before it S, …; context: int64 [R, B], the first n tokens. The token at place t is the number of bounds of its law (cumulative
        probability times 2^32) that word t of its string reaches.
        """
        contexts, symbols = laws.shape[-2:]
        kept = next(order for order in range(contexts) if symbols**order >= contexts)
        tokens = self.words((laws.shape[1], length), site).cpu().contiguous()
        for place in range(min(kept, length)):
            tokens[..., place] = context // symbols ** (kept - 1 - place) % symbols
        if compiled_draw.draws(0, tokens, laws, context):
            compiled_draw.chains(laws, context, tokens, kept)
            return tokens
        bounds = (laws.cumsum(-1)[..., :-1] * WORD).flatten(0, 2)
        start = torch.arange(context.numel()) * contexts
        context, drawn = context.flatten(), tokens.flatten(0, 1).to(torch.float64).t().contiguous()
        for place in range(kept, length):
            token = (drawn[place, :, None] >= bounds[start + context]).sum(-1)
            context = (context * symbols + token) % contexts
            tokens.view(-1, length)[:, place] = token
        return tokens

    def permutation(self, size: int, shape: Sequence[int] = (), site: int = 0) -> Tensor:
        """Uniform permutations of 0 … size - 1, int64 [R, *shape, size]: the order of random 62-bit numbers."""
        words = self.words((*shape, size, 2), site)
        return torch.argsort(words[..., 0] << 30 | words[..., 1] >> 2, dim=-1, stable=True)

    def subset(self, size: int, count: int, shape: Sequence[int] = (), site: int = 0) -> Tensor:
        """`count` different numbers of 0 … size - 1 in random order, int64 [R, *shape, count]."""
        if not 0 <= count <= size:
            raise ValueError(f"a subset of {count} cannot be drawn from {size} without replacement")
        return self.permutation(size, shape, site)[..., :count]


class _Shapes:
    """What is drawn in a fake tensor mode, of which nothing but the shape is known."""

    @staticmethod
    def words(seeds: Tensor, step: Tensor, selector: int, start: int, rows: int, per_row: int, picked: Tensor | None) -> Tensor:
        return torch.empty(len(seeds), rows, per_row, dtype=torch.int64, device=seeds.device)

    @staticmethod
    def factors(seeds: Tensor, step: Tensor, selector: int, count: int, rates: Tensor) -> Tensor:
        return torch.empty(len(seeds), count, device=seeds.device)


@cache
def _triton() -> ModuleType | None:
    """`harness.gpu_draw` where Triton is installed and works; a warning says why it does not, once a process."""
    if find_spec("triton") is None:
        return None
    try:
        from harness import gpu_draw

        gpu_draw.words(torch.tensor([0], device="cuda"), torch.tensor([0], device="cuda"), 0, 0, 1, 1, None)
    except Exception as error:  # whatever Triton and the compilers that it calls raise
        said = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"random numbers are drawn by torch, with some 170 kernels a draw and not with one, as Triton fails: {said}",
            stacklevel=2,
        )
        return None
    return gpu_draw


def thresholds(probabilities: Tensor) -> Tensor:
    """Upper bounds in words of each category but the last, int64 [..., V - 1]: floor(cumulative probability · 2^32)."""
    p = torch.as_tensor(probabilities, dtype=torch.float64)
    if not bool((p >= 0).all() and ((p.sum(-1) - 1).abs() <= 1e-6).all()):  # neither holds of NaN
        raise ValueError(f"probabilities must be non-negative and sum to 1, got {p.tolist()}")
    return (p.cumsum(-1)[..., :-1] * WORD).floor().to(torch.int64)
