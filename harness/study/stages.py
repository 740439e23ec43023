"""Chains of stages: what each stage inherits from the previous one, as configurations and keys. No weights are touched here.

    stages: [{task: {length: 10}, labels: previous, init: previous}, {task: {length: 20}}]

The first stage is the condition itself. Every stage is a `Condition` of its own. Its `stages` list the stages before it, as
{task, train, labels, …}, with the model where the next stage has another, and end with what it inherits itself. Its key follows from its
parent's (`identity.key`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import torch

from harness.draw import Draw
from harness.study import identity
from harness.study.checkpoint_schedule import Span, Teacher, kept, spans
from harness.study.config import Condition, from_dict, name_of, nearest, refuse_unfit_model, refuse_unknown
from harness.study.training_options import Train
from models.custom.custom import Custom
from models.model import Model, refuse_blind
from results.errors import StudyError, settings_errors
from results.plain_values import Options, Tree, Value
from tasks.task import Continued, Task

_CHOICES = {"labels": ("task", "previous", "teacher"), "init": ("fresh", "previous")}
_COLDEST = 1e-30  # below, it might become 0 in fp32, and 0 / 0 is no number


@dataclass(frozen=True)
class Link:
    """What a stage inherits from the previous one.

    labels: the labels of training strings are those of the task; the greedy answers of the previous stage, fed back to it; or the
    probabilities of the previous stage, the teacher, at the same inputs. init: the initial weights are drawn from the replicate's init
    seed, or are those that the previous stage ended with. temperature: of the teacher alone, 0 for its argmax; teacher: its checkpoints.
    """

    labels: str = "task"
    init: str = "fresh"
    temperature: float = 1.0
    teacher: Teacher = field(default_factory=Teacher)

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or self.temperature >= _COLDEST):
            raise StudyError(
                f"temperature = {self.temperature:g} must be 0 (the teacher's argmax) or at least {_COLDEST:g}, where softmax is argmax too"
            )
        if self.labels != "teacher" and (self.temperature != 1 or self.teacher != Teacher()):
            raise StudyError("temperature and teacher apply only to labels: teacher: write that, or leave them out")


OPTIONS = tuple(field.name for field in fields(Link))
KEYS = ("task", "model", "train", *OPTIONS)


def link_of(condition: Condition) -> Link | None:
    """What a condition inherits from the previous stage; None for a first stage."""
    return identity.typed(Link, condition.stages[-1], "stages") if condition.stages else None


def link(node: Options, where: str) -> Link:
    """The link of one entry of `stages`. ValueError for unknown words, and where nothing is taken from the stage before."""
    refuse_unknown(node, KEYS, where)
    for option, choices in _CHOICES.items():
        if option in node and node[option] not in choices:
            raise StudyError(
                f"{where}.{option} = {node[option]!r} must be {', '.join(choices[:-1])} or {choices[-1]}{nearest(node[option], choices)}"
            )
    try:
        entry: Link = identity.typed(Link, {option: node[option] for option in OPTIONS if option in node}, where)
    except StudyError as error:
        raise StudyError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
    if (entry.labels, entry.init) == ("task", "fresh"):
        raise StudyError(
            f"{where} takes nothing from the stage before it: write labels: previous, init: previous or both, labels: teacher, or make "
            "it a condition"
        )
    return entry


def after(parent: Condition, given: Link, task: Task, model: Model, train: Train, where: str) -> Condition:
    """The stage that follows `parent`. ValueError where it can't use the weights or answers of its parent."""
    earlier: list[Tree] = [*parent.stages[:-1], _described(parent, model)]
    try:
        condition = Condition(parent.name, task, model, train, (*earlier, identity.describe(given)), code=parent.code)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error
    for spec in (parent.model, model):
        if isinstance(spec, Custom):
            raise StudyError(f"{where}: the model {spec.path} is a module of your own, and stages need a model of this project")
    if name_of(task) != name_of(parent.task):
        raise StudyError(f"{where}.task.name = {name_of(task)!r} is another task than {name_of(parent.task)}: a chain has one")
    if given.labels == "previous" and not isinstance(task, Continued):
        raise StudyError(f"{where}.labels = previous needs a task with answers that are fed back, and {name_of(task)} has none")
    if given.labels == "previous" and model != parent.model:
        raise StudyError(
            f"{where}: the labels would come from another model than that of the stage before: leave model out of this stage, or "
            "write labels: teacher"
        )
    if given.labels == "teacher":
        _refuse_teacher(parent, condition, given, where)
    if "previous" in (given.labels, given.init):
        _refuse_unfit(parent, condition, given, where)
    return condition


def _refuse_teacher(parent: Condition, student: Condition, given: Link, where: str) -> None:
    """ValueError where the teacher can't answer the student's inputs, or lacks one of the checkpoints."""
    sizes = [(task.vocabulary, task.outputs, task.tokens) for task in (parent.task, student.task)]
    for what, of_teacher, of_student in zip(("tokens in the vocabulary", "classes", "tokens a string"), *sizes, strict=True):
        if of_teacher != of_student:
            raise StudyError(
                f"{where}: the teacher has {of_teacher} {what} and the student {of_student}: give both the same task"
            )
    try:
        refuse_unfit_model(student.task, parent.model)
    except StudyError as error:
        raise StudyError(f"{where}: the teacher answers the student's strings, and {error}") from error
    try:
        spans(given.teacher, parent.train.steps, student.train.steps)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error


