"""Tasks of one's own, named in a study by the import path of their class.

    task: {name: "my_tasks:Parity", length: 16}

The class is a frozen dataclass that inherits from `tasks.task.Task`. Importing a module runs it, so it is imported only once
`models.custom.custom.allow` has named it, as `--allow-import my_tasks` does. What the task makes is checked before anything is trained.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

import tasks
from harness.draw import Draw
from harness.study import identity
from harness.study.limits import MOST_OPTION
from models.custom import custom
from models.custom.custom_checks import with_line
from results.errors import StudyError
from tasks.batch import Batch, View
from tasks.task import Task

_STRINGS, _MORE = 3, 64  # strings of the two batches that are checked; the larger one is more likely to hold a rare mistake
_SEEDS = (5, 7, 2**40)
_LOGITS = 2**26  # of the check of `wrong`: of more, one string's are made
_BEYOND = ("Target ", "index out of range in self")  # what torch says of a target or a token that is too large
_IGNORED = -100  # a target that torch's cross-entropy leaves out


@dataclasses.dataclass(frozen=True)
class _WatchedDraw(Draw):
    """A draw that lists what was asked of it: the site, and what else the numbers follow from."""

    asked: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    def words(self, shape: Sequence[int], site: int = 0) -> Tensor:
        about = (self.seeds, self.step, self.picked)
        values = [value.tolist() if isinstance(value, Tensor) else value for value in about]
        self.asked.append((site, repr((self.stream, self.first, values))))
        return super().words(shape, site)


def path_of(kind: type) -> str:
    """The import path MODULE:CLASS by which a study names a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def task_class(path: str) -> type[Task]:
    """The class at `path`. ValueError where its module is not allowed, or where it is no task."""
    custom.refuse_others(path, "task")
    kind: type[Task] = custom.imported(path, "task", Task)
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise ValueError(f"task.name = {path!r} is no frozen dataclass: put @dataclass(frozen=True) before the class")
    if lacking := sorted(kind.__abstractmethods__):
        raise ValueError(f"task.name = {path!r} lacks {', '.join(lacking)}: tasks.task.Task says what each is")
    if path_of(kind) != path:
        raise ValueError(f"task.name = {path!r} is defined elsewhere: write {path_of(kind)!r}")
    fields = {field.name for field in dataclasses.fields(kind)}
    for name, example in (("length", "length: int = 32"), ("metrics", 'metrics: ClassVar[tuple[str, ...]] = ("position",)')):
        if name not in fields and not hasattr(kind, name):
            raise ValueError(f"task.name = {path!r} lacks {name}: add it to the class, such as {example}")
    for field in dataclasses.fields(kind):
        if isinstance(field.default, property):
            raise ValueError(f"task.name = {path!r}: its field {field.name} needs a default, such as {field.name}: int = 1")
    return kind


def check_fields(task: Task) -> None:
    """Raise ValueError, in one sentence, unless every field of a task has its declared type and can be hashed into a key."""
    where = f"task.name = {path_of(type(task))!r}: its field"
    for field in dataclasses.fields(task):
        value = getattr(task, field.name)
        if not _is_option(value):
            kind = type(value).__name__
            raise ValueError(
                f"{where} {field.name} is a {kind}, which no option can be: declare int, float, str, bool or tuple[…], "
                "with such a default"
            )
    try:
        identity.describe(task)
    except StudyError as error:
        raise ValueError(f"{where} {error}; the default and the declared type of a field must agree") from error


def _is_option(value: Any) -> bool:
    """Whether a key can be made of a value: a number, a word, None, or a tuple or frozen dataclass of such."""
    if isinstance(value, tuple):
        return all(map(_is_option, value))
    if dataclasses.is_dataclass(value):
        frozen = vars(type(value))["__dataclass_params__"].frozen
        return frozen and all(_is_option(getattr(value, field.name)) for field in dataclasses.fields(value))
    return value is None or isinstance(value, int | float | str)


@functools.lru_cache(maxsize=256)
def check(task: Task) -> None:
    """Raise ValueError, in one sentence, unless a task does what `tasks.task.Task` asks for.

    Checked are shapes, types and values of its strings, that they are the same in any pack, and the metrics that it declares.
    """
    path = path_of(type(task))
    _check_declared(path, task)
    batch = _checked_strings(path, task)
    if task.views:
        _check_view(path, task, batch)
    if not task.soft and batch.targets.numel() * task.outputs > _LOGITS:
        batch = Batch(batch.inputs[:1, :1], batch.targets[:1, :1], batch.weights[:1, :1], {})
    logits = _right_logits(task, batch)
    answered = batch.targets.shape[:-1] if task.soft else batch.weights.shape
    with _located_errors(path, "wrong"):
        wrong = task.wrong(logits, batch.targets)
    returned = ", ".join(wrong) if isinstance(wrong, dict) else type(wrong).__name__
    same = isinstance(wrong, dict) and tuple(wrong) == task.metrics
    _require(path, same, f"wrong returns {returned}, and metrics = {task.metrics!r}: return these, in this order")
    for name, values in wrong.items():
        good = isinstance(values, Tensor) and values.dtype == torch.bool and values.shape == answered
        _require(
            path, good, f"wrong returns {_described(values)} for {name}, which must be bool {list(answered)}, one a position"
        )
    scored = batch.weights > 0
    scored = scored if scored.shape == answered else scored.any(-1, keepdim=True)  # of laws, one position may be given
    fair = not bool(scored.any()) or not bool(wrong[task.metrics[0]][scored].all())
    _require(
        path, fair, f"wrong counts every right answer as an error of {task.metrics[0]}: return True where an answer is wrong"
    )


