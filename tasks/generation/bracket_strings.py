"""Bracket strings of one length: the language in which Li 2025 (section 3.2.1) lets a model generate with a verifier.

Brackets are 0 "[", 1 "]", 2 "(", 3 ")"; 4 is the end and 5 the start. A model reads the start and the brackets, and answers with the
token after each:

    BracketStrings(length=4)      reads  5 0 2 3 1    answers  0 2 3 1 4
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from tasks.batch import Batch
from tasks.draws import WORD, Draw
from tasks.generation.processes import Process, brackets
from tasks.task import Task

END, START = 4, 5
_MOST = 2**21  # most probabilities of next brackets in the table of a law


@dataclass(frozen=True)
class BracketStrings(Task):
    """Strings of `length` brackets, all closed, and the token after each of theirs.

    depth: most brackets that are open at once. opens: the probability that a bracket opens where it may open or close; it closes where the
    string could not be completed otherwise. first_type: the probability that an opening bracket is "[".
    scored: every (in training) | closing (in evaluation sets, the brackets that close).
    """

    metrics: ClassVar[tuple[str, ...]] = ("close",)
    error: ClassVar[str] = "a closing bracket whose type the model's most probable closing bracket does not have"

    length: int = 32
    depth: int = 12
    opens: float = 0.5
    first_type: float = 0.2
    scored: str = "every"

    def __post_init__(self) -> None:
        if self.length < 2 or self.length % 2:
            raise ValueError(f"task.length = {self.length} must be even and at least 2, since brackets come in pairs")
        if self.depth < 1:
            raise ValueError(f"task.depth = {self.depth} must be at least 1")
        for name in ("opens", "first_type"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"task.{name} = {getattr(self, name):g} must be from 0 to 1")
        if self.depth > 20 or self.length * 4 * 2 ** (self.depth + 1) > _MOST:
            raise ValueError(f"task.depth = {self.depth} with task.length = {self.length} makes too many stacks: choose less")
        if self.scored not in ("every", "closing"):
            raise ValueError(f"task.scored = {self.scored!r} must be every or closing")

    @property
    def vocabulary(self) -> int:
        return 6

    @property
    def outputs(self) -> int:
        """The brackets and the end."""
        return 5

    @property
    def tokens(self) -> int:
        return self.length + 1

    @property
    def answers_ahead(self) -> bool:
        """An answer is the next token."""
        return True

    @property
    def law(self) -> Process:
        """The process that writes the strings, without errors."""
        return _written(self.length, self.depth, self.opens, self.first_type)

    def evaluation(self) -> "BracketStrings":
        return replace(self, scored="closing")

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets int64 [R, B, length + 1], weights [R, B, length + 1]."""
        strings = self.strings(draw, batch)
        targets = pad(strings, (0, 1), value=END)
        inputs = pad(strings, (1, 0), value=START)
        scored = torch.ones_like(targets, dtype=torch.bool)
        if self.scored == "closing":
            scored = (targets < END) & (targets % 2 == 1)
        return Batch(inputs, targets, scored.to(torch.float32), {})

    def strings(self, draw: Draw, batch: int) -> Tensor:
        """The brackets alone, int64 [R, B, length]; bracket i is decided by word i of its string."""
        process = self.law
        uniform = (draw.words((batch, self.length)).cpu().to(torch.float64) + 0.5) / WORD
        bounds = process.law[0].cumsum(-1)[..., :-1]
        state = torch.zeros(uniform.shape[:-1], dtype=torch.int64)
        strings = torch.empty(uniform.shape, dtype=torch.int64)
        for place in range(self.length):
            token = (uniform[..., place, None] >= bounds[place, state]).sum(-1)
            strings[..., place], state = token, process.successor[state, token]
        return strings.to(draw.seeds.device)

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"close": logits[..., 1:END:2].argmax(-1) != (targets // 2).clamp(max=1)}


@lru_cache(maxsize=8)
def _written(length: int, depth: int, opens: float, first: float) -> Process:
    return brackets(length, depth, opens, first, 0.0)