def _refuse_unfit(parent: Condition, condition: Condition, given: Link, where: str) -> None:
    """ValueError where the parent's weights do not fit the model of a condition that begins from them or takes its labels from them."""
    if given.labels == "previous":
        with settings_errors():
            refuse_blind(condition.model)
    before, now = (model_of(either) for either in (parent, condition))
    shapes = [{name: tuple(parameter.shape[1:]) for name, parameter in model.named_parameters()} for model in (before, now)]
    other = next((name for name in sorted({*shapes[0], *shapes[1]}) if shapes[0].get(name) != shapes[1].get(name)), None)
    if other is not None:
        was, is_now = (list(shape[other]) if other in shape else "absent" for shape in shapes)
        raise StudyError(
            f"{where}: the model's {other} is {is_now} and was {was} in the stage before, so its weights don't fit: "
            "choose a model whose parameters don't depend on the length, and the same vocabulary"
        )


def parent_of(condition: Condition) -> Condition | None:
    """The previous stage as a condition of the same name; None for a first stage.

    For every seed of the condition it has the seeds of that replicate's parent.
    """
    if not condition.stages:
        return None
    *earlier, last = condition.stages[:-1]
    model = last.get("model", condition.config()["model"])
    config: Tree = {"task": last["task"], "model": model, "train": last["train"]}
    if earlier:
        own = {option: last[option] for option in OPTIONS if option in last}
        config["stages"] = [*earlier, own]
    if condition.code is not None:
        config["code"] = condition.code
    return from_dict({"name": condition.name, "config": config}, _seeds_above(condition))


def with_seeds(chain: Sequence[Condition], seeds: Sequence[tuple[int, int]]) -> list[Condition]:
    """The conditions of a chain, first stage first, each with the seeds that the last stage's `seeds` need of it."""
    conditions: list[Condition] = []
    for condition in reversed(chain):
        conditions.insert(0, replace(condition, seeds=tuple(dict.fromkeys(seeds))))
        seeds = _seeds_above(conditions[0])
    return conditions


def _seeds_above(condition: Condition) -> tuple[tuple[int, int], ...]:
    """The seeds of the parent of each seed of a condition: the same, or those of the one teacher."""
    given = link_of(condition)
    if given is None or given.teacher.seed is None:
        return condition.seeds
    return ((given.teacher.seed, given.teacher.seed),) * len(condition.seeds)


def keys(condition: Condition) -> list[tuple[str, str | None]]:
    """(key, parent's key) of every replicate of a condition, in the order of its seeds."""
    config, parent = condition.config(), parent_of(condition)
    above: Sequence[str | None] = [None] * len(condition.seeds) if parent is None else [key for key, _ in keys(parent)]
    return [
        (identity.key(config, condition.stage, init, data, parent_key), parent_key)
        for (init, data), parent_key in zip(condition.seeds, above, strict=True)
    ]


def spans_of(condition: Condition) -> tuple[Span, ...]:
    """What a student learns from, in order; () for a condition without a teacher."""
    given, parent = link_of(condition), parent_of(condition)
    if given is None or parent is None or given.labels != "teacher":
        return ()
    return spans(given.teacher, parent.train.steps, condition.train.steps)


def steps_taken(condition: Condition) -> frozenset[int]:
    """The steps of its parent whose weights a condition may ask for, the last among them; empty for a first stage."""
    parent = parent_of(condition)
    return frozenset() if parent is None else kept(spans_of(condition), parent.train.steps)


def taken_from(conditions: Sequence[Condition]) -> dict[str, frozenset[int]]:
    """{canonical configuration of a condition that has later stages: the steps whose weights these need}. Those weights are kept."""
    steps: dict[str, frozenset[int]] = {}
    for condition in conditions:
        parent = parent_of(condition)
        if parent is not None:
            name = identity.canonical(parent.config())
            steps[name] = steps.get(name, frozenset()) | steps_taken(condition)
    return steps


def _described(condition: Condition, later: Value) -> Tree:
    """An earlier stage as a later one's `stages` holds it; `later`: the model of the stage that follows it."""
    own = dict(condition.stages[-1]) if condition.stages else {}
    config = condition.config()
    model = {} if condition.model == later else {"model": config["model"]}
    return {"task": config["task"], **model, "train": config["train"], **own}


def model_of(condition: Condition, replicates: int = 1, device: torch.device | None = None) -> torch.nn.Module:
    """A packed model of this condition, every replicate of seed 0, to have its weights replaced or only its names and shapes read."""
    task, draw = condition.task, Draw(torch.zeros(replicates, dtype=torch.int64, device=device), "init")
    with settings_errors():
        return condition.model.make(draw, task.vocabulary, task.tokens, task.outputs)
