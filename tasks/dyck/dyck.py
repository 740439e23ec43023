"""Dyck languages of bounded depth: the next bracket of strings with several bracket types.

Li, "Mathematical foundations of data-training-inference interaction in language modeling" (CMU-ML-25-120), section 2.2; first in Wen et
al. 2023, "Transformers are uninterpretable with myopic methods". Bracket 2t opens type t, 2t + 1 closes it; with k types, 2k is the end of
a string and 2k + 1 its start. A model reads the start and the brackets, and answers with the token after each:

    Dyck(types=2, depth=2, length=6)      reads  5 0 2 3 1 4    answers  0 2 3 1 4 ·
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from tasks.batch import Batch, View
from tasks.draws import Draw
from tasks.dyck.law import Law, depths
from tasks.task import Task

# sites of the draws of a view; part of every committed result
_PAIRS, _KINDS = range(2)
ENOUGH = 0.8  # of the probability of closing brackets, that the authors' code asks for
_SCORED = ("every", "closing", "stack")


@dataclass(frozen=True)
class Dyck(Task):
    """Strings of k bracket types, nested at most D deep, and the token after each of theirs.

    types: k. depth: D. q: the probability that a bracket opens where it may open or close. complete: whole strings, which end with
    probability ½ whenever nothing is open; else the first `length` brackets of an endless string. length: most tokens of a string, the
    end included.
    scored: every (in training) | closing (brackets that close) | stack (every place where a bracket is open; the answer is the one that
    closes it). first: the first token that is scored, counted from 1. sure: an answer is also wrong unless the right closing bracket has
    more than this part of the probability of all closing brackets; the authors' code asks for 0.8.
    """

    metrics: ClassVar[tuple[str, ...]] = ("close", "mass")
    error: ClassVar[str] = "a closing bracket whose type the model's most probable closing bracket does not have"
    views: ClassVar[bool] = True
    vectors: ClassVar[tuple[str, ...]] = ("q", "complete", "scored", "first", "sure")  # may differ within a pack

    types: int = 2
    depth: int = 4
    length: int = 28
    q: float = 0.5
    complete: bool = True
    scored: str = "every"
    first: int = 1
    sure: float = 0.0

    def __post_init__(self) -> None:
        if self.types < 2:
            raise ValueError(f"task.types = {self.types} must be at least 2: of one type every closing bracket is right")
        if self.depth < 1:
            raise ValueError(f"task.depth = {self.depth} must be at least 1")
        if self.types**self.depth > 2**62:
            raise ValueError(f"task.types = {self.types} with task.depth = {self.depth} makes more than 2^62 stacks")
        if not 0 < self.q < 1:
            raise ValueError(f"task.q = {self.q:g} must be a probability above 0 and below 1")
        if self.length < 3:
            raise ValueError(f"task.length = {self.length} must be at least 3, two brackets and the end")
        if self.scored not in _SCORED:
            raise ValueError(f"task.scored = {self.scored!r} must be {' or '.join(_SCORED)}")
        if not 1 <= self.first < self.length:
            raise ValueError(f"task.first = {self.first} must be from 1 to {self.length - 1}, below task.length")
        if not 0 <= self.sure < 1:
            raise ValueError(f"task.sure = {self.sure:g} must be at least 0 and below 1")

    @property
    def strings(self) -> "Dyck":
        """The task whose strings a model reads: its own."""
        return self

    @property
    def vocabulary(self) -> int:
        return 2 * self.types + 2

    @property
    def outputs(self) -> int:
        """The brackets and the end."""
        return 2 * self.types + 1

    @property
    def end(self) -> int:
        return 2 * self.types

    @property
    def start(self) -> int:
        return 2 * self.types + 1

    @property
    def answers_ahead(self) -> bool:
        """What follows a position tells of its answer, the next token."""
        return True

    @property
    def law(self) -> Law:
        """The exact law of the brackets of a string."""
        length, ending = (self.length - 1, "stop") if self.complete else (self.length, "any")
        return Law((1 / self.types,) * self.types, self.depth, length, self.q, ending)

    def evaluation(self) -> "Dyck":
        """The same strings, scored at their closing brackets, or with `scored` = stack wherever a bracket is open."""
        return replace(self, scored="closing") if self.scored == "every" else self

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets int64 [R, B, T], weights [R, B, T].

        about: depth [R, B, T], the brackets that are open before the predicted token.
        """
        device, law = draw.seeds.device, self.law
        brackets = torch.from_numpy(law.sample(draw.words((batch, law.length)).cpu().numpy())).to(device)
        targets = pad(brackets, (0, self.length - law.length), value=self.end)
        inputs = pad(targets[..., :-1], (1, 0), value=self.start)
        depth = torch.from_numpy(depths(inputs.cpu().numpy(), self.types)).to(device)
        scored = inputs != self.end
        if self.scored == "closing":
            scored &= (targets < self.end) & (targets % 2 == 1)
        elif self.scored == "stack":
            scored &= depth > 0
            targets = torch.where(scored, closers(inputs, depth, self.depth), self.end)
        scored[..., : self.first - 1] = False
        return Batch(inputs, targets, scored.to(torch.float32), {"depth": depth})

    def view(self, draw: Draw, inputs: Tensor) -> View:
        """The strings after a prefix of 1 … depth nested brackets of random types, all closed, which changes no answer (section 2.2.3.3).

        The start of the string is not compared: an empty string can't end there, while it may end after the prefix.
        """
        replicates, batch, length = inputs.shape
        most = 2 * self.depth
        pairs = draw.integers(self.depth, (batch,), _PAIRS)[..., None] + 1  # [R, B, 1]
        kinds = draw.integers(self.types, (batch, self.depth), _KINDS)
        place = torch.arange(length + most, device=inputs.device).expand(replicates, batch, -1)
        level = torch.where(place <= pairs, place, 2 * pairs + 1 - place).clamp(
            1, self.depth
        )  # of the bracket before the string
        prefix = 2 * kinds.gather(-1, level - 1) + (place > pairs)
        behind = inputs.gather(-1, (place - 2 * pairs).clamp(0, length - 1))
        behind = torch.where(place - 2 * pairs < length, behind, self.end)
        shown = torch.where(place <= 2 * pairs, prefix, behind)
        shown[..., 0] = self.start
        compared = inputs < self.end
        return View(shown, torch.arange(length, device=inputs.device) + 2 * pairs, compared.to(torch.float32))

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong; logits [..., V], targets [...].

        close: the most probable closing bracket is of another type, or the right one is not `sure`. mass: the right one has at most 0.8 of
        the probability of all closing brackets, as in the authors' code.
        """
        closing = logits[..., 1 : self.end : 2]
        kind = (targets // 2).clamp(max=self.types - 1)  # what is not scored may be the end
        share = closing.softmax(-1).gather(-1, kind[..., None].expand(*closing.shape[:-1], 1))[..., 0]
        return {"close": (closing.argmax(-1) != kind) | (share <= self.sure), "mass": share <= ENOUGH}


def last_open(inputs: Tensor, depth: Tensor, deepest: int) -> Tensor:
    """The place of the innermost open bracket after each token, int64 [..., T], -1 where none is open.

    inputs, depth int64 [..., T]: the tokens, and how many brackets are open after each. deepest: the largest depth.
    """
    place = torch.arange(inputs.shape[-1], device=inputs.device).expand_as(inputs)
    before = pad(depth[..., :-1], (1, 0))
    innermost = torch.full_like(inputs, -1)
    for level in range(1, deepest + 1):
        opened = torch.where((depth == level) & (before == level - 1), place, -1).cummax(-1).values
        innermost = torch.where(depth == level, opened, innermost)
    return innermost


def closers(inputs: Tensor, depth: Tensor, deepest: int) -> Tensor:
    """The bracket that closes the innermost open one after each token, int64 [..., T]; 0 where none is open."""
    place = last_open(inputs, depth, deepest)
    return torch.where(place >= 0, inputs.gather(-1, place.clamp(min=0)) + 1, 0)
