"""Finite processes that write strings token by token, what their strings are worth, and exact laws by dynamic programming.

A string y has H tokens out of A. The base process draws token h + 1 from π(a | s), where s is the state that the first h tokens lead to;
a whole string has the reward τ(y) ≥ 0 of its last state. The *target* is π*(y) ∝ π(y)·τ(y). A *value* is a table V̂[h, s] ≥ 0 that judges
the prefixes of h tokens in the state s; the exact one is V[h, s] = E[τ | s after h tokens]. (Li 2025, chapter 3.)

Shapes: R replicates (or 1, where all share a table), H tokens a string, S states, A tokens; float64 everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.draws import WORD, Draw


@dataclass(frozen=True)
class Process:
    """A process that writes strings; state 0 is that of the empty string.

    successor: the state after a token, int64 [S, A]. law: π(a | h, s), [R, H, S, A]. reward: τ of a last state, [R, S].
    """

    successor: Tensor
    law: Tensor
    reward: Tensor

    @property
    def horizon(self) -> int:
        return self.law.shape[-3]

    @property
    def states(self) -> int:
        return self.law.shape[-2]

    @property
    def tokens(self) -> int:
        return self.law.shape[-1]

    def onward(self, table: Tensor, height: int) -> Tensor:
        """A table [R, H + 1, S] at each successor of the states at `height`: [R, S, A]."""
        return table[:, height + 1][:, self.successor]


def values(process: Process, reward: Tensor | None = None) -> Tensor:
    """V[h, s], [R, H + 1, S], of the process's reward or of another one."""
    return _upwards(process, process.reward if reward is None else reward, lambda height, behind: behind)


