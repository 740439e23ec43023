"""The dataclasses of a study, and their strict conversion to and from plain dicts: no YAML, so a bare machine can read a manifest.

Defaults here NEVER change: a field equal to its default is not hashed. Unknown keys are refused with the nearest valid one.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import models
import tasks
from harness.study import custom_tasks, identity
from harness.study.experiment import Experiment, experiment_of
from harness.study.foreign_code import ForeignCode, code_of_modules
from harness.study.limits import refuse_large_options, refuse_large_training
from harness.study.training_options import Train
from harness.training.key_mask import refuse_hiding
from models.custom import custom
from models.model import Model
from results.errors import OTHER_NAMES, StudyError, nearest, settings_errors
from results.plain_values import Options, Tree, Value
from results.store.manifest import label
from results.store.manifest_fields import SetFields
from tasks.task import Task


@dataclass(frozen=True)
class Watch:
    """What is measured of the weights every `every` steps and at the end: norms of parameters and of their gradients.

    sequences: strings of each replicate's own fixed sample, on which the gradient is measured too; 0 for none. lags: the attention of each
    head to the tokens 0 … lags before its own is measured, on `strings` strings of the sample; -1 for none. It changes no training, so it
    is not hashed.
    """

    every: int = 100
    sequences: int = 0
    lags: int = -1
    strings: int = 16

    def __post_init__(self) -> None:
        for name, least in {"every": 1, "sequences": 0, "lags": -1, "strings": 1}.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise StudyError(f"evaluate.watch.{name} = {value!r} must be a whole number of at least {least}")
        refuse_large_options("evaluate.watch", vars(self))


@dataclass(frozen=True)
class EvaluationSet:
    """A fixed test distribution: the condition's task with the fields of `definition` changed, `sequences` strings of it.

    every: steps between two scorings, the last of which is at the end; None: at the end only.
    """

    name: str
    definition: Options
    sequences: int
    every: int | None = None

    def refuse_unknown_options(self, task: Task, where: str, others: tuple[str, ...]) -> None:
        """StudyError for a field of the definition that `task` lacks. where: stands before it; others: what a set has beside those."""
        options = [*(declared.name for declared in dataclasses.fields(task)), *others]
        for option in self.definition:
            if option not in options:
                hint = nearest(option, options, where) or f"; options: {', '.join(options)}"
                raise StudyError(f"{where}{option} is not an option of a set of the {name_of(task)}{hint}")

    def task(self, task: Task) -> Task:
        """The task that this set samples for a condition of `task`."""
        described = identity.describe(task)
        described.pop("rev", None)
        wanted = build("task", {"name": name_of(task), **described, **self.definition})
        with settings_errors():
            scored = wanted.evaluation()
        for option in self.definition:
            if getattr(scored, option) != getattr(wanted, option):
                raise StudyError(f"task.{option} is fixed to {getattr(scored, option)!r} in an evaluation set: leave it out")
        if scored.vocabulary > task.vocabulary:
            raise StudyError(
                f"its strings have {scored.vocabulary} tokens in the vocabulary and those of the training {task.vocabulary}: "
                f"set {' and '.join(self.definition)} so that there are no more"
            )
        if scored.outputs > task.outputs or (task.soft and scored.outputs != task.outputs):
            raise StudyError(
                f"its answers have {scored.outputs} classes and those of the training {task.outputs}: "
                f"set {' and '.join(self.definition)} so that there are {'as many' if task.soft else 'no more'}"
            )
        return scored

    def hash(self, task: Task, seed: int) -> str:
        scored = self.task(task)
        return identity.set_hash(identity.describe(scored, name_of(scored)), self.sequences, seed, self.every)


@dataclass(frozen=True)
class Metric:
    """A number that an experiment returns. better: lower | higher, "" where the study does not say, which is read as lower; kind: number |
    flag, "" before a replicate has returned one."""

    better: str = ""
    kind: str = ""


_NOTHING: Any = None  # the task, model and training of an experiment


@dataclass(frozen=True)
class Condition:
    """One point of a study's sweep, and the (init_seed, data_seed) of its replicates in order.

    experiment: what its replicates do where nothing is trained; task, model and train are then None. code: the digest of the person's own
    code that takes part, None where there is none.
    """

    name: str
    task: Task
    model: Model
    train: Train
    stages: tuple[Any, ...] = ()
    seeds: tuple[tuple[int, int], ...] = ()
    experiment: Experiment | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        if self.experiment is not None:
            return
        tokens, reads = self.task.slots, self.model.slots
        if tokens != reads:
            fitting = [name for name, kind in models.REGISTRY.items() if kind.slots == tokens]
            raise StudyError(
                f"model.name = {name_of(self.model)!r} reads {reads} token{'s'[: reads > 1]} a position and the task "
                f"{name_of(self.task)} has {tokens}: choose {', '.join(fitting)}"
            )
        if self.train.sharpen is not None and not self.model.attends:
            raise StudyError(
                f"train.sharpen is a penalty on attention and the {name_of(self.model)} has none: leave it out, or write null"
            )
        sharpened, layers = self.train.sharpen and self.train.sharpen.layers, vars(self.model).get("layers")
        if sharpened and type(layers) is int and max(sharpened) >= layers:
            raise StudyError(
                f"train.sharpen.layers = {list(sharpened)} names a layer that the model lacks: "
                f"with model.layers = {layers} the last one is {layers - 1}"
            )
        if self.train.consistency is not None and not self.task.views:
            raise StudyError(f"train.consistency compares a task's views and the {name_of(self.task)} has none: leave it out")
        refuse_unfit_model(self.task, self.model)
        task = self.task
        refuse_large_training(task.tokens, task.vocabulary, task.outputs, self.train.batch, vars(self.model))

    @property
    def stage(self) -> int:
        """The number of stages before it (`harness.study.stages`)."""
        return max(0, len(self.stages) - 1)

    @property
    def label(self) -> str:
        """The name as people read it: after the first stage, with the stage."""
        return label(self.name, self.stage)

    def config(self) -> Tree:
        """Everything that is hashed but the seeds: {task, model, train, stages} or {experiment}, and code; defaults left out."""
        code = {} if self.code is None else {"code": self.code}
        if self.experiment is not None:
            return {"experiment": self.experiment.config(), **code}
        config = {
            "task": identity.describe(self.task, name_of(self.task)),
            "model": identity.describe(self.model, name_of(self.model)),
            "train": identity.describe(self.train),
            **code,
        }
        return config | {"stages": list(self.stages)} if self.stages else config

    @property
    def steps(self) -> int:
        """Training steps; 1 for an experiment."""
        return 1 if self.experiment is not None else self.train.steps


def refuse_unfit_model(task: Task, model: Model) -> None:
    """ValueError for a task whose strings a model can't read as they are meant: tokens hidden that it sees, or answers ahead."""
    refuse_hiding(task, model)
    if task.answers_ahead and not model.causal:
        raise StudyError(
            f"model.causal = false would read the answers of {name_of(task)} ahead, which stand in its strings: leave it out"
        )


