"""Transformers with the weights of the proofs: semiautomata simulated exactly, nothing trained.

Liu et al., "Transformers learn shortcuts to automata" (ICLR 2023), in the form of Liu's thesis (CMU-ML-24-110), ch. 3.4. Softmax attention
and ReLU layers in float64; states are numbered from 0 outside and are the integers 1 … |Q| inside. Where the printed weights do not
compute what the proof says, the corrected ones are used, and said so.
"""

import math

import torch
from torch import Tensor


def parallel_composition(table: Tensor, start: int, tokens: Tensor) -> Tensor:
    """Theorem 10, any semiautomaton at depth ceil(log2 T): table int64 [Q, S], total; tokens int64 [B, T] → states int64 [B, T].

    Layer l composes the map at t with the map at t - 2^(l-1), found by two heads of a softmax over positions on a circle. Corrected: the
    keys are turned forward, by +pi 2^(l-1)/T. No residual for the maps; the two position coordinates are passed on, which the printed
    dimension 2|Q| + 2 allows and the text does not say.
    """
    states, length = len(table), tokens.shape[-1]
    depth = math.ceil(math.log2(length)) if length > 1 else 0
    whole = 2**depth
    # a token is its map as |Q| integers; the pads hold the map to the start
    maps = (table.T + 1).to(torch.float64)[tokens]
    maps = torch.cat([torch.full((len(tokens), whole, states), start + 1.0, dtype=torch.float64), maps], dim=1)
    angle = math.pi * torch.arange(-whole + 1, length + 1, dtype=torch.float64) / whole
    gamma = 100 * whole**2 * (math.log(states) + math.log(max(whole, 2)))
    for layer in range(depth):
        here = _select(angle, 0.0, gamma) @ maps
        before = _select(angle, math.pi * 2**layer / whole, gamma) @ maps
        maps = _compose(here, before)
    return maps[:, whole:, start].round().to(torch.int64) - 1


def _select(angle: Tensor, turn: float, gamma: float) -> Tensor:
    """Attention [N, N] of a causal head whose keys are turned by `turn`: logit gamma <p_t, R p_s>, largest where s = t - turn."""
    turned = angle + turn
    query, key = (torch.stack([x.cos(), x.sin()], dim=-1) for x in (angle, turned))
    later = torch.ones(len(angle), len(angle), dtype=torch.bool).triu(1)
    return (gamma * query @ key.T).masked_fill(later, -math.inf).softmax(-1)


def _compose(after: Tensor, before: Tensor) -> Tensor:
    """after(before(q)) of maps [B, N, Q] by three ReLU layers: 4|Q|^2 + |Q| units, |Q|^2 units, a sum.

    The first says for every q and k whether before(q) = k; the second keeps after(k) where that is so.
    """
    states = after.shape[-1]
    values = torch.arange(1, states + 1, dtype=torch.float64)
    chosen = _is(before[..., None], values)  # [B, N, q, k]
    return (after[..., None, :] - states * (1 - chosen)).relu().sum(-1)


def _is(x: Tensor, integer: Tensor) -> Tensor:
    """1 where |x - integer| <= 1/4, 0 where >= 1/2: four ReLU units of slope 4."""
    up, down = 4 * (x - integer) + 2, 4 * (x - integer) - 1
    return up.relu() - (up - 1).relu() - down.relu() + (down - 1).relu()


def modular_counter(n: int, tokens: Tensor) -> Tensor:
    """Lemma 15, C_n in one layer: tokens int64 [B, T] in 0 … n-1 → running sums mod n, int64 [B, T].

    One pad before the word. Only its key is not 0, and the query at t is log(2T - t), so that the head's output is the sum of t tokens
    divided by 2T. Corrected: the MLP maps s to 2Ts mod n, not Ts.
    """
    length = tokens.shape[-1]
    position = torch.arange(length + 1, dtype=torch.float64)
    pad = (position == 0).to(torch.float64)
    logits = (2 * length - position).log()[:, None] * pad
    later = torch.ones(length + 1, length + 1, dtype=torch.bool).triu(1)
    weights = logits.masked_fill(later, -math.inf).softmax(-1)
    values = torch.nn.functional.pad(tokens.to(torch.float64), (1, 0))
    sums = 2 * length * (values @ weights.T)
    counts = torch.arange((n - 1) * length + 1, dtype=torch.float64)
    return (_is(sums[..., None], counts) @ (counts % n)).round().to(torch.int64)[:, 1:]


def memory(states: int, start: int, tokens: Tensor) -> Tensor:
    """Lemma 16, |Q| states that tokens set or keep, in one layer: tokens int64 [B, T] → states int64 [B, T].

    Token 0 keeps the state and token 1 + q sets q. Logit of j: c(j/T - 1[j keeps]), so that the latest write wins; a token that keeps
    has the value of the start. Corrected: the indicator once, not twice.
    """
    length = tokens.shape[-1]
    sharpness = 2 * length * math.log(8 * states * length)
    keeps = tokens == 0
    position = torch.arange(1, length + 1, dtype=torch.float64) / length
    logits = sharpness * (position - keeps.to(torch.float64))  # [B, keys]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = logits[:, None].masked_fill(later, -math.inf).softmax(-1)
    values = torch.where(keeps, start + 1, tokens).to(torch.float64)
    written = (weights @ values[..., None])[..., 0]
    numbers = torch.arange(1, states + 1, dtype=torch.float64)
    return (_is(written[..., None], numbers) @ numbers).round().to(torch.int64) - 1


def gridworld(last: int, moves: Tensor) -> Tensor:
    """Algorithm 1 (theorem 12): moves int64 [B, T] of -1, 0, +1 on 0 … `last`, from 0 → states int64 [B, T].

    z: prefix sums after `last` + 1 pads of -1 (the number is lost in print; with `last` pads it fails). Of the latest suffix of z with
    `last` + 1 different values, the later of its last minimum and last maximum is where the walk was last at an end.
    """
    pads = last + 1
    sums = torch.nn.functional.pad(moves, (pads, 0), value=-1).cumsum(-1)
    out = torch.empty_like(moves)
    for t in range(moves.shape[-1]):
        out[:, t] = _end_of(sums[:, : pads + t + 1], last)
    return out


def _end_of(sums: Tensor, last: int) -> Tensor:
    """The state after prefix sums [B, N]."""
    back = sums.flip(-1)
    # steps of at most 1: the values of a suffix are all those between its extremes
    distinct = back.cummax(-1).values - back.cummin(-1).values + 1
    size = (distinct < last + 1).sum(-1, keepdim=True) + 1  # tokens of the shortest such suffix
    inside = torch.arange(back.shape[-1]) < size
    low = back.masked_fill(~inside, torch.iinfo(torch.int64).max).argmin(
        -1, keepdim=True
    )  # argmin from the end: its last place
    high = back.masked_fill(~inside, torch.iinfo(torch.int64).min).argmax(-1, keepdim=True)
    boundary = torch.where(low < high, 0, last)  # the nearer to the end is the later
    return (back[:, :1] - back.gather(-1, torch.minimum(low, high)) + boundary)[:, 0]
