"""LEGO: a chain of group actions, answered one clause at a time.

Huang, Wen, Singh, Chi, Chen, "Transformers provably learn chain-of-thought reasoning with length generalization" (2025), sections 2 and 6.
A clause is five tokens and one position: predicates x_n = g_n(x_{n-1}) come first, then the answers x_n = y_n, of which x_0 = y_0 is given.

    predicate   x_n  g_n  x_{n-1}  ·    ·          · is the blank, token 0
    answer      ·    ·    ·        x_n  y_n

    C6, length 2    b = +2(a)   c = +5(b)   a = 3   b = 5   c = 4
    inputs          ^           ^           ^       ^                 4 clauses
    targets                                 b = 5   c = 4             scored at the last two
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tasks.batch import Batch
from tasks.continuation import continued
from tasks.draws import Draw
from tasks.lego.group_actions import Actions, GroupAction, group_action
from tasks.lego.lego_draws import different, values_after
from tasks.task import Continued, refuse_below, refuse_unlisted

SLOTS = 5  # of a clause: output variable, action, input variable, answered variable, value
OUTPUT, ACTION, INPUT, VARIABLE, VALUE = range(SLOTS)
IGNORED = -100  # a target that torch's cross-entropy leaves out

# sites of the draws within a step; part of every committed result
_NAME, _ACTION, _START, _ORDER = 0, 1, 2, 3


_CHOICES = {"order": ("chain", "shuffled"), "loss": ("clause", "value"), "decode": ("forced", "greedy")}


@dataclass(frozen=True)
class Lego(Continued):
    """Sentences of L = `length` predicates, answered in L clauses; tokens: the blank, variables, actions, values.

    group: a name such as C6 or S5, or `Actions` (in YAML {table: [[…]]}). variables: |X|, of which L + 1 different ones name a sentence's
    states. order: of the predicates, chain or shuffled. loss: of a clause's five slots or of the value alone. steps: the answers, from
    1, that are in the loss of a training, empty for all. Evaluation sets score all of every answer. decode: of an evaluation set, each
    answer after the true ones before it (forced) or after the model's own (greedy); a training is always forced.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read", "clause")
    error: ClassVar[str] = "an answer whose most probable value is not the true value of its variable"
    vectors: ClassVar[tuple[str, ...]] = ("order", "loss", "steps")  # may differ within a pack
    slots: ClassVar[int] = SLOTS

    group: str | Actions = "C6"
    length: int = 5
    variables: int = 200
    order: str = "chain"
    loss: str = "clause"
    steps: tuple[int, ...] = ()
    decode: str = "forced"

    def __post_init__(self) -> None:
        if not isinstance(self.group, str | Actions):
            raise ValueError(f"task.group = {self.group!r} must be a name or a table {{table: [[…]]}}")
        refuse_below(self, length=1)
        if self.length + 1 > self.variables:
            raise ValueError(
                f"task.length = {self.length} needs {self.length + 1} different variables and task.variables = {self.variables}: "
                f"a length of at most {self.variables - 1}, or more variables"
            )
        refuse_unlisted(self, _CHOICES)
        if self.steps and not (min(self.steps) >= 1 and max(self.steps) <= self.length):
            raise ValueError(f"task.steps = {list(self.steps)} must be answers 1 … task.length = {self.length}")
        group_action(self.group)

    @property
    def action(self) -> GroupAction:
        return group_action(self.group)

    @property
    def first_action(self) -> int:
        """Token of action 0; variables are 1 … first_action - 1."""
        return 1 + self.variables

    @property
    def first_value(self) -> int:
        """Token of value 0."""
        return self.first_action + self.action.actions

    @property
    def vocabulary(self) -> int:
        return self.first_value + self.action.values

    @property
    def tokens(self) -> int:
        """The number of clauses that a model reads: L predicates and the answers 0 … L-1."""
        return 2 * self.length

    def evaluation(self) -> "Lego":
        """The task that an evaluation set of this one holds: the same sentences, every slot of every answer scored."""
        return dataclasses.replace(self, loss="clause", steps=())

    @property
    def passes(self) -> int:
        """Passes that an evaluation takes at most."""
        return self.length if self.decode == "greedy" else 1

    @property
    def fed_back(self) -> bool:
        """Whether the model goes on with its own answers."""
        return self.decode == "greedy"

    def forced(self) -> "Lego":
        """The same sentences, each answer after the true ones."""
        return dataclasses.replace(self, decode="forced")

    def scored_positions(self) -> int | None:
        """L, the number of positions whose next clause is an answer."""
        return self.length

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` sentences a replicate: inputs [R, B, 2L, 5], targets [R, B, 2L, 5], weights [R, B, 2L], 1 where an answer follows.

        about: position [R, B, 2L], 0 … L-1 for the answers 1 … L.
        """
        prompt, answers = self.sentences(draw, batch)
        return self.batch(prompt, answers)

    def sentences(self, draw: Draw, batch: int) -> tuple[Tensor, Tensor]:
        """The prompts [R, B, L + 1, 5], L predicates and x_0 = y_0, and the true answers [R, B, L, 5]."""
        length, action = self.length, self.action
        names = different(draw.words((batch, length + 1), _NAME), self.variables) + 1
        actions = draw.integers(action.actions, (batch, length), _ACTION)
        start = draw.integers(action.values, (batch, 1), _START)[..., 0]
        prompt = torch.zeros((*actions.shape[:2], length + 1, SLOTS), dtype=torch.int64, device=actions.device)
        prompt[..., :length, OUTPUT] = names[..., 1:]
        prompt[..., :length, ACTION] = actions + self.first_action
        prompt[..., :length, INPUT] = names[..., :-1]
        prompt[..., length, VARIABLE] = names[..., 0]
        prompt[..., length, VALUE] = start + self.first_value
        answers = torch.zeros((*actions.shape, SLOTS), dtype=torch.int64, device=actions.device)
        answers[..., VARIABLE] = names[..., 1:]
        answers[..., VALUE] = values_after(action, actions, start) + self.first_value
        if self.order == "shuffled":
            order = draw.permutation(length, (batch,), _ORDER)[..., None].expand(-1, -1, -1, SLOTS)
            prompt[..., :length, :] = prompt[..., :length, :].gather(2, order)
        return prompt, answers

    def batch(self, prompt: Tensor, answers: Tensor) -> Batch:
        """The batch of prompts [R, B, L + 1, 5] with these answers [R, B, L, 5], which may be true ones or a model's."""
        length, device = self.length, prompt.device
        targets = torch.zeros((*prompt.shape[:2], 2 * length, SLOTS), dtype=torch.int64, device=device)
        targets[..., length:, :] = answers
        if self.loss == "value":
            targets[..., :VALUE] = IGNORED
        weights = torch.zeros(targets.shape[:-1], device=device)
        scored = [length - 1 + step for step in self.steps or range(1, length + 1)]
        weights[..., scored] = 1.0
        position = (torch.arange(2 * length, device=device) - length).clamp(min=0)
        inputs = torch.cat([prompt, answers[..., :-1, :]], dim=2)
        return Batch(inputs, targets, weights, {"position": position.expand(weights.shape)})

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong; logits [..., 5, V], targets [..., 5], each metric [...]. The lowest of equal logits counts.

        read: of the value, the name that reports and claims are made from; clause: of any of the five slots.
        """
        differ = logits.argmax(-1) != targets
        return {"read": differ[..., VALUE], "clause": differ.any(-1)}

    def answers(self, forward: Callable[..., Tensor], inputs: Tensor, blocks: Sequence[Tensor] | None) -> Tensor:
        """Logits [R, B, L, 5, V] of an evaluation of inputs [R, B, 2L, 5].

        With decode = greedy the model reads the predicates and x_0 = y_0 alone, and goes on with its own answers; logits are then 1 for the
        words that it says and 0 for all others.
        """
        if self.decode == "forced":
            return forward(inputs, blocks)
        said = continued(forward, inputs[:, :, : self.length + 1], self.length, self.draft)
        return one_hot(said, self.vocabulary).float()

    def draft(self, prompt: Tensor, said: Tensor, known: Tensor) -> Tensor:
        """Guess all answers, [R, B, L, 5], from the first `known` [R, B] of the answers `said` [R, B, L, 5]: every further step is right.

        The guess follows the predicates of the prompts [R, B, L + 1, 5] by name, whatever their order. After a name that is no predicate's
        input, the names are blank.
        """
        predicates, start, size = prompt[:, :, :-1], prompt[:, :, -1], self.first_action
        table = prompt.new_zeros((*prompt.shape[:2], 2, size))
        consumed = predicates[..., INPUT]
        after, actions = (
            values.scatter(-1, consumed, predicates[..., slot])
            for values, slot in zip(table.unbind(2), (OUTPUT, ACTION), strict=True)
        )
        law = self.action.table.flatten().to(prompt.device)
        out = torch.zeros_like(said)
        name, value = start[..., VARIABLE], start[..., VALUE]
        for step in range(said.shape[2]):
            place = name.clamp(max=size - 1)[..., None]
            action = (actions.gather(-1, place)[..., 0] - self.first_action).clamp(min=0)
            index = (value - self.first_value).clamp(min=0, max=self.action.values - 1)
            settled, clause = step < known, said[:, :, step]
            name = torch.where(settled, clause[..., VARIABLE], after.gather(-1, place)[..., 0])
            value = torch.where(settled, clause[..., VALUE], law[action * self.action.values + index] + self.first_value)
            out[:, :, step, VARIABLE], out[:, :, step, VALUE] = name, value
        return torch.where(torch.arange(said.shape[2], device=said.device)[:, None] < known[..., None, None], said, out)