def experiment_condition(name: str, experiment: Experiment, seeds: Iterable[tuple[int, int]] = ()) -> Condition:
    """The condition of an experiment, with the digest of a person's own code."""
    code = experiment.code()
    digest = None if code is None else code.digest
    return Condition(name, _NOTHING, _NOTHING, _NOTHING, seeds=tuple(seeds), experiment=experiment, code=digest)


def own_code(task: Task, model: Model, running: bool = False) -> ForeignCode | None:
    """The modules that a task and a model of a person's own come from; None where both are built in.

    A worker that has not run such a model yet imports its module here.
    """
    paths = {section: path for section, path in (("task", name_of(task)), ("model", name_of(model))) if ":" in path}
    with settings_errors():
        modules = {custom.module_of(path, section).__name__ for section, path in paths.items()}
    return code_of_modules(modules, running=running) if modules else None


def own_digest(task: Task, model: Model) -> str | None:
    """The digest of `own_code`."""
    code = own_code(task, model)
    return None if code is None else code.digest


@dataclass(frozen=True)
class Study:
    """One question: conditions, their replicates, what is evaluated, and where it runs. `study.load` makes it from YAML."""

    name: str
    question: str
    conditions: tuple[Condition, ...]
    sets: tuple[EvaluationSet, ...]
    source: Options = field(default_factory=dict)
    scale: str = "paper"
    reductions: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    evaluate_seed: int = 0
    curve_every: int = 10
    watch: Watch | None = None
    keep: str = "none"
    pack_size: int | None = None  # None: auto
    compile: bool = False  # pack.compile: the model through torch.compile
    device: str = "auto"
    executor: str = "auto"  # auto | ray | local; auto: this process where the work is small, else Ray
    leases: bool = True  # whether drivers of one study divide its packs by hints in the store
    store: str = "runs"
    wandb: str = "offline"
    tensorboard: str = ""  # folder of event files of what W&B shows; "": none. Not in the manifest
    new_code: bool = False  # whether a condition is run again whose code has changed, instead of refused
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # of experiments, the first of which is reported first
    wandb_runs: str = "study"  # what has W&B runs of its own: study, condition or replicate (results.dashboards.dashboard_rows)
    claims: Options = field(default_factory=dict)  # {id: {value: …}} of `results.claims`; not hashed
    slots: tuple[Any, ...] = ()  # `kinds.Kind`s of device slots; (): all GPUs, or all cores where there is none. Not hashed
    adaptive: Options | None = None  # fields of `results.statistics.adaptive_rules.Rule`; conditions have its maximum of seeds

    @property
    def is_experimental(self) -> bool:
        """Whether its replicates train nothing."""
        return any(condition.experiment is not None for condition in self.conditions)

    def set_hashes(self, condition: Condition) -> dict[str, str]:
        """{set name: hash} of what a replicate of `condition` is scored on; {} for an experiment."""
        return {scored.name: scored.hash(condition.task, self.evaluate_seed) for scored in self.sets}

    def set_entries(self) -> dict[str, SetFields]:
        """{set name: its definition as a manifest has it}."""
        return {
            scored.name: {
                "definition": dict(scored.definition),
                "sequences": scored.sequences,
                "every": scored.every,
                "seed": self.evaluate_seed,
            }
            for scored in self.sets
        }