def _right_logits(task: Task, batch: Batch) -> Tensor:
    """Logits of a model that is sure of every right answer."""
    if task.soft:
        return batch.targets.clamp(min=1e-30).log()
    logits = torch.zeros((*batch.targets.shape, task.outputs))
    return logits.scatter_(-1, batch.targets.clamp(0, task.outputs - 1)[..., None], 100.0)


def _check_declared(path: str, task: Task) -> None:
    """Check what a task declares: its sizes, metrics and error, and its form in evaluation sets."""
    with _located_errors(path, "its sizes"):
        sizes = {"tokens": task.tokens, "vocabulary": task.vocabulary, "outputs": task.outputs, "slots": task.slots}
        sizes["rev"] = task.rev
        scored, metrics, error, evaluation = task.scored_positions(), task.metrics, task.error, task.evaluation()
    for name, value in sizes.items():
        _require(path, type(value) is int and value >= 1, f"{name} = {value!r} must be a whole number of at least 1")
        _require(path, value <= MOST_OPTION, f"{name} = {value:,} is too large: at most {MOST_OPTION:,} are planned")
    good = scored is None or (type(scored) is int and 1 <= scored <= sizes["tokens"])
    wanted = f"must be None or a whole number from 1 to its {sizes['tokens']} tokens"
    _require(path, good, f"scored_positions() = {scored!r} {wanted}")
    good = isinstance(metrics, tuple) and len(metrics) == len(set(metrics)) > 0
    good = good and all(type(metric) is str and metric for metric in metrics)
    _require(path, good, f"metrics = {metrics!r} must be a tuple of different names, such as ('position',)")
    fields = [field.name for field in dataclasses.fields(task)]
    good = isinstance(task.vectors, tuple) and set(task.vectors) <= set(fields)
    _require(path, good, f"vectors = {task.vectors!r} must be a tuple of some of its fields {', '.join(fields)}")
    _require(path, not task.views or type(task).view is not Task.view, "views is true, so it needs a method view: write one")
    _require(path, type(error) is str and bool(error), f"error = {error!r} must say in words what counts as an error")
    _require(path, type(evaluation) is type(task), f"evaluation() returns {evaluation!r}, which is no {type(task).__name__}")


def _checked_strings(path: str, task: Task) -> Batch:
    """Strings of a pack, once they are known to be the same when drawn again, alone, in a larger batch and in part."""
    seeds = torch.tensor(_SEEDS)
    slots = torch.arange(len(seeds))
    with _located_errors(path, "sample"):
        first = task.sample(Draw(seeds, "data", step=3), _STRINGS)
    _check_batch(path, task, first, len(seeds), _STRINGS)
    pack = first.take(slots)  # a copy: a sampler may write into its tensors again
    watched = _WatchedDraw(seeds, "data", step=3)
    with _located_errors(path, "sample"):
        longest = task.sample(watched, _MORE)
    _check_batch(path, task, longest, len(seeds), _MORE)
    longer = longest.take(slots)
    with _located_errors(path, "sample"):
        again = task.sample(Draw(seeds, "data", step=3), _STRINGS)
        alone = [task.sample(Draw(seeds[slot : slot + 1], "data", step=3), _STRINGS) for slot in slots.tolist()]
        rest = task.sample(Draw(seeds, "data", step=3, first=1), _STRINGS - 1)
        later = task.sample(Draw(seeds, "data", step=torch.full_like(seeds, 4)), _MORE)
    twice = next((site for (site, _), times in Counter(watched.asked).items() if times > 1), None)
    _require(
        path,
        twice is None,
        f"sample draws twice with site={twice}, which gives the same numbers again: pass another site to each further draw, such as site=1",
    )
    unchanged = _equal(first, pack) and _equal(longest, longer)
    moving = not _equal(longer, later) or torch.equal(longer.inputs, longer.inputs[:, :1].expand_as(longer.inputs))
    apart = [_equal(pack.take(slots[slot : slot + 1]), batch) for slot, batch in enumerate(alone)]
    for good, otherwise in (
        (unchanged, "sample changes strings that it has returned: return new tensors, such as x.clone()"),
        (_equal(pack, again), "sample makes other strings from the same draw: take all randomness from draw"),
        (
            moving,
            "sample makes the same strings at every step: take all randomness from draw, and for a fixed set of N strings write "
            "train.pool: N",
        ),
        (all(apart), "a replicate's strings are others in a pack than alone: let sample mix nothing across its first axis"),
        (
            _equal(_strings(longer, slice(_STRINGS)), _strings(pack, slice(None))),
            "the first strings of a larger batch are others: let a string depend on the draw alone, not on how many there are",
        ),
        (
            _equal(_strings(rest, slice(None)), _strings(pack, slice(1, None))),
            "a string is another where those before it are left out, as in later parts of a set: take all randomness from draw",
        ),
    ):
        _require(path, good, otherwise)
    return pack


