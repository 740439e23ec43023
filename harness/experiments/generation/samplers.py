"""Samplers with a verifier (Li 2025, sections 3.1 and 3.2): rejection, tokenwise rejection, and algorithm 1, which backtracks.

Every sampler goes on with B prompts of each of R seeds at once. Its randomness is keyed by seed, prompt and number of the draw, so a string
does not depend on what it is sampled beside. Queries are counted apart: of the generator, one for each token that is sampled or taken as
the most probable, and of the verifier, one for each prefix that it judges.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from harness.draw import WORD, Draw
from harness.experiments.generation.oracles import Generator, Verifier

_CHUNK = 64  # uniforms of a string that are drawn at once
MODES = ("thesis", "released")


@dataclass(frozen=True)
class Samples:
    """What a sampler has made.

    strings int64 [R·B, H], of which `lengths` tokens count. queries, checks: how often the generator and the verifier were asked.
    backtracks: how often a string was cut. finished: whether it was accepted before it had cost more than it may.
    """

    strings: Tensor
    lengths: Tensor
    queries: Tensor
    checks: Tensor
    backtracks: Tensor
    finished: Tensor


class Uniforms:
    """Keyed uniforms in (0, 1) of [R, B] strings, one each for every number of a draw, from the step of `draw` onward."""

    def __init__(self, draw: Draw, batch: int):
        assert isinstance(draw.step, int), "strings of all replicates are drawn at the same steps"
        self._draw, self._batch, self._first = draw, batch, draw.step
        self._words = self._place = torch.empty(0)
        self._step = -1

    def at(self, number: int, rows: Tensor, alive: Tensor) -> Tensor:
        """The uniforms float64 [N] of the strings `rows`. Here and in every later draw, `rows` lie among `alive`, bool [R·B]."""
        if self._step != number // _CHUNK:
            self._step = number // _CHUNK
            wanted = alive.view(-1, self._batch)
            most = int(wanted.sum(1).max())
            order = torch.argsort(~wanted, dim=1, stable=True)[:, :most]  # those that are alive first
            draw = replace(self._draw, step=self._first + self._step).pick(order)
            self._words = draw.words((most, _CHUNK)).flatten(0, 1)
            self._place = torch.zeros_like(alive, dtype=torch.int64)
            base = torch.arange(len(wanted))[:, None]
            self._place[(base * self._batch + order).flatten()] = (base * most + torch.arange(most)).flatten()
        return (self._words[self._place[rows], number % _CHUNK].to(torch.float64) + 0.5) / WORD


def chosen(law: Tensor, uniform: Tensor) -> Tensor:
    """The token at each uniform [N] of the inverse distribution function; law [N, A] need not add up to 1."""
    bounds = law.cumsum(-1)
    return (uniform[:, None] * bounds[:, -1:] >= bounds[:, :-1]).sum(-1)


def nucleus(law: Tensor, top: float) -> Tensor:
    """The law of the most probable tokens, up to and with the one that brings their sum to `top`; the others have probability 0."""
    if top >= 1:
        return law
    ordered, places = law.sort(dim=-1, descending=True, stable=True)
    kept = ordered.cumsum(-1) - ordered < top
    return torch.zeros_like(law).scatter_(-1, places, ordered * kept)


class _Run:
    """The strings that a sampler works on, and what they have cost so far."""

    def __init__(self, generator: Generator, draw: Draw, prompts: Tensor, prompt_lengths: Tensor, top: float):
        self.generator, self.top = generator, top
        count = len(prompts)
        self.uniforms = Uniforms(draw, count // draw.replicates)
        self.strings, self.lengths = prompts.clone(), prompt_lengths.clone()
        self.queries, self.checks, self.backtracks = (torch.zeros(count, dtype=torch.int64) for _ in range(3))
        self.finished = torch.ones(count, dtype=torch.bool)
        self.number = 0

    def unended(self) -> Tensor:
        """Strings that are not whole, bool [R·B]."""
        open_ended = self.lengths < self.generator.horizon
        if self.generator.end is None:
            return open_ended
        last = self.strings.gather(1, (self.lengths - 1).clamp(min=0)[:, None])[:, 0]
        return open_ended & ~((self.lengths > 0) & (last == self.generator.end))

    def go_on(self, rows: Tensor, alive: Tensor, greedy: Tensor | None = None) -> None:
        """Add a token to the strings `rows`, the most probable one where `greedy` [N]."""
        strings, lengths = self.strings[rows], self.lengths[rows]
        law = self.generator.law(strings, lengths, rows)
        token = chosen(nucleus(law, self.top), self.uniforms.at(self.number, rows, alive))
        self.number += 1
        if greedy is not None:
            token = torch.where(greedy, law.argmax(-1), token)
        self.strings[rows, lengths] = token
        self.lengths[rows] += 1
        self.queries[rows] += 1

    def judge(self, verifier: Verifier, rows: Tensor) -> Tensor:
        """Whether the verifier accepts each of the strings `rows` as far as they go."""
        self.checks[rows] += 1
        return verifier.accepts(self.strings[rows], self.lengths[rows], rows)

    def samples(self) -> Samples:
        return Samples(self.strings, self.lengths, self.queries, self.checks, self.backtracks, self.finished)


def plain(generator: Generator, draw: Draw, prompts: Tensor, lengths: Tensor, top: float = 1.0, greedy: int = 0) -> Samples:
    """Token by token from the generator alone; the first `greedy` tokens are the most probable ones."""
    run = _Run(generator, draw, prompts, lengths, top)
    while (alive := run.unended()).any():
        rows = alive.nonzero()[:, 0]
        run.go_on(rows, alive, run.lengths[rows] - lengths[rows] < greedy)
    return run.samples()


def rejection(
    generator: Generator, verifier: Verifier, draw: Draw, prompts: Tensor, lengths: Tensor, top: float = 1.0, most: int = 10**6
) -> Samples:
    """Whole strings until the verifier accepts one. A string for which `most` tokens were drawn in vain is not finished."""
    run = _Run(generator, draw, prompts, lengths, top)
    alive = torch.ones(len(prompts), dtype=torch.bool)
    while alive.any():
        rows = (alive & run.unended()).nonzero()[:, 0]
        if len(rows):
            run.go_on(rows, alive)
        whole = (alive & ~run.unended()).nonzero()[:, 0]
        accepted = run.judge(verifier, whole)
        alive[whole[accepted]] = False
        failed = whole[~accepted]
        spent = run.queries[failed] >= most
        run.finished[failed[spent]] = False
        alive[failed[spent]] = False
        again = failed[~spent]
        run.lengths[again] = lengths[again]
    return run.samples()


def tokenwise(
    generator: Generator, verifier: Verifier, draw: Draw, prompts: Tensor, lengths: Tensor, top: float = 1.0, most: int = 10**6
) -> Samples:
    """Tokenwise rejection: a token is drawn again until the verifier accepts the prefix that it makes."""
    run = _Run(generator, draw, prompts, lengths, top)
    alive = run.unended()
    while alive.any():
        rows = alive.nonzero()[:, 0]
        run.go_on(rows, alive)
        refused = rows[~run.judge(verifier, rows)]
        run.lengths[refused] -= 1
        run.finished[refused[run.queries[refused] >= most]] = False
        alive = run.unended() & run.finished
    return run.samples()


def backtracking(
    generator: Generator,
    verifier: Verifier,
    draw: Draw,
    prompts: Tensor,
    lengths: Tensor,
    quota: int,
    stride: int,
    top: float = 1.0,
    mode: str = "thesis",
    greedy: bool = True,
    reach: int = 0,
) -> Samples:
    """Algorithm 1: sample on; a prefix that the verifier refuses loses its last `stride` tokens, at most `quota` times a string.

    thesis: the verifier judges every sampled token, and after a cut the next `stride` tokens are the most probable ones, unjudged
    (greedy = False: sampled and judged like the others). released: the authors' code, which judges before each token and the prompt too
    where it may be cut, never judges the whole string, refuses no prefix twice, and takes the most probable token while the place in the
    answer is below the number of tokens that were ever cut.
    reach: how many tokens of the prompt may be cut.
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r} must be {' or '.join(MODES)}")
    steps = _thesis if mode == "thesis" else _released
    run = _Run(generator, draw, prompts, lengths, top)
    steps(run, verifier, lengths, torch.full_like(lengths, quota), stride, greedy, reach)
    return run.samples()