def build(section: str, node: Value) -> Any:
    """The dataclass of a `task`, `model` or `train` section from a plain mapping, types and values checked."""
    if not isinstance(node, Mapping):
        raise StudyError(
            f"{section} = {node!r} must be a mapping such as {{{'steps: 500' if section == 'train' else 'name: …'}}}"
        )
    values = dict(node)
    kind: type
    if section == "train":
        kind, title = Train, "the training"
    else:
        registry = tasks.REGISTRY if section == "task" else models.REGISTRY
        if "name" not in values:
            raise StudyError(f"{section}.name is missing: {' or '.join(registry)}")
        name = values.pop("name")
        if not isinstance(name, str):
            raise StudyError(f"{section}.name = {name!r} must be a word; there is {', '.join(registry)}")
        if section == "model" and ":" in str(name):
            refuse_large_options(section, values)
            with settings_errors():
                return custom.configure(str(name), **values)
        if section == "task" and ":" in str(name):
            return _own_task(str(name), values)
        if name not in registry:
            module, dot, own = name.rpartition(".")
            module = module or "MODULE"
            hint = "" if dot else nearest(name, registry)
            hint = hint or f"; for a class of your own write {module}:{own}, and pass --allow-import {module}"
            raise StudyError(f"{section}.name = {name!r} is unknown; there is {', '.join(registry)}{hint}")
        kind, title = registry[name], f"the {name}"
    return _filled(section, kind, title, values)


def _own_task(path: str, values: Options) -> Task:
    """The task of a user's own class, checked."""
    with settings_errors():
        kind = custom_tasks.task_class(path)
    for option in dataclasses.fields(kind):
        if option.default is option.default_factory is dataclasses.MISSING and option.name not in values:
            raise StudyError(f"task.{option.name} is missing: {path} has no default for it")
    with custom_tasks.errors_of_making(path):
        task = _filled("task", kind, path, values)
    with settings_errors():
        custom_tasks.check_fields(task)
        custom_tasks.check(task)
    return task


def _filled(section: str, kind: Any, title: str, values: Options) -> Any:
    options = [declared.name for declared in dataclasses.fields(kind)]
    for option in values:
        if option not in options:
            hint = nearest(option, options, f"{section}.") or f"; options: {', '.join(options)}"
            hint = "; did you mean seeds?" if OTHER_NAMES.get(option) == "seeds" else hint
            raise StudyError(f"{section}.{option} is not an option of {title}{hint}")
    kinds = identity.declared_types(kind)
    with settings_errors():
        given = {option: identity.typed(kinds[option], value, f"{section}.{option}") for option, value in values.items()}
        refuse_large_options(section, given)
        return kind(**given)


def name_of(config: Task | Model) -> str:
    """The registered name of a task or model configuration; for a user's own, its import path."""
    if isinstance(config, custom.Custom):
        return config.path
    for registry in (tasks.REGISTRY, models.REGISTRY):
        for name, kind in registry.items():
            if type(config) is kind:
                return name
    if Task in type(config).__mro__:
        return custom_tasks.path_of(type(config))
    raise StudyError(f"{type(config).__name__} is neither a registered task nor a registered model: add its line to REGISTRY")