def _check_view(path: str, task: Task, batch: Batch) -> None:
    """Check the form of a task's view of the strings of `_checked_strings`."""
    with _located_errors(path, "view"):
        view = task.view(Draw(torch.tensor(_SEEDS), "view", step=3), batch.inputs)
    _require(path, isinstance(view, View), f"view returns a {type(view).__name__}, which must be a tasks.batch.View")
    strings = list(batch.weights.shape)
    wanted = (("inputs", torch.int64, strings[:2]), ("places", torch.int64, strings), ("weights", torch.float32, strings))
    for name, dtype, shape in wanted:
        values = getattr(view, name)
        good = isinstance(values, Tensor) and values.dtype == dtype and list(values.shape[: len(shape)]) == shape
        good = good and values.dim() == (batch.inputs if name == "inputs" else batch.weights).dim()
        more = ", …" if name == "inputs" else ""
        _require(
            path, good, f"the {name} of view are {_described(values)}, and must be {dtype} [{', '.join(map(str, shape))}{more}]"
        )
    for name, values, most in (("inputs", view.inputs, task.vocabulary), ("places", view.places, view.inputs.shape[2])):
        low, high = int(values.min()), int(values.max())
        _require(path, low >= 0 and high < most, f"the {name} of view are from {low} to {high}, and must be below {most}")


def _check_batch(path: str, task: Task, batch: Batch, replicates: int, count: int) -> None:
    _require(path, isinstance(batch, Batch), f"sample returns a {type(batch).__name__}, which must be a tasks.batch.Batch")
    about = _described(batch.about)
    _require(
        path, isinstance(batch.about, dict), f"the about of sample is {about}, and must be a dict of tensors, such as {{}}"
    )
    odd = [name for name in batch.about if not isinstance(name, str) or not name or not name.isprintable()]
    _require(
        path,
        not odd,
        f"the about of sample has the name {odd[0] if odd else ''!r}: name each tensor by a word, such as distance",
    )
    strings = [replicates, count, task.tokens]
    tokens = [*strings, task.slots] if task.slots > 1 else strings
    wanted = [("inputs", batch.inputs, torch.int64, tokens)]
    if task.soft:
        positions = (
            1 if isinstance(batch.targets, Tensor) and batch.targets.dim() == 4 and batch.targets.shape[2] == 1 else task.tokens
        )
        wanted.append(("targets", batch.targets, torch.float32, [*strings[:2], positions, task.outputs]))
    else:
        wanted.append(("targets", batch.targets, torch.int64, tokens))
    wanted.append(("weights", batch.weights, torch.float32, strings))
    wanted += [(f"about[{name!r}]", values, torch.int64, strings) for name, values in batch.about.items()]
    wanted += [] if batch.hidden is None else [("hidden", batch.hidden, torch.bool, strings)]
    for name, values, dtype, shape in wanted:
        good = isinstance(values, Tensor) and values.dtype == dtype and list(values.shape) == shape
        _require(
            path,
            good,
            f"the {name} of sample are {_described(values)}, and must be {dtype} {shape} for {replicates} replicates"
            + _hint(values, shape, count),
        )
    weights = batch.weights
    _require(path, bool((weights.isfinite() & (weights >= 0)).all()), "the weights of sample must be finite and 0 or more")
    _require(
        path, bool((weights > 0).any()), "the weights of sample are all 0, so nothing would be learned: weigh some position"
    )
    if task.classifies:
        last = torch.zeros_like(weights)
        last[..., -1] = 1
        _require(
            path,
            torch.equal(weights, last),
            "the weights of sample must be 1 at the last position and 0 elsewhere, as classifies says",
        )
    scored = weights > 0
    unanswered = torch.zeros_like(scored) if task.soft else batch.targets == _IGNORED
    unanswered = unanswered.all(-1) if task.slots > 1 and not task.soft else unanswered
    _require(
        path,
        not bool((unanswered & scored).any()),
        f"a target of sample is {_IGNORED} where its weight is above 0, so it would count as an error: give it weight 0",
    )
    ranges = [("inputs", batch.inputs, task.vocabulary)]
    if task.soft:
        laws = batch.targets.expand(*weights.shape, -1)[scored]
        sums = bool(((laws.sum(-1) - 1).abs() < 1e-4).all()) and bool((laws >= 0).all())
        _require(path, sums, "the targets of sample must be laws, 0 or more and with a sum of 1, where weights are above 0")
    else:
        ranges.append(("targets", batch.targets[scored], task.outputs))
    for name, values, most in ranges:
        values = values[values != _IGNORED] if name == "targets" else values
        low, high = int(values.min()), int(values.max())
        size = "vocabulary" if name == "inputs" else "outputs"
        _require(path, low >= 0 and high < most, f"the {name} of sample are from {low} to {high}, and {size} = {most}")