def _thesis(run: _Run, verifier: Verifier, start: Tensor, quota: Tensor, stride: int, greedy: bool, reach: int) -> None:
    floor = (start - reach).clamp(min=0)
    regenerate = torch.zeros_like(quota)  # most probable tokens that are still to come
    while (alive := run.unended()).any():
        rows = alive.nonzero()[:, 0]
        forced = regenerate[rows] > 0
        run.go_on(rows, alive, forced)
        regenerate[rows] -= forced.to(torch.int64)
        asked = rows[~forced & (quota[rows] > 0)]
        refused = asked[~run.judge(verifier, asked)]
        _cut(run, refused, (run.lengths[refused] - stride).clamp(min=0).maximum(floor[refused]), quota)
        if greedy:
            regenerate[refused] = stride


def _released(run: _Run, verifier: Verifier, start: Tensor, quota: Tensor, stride: int, greedy: bool, reach: int) -> None:
    most, width = int(quota.max()) if len(quota) else 0, run.strings.shape[1]
    cut_at = torch.full((len(quota), max(most, 1), width), -1)  # the prefixes that were refused before
    erased, refusals = torch.zeros_like(quota), torch.zeros_like(quota)
    tokens = torch.arange(width)
    while (alive := run.unended()).any():
        rows = alive.nonzero()[:, 0]
        prefix = torch.where(tokens < run.lengths[rows][:, None], run.strings[rows], -1)
        before = ((cut_at[rows] == prefix[:, None]).all(-1) & (torch.arange(cut_at.shape[1]) < refusals[rows][:, None])).any(-1)
        in_answer = run.lengths[rows] > (start[rows] if not reach else -1)
        asks = (quota[rows] > 0) & ~before & in_answer
        accepted = torch.ones_like(asks)
        accepted[asks] = run.judge(verifier, rows[asks])
        refused = rows[~accepted]
        cut_at[refused, refusals[refused]] = prefix[~accepted]
        refusals[refused] += 1
        length = (run.lengths[refused] - stride).clamp(min=0).maximum((start[refused] - reach).clamp(min=0))
        erased[refused] += run.lengths[refused] - length
        _cut(run, refused, length, quota)
        forced = (run.lengths[rows] - start[rows]) < erased[rows]
        run.go_on(rows, alive, forced if greedy else None)


def _cut(run: _Run, rows: Tensor, length: Tensor, quota: Tensor) -> None:
    run.lengths[rows] = length
    quota[rows] -= 1
    run.backtracks[rows] += 1