def _upwards(process: Process, last: Tensor, level: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Fill a table [R, H + 1, S] from its last height backwards.

    level(height, behind) makes the row of a height; behind [R, S] is the mean over next tokens of the row at height + 1.
    """
    levels = [last]
    for height in range(process.horizon - 1, -1, -1):
        levels.append(level(height, (process.law[:, height] * levels[-1][:, process.successor]).sum(-1)))
    levels = [row.expand(max(map(len, levels)), -1) for row in levels]
    return torch.stack(levels[::-1], dim=1)


def guided(process: Process, value: Tensor) -> Tensor:
    """The law of the next token ∝ π(a | s)·V̂(s, a), [R, H, S, A]; where no token has a positive value, zeros."""
    weights = torch.stack([process.law[:, h] * process.onward(value, h) for h in range(process.horizon)], dim=1)
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def target(process: Process) -> Tensor:
    """The law of the next token under π*, [R, H, S, A]; zeros in states from which no string has a reward."""
    return guided(process, values(process))


def accepted(value: Tensor) -> Tensor:
    """The value of a verifier that only says whether a prefix may go on: 1 where V̂ > 0, else 0."""
    return (value > 0).to(value.dtype)


def extendable(process: Process) -> Tensor:
    """The exact verifier of section 3.1, [R, H + 1, S]: 1 where some string that begins so has a reward, however improbable, else 0."""
    uniform = Process(process.successor, torch.full_like(process.law[:1], 1 / process.tokens), process.reward)
    return accepted(values(uniform))


def first_leaf(process: Process, value: Tensor) -> Tensor:
    """W[h, s], [R, H + 1, S], by which the first leaf that the walk VGB reaches is drawn token by token, ∝ π(a | s)·W(s, a).

    The walk is reversible, so its first leaf is where the current of an electric network ends whose edge into y conducts π(y)·V̂(y) and
    whose leaves are grounded. The subtree behind that edge conducts π(y)·M(y), M = Σ_a π(a | y)·W(y, a), and both in series π(y)·W(y):
    1/W = 1/V̂ + 1/M inside, and W = V̂ at leaves.
    """
    return _upwards(process, value[:, -1], lambda height, behind: _in_series(value[:, height], behind) if height else behind)


def first_leaf_steps(process: Process, value: Tensor) -> Tensor:
    """The mean number of steps of VGB until its first leaf, steps that stay in place included: [R].

    Twice the sum over nodes of their conductance times their voltage, for a unit current from the root to the grounded leaves.
    """
    through = first_leaf(process, value)
    steps = torch.zeros(len(through), dtype=value.dtype)
    # of all strings that lead to a state: the sum of π(y)·voltage(y)
    voltage = torch.zeros_like(through[:, 0])
    voltage[:, 0] = 1 / through[:, 0, 0]
    for height in range(process.horizon):
        behind = (process.law[:, height] * process.onward(value, height)).sum(-1)
        conducts = behind + (value[:, height] if height else 0.0)
        steps += 2 * (conducts * voltage).sum(-1)
        if height + 1 < process.horizon:
            law = process.law[:, height] * voltage[..., None]  # [R, S, A]
            reached = torch.zeros_like(voltage).index_add_(1, process.successor.flatten(), law.flatten(1))
            edge, subtree = value[:, height + 1], through[:, height + 1]
            # edge and subtree divide the voltage; V̂ / (V̂ + M) of it is left behind the edge, which is 1 - W / V̂
            voltage = reached * torch.where(edge > 0, 1 - subtree / torch.where(edge > 0, edge, 1.0), 0.0)
    return steps


def stationary(process: Process, value: Tensor) -> Tensor:
    """The stationary law of VGB over the nodes of the tree, added up by height and state: [R, H + 1, S]."""
    before = visits(process, process.law)
    mass = torch.zeros_like(before.expand(len(value), -1, -1)).clone()
    for height in range(process.horizon + 1):
        if height:
            mass[:, height] += before[:, height] * value[:, height]
        if height < process.horizon:
            children = (process.law[:, height] * process.onward(value, height)).sum(-1)
            mass[:, height] += before[:, height] * children
    return mass / mass.sum((1, 2), keepdim=True)


def visits(process: Process, law: Tensor) -> Tensor:
    """P(state s after h tokens) of strings drawn token by token from `law`: [R, H + 1, S]."""
    now = torch.zeros(len(law), process.states, dtype=law.dtype)
    now[:, 0] = 1.0
    levels = [now]
    for height in range(process.horizon):
        flow = now[..., None] * law[:, height]
        now = torch.zeros_like(now).index_add_(1, process.successor.flatten(), flow.flatten(1))
        levels.append(now)
    return torch.stack(levels, dim=1)


def divergence(process: Process, law: Tensor) -> Tensor:
    """KL(π* ‖ q) in nats, [R], of the strings that `law` draws token by token; infinite where q lacks one of the target."""
    wanted = target(process)
    seen = visits(process, wanted)[:, :-1, :, None] * wanted
    logs = torch.where(seen > 0, torch.log(wanted / law), 0.0)
    return (seen * logs).sum((1, 2, 3))


def leaf_law(process: Process, law: Tensor) -> Tensor:
    """P(y) of every string, [R, A^H], by the string as a number in base A whose first token counts most."""
    states = torch.zeros(1, dtype=torch.int64)
    probabilities = torch.ones(len(law), 1, dtype=law.dtype)
    for height in range(process.horizon):
        probabilities = (probabilities[..., None] * law[:, height, states]).flatten(1)
        states = process.successor[states].flatten()
    return probabilities


def distance(one: Tensor, other: Tensor) -> Tensor:
    """The total variation distance of laws [R, N]: [R]."""
    return (one - other).abs().sum(-1) / 2


def _in_series(edge: Tensor, behind: Tensor) -> Tensor:
    """The conductance of an edge and of what lies behind it, in series; 0 where both are 0."""
    total = edge + behind
    return torch.where(total > 0, edge * behind / torch.where(total > 0, total, 1.0), 0.0)


# sites of the draws of a random tree, and of the errors of a value
_LAW, _REWARD, _ERROR, _FLIP = range(4)


def tree(draw: Draw, horizon: int, alphabet: int) -> Process:
    """A tree in which every prefix is a state. Each seed draws its laws of next tokens from Dirichlet(1, …, 1) and rewards from U(0, 1)."""
    inner = sum(alphabet**h for h in range(horizon))
    states = inner + alphabet**horizon
    successor = torch.zeros(states, alphabet, dtype=torch.int64)
    successor[:inner] = 1 + torch.arange(inner * alphabet).view(inner, alphabet)
    seeded = draw.named("tree")
    exponential = -torch.log(_open_uniform(seeded.words((inner, alphabet), _LAW)))
    law = torch.full((draw.replicates, states, alphabet), 1 / alphabet, dtype=torch.float64)
    law[:, :inner] = exponential / exponential.sum(-1, keepdim=True)
    reward = torch.zeros(draw.replicates, states, dtype=torch.float64)
    reward[:, inner:] = _open_uniform(seeded.words((states - inner,), _REWARD))
    return Process(successor, law[:, None].expand(-1, horizon, -1, -1), reward)


def only_zeros(horizon: int, alphabet: int) -> Process:
    """Uniform tokens; only 0 0 … 0 has a reward (proposition 3.1.1). States: nothing but zeros so far, and anything else."""
    successor = torch.tensor([[0] + [1] * (alphabet - 1), [1] * alphabet])
    return Process(successor, _uniform(horizon, 2, alphabet), torch.tensor([[1.0, 0.0]], dtype=torch.float64))


def some_zero(horizon: int) -> Process:
    """Uniform bits; every string with at least one 0 has the same reward (proposition 3.1.2). States: no zero yet, and some."""
    return Process(torch.tensor([[1, 0], [1, 1]]), _uniform(horizon, 2, 2), torch.tensor([[0.0, 1.0]], dtype=torch.float64))


def hidden_parity(horizon: int) -> Process:
    """Bits that are uniform but for the last: it makes the number of ones even after one hidden prefix alone, and odd after any other
    (theorem 3.1.1). Strings with an even number of ones have a reward. The hidden prefix is 0 0 … 0, which is as good as any other.

    States: nothing but zeros so far; even and odd after anything else.
    """
    law = _uniform(horizon, 3, 2).clone()
    law[0, -1] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    successor = torch.tensor([[0, 2], [1, 2], [2, 1]])
    return Process(successor, law, torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.float64))


def brackets(horizon: int, depth: int, opens: float, first: float, wrong: float) -> Process:
    """Bracket strings [ ] ( ) of H tokens (section 3.2.1) by a writer that errs: a closing bracket is of the wrong type with `wrong`.

    Opens with `opens` (always at depth 0, never at the largest depth or where only closing brackets fit), "[" with `first`. A string has a
    reward if every bracket is closed by its own. States: the open brackets as a number in base 2 after a leading 1, and spoilt.
    """
    # stack number n in 1 … 2^(D+1) - 1, of which 1 is the empty stack, is state n - 1; spoilt is the last state
    states = 2 ** (depth + 1)
    spoilt = states - 1
    stack = torch.arange(1, states)
    level = torch.floor(torch.log2(stack.to(torch.float64))).to(torch.int64)
    closes = torch.stack([torch.where((level > 0) & (stack % 2 == kind), stack // 2 - 1, spoilt) for kind in (0, 1)], dim=1)
    pushes = torch.stack([torch.where(level < depth, 2 * stack + kind - 1, spoilt) for kind in (0, 1)], dim=1)
    successor = torch.full((states, 4), spoilt)
    successor[:-1] = torch.stack([pushes[:, 0], closes[:, 0], pushes[:, 1], closes[:, 1]], dim=1)
    law = torch.full((horizon, states, 4), 0.25, dtype=torch.float64)  # of a spoilt string nothing matters any more
    right = (stack % 2).to(torch.float64)  # the type of the innermost bracket
    for height in range(horizon):
        left = horizon - height
        forced = (level == depth) | (level >= left)
        opening = torch.full((len(stack),), opens, dtype=torch.float64)
        opening[forced] = 0.0
        opening[level == 0] = 1.0
        close_second = (1 - opening) * (right * (1 - wrong) + (1 - right) * wrong)
        close_first = (1 - opening) - close_second
        law[height, :-1] = torch.stack([opening * first, close_first, opening * (1 - first), close_second], dim=1)
    reward = torch.zeros(1, states, dtype=torch.float64)
    reward[0, 0] = 1.0
    return Process(successor, law[None], reward)


def mistaken(value: Tensor, draw: Draw, inside: float, leaves: float) -> Tensor:
    """V̂ = V·e^u with u uniform in (-inside, inside) for every height and state, and in (-leaves, leaves) at the last height."""
    words = draw.named("value").words(tuple(value.shape[1:]), _ERROR)
    size = torch.full((value.shape[1], 1), inside, dtype=torch.float64)
    size[-1] = leaves
    return value * torch.exp((2 * _open_uniform(words) - 1) * size)


def flipped(value: Tensor, draw: Draw, share: float) -> Tensor:
    """A verifier's answers, 1 to go on and 0 to refuse, wrong for this share of heights and states, leaves included.

    The empty string is always accepted.
    """
    words = draw.named("verifier").words(tuple(value.shape[1:]), _FLIP)
    wrong = _open_uniform(words) < share
    answer = torch.where(wrong, 1 - accepted(value), accepted(value))
    answer[:, 0] = 1.0
    return answer


def _uniform(horizon: int, states: int, alphabet: int) -> Tensor:
    return torch.full((1, horizon, states, alphabet), 1 / alphabet, dtype=torch.float64)


def _open_uniform(words: Tensor) -> Tensor:
    """float64 in (0, 1) from words."""
    return (words.cpu().to(torch.float64) + 0.5) / WORD
