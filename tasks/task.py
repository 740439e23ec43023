"""The interface of a task: every member that anything reads, with its default.

A task is a frozen dataclass that inherits from `Task` and gives at least `metrics`, `error`, `vocabulary`, a field `length`, `sample` and
`wrong`. Shapes: R replicates, B strings, T positions, V classes.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from tasks.batch import Batch, View
from tasks.draws import Draw

Forward = Callable[[Tensor, Sequence[Tensor] | None], Tensor]  # (inputs, blocks of positions) → logits, as a model is called


class Task(Protocol):
    """A distribution of strings, the answers that are wanted, and which answers count as errors."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # a dataclass: its fields are what a key hashes

    metrics: ClassVar[tuple[str, ...]]
    """Names of the kinds of errors that `wrong` tells apart. The first is the one that is reported."""

    slots: ClassVar[int] = 1
    """Tokens a position. Above 1, inputs and targets have that axis at the end; it goes with models of the same `slots`."""

    vectors: ClassVar[tuple[str, ...]] = ()
    """Fields that may differ between the replicates of a pack, since no tensor's shape depends on them."""

    classifies: ClassVar[bool] = False
    """Whether a string has one answer alone: a class, wanted at the last position with weight 1."""

    soft: ClassVar[bool] = False
    """Whether targets are laws of the classes, float [R, B, T, V], or [R, B, 1, V] where one position alone is scored."""

    views: ClassVar[bool] = False
    """Whether the task has a `view`, which `train.consistency` asks for."""

    length: int
    """Length of a string, as the task counts it."""

    @property
    def rev(self) -> int:
        """Revision of what the task means. It is hashed into every key unless it is 1."""
        return 1

    @property
    @abstractmethod
    def error(self) -> str:
        """What counts as an error, as a noun phrase: "a position where …". Reports then write "2 % of the positions"."""

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """Number of input tokens."""

    @property
    def outputs(self) -> int:
        """Number of classes, V."""
        return self.vocabulary

    @property
    def tokens(self) -> int:
        """Positions that a model reads, T."""
        return self.length

    @property
    def hide_selected_from_attention(self) -> bool:
        """Whether predicted positions of a string are hidden from attention, which needs a model with `hides`."""
        return False

    @property
    def answers_ahead(self) -> bool:
        """Whether the string holds an answer behind its position, as it does the next token, so that the model must be causal."""
        return False

    @property
    def fed_back(self) -> bool:
        """Whether a model is scored on its own answers fed back, which needs a causal model."""
        return False

    @property
    def passes(self) -> int:
        """Forward passes that scoring a string takes at most."""
        return 1

    def forced(self) -> "Task":
        """The same strings scored in one pass, each answer after the true ones before it."""
        return self

    def evaluation(self) -> "Task":
        """The task whose strings an evaluation set holds."""
        return self

    def scored_positions(self) -> int | None:
        """K, the number of positions that the loss of a string needs (a high quantile); None for every position."""
        return None

    @abstractmethod
    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings for each of draw's R replicates."""

    @abstractmethod
    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """For each of `metrics`, in their order, which answers are errors: logits [..., V] and targets [...] to bool [...]."""

    def view(self, draw: Draw, inputs: Tensor) -> View:
        """Other strings whose answers are those of these inputs [R, B, T], such as the same ones after an irrelevant prefix.

        They must not depend on the fields that `vectors` names.
        """
        raise ValueError(
            f"{type(self).__name__} has no view of {draw.replicates} × {inputs.shape[1]} strings: its `views` is false"
        )

    def references(self, batch: Batch) -> dict[str, Tensor]:
        """The answers of known estimators by name: probabilities [A, R, B, T or 1, V] of A variants, such as smoothings.

        Every evaluation measures how far the model is from the nearest variant of each.
        """
        return {}

    def baselines(self, batch: Batch) -> dict[str, Tensor]:
        """Losses [R, B, T or 1] by name, with which a model's loss is compared. They are measured once, at the end."""
        return {}

    def answers(self, forward: Forward, inputs: Tensor, blocks: Sequence[Tensor] | None) -> Tensor:
        """Logits [R, B, K, V] of an evaluation at the scored positions; by default one forward pass."""
        return forward(inputs, blocks)


class Classification(Task):
    """A task with one answer a string: a class, wanted at the last position."""

    metrics: ClassVar[tuple[str, ...]] = ("read",)  # the name that reports and claims are made from
    classifies: ClassVar[bool] = True

    def scored_positions(self) -> int:
        """One: the last position."""
        return 1

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """read: the largest logit is another class's."""
        return {"read": logits.argmax(-1) != targets}


@runtime_checkable
class Continued(Task, Protocol):
    """A task whose prompts a model answers by continuing them, so that its own answers can be the labels of a later stage."""

    def sentences(self, draw: Draw, batch: int) -> tuple[Tensor, Tensor]:
        """Prompts [R, B, P, …] and their true answers [R, B, length, …]."""

    def batch(self, prompt: Tensor, answers: Tensor) -> Batch:
        """The training strings of prompts that are answered by these answers, true ones or a model's."""

    def draft(self, prompt: Tensor, said: Tensor, known: Tensor) -> Tensor:
        """A guess at the whole answers, of which the first `known` [R, B] are `said`: it changes the cost and nothing else."""


def refuse_below(task: Task, **least: int) -> None:
    """Raise ValueError for an option below its least value."""
    for name, smallest in least.items():
        if getattr(task, name) < smallest:
            raise ValueError(f"task.{name} = {getattr(task, name)} must be at least {smallest}")


def refuse_unlisted(task: Task, choices: Mapping[str, Collection[str]]) -> None:
    """Raise ValueError for an option that is none of its choices."""
    for name, values in choices.items():
        if getattr(task, name) not in values:
            raise ValueError(f"task.{name} = {getattr(task, name)!r} must be {' or '.join(values)}")
