"""Tokens that nobody attends to: what a model is told of them, and which models can be."""

from torch import Tensor, nn

from models.model import Model, config_of
from results.errors import StudyError
from tasks.task import Task


def hiding(model: nn.Module, hidden: Tensor | None) -> dict[str, Tensor]:
    """Keyword arguments of a forward pass over strings whose `hidden` tokens, bool [R, B, T], nobody attends to.

    Empty where there are none. Also for a model without such a mask: padding stands behind the string, where a model that reads from
    left to right does not see it, and one of a user's own sees the token. What else can be hidden is refused (`refuse_hiding`).
    """
    return {"hidden": hidden} if hidden is not None and (config := config_of(model)) is not None and config.hides else {}


def refuse_hiding(task: Task, model: Model) -> None:
    """ValueError for a task that hides tokens within its strings from a model that has no mask of keys."""
    if task.hide_selected_from_attention and not model.hides:
        raise StudyError(
            f"task.hide_selected_from_attention = true needs a model that can leave tokens out of attention, and {type(model).__name__} "
            "can't: write model.name = transformer, or leave the option out"
        )
