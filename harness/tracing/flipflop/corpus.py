"""Strings near a prompt: perturbed ones that a cause is searched in, and random ones around a cause that it is judged by.

Four families of what is put in the place of an event (docs/explanation/tracing.md):

    type    any instruction and any symbol, all alike; the symbols of reads follow from the writes
    gen     an event of the task's own distribution; the symbols of reads follow from the writes
    iid     any two tokens, grammatical or not (the paper's `rand`)
    shift   as gen, with another number of events in front: the distances to the read stay, absolute positions and the length do not

Except in iid, the first event of a string is a write. The read in question always stands at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from harness.draw import WORD, Draw
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.masking import PLACES, kept
from tasks.flipflop.flipflop import IGNORE, READ, SYMBOL, WRITE

FAMILIES = ("type", "gen", "iid", "shift")
ANCHORS = ("position", "offset")

# sites of the draws, after those of `masking`; each use and family has its own
_FIRST, _SECOND, _LAW, _SHIFT, _SITES = 2, 3, 4, 5, 8


@dataclass(frozen=True)
class Corpus:
    """tokens int64 [N, T], query int64 [N] (position of the read's instruction), truth int64 [N] (the right symbol).

    same bool [N, P]: which events of the prompt stand in the string, where they are looked for. known bool [N]: whether anything was
    written before the read, so that there is a truth.
    """

    tokens: Tensor
    query: Tensor
    truth: Tensor
    same: Tensor
    known: Tensor


def perturbed(
    prompt: Prompt,
    family: str,
    count: int,
    rate: float,
    draw: Draw,
    anchors: str = "position",
    masking: str = "rgrand",
) -> Corpus:
    """The paper's Algorithm 1 on events: the prompt with some events before the read replaced (see `kept`).

    anchors: events are looked for at their absolute position, or at their distance to the
    read (offset); with offset and with family shift every string has a random number of events more or fewer in front.
    """
    n, base = prompt.query, FAMILIES.index(family) * _SITES
    keep = pad(kept(n, count, rate, masking, draw, base), (0, 1), value=True)
    shifts = torch.zeros(count, dtype=torch.int64)
    if anchors == "offset" or family == "shift":
        shifts = draw.integers(prompt.room + n // 2 + 1, (count,), base + _SHIFT)[0] - n // 2
    return _filled(prompt, keep, shifts, family, draw, base, (), anchors)


def refilled(prompt: Prompt, keep: Tensor, draw: Draw) -> Corpus:
    """The prompt with the events that are not kept, bool [N, P - 1], replaced as in type."""
    whole = pad(keep, (0, 1), value=True)
    return _filled(
        prompt, whole, torch.zeros(len(keep), dtype=torch.int64), "type", draw, 2 * len(FAMILIES) * _SITES, (), "offset"
    )


def conditioned(prompt: Prompt, events: Sequence[int], family: str, count: int, draw: Draw) -> Corpus | None:
    """Strings in which these events of the prompt stand and everything else is random; None where nothing can be shifted.

    In shift the events keep their distances to the read. An event that is a read keeps its symbol: the write before it takes that symbol,
    or, where there is none to take it, a write is put in between at a random place.
    """
    base = (len(FAMILIES) + FAMILIES.index(family)) * _SITES
    keep = torch.zeros(count, prompt.query + 1, dtype=torch.bool)
    keep[:, [*events, prompt.query]] = True
    shifts = torch.zeros(count, dtype=torch.int64)
    if family == "shift":
        less = max(0, min([*events, prompt.query - 1]) - 1)  # the first event of a string is a write, and so no anchor
        if 0 in events or prompt.room + less == 0:
            return None
        at = draw.integers(prompt.room + less, (count,), base + _SHIFT)[0] - less
        shifts = torch.where(at >= 0, at + 1, at)
    return _filled(prompt, keep, shifts, family, draw, base, sorted(events), "offset")


def _filled(
    prompt: Prompt, keep: Tensor, shifts: Tensor, family: str, draw: Draw, base: int, anchored: Sequence[int], anchors: str
) -> Corpus:
    """Strings in which the events that are not kept are replaced.

    keep bool [N, P]; shifts int64 [N], how many events more stand in front; reads among `anchored` keep their symbols.
    """
    ahead = max(0, int(shifts.max()))
    # a frame whose last column is the read; string i begins at column start[i]
    own = pad(prompt.tokens.view(-1, 2).T, (ahead, 0))  # [2, W]
    column, start = torch.arange(own.shape[1]), (ahead - shifts)[:, None]
    inside = column >= start
    keep = pad(keep, (ahead, 0)) & inside
    first, second = _events(prompt, (len(keep), own.shape[1]), family, draw, base)
    first, second = torch.where(keep, own[0], first), torch.where(keep, own[1], second)
    if family != "iid":
        first = torch.where(column == start, WRITE, first)
        if anchored:
            dice = draw.uniform(first.shape, base + PLACES)[0]
            _hold(first, second, own, [anchor + ahead for anchor in anchored], start, dice)
    last = _latest((first == WRITE) & (second >= SYMBOL) & inside)
    memory = second.gather(-1, last.clamp(min=0))
    if family != "iid":
        second = torch.where(first == READ, memory, second)
    second[:, -1] = memory[:, -1]
    shifted = (column + start).clamp(max=own.shape[1] - 1)  # strings that begin at column 0
    tokens = torch.stack([first.gather(-1, shifted), second.gather(-1, shifted)], dim=-1)
    length = own.shape[1] - start
    before = column < length - 1
    if anchors == "offset":
        same = (first == own[0]) & (second == own[1]) & inside
        same = same[:, ahead:]
    else:
        same = (tokens == own.T.roll(-ahead, 0)).all(-1) & before
        same = same[:, : prompt.query + 1]
    tokens = torch.where((column < length)[..., None], tokens, torch.tensor([IGNORE, SYMBOL])).flatten(1)
    return Corpus(tokens, 2 * (length[:, 0] - 1), memory[:, -1] - SYMBOL, same, last[:, -1] >= 0)


def _events(prompt: Prompt, shape: tuple[int, int], family: str, draw: Draw, base: int) -> tuple[Tensor, Tensor]:
    """The two tokens of random events, [N, W] each."""
    task = prompt.task
    if family == "iid":
        return draw.integers(task.vocabulary, shape, base + _FIRST)[0], draw.integers(task.vocabulary, shape, base + _SECOND)[0]
    second = draw.integers(task.symbols, shape, base + _SECOND)[0] + SYMBOL
    if family == "type":
        return draw.integers(3, shape, base + _FIRST)[0], second
    laws = torch.tensor(task.laws(), dtype=torch.float64)
    bounds = (laws.cumsum(-1)[:, :2] * WORD).floor().to(torch.int64)
    below = bounds[draw.integers(len(laws), (shape[0], 1), base + _LAW)[0]]  # [N, 1, 2]
    words = draw.words(shape, base + _FIRST)[0]
    return torch.where(words < below[..., 0], WRITE, torch.where(words < below[..., 1], READ, IGNORE)), second


def _hold(first: Tensor, second: Tensor, own: Tensor, anchors: Sequence[int], start: Tensor, dice: Tensor) -> None:
    """Let every anchored read find its own symbol: changes first and second [N, W]; anchors are columns, ascending; dice in [0, 1)."""
    column = torch.arange(first.shape[1])
    decided = [anchor for anchor in anchors if int(own[0, anchor]) != IGNORE]
    for index, read in enumerate(decided):
        if int(own[0, read]) != READ:
            continue
        bound = column >= start if not index else (column > decided[index - 1]).expand_as(first)
        free = bound & (column < read)
        free[:, [anchor for anchor in anchors if anchor < read]] = False
        writes = (first == WRITE) & (column < read) & (column >= start)
        wrong = second.gather(-1, _latest(writes)[:, -1:].clamp(min=0))[:, 0] != own[1, read]
        free_write = _latest(writes & free)[:, -1]
        # the write that the read sees, if it is free to change; else a new one, since in the prompt there was one as well
        at = torch.where(free_write >= 0, free_write, torch.where(free, dice, -1.0).argmax(-1))
        rows = torch.nonzero(wrong)[:, 0]
        first[rows, at[rows]], second[rows, at[rows]] = WRITE, int(own[1, read])


def _latest(happens: Tensor) -> Tensor:
    """Index of the latest True at or before each column of [N, W], -1 before the first."""
    return torch.where(happens, torch.arange(happens.shape[1]), -1).cummax(-1).values
