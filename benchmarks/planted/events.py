"""Flip-flop strings as events, and when something has happened before each."""

import torch
from torch import Tensor

from tasks.flipflop.flipflop import SYMBOL, WRITE

Events = tuple[Tensor, Tensor]  # instructions and symbols, int64 [..., P]; instruction -1 where the two tokens are no event


def events(tokens: Tensor) -> Events:
    """(instructions, symbols), [..., P] each, of tokens [..., T]; the instruction is -1 where the two tokens are no event."""
    if tokens.shape[-1] % 2:  # it ends in the instruction that is asked about
        tokens = torch.nn.functional.pad(tokens, (0, 1), value=SYMBOL)
    instructions, symbols = tokens[..., 0::2], tokens[..., 1::2]
    grammatical = (instructions < SYMBOL) & (symbols >= SYMBOL)
    return torch.where(grammatical, instructions, -1), (symbols - SYMBOL).clamp(min=0)


def latest_write(given: Events) -> Tensor:
    """The symbol of the latest write before or at each event, [..., P]; 0 before the first."""
    instructions, symbols = given
    index = torch.arange(instructions.shape[-1])
    last = torch.where(instructions == WRITE, index, -1).cummax(-1).values
    return torch.where(last >= 0, symbols.gather(-1, last.clamp(min=0)), 0)


def is_kind(given: Events, kind: tuple[int, int]) -> Tensor:
    return (given[0] == kind[0]) & (given[1] == kind[1])


def seen(happens: Tensor) -> Tensor:
    """Whether something has happened before each event, not counting the event itself."""
    ever = happens.cummax(-1).values
    return torch.cat([torch.zeros_like(ever[..., :1]), ever[..., :-1]], dim=-1)


def back(happens: Tensor, distance: int) -> Tensor:
    """Whether something happened exactly so many events before each event."""
    return torch.cat([torch.zeros_like(happens[..., :distance]), happens[..., :-distance]], dim=-1)