def to_dict(condition: Condition) -> Tree:
    """{name, config}: what a manifest holds of a condition beside its seeds; {time_limit} too where a command has one."""
    limit = None if condition.experiment is None else condition.experiment.time_limit
    return {"name": condition.name, "config": condition.config()} | ({} if limit is None else {"time_limit": limit})


def condition_of(row: Mapping[str, Value]) -> Condition:
    """The condition of a row of `replicates`, as `from_dict`."""
    data = {"name": row["condition"], "config": json.loads(row["config"])}
    commit = row.get("own_git")
    changes = " with uncommitted changes" if row.get("own_dirty") else ""
    return from_dict(data, checkout="" if commit is None else f" (git commit {str(commit)[:12]}{changes})")


def from_dict(data: Options, seeds: Iterable[tuple[int, int]] = (), checkout: str = "") -> Condition:
    """The inverse of `to_dict`. checkout: words for the error on where a person's own code was.

    ValueError where this code has another revision than the one that wrote it, or lacks a field, or a person's own code is another.
    """
    config = dict(data["config"])
    refuse_unknown(config, ("task", "model", "train", "stages", "experiment", "code"), f"condition {data['name']}")
    pairs = tuple((init, other) for init, other in seeds)
    if "experiment" in config:
        experiment = replace(experiment_of(config["experiment"]), time_limit=data.get("time_limit"))
        condition = experiment_condition(data["name"], experiment, pairs)
        _refuse_changed(condition, config, checkout)
        return condition
    built = {}
    for section in ("task", "model", "train"):
        node = dict(config[section])
        rev = node.pop("rev", 1)
        built[section] = build(section, node)
        if built[section].rev != rev:
            raise StudyError(
                f"condition {data['name']} has revision {rev} of {section} {node.get('name', '')} and this code has "
                f"{built[section].rev}: use the version of the code that wrote it"
            )
    # one that was written before code was hashed has none
    code = own_digest(built["task"], built["model"]) if "code" in config else None
    condition = Condition(data["name"], **built, stages=tuple(config.get("stages", ())), seeds=pairs, code=code)
    _refuse_changed(condition, config, checkout)
    return condition


def _refuse_changed(condition: Condition, config: Options, checkout: str) -> None:
    """StudyError where a person's own code is not that of the configuration."""
    if condition.code != config.get("code"):
        planned, here = ((code or "none")[:12] for code in (config.get("code"), condition.code))
        raise StudyError(
            f"condition {condition.name} was planned with the code {planned}, and the code here is {here}: bring back the files that it "
            f"was planned with{checkout}"
        )


def keep_tail(keep: str) -> int | None:
    """How many weights a condition keeps at the end: None for all (also with `steps(…)`), 0 for none, n for `tail(n)`."""
    tail = re.fullmatch(r"tail\(([0-9]{1,18})\)", keep)
    if keep not in ("none", "all") and not (tail and int(tail[1]) > 0) and not keep_steps(keep):
        raise StudyError(
            f"keep = {keep!r} must be none, all or tail(n) with n of at least 1, or steps(a, b, …) for all at the end and after those steps"
        )
    return int(tail[1]) if tail else {"none": 0}.get(keep)


def keep_steps(keep: str) -> tuple[int, ...]:
    """The steps of `steps(a, b, …)`, ascending, after which weights are kept too; 0 is before the first. Empty for the other rules."""
    match = re.fullmatch(r"steps\(([0-9]{1,18}(?:, *[0-9]{1,18})*)\)", keep)
    return tuple(sorted({int(step) for step in match[1].split(",")})) if match else ()


def refuse_unknown(given: Iterable[str], keys: Iterable[str], where: str) -> None:
    """ValueError for the first key that is not known, with the nearest that is."""
    keys = list(keys)
    for name in given:
        if name not in keys:
            raise StudyError(f"{where} has no key {str(name)[:100]!r}{nearest(name, keys) or '; keys: ' + ', '.join(keys)}")


def one_of(value: Value, name: str, choices: tuple[str, ...]) -> str:
    """StudyError unless a value is one of the choices."""
    if isinstance(value, bool):  # YAML 1.1 reads a bare `off` as false
        value = "on" if value else "off"
    if value not in choices:
        raise StudyError(f"{name} = {value!r} must be {' or '.join(choices)}{nearest(value, choices)}")
    return str(value)