def _strings(batch: Batch, rows: slice) -> Batch:
    """Some strings of a batch, with what is scored in the place of weights, which may be divided by their sum."""
    about = {name: values[:, rows] for name, values in batch.about.items()}
    hidden = None if batch.hidden is None else batch.hidden[:, rows]
    return Batch(batch.inputs[:, rows], batch.targets[:, rows], batch.weights[:, rows] > 0, about, hidden)


def _equal(one: Batch, other: Batch) -> bool:
    pairs = [(one.inputs, other.inputs), (one.targets, other.targets), (one.weights, other.weights)]
    pairs += [(one.about[name], other.about[name]) for name in one.about] if one.about.keys() == other.about.keys() else []
    if one.hidden is not None and other.hidden is not None:
        pairs.append((one.hidden, other.hidden))
    alike = one.about.keys() == other.about.keys() and (one.hidden is None) == (other.hidden is None)
    return alike and all(torch.equal(*pair) for pair in pairs)


@contextmanager
def _located_errors(path: str, what: str) -> Iterator[None]:
    """Turn what a user's code raises in the block into one sentence that says where. what: the part of the task that runs."""
    try:
        yield
    except SystemExit as error:
        raise ValueError(_exited(path, what, error)) from error
    except Exception as error:
        raise ValueError(_raised(path, what, error)) from error


@contextmanager
def errors_of_making(path: str) -> Iterator[None]:
    """Turn what a user's task raises when it is made into a StudyError; a ValueError is a sentence already."""
    try:
        yield
    except ValueError:
        raise
    except SystemExit as error:
        raise StudyError(_exited(path, "making it", error)) from error
    except Exception as error:
        raise StudyError(_raised(path, "making it", error)) from error


@contextmanager
def own_errors(task: Task) -> Iterator[None]:
    """Turn an error that comes from the file of a user's own task into a StudyError that says where. Other errors stay as they are."""
    path = path_of(type(task))
    try:
        yield
    except (torch.OutOfMemoryError, torch.AcceleratorError):  # of the device, and not of what runs on it
        raise
    except Exception as error:
        if type(task) in tasks.REGISTRY.values():
            raise
        if isinstance(error, IndexError) and str(error).startswith(_BEYOND):
            raise StudyError(
                f"task.name = {path!r}: a training batch holds an input beyond vocabulary = {task.vocabulary}, or a target beyond "
                f"outputs = {task.outputs}: {error}"
            ) from error
        if with_line(path, error) == str(error):
            raise
        raise StudyError(_raised(path, "it", error)) from error


def _raised(path: str, what: str, error: Exception) -> str:
    """The sentence for a user's task of which `what` raises `error`."""
    return f"task.name = {path!r}: {what} raised {type(error).__name__}: {with_line(path, error)}"


def _exited(path: str, what: str, error: SystemExit) -> str:
    """The sentence for a user's task of which `what` calls sys.exit."""
    return f"task.name = {path!r}: {what} called sys.exit({error.code}): raise a ValueError that says what is wrong"


def _hint(values: object, shape: list[int], count: int) -> str:
    """What to write instead of tensors that have all axes but one right; "" where nothing better than the shape is known."""
    given = list(values.shape) if isinstance(values, Tensor) else []
    if given == shape[:2] and len(shape) == 3:
        return f", {count} strings and {shape[2]} tokens; a string's one answer stands at the last position, and others weigh 0"
    if len(given) == len(shape) and given[:2] == shape[:2] and given[2] != shape[2]:
        return f", {count} strings and {shape[2]} tokens; pad shorter strings, and let padding weigh 0"
    if given == shape:  # of another type
        return ""
    return f", {count} strings and {shape[2]} tokens"


def _require(path: str, good: bool, otherwise: str) -> None:
    if not good:
        raise ValueError(f"task.name = {path!r}: {otherwise}")


def _described(value: object) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
