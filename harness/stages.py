"""Replicates that are chains: what a stage takes from the stage before it, as configurations and keys. No weights are touched here.

    stages: [{task: {length: 10}, labels: previous, init: previous}, {task: {length: 20}}]

The first stage is the condition itself. Every stage is a `Condition` of its own, whose `stages` are those before it, as
{task, train, labels, init}, and last what it takes itself; its key follows from its parent's (`identity.key`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness import identity
from harness.configuration import Condition, from_dict, name_of, nearest, refuse_unknown
from harness.draw import Draw
from models.custom import Custom
from tasks.batch import tokens_of
from tasks.continuation import refuse_blind

KEYS = ("task", "train", "labels", "init")
_CHOICES = {"labels": ("task", "previous"), "init": ("fresh", "previous")}


@dataclass(frozen=True)
class Link:
    """labels: what a training string is answered by, the task itself or the greedy answers of the stage before; init: what the weights
    begin as, drawn from the replicate's init seed or those that the stage before ended with."""

    labels: str = "task"
    init: str = "fresh"


def link_of(condition: Condition) -> Link | None:
    """What a condition takes from the stage before it; None for a first stage."""
    return Link(**condition.stages[-1]) if condition.stages else None


def link(node: Mapping[str, Any], where: str) -> Link:
    """The link of one entry of `stages`. ValueError for unknown words, and where nothing is taken from the stage before."""
    refuse_unknown(node, KEYS, where)
    for option, known in _CHOICES.items():
        if option in node and node[option] not in known:
            raise ValueError(f"{where}.{option} = {node[option]!r} must be {' or '.join(known)}{nearest(node[option], known)}")
    found = Link(**{option: node[option] for option in _CHOICES if option in node})
    if "previous" not in (found.labels, found.init):
        raise ValueError(
            f"{where} takes nothing from the stage before it: write labels: previous, init: previous or both, or make it a condition"
        )
    return found


def after(parent: Condition, given: Link, task: Any, train: Any, where: str) -> Condition:
    """The stage that follows `parent`. ValueError where the parent's weights or words are of no use to it."""
    earlier: list[Any] = [*parent.stages[:-1], _described(parent)]
    condition = Condition(parent.name, task, parent.model, train, (*earlier, identity.describe(given)))
    if isinstance(parent.model, Custom):
        raise ValueError(
            f"{where}: the model {parent.model.path} is a module of your own, and stages need a model of this project"
        )
    if name_of(task) != name_of(parent.task):
        raise ValueError(f"{where}.task.name = {name_of(task)!r} is another task than {name_of(parent.task)}: a chain has one")
    if given.labels == "previous" and not hasattr(task, "draft"):
        raise ValueError(
            f"{where}.labels = previous needs a task with answers that are fed back, such as lego, and {name_of(task)} has none"
        )
    before, now = (_model(each) for each in (parent, condition))
    if given.labels == "previous":
        refuse_blind(now)
    shapes = [{name: tuple(each.shape[1:]) for name, each in model.named_parameters()} for model in (before, now)]
    other = next((name for name in sorted({*shapes[0], *shapes[1]}) if shapes[0].get(name) != shapes[1].get(name)), None)
    if other is not None:
        was, is_now = (list(each[other]) if other in each else "absent" for each in shapes)
        raise ValueError(
            f"{where}: the model's {other} is {is_now} and was {was} in the stage before, so its weights don't fit: "
            "choose a model whose parameters don't depend on the length, and the same vocabulary"
        )
    return condition


def parent_of(condition: Condition) -> Condition | None:
    """The stage before, with the same name and seeds; None for a first stage."""
    if not condition.stages:
        return None
    *earlier, last = condition.stages[:-1]
    config: dict[str, Any] = {"task": last["task"], "model": condition.config()["model"], "train": last["train"]}
    if earlier:
        own = {option: last[option] for option in _CHOICES if option in last}
        config["stages"] = [*earlier, own]
    return from_dict({"name": condition.name, "config": config}, condition.seeds)


def keys(condition: Condition) -> list[tuple[str, str | None]]:
    """(key, parent's key) of every replicate of a condition, in the order of its seeds."""
    config, parent = condition.config(), parent_of(condition)
    above: Sequence[str | None] = [None] * len(condition.seeds) if parent is None else [key for key, _ in keys(parent)]
    return [
        (identity.key(config, condition.stage, init, data, before), before)
        for (init, data), before in zip(condition.seeds, above, strict=True)
    ]


def parents(conditions: Sequence[Condition]) -> frozenset[str]:
    """Canonical configurations of the conditions that others follow: their weights are kept."""
    found = (parent_of(condition) for condition in conditions)
    return frozenset(identity.canonical(parent.config()) for parent in found if parent is not None)


def _described(condition: Condition) -> dict[str, Any]:
    """An earlier stage as a later one's `stages` holds it."""
    own = dict(condition.stages[-1]) if condition.stages else {}
    config = condition.config()
    return {"task": config["task"], "train": config["train"], **own}


def _model(condition: Condition) -> torch.nn.Module:
    task = condition.task
    outputs = getattr(task, "outputs", task.vocabulary)
    return condition.model.make(Draw(torch.zeros(1, dtype=torch.int64), "init"), task.vocabulary, tokens_of(task), outputs)
