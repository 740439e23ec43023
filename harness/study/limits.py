"""How large a study may be: a larger one exceeds the memory or the lifetime of any machine, and is a slip of the fingers.

Everything here is arithmetic on settings, before a task, a model or a list of replicates is made.
docs/reference/study-file.md states the limits.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass

from results.errors import StudyError
from results.plain_values import Options, Value

MOST_CONDITIONS = 10_000
MOST_REPLICATES = 1_000_000  # of all conditions together
MOST_OPTION = 1_000_000  # a whole number among the options of a task, a model or a training
MOST_STEPS = 2**31 - 1  # where the steps of the keyed draws end
MOST_SEQUENCES = 10**9  # strings of an evaluation set
MOST_POINTS = 10**7  # points of a replicate's training curve
MOST_PARAMETERS = 10**10  # of one replicate
MOST_BYTES = 2**40  # that the activations of one step of one replicate take
_OPTIONS = {"layers": 1000, "heads": 1000, "width": 100_000, "length": 100_000}
_COUNTS_STEPS = ("steps", "warmup", "patience", "period", "start", "every")


def refuse_large_options(section: str, options: Options) -> None:
    """StudyError for the first whole number of a task, model or train section that is out of proportion.

    options: already of their declared types, so that a learning rate of 1e30 is no whole number.
    """
    for option, value in options.items():
        _refuse(f"{section}.{option}", str(option), value)


def _refuse(where: str, option: str, value: Value) -> None:
    if isinstance(value, Mapping):
        for name, part in value.items():
            _refuse(f"{where}.{name}", str(name), part)
    elif isinstance(value, list | tuple):
        for part in value:
            _refuse(where, option, part)
    elif is_dataclass(value):
        _refuse(where, option, vars(value))
    elif type(value) is int:
        most = _OPTIONS.get(option, MOST_STEPS if option in _COUNTS_STEPS else MOST_OPTION)
        most = 2**63 - 1 if "seed" in option else most
        if abs(value) > most:
            shown = f"{value:,}" if abs(value) < 10**15 else f"{value:g}"
            raise StudyError(f"{where} = {shown} is too large: write at most {most:,}")


def refuse_many_conditions(count: int) -> None:
    """StudyError for a sweep of too many points, before any is made."""
    if count > MOST_CONDITIONS:
        raise StudyError(
            f"conditions, grid and sweeps make {count:,} conditions, and a study has at most {MOST_CONDITIONS:,}: "
            "write shorter lists, or several studies"
        )


def refuse_many_replicates(count: int, where: str, conditions: int) -> None:
    """StudyError before any seed is listed. where: the key that says how many, such as replicates or seeds."""
    if count > MOST_REPLICATES:
        among = f" of {conditions:,} conditions" if conditions > 1 else ""
        raise StudyError(
            f"{where} makes {count:,} replicates{among}, and a study has at most {MOST_REPLICATES:,}: write fewer, or several studies"
        )


def refuse_large_training(tokens: int, vocabulary: int, outputs: int, batch: int, model: Options) -> None:
    """StudyError where one replicate's weights, or the activations of one of its steps, fit into no machine; both are estimated.

    tokens: of a string; model: its options by name. A model without a width is not estimated.
    """
    width, layers = model.get("width"), model.get("layers", 1)
    if type(width) is not int or type(layers) is not int:
        return
    inner = model.get("feed_forward") or 4 * width
    # every model has a map between two layers; one with heads has attention and a feed-forward in each layer
    head_dim, heads = model.get("head_dim"), model.get("heads")
    attended = heads * head_dim if type(heads) is int and type(head_dim) is int else width
    inside = layers * (4 * attended + 2 * inner) if "heads" in model else (layers - 1) * width
    weights = width * (inside + vocabulary + outputs)
    if weights > MOST_PARAMETERS:
        raise StudyError(
            f"model.width = {width} with model.layers = {layers} makes about {weights:.2g} parameters a replicate, and at most "
            f"{MOST_PARAMETERS:.0g} are planned: write a smaller width, or fewer layers"
        )
    size = 4 * batch * tokens * (layers * (4 * width + 4 * attended + inner) + outputs)
    if size > MOST_BYTES:
        raise StudyError(
            f"train.batch = {batch} strings of {tokens} tokens (task.length) make about {size / 1e9:,.0f} GB of activations a step, "
            f"and at most {MOST_BYTES / 1e9:,.0f} GB are planned: write a smaller train.batch, task.length or model.width"
        )


def refuse_many_points(steps: int, curve_every: int) -> None:
    """StudyError where a replicate's training curve would have too many rows."""
    if steps // curve_every > MOST_POINTS:
        raise StudyError(
            f"evaluate.curve_every = {curve_every} makes {steps // curve_every:,} points of the training curve of {steps:,} steps, and "
            f"at most {MOST_POINTS:,} are kept: write at least {-(-steps // MOST_POINTS)}"
        )
