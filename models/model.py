"""The interface of a model: every member of its configuration that anything reads, with its default.

A configuration is a frozen dataclass that inherits from `Model`; what it makes is an `nn.Module` that keeps it as `config` and holds the
weights of R replicates. Shapes: R replicates, B strings, T positions, V classes.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor, nn

from models.draws import Draw

Blocks = Sequence[Tensor] | None  # positions whose logits are wanted, [R, B, K] each; None: all positions
Attend = Callable[[int, Tensor], None]  # is called with a layer's number and its attention weights, [R, B, H, T, T]


@runtime_checkable
class Model(Protocol):
    """The options of an architecture."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # a dataclass: its fields are what a key hashes

    vectors: ClassVar[tuple[str, ...]] = ()
    """Options that may differ between the replicates of a pack, since no parameter's shape depends on them."""

    slots: ClassVar[int] = 1
    """Tokens that it reads at each position; a task must have the same number."""

    attends: ClassVar[bool] = False
    """Whether it has attention and calls `attend`."""

    hides: ClassVar[bool] = False
    """Whether its forward takes `hidden`, bool [R, B, T]: tokens that no position attends to."""

    ordered: ClassVar[bool] = True
    """Whether all its operations can run on a GPU with sums in a fixed order."""

    @property
    def rev(self) -> int:
        """Revision of what the model means. It is hashed into every key unless it is 1."""
        return 1

    @property
    def causal(self) -> bool:
        """Whether no position reads a later one."""
        return True

    @property
    def width(self) -> int:
        """Numbers that a layer holds for each position, from which the strings that fit into memory are estimated; 0 where unknown."""
        return 0

    @abstractmethod
    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> nn.Module:
        """Make a pack of draw.replicates for strings of `length` positions, with `outputs` classes (None: as many as tokens).

        It is called as model(tokens [R, B, T], needed=None, noise=None, attend=None) → logits [R, B, T, V]; with `needed` (`Blocks`),
        the logits of these positions alone, in that order.
        """


def config_of(model: object) -> Model | None:
    """The configuration that made a pack; None for any other module, such as a library's model."""
    config = getattr(model, "config", None)
    return config if isinstance(config, Model) else None


def refuse_below(config: Model, **least: int) -> None:
    """Raise ValueError for an option below its least value."""
    for name, smallest in least.items():
        if getattr(config, name) < smallest:
            raise ValueError(f"model.{name} = {getattr(config, name)} must be at least {smallest}")


def refuse_unlisted(config: Model, choices: Mapping[str, Collection[str]]) -> None:
    """Raise ValueError for an option that is none of its choices."""
    for name, values in choices.items():
        if getattr(config, name) not in values:
            raise ValueError(f"model.{name} = {getattr(config, name)!r} must be one of {', '.join(values)}")


def refuse_blind(config: Model) -> None:
    """Raise ValueError for a model whose answers depend on later tokens."""
    if not config.causal:
        raise ValueError(
            "a model with model.causal = false reads what comes after a word, so it can't continue a string of its own: leave "
            "model.causal out"
        )
