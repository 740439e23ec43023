"""Simulation of a semiautomaton: at every position, say the state after its token.

Liu's thesis (CMU-ML-24-110), ch. 3.4: q_t = δ(q_{t-1}, σ_t), t = 1 … T, from a fixed q_0. The model reads σ_1 … σ_T, no states; the
label at position t is q_t, no shift, or a function φ(q_t) of it. All semiautomata, laws and maps: `docs/explanation/automata.md`.

    Automaton("C2", length=6)        inputs 1 0 1 1 0 1
                                     labels 1 1 0 1 1 0
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.automata.composition import states_after
from tasks.automata.named_automata import semiautomaton
from tasks.automata.observations import Observation, observation
from tasks.automata.scratchpad import autoregressive, interleaved
from tasks.automata.semiautomata import Semiautomaton, Table
from tasks.batch import Batch
from tasks.draws import Draw
from tasks.task import Forward, Task, refuse_below, refuse_unlisted

LAWS = ("uniform", "abab", "abab_or_uniform")

# sites of the draws within a step; part of every committed result
_TOKEN, _PLACE, _COIN, _REVEAL = 0, 1, 2, 3


@dataclass(frozen=True)
class Automaton(Task):
    """Words of `length` tokens of a semiautomaton, answered at every position.

    automaton: a name such as S5, or a `Table` (in YAML {table: [[…]], start: 0}). law: of the tokens: uniform over those that are valid in
    the state; abab, always abab…; abab_or_uniform, either with probability 1/2. p_one: with two tokens, the probability of token 1 at each
    position. ones: with two tokens, the number of tokens 1, at uniformly random positions. observe: φ, a name or the class of every state.
    p_reveal: the probability that a position's label is in the loss of a training; evaluation sets score every position.
    scratchpad: the labels stand between the tokens (`tasks/automata/scratchpad.py`); evaluation fills in the model's own.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read",)
    error: ClassVar[str] = "a position where the most probable answer is not the (observed) state after its token"
    vectors: ClassVar[tuple[str, ...]] = ("law", "p_one", "ones", "p_reveal")  # may differ within a pack

    automaton: str | Table = "C2"
    length: int = 100
    law: str = "uniform"
    p_one: float | None = None
    ones: int | None = None
    observe: str | tuple[int, ...] = "state"
    p_reveal: float = 1.0
    scratchpad: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.automaton, str | Table):
            raise ValueError(f"task.automaton = {self.automaton!r} must be a name or a table {{table: [[…]], start: 0}}")
        refuse_below(self, length=1)
        refuse_unlisted(self, {"law": LAWS})
        if not 0 < self.p_reveal <= 1:
            raise ValueError(f"task.p_reveal = {self.p_reveal:g} must be a probability above 0: 1 reveals every label")
        if self.scratchpad and self.p_reveal < 1:
            raise ValueError("task.scratchpad shows every label in the words, so none can be hidden: write task.p_reveal = 1")
        machine, _ = self._machine, self._observation
        if self.outputs < 2:
            raise ValueError(
                "task.automaton and task.observe leave one class of labels, so no answer could be wrong: give two or more"
            )
        special = [f"law = {self.law}"] if self.law != "uniform" else []
        special += [f"{name} = {getattr(self, name)}" for name in ("p_one", "ones") if getattr(self, name) is not None]
        if len(special) > 1:
            raise ValueError(f"task.{' and task.'.join(special)} are {len(special)} laws of the tokens: give one of them")
        if special and (self._kinds != 2 or machine.masked):
            raise ValueError(f"task.{special[0]} needs a semiautomaton of two tokens that are always valid, such as C2")
        if self.p_one is not None and not 0 <= self.p_one <= 1:
            raise ValueError(f"task.p_one = {self.p_one:g} must be a probability")
        if self.ones is not None and not 0 <= self.ones <= self.length:
            raise ValueError(f"task.ones = {self.ones} must be between 0 and task.length = {self.length}")

    @property
    def _machine(self) -> Semiautomaton:
        return semiautomaton(self.automaton)

    @property
    def _kinds(self) -> int:
        """The number of tokens of the semiautomaton."""
        return self._machine.table.shape[1]

    @property
    def _observation(self) -> Observation:
        return _observed(self.automaton, self.observe)

    @property
    def vocabulary(self) -> int:
        return self._kinds + (self.outputs if self.scratchpad else 0)

    @property
    def tokens(self) -> int:
        """The positions that a model reads: those of the word, and with a scratchpad those of its labels but the last."""
        return 2 * self.length - 1 if self.scratchpad else self.length

    @property
    def outputs(self) -> int:
        """Classes of a label."""
        return self._observation.classes

    @property
    def answers_ahead(self) -> bool:
        """Whether the label of a token stands behind it."""
        return self.scratchpad

    @property
    def fed_back(self) -> bool:
        """Whether the model goes on with its own answers."""
        return self.scratchpad

    def evaluation(self) -> "Automaton":
        """The task that an evaluation set of this one holds: the same words, every position scored."""
        return dataclasses.replace(self, p_reveal=1.0)

    def scored_positions(self) -> int | None:
        """None: the loss may need every position; with a scratchpad, those of the word."""
        return self.length if self.scratchpad else None

    def answers(self, forward: Forward, inputs: Tensor, blocks: Sequence[Tensor] | None) -> Tensor:
        """Logits of an evaluation at the scored positions; with a scratchpad the model's own answers fill the places of the labels."""
        return autoregressive(forward, inputs, self._kinds) if self.scratchpad else forward(inputs, blocks)

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` words a replicate: inputs [R, B, T], targets [R, B, T], weights [R, B, T] (1, or 0 where the label is hidden).

        about: position [R, B, T], 0 … T-1. With a scratchpad T becomes 2T - 1, and a token and its label have the same position.
        """
        shape = (batch, self.length)
        machine = self._machine
        if machine.masked:
            inputs, states = walk(machine, draw.words(shape, _TOKEN))
        else:
            inputs = self._tokens(draw, batch)
            states = states_after(machine, inputs)
        device = inputs.device
        targets = states if self.observe == "state" else torch.tensor(self._observation.values, device=device)[states]
        weights = torch.ones(inputs.shape, device=device)
        if self.p_reveal < 1:
            weights = (draw.words(shape, _REVEAL) < int(self.p_reveal * 2**32)).to(torch.float32)
        about = {"position": torch.arange(self.length, device=device).expand(inputs.shape)}
        words = Batch(inputs, targets, weights, about)
        return interleaved(words, self._kinds) if self.scratchpad else words

    def _tokens(self, draw: Draw, batch: int) -> Tensor:
        """int64 [R, B, T] of a semiautomaton whose tokens are always valid."""
        shape, device = (batch, self.length), draw.seeds.device
        if self.ones is not None:
            places = draw.subset(self.length, self.ones, (batch,), _PLACE)
            return torch.zeros((*places.shape[:-1], self.length), dtype=torch.int64, device=device).scatter(-1, places, 1)
        if self.p_one is not None:
            # 1 - p: common random numbers, a larger p_one only turns zeros into ones
            return (draw.words(shape, _TOKEN) >= round((1 - self.p_one) * 2**32)).to(torch.int64)
        alternating = torch.arange(self.length, device=device) % 2
        if self.law == "abab":
            return alternating.expand(draw.replicates, *shape).contiguous()
        tokens = draw.integers(self._kinds, shape, _TOKEN)
        if self.law == "abab_or_uniform":
            tokens = torch.where(draw.integers(2, (batch, 1), _COIN) == 0, alternating, tokens)
        return tokens

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong; logits [..., outputs], targets [...].

        The metric is called read, as in the other tasks: reports and claims are made from that name. 1 - errors/count is the thesis'
        token-level accuracy.
        """
        return {"read": logits.argmax(-1) != targets}


@functools.cache
def _observed(automaton: str | Table, observe: str | tuple[int, ...]) -> Observation:
    return observation(semiautomaton(automaton), observe)


def walk(machine: Semiautomaton, words: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens uniform over the valid ones of each state, and the state after each: words uint32 in int64 [..., T] → two int64 [..., T].

    One token after the other, since what may come depends on the state; position t uses words[..., t] alone.
    """
    table = machine.table.to(words.device)
    valid = table >= 0
    counts = valid.sum(-1)
    most = int(counts.max())
    ranked = torch.argsort(~valid, dim=-1, stable=True)[:, :most]  # the valid tokens of each state, in order
    after = table.gather(-1, ranked).flatten()
    ranked = ranked.flatten()
    along = words.flatten(0, -2).T.contiguous()
    tokens, states = torch.empty_like(along), torch.empty_like(along)
    state = torch.full_like(along[0], machine.start)
    for t, word in enumerate(along):
        place = (word * counts[state] >> 32) + state * most
        tokens[t] = ranked[place]
        state = states[t] = after[place]
    return tokens.T.reshape(words.shape), states.T.reshape(words.shape)
