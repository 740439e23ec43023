"""The dataclasses of a study, and the strict way to and from plain dicts: no YAML, so a bare machine can read a manifest.

Defaults here NEVER change: a field equal to its default is not hashed. Unknown keys are refused with the nearest valid one.
"""

import dataclasses
import difflib
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import models
import tasks
from harness import identity

SCHEDULES = ("linear", "constant")
PRECISIONS = ("fp32", "bf16")
OPTIMIZERS = ("adamw",)


@dataclass(frozen=True)
class Train:
    """How a replicate is trained: `batch` fresh strings a step, `warmup` linear steps, then a rate that would be 0 at step steps + 1."""

    rev: ClassVar[int] = 1

    steps: int = 10000
    batch: int = 16
    optimizer: str = "adamw"
    lr: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.1
    warmup: int = 50
    schedule: str = "linear"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name in ("steps", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"train.{name} = {getattr(self, name)} must be at least 1")
        if self.steps >= 2**31:
            raise ValueError(f"train.steps = {self.steps} must be below 2^31, where the steps of the keyed draws end")
        if not self.lr > 0:
            raise ValueError(f"train.lr = {self.lr} must be above 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"train.betas = {list(self.betas)} must be two numbers in [0, 1)")
        if self.weight_decay < 0:
            raise ValueError(f"train.weight_decay = {self.weight_decay} must be 0 or more")
        if self.warmup < 0:
            raise ValueError(f"train.warmup = {self.warmup} must be 0 or more steps")
        for name, known in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"train.{name} = {getattr(self, name)!r} must be {' or '.join(known)}")


@dataclass(frozen=True)
class EvaluationSet:
    """A fixed test distribution: the condition's task with the fields of `definition` changed, `sequences` strings of it.

    every: scored each so many steps and at the end; None: at the end only.
    """

    name: str
    definition: Mapping[str, Any]
    sequences: int
    every: int | None = None

    def task(self, task: Any) -> Any:
        """The task that this set samples for a condition of `task`."""
        described = identity.describe(task)
        described.pop("rev", None)
        wanted = build("task", {"name": name_of(task), **described, **self.definition})
        scored = wanted.evaluation()
        for option in self.definition:
            if getattr(scored, option) != getattr(wanted, option):
                raise ValueError(f"task.{option} is fixed to {getattr(scored, option)!r} in an evaluation set: leave it out")
        return scored

    def hash(self, task: Any, seed: int) -> str:
        scored = self.task(task)
        return identity.set_hash(identity.describe(scored, name_of(scored)), self.sequences, seed, self.every)


@dataclass(frozen=True)
class Condition:
    """One point of a study's sweep, and the (init_seed, data_seed) of its replicates in order."""

    name: str
    task: Any
    model: Any
    train: Train
    stages: tuple[Any, ...] = ()
    seeds: tuple[tuple[int, int], ...] = ()

    def config(self) -> dict[str, Any]:
        """Everything that is hashed but the seeds: {task, model, train, stages}, defaults left out."""
        config = {
            "task": identity.describe(self.task, name_of(self.task)),
            "model": identity.describe(self.model, name_of(self.model)),
            "train": identity.describe(self.train),
        }
        return config | {"stages": list(self.stages)} if self.stages else config


@dataclass(frozen=True)
class Study:
    """One question: conditions, their replicates, what is evaluated, and where it runs. `study.load` makes it from YAML."""

    name: str
    question: str
    conditions: tuple[Condition, ...]
    sets: tuple[EvaluationSet, ...]
    source: Mapping[str, Any] = field(default_factory=dict)
    scale: str = "paper"
    reductions: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    evaluate_seed: int = 0
    curve_every: int = 10
    keep: str = "none"
    pack_size: int | None = None  # None: auto
    device: str = "auto"
    executor: str = "ray"
    store: str = "runs"
    wandb: str = "offline"

    def set_hashes(self, condition: Condition) -> dict[str, str]:
        """{set name: hash} of what a replicate of `condition` is scored on."""
        return {each.name: each.hash(condition.task, self.evaluate_seed) for each in self.sets}


def build(section: str, node: Any) -> Any:
    """The dataclass of a `task`, `model` or `train` section from a plain mapping, types and values checked."""
    if not isinstance(node, Mapping):
        raise ValueError(
            f"{section} = {node!r} must be a mapping such as {{{'steps: 500' if section == 'train' else 'name: …'}}}"
        )
    values = dict(node)
    kind: type
    if section == "train":
        kind, title = Train, "the training"
    else:
        registry = tasks.REGISTRY if section == "task" else models.REGISTRY
        if "name" not in values:
            raise ValueError(f"{section}.name is missing: {' or '.join(registry)}")
        name = values.pop("name")
        if name not in registry:
            raise ValueError(f"{section}.name = {name!r} is unknown; there is {', '.join(registry)}{nearest(name, registry)}")
        kind, title = registry[name], f"the {name}"
    known = [each.name for each in dataclasses.fields(kind)]
    for option in values:
        if option not in known:
            hint = nearest(option, known, f"{section}.") or f"; options: {', '.join(known)}"
            raise ValueError(f"{section}.{option} is not an option of {title}{hint}")
    kinds = typing.get_type_hints(kind)
    return kind(**{option: identity.typed(kinds[option], value, f"{section}.{option}") for option, value in values.items()})


def name_of(config: Any) -> str:
    """The registered name of a task or model configuration."""
    for registry in (tasks.REGISTRY, models.REGISTRY):
        for name, kind in registry.items():
            if type(config) is kind:
                return name
    raise ValueError(f"{type(config).__name__} is neither a registered task nor a registered model: add its line to REGISTRY")


def to_dict(condition: Condition) -> dict[str, Any]:
    """{name, config}: what a manifest holds of a condition beside its seeds."""
    return {"name": condition.name, "config": condition.config()}


def from_dict(data: Mapping[str, Any], seeds: Iterable[tuple[int, int]] = ()) -> Condition:
    """The inverse of `to_dict`. ValueError where this code has another revision than the one that wrote it, or lacks a field."""
    config = dict(data["config"])
    refuse_unknown(config, ("task", "model", "train", "stages"), f"condition {data['name']}")
    built = {}
    for section in ("task", "model", "train"):
        node = dict(config[section])
        rev = node.pop("rev", 1)
        built[section] = build(section, node)
        if built[section].rev != rev:
            raise ValueError(
                f"condition {data['name']} has revision {rev} of {section} {node.get('name', '')} and this code has "
                f"{built[section].rev}: use the version of the code that wrote it"
            )
    return Condition(data["name"], **built, stages=tuple(config.get("stages", ())), seeds=tuple((i, d) for i, d in seeds))


def keep_tail(keep: str) -> int | None:
    """How many weights a condition keeps: None for all, 0 for none, n for `tail(n)`."""
    tail = re.fullmatch(r"tail\((\d+)\)", keep)
    if keep not in ("none", "all") and not (tail and int(tail[1]) > 0):
        raise ValueError(f"keep = {keep!r} must be none, all or tail(n) with n of at least 1")
    return int(tail[1]) if tail else {"none": 0, "all": None}[keep]


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """ValueError for the first key that is not known, with the nearest that is."""
    known = list(known)
    for name in given:
        if name not in known:
            raise ValueError(f"{where} has no key {name!r}{nearest(name, known) or '; keys: ' + ', '.join(known)}")


def nearest(word: Any, known: Iterable[str], prefix: str = "") -> str:
    """ "; did you mean …?", or nothing when nothing is near."""
    match = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean {prefix}{match[0]}?" if match else ""
