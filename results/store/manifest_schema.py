"""What a manifest is made of: the one schema that a manifest is checked against when it is read.

A shape is a function of a value and of where it lies; it returns what is wrong as a part of a sentence, "" where nothing is. Fields that
the schema does not know are left to the code that does: a newer version may have added them. The fields that a reader needs are required.
Options of tasks, models and trainings have the kinds of `option_kinds.json`, which `harness.study.option_kinds` writes.
"""

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from results.plain_values import Tree, Value

Shape = Callable[[Value, str], str]

MOST_DEPTH = 40  # of mappings and lists in each other, as for a study file
MOST_CONDITIONS = 20_000
MOST_NAME = 2_000  # characters of what is drawn or is a name
MOST_TEXT = 1_000_000
_LARGEST = 2**63 - 1  # what a table's column holds


def problem(content: Value) -> str:
    """The first thing that is wrong with a manifest, such as "sets.dense.sequences must be a whole number", or ""."""
    return _unfit(content) or MANIFEST(content, "") or _disagreement(content)


def text(most: int = MOST_TEXT) -> Shape:
    def check(value: Value, where: str) -> str:
        if not isinstance(value, str):
            return f"{where} must be text"
        return f"{where} has {len(value)} characters, and at most {most} are read" if len(value) > most else ""

    return check


def whole(least: int = 0, most: int = _LARGEST) -> Shape:
    def check(value: Value, where: str) -> str:
        fits = type(value) is int and least <= value <= most
        return (
            ""
            if fits
            else f"{where} must be a whole number"
            + (f" of at least {least}" * (least > -_LARGEST))
            + (f" and at most {most}" * (most < _LARGEST))
        )

    return check


def number(value: Value, where: str) -> str:
    return "" if type(value) in (int, float) else f"{where} must be a number"


def flag(value: Value, where: str) -> str:
    return "" if type(value) is bool else f"{where} must be true or false"


def anything(value: Value, where: str) -> str:
    return ""


def optional(shape: Shape) -> Shape:
    """The shape, or null."""
    return lambda value, where: "" if value is None else shape(value, where)


def items(shape: Shape, least: int = 0) -> Shape:
    """A list of at least so many values of one shape."""

    def check(value: Value, where: str) -> str:
        if not isinstance(value, list):
            return f"{where} must be a list"
        if len(value) < least:
            return f"{where} has {len(value)} entries, and needs at least {least}"
        return next((wrong for index, entry in enumerate(value) if (wrong := shape(entry, f"{where}[{index}]"))), "")

    return check


def mapping(shape: Shape) -> Shape:
    """A mapping of any names to values of one shape."""

    def check(value: Value, where: str) -> str:
        if not isinstance(value, dict):
            return f"{where} must be a mapping"
        for name, entry in value.items():
            if len(name) > MOST_NAME:
                return f"{where} has a name of {len(name)} characters, and at most {MOST_NAME} are read"
            if wrong := shape(entry, _below(where, name)):
                return wrong
        return ""

    return check


def record(required: Mapping[str, Shape], optional_shapes: Mapping[str, Shape] | None = None) -> Shape:
    """A mapping with these names; those of `optional_shapes` may be absent, and others are ignored."""
    shapes = {**required, **(optional_shapes or {})}

    def check(value: Value, where: str) -> str:
        if not isinstance(value, dict):
            return f"{where or 'it'} must be a mapping"
        for name in required:
            if name not in value:
                return f"{_below(where, name)} is missing"
        return next(
            (wrong for name, shape in shapes.items() if name in value and (wrong := shape(value[name], _below(where, name)))),
            "",
        )

    return check


def _below(where: str, name: str) -> str:
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    return f"{where}.{shown}" if where else shown


def _replicate(value: Value, where: str) -> str:
    """[key, place of the condition, init_seed, data_seed]; more may follow."""
    if type(value) is not list or len(value) < 4:
        return f"{where} must be a list of a key, a condition and two seeds"
    if type(value[0]) is not str or len(value[0]) > MOST_NAME:
        return f"{where}[0] must be a key"
    for index in (1, 2, 3):
        if type(value[index]) is not int or not 0 <= value[index] <= _LARGEST:
            return f"{where}[{index}] must be a whole number of at least 0"
    return ""


# which options a part has depends on its name, and a reader that needs one says so (`results.rows.options.Settings`)
_NAMED = record({"name": text(MOST_NAME)}, {"length": whole()})
_TRAIN = record({}, dict.fromkeys(("steps", "batch", "warmup", "patience", "pool"), whole()))
_PARTS = {"task": _NAMED, "model": _NAMED, "train": _TRAIN}
_ALL_PARTS = record(_PARTS)
_STAGED = _PARTS | {"stages": items(mapping(anything)), "stage": mapping(anything)}
_EXPERIMENT = record({}, {"name": text(MOST_NAME), "command": items(text()), "settings": mapping(anything)})


def _settings(value: Value, where: str) -> str:
    """Every option of a training, or of an experiment."""
    experiment = isinstance(value, dict) and "experiment" in value
    return (record({"experiment": _EXPERIMENT}) if experiment else record(_PARTS, _STAGED))(value, where)


_SCORING = record(
    {"metrics": items(text(MOST_NAME), least=1), "direction": text(MOST_NAME), "error": text()},
    dict.fromkeys(("tokens", "outputs"), optional(whole())),
)
_CONDITION_FIELDS = record(
    {
        "name": text(MOST_NAME),
        "config": record({}, _STAGED | {"experiment": _EXPERIMENT, "code": text(MOST_NAME)}),
        "sets": mapping(record({"hash": text(MOST_NAME)}, {"task": mapping(anything)})),
        "replicates": whole(),
    },
    {"settings": _settings, "scored": optional(whole()), "scoring": optional(_SCORING)},
)


def _condition(value: Value, where: str) -> str:
    """A condition's fields, and every part of it in `settings`, or in `config` where it has none, as older manifests do."""
    if wrong := _CONDITION_FIELDS(value, where):
        return wrong
    trained = "settings" not in value and "experiment" not in value["config"]
    if trained and (wrong := _ALL_PARTS(value["config"], f"{where}.config")):
        return wrong
    sections = [(name, value[name]) for name in ("settings", "config") if name in value]
    sections += [(f"config.stages[{index}]", stage) for index, stage in enumerate(value["config"].get("stages", ()))]
    return next((wrong for name, section in sections if (wrong := _section(section, f"{where}.{name}"))), "")


def _section(value: Tree, where: str) -> str:
    """What options a condition, or an earlier stage of it, gives to its task, its model, its training and its link to that stage."""
    return next(
        (wrong for part, section in value.items() if (wrong := _options(part, section)(section, _below(where, part)))), ""
    )


def _options(part: str, value: Value) -> Shape:
    """The shape of a section such as `task`; of a user's own class the options are not known."""
    kinds = _option_kinds().get(part)
    if kinds is None:
        return anything
    if part in ("task", "model", "experiment"):
        name = value.get("name") if isinstance(value, dict) else None
        kinds = kinds.get(name, {}) if isinstance(name, str) else {}
    return _of_kind({"mapping": kinds})


@cache
def _option_kinds() -> Tree:
    kinds: dict[str, Any] = json.loads((Path(__file__).parent / "option_kinds.json").read_text(encoding="utf-8"))
    return kinds


def _of_kind(kind: Any) -> Shape:
    """The shape of one kind, as `harness.study.option_kinds` describes it."""
    if isinstance(kind, str):
        return _KINDS[kind]
    if isinstance(kind, list):
        return _any_of([_of_kind(choice) for choice in kind])
    if "list" in kind:
        return items(_of_kind(kind["list"]))
    return record({}, {name: _of_kind(option) for name, option in kind["mapping"].items()})


def _any_of(shapes: list[Shape]) -> Shape:
    def check(value: Value, where: str) -> str:
        wrong = [shape(value, where) for shape in shapes]
        return "" if "" in wrong else ", or ".join(wrong)

    return check


def _null(value: Value, where: str) -> str:
    return "" if value is None else f"{where} must be null"


_KINDS: dict[str, Shape] = {"whole": whole(-_LARGEST), "number": number, "text": text(MOST_NAME), "flag": flag, "null": _null}


_PACK = record(
    {"id": text(MOST_NAME), "replicates": items(whole())}, {"stage": whole(), "signature": text(), "kind": text(MOST_NAME)}
)
_RULE_FIELDS = {
    **dict.fromkeys(("minimum", "maximum", "step"), whole(1)),
    **{"set": text(MOST_NAME), "limit": number, "baseline": optional(text(MOST_NAME)), "budget": optional(number)},
}


def _rule(value: Value, where: str) -> str:
    """Of adaptive replicates (`results.statistics.adaptive_rules.Rule`): a field more would be another rule."""
    wrong = record({name: _RULE_FIELDS[name] for name in ("minimum", "maximum", "step", "set", "limit")}, _RULE_FIELDS)(
        value, where
    )
    return wrong or next((f"{_below(where, name)} is no part of a rule" for name in value if name not in _RULE_FIELDS), "")


MANIFEST = record(
    {
        "study": text(MOST_NAME),
        "question": text(),
        "source": mapping(anything),
        "scale": optional(text(MOST_NAME)),
        "reductions": items(text()),
        "overrides": items(text()),
        "sets": mapping(
            record(
                {"definition": mapping(anything), "sequences": whole(1)},
                {"every": optional(whole(1)), "seed": whole()},
            )
        ),
        "conditions": items(_condition),
        "replicates": items(_replicate),
    },
    {
        **dict.fromkeys(("wandb", "wandb_runs", "keep", "device", "executor", "store"), text()),
        **dict.fromkeys(("numerics", "versions"), mapping(anything)),
        "metrics": mapping(record({"better": text(MOST_NAME), "kind": text(MOST_NAME)})),
        "claims": mapping(
            record({"value": number}, {"gate": number, "of": optional(whole(1)), "replicates": optional(whole(1))})
        ),
        "adaptive": optional(_rule),
        "packs": items(_PACK),
        "pack_size": optional(whole(1)),
        "curve_every": whole(),
        "watch": mapping(whole()),
        "git": optional(text(MOST_NAME)),
        "dirty": optional(flag),
    },
)


def _unfit(content: Value) -> str:
    """What no place of a manifest may hold: numbers that are none, halves of characters, mappings without end."""
    level, depth = [content], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            return f"it is more than {MOST_DEPTH} levels deep"
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, float) and not math.isfinite(value):
                return f"it holds the number {value}"
            elif isinstance(value, int) and abs(value) > 2**64:
                return f"it holds a whole number of {value.bit_length()} bits, and at most 64 are read"
            elif (
                isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)
            ):
                return "it holds half of a character (a surrogate)"
        level = below
    return ""


def _disagreement(content: Tree) -> str:
    """Where parts of a manifest that has its shape contradict each other."""
    conditions, rows = content["conditions"], content["replicates"]
    if len(conditions) > MOST_CONDITIONS:
        return f"it has {len(conditions)} conditions, and at most {MOST_CONDITIONS} are read"
    names: set[tuple[str, int]] = set()
    for index, condition in enumerate(conditions):
        stage = max(0, len(condition["config"].get("stages") or ()) - 1)
        if (condition["name"], stage) in names:
            return f"conditions[{index}].name is that of a condition before it"
        names.add((condition["name"], stage))
        if wrong := _other_settings(condition, content["sets"]):
            return f"conditions[{index}].{wrong}"
    if any(("experiment" in condition["config"]) != ("experiment" in conditions[0]["config"]) for condition in conditions):
        return "conditions has both experiments and trainings"
    seen: set[tuple[str, int]] = set()
    counts = [0] * len(conditions)
    for index, row in enumerate(rows):
        if row[1] >= len(conditions):
            return f"replicates[{index}] is of condition {row[1]}, and there are {len(conditions)}"
        if (row[0], row[1]) in seen:
            return f"replicates[{index}] is listed before it"
        seen.add((row[0], row[1]))
        counts[row[1]] += 1
    for index, (condition, count) in enumerate(zip(conditions, counts, strict=True)):
        if condition["replicates"] != count:
            return f"conditions[{index}].replicates is {condition['replicates']}, and {count} are listed"
    for index, pack in enumerate(content.get("packs", ())):
        if any(place >= len(rows) for place in pack["replicates"]):
            return f"packs[{index}] holds a replicate that is not listed"
    return ""


def _other_settings(condition: dict[str, Any], sets: Tree) -> str:
    """Where `settings`, which has every option, has another value than `config`, or a set another kind of value for an option."""
    settings = condition.get("settings")
    if settings is None:
        return ""
    if ("experiment" in settings) != ("experiment" in condition["config"]):
        return "settings and config must be of one kind: an experiment, or a training"
    if "experiment" in settings:
        for name, value in condition["config"]["experiment"].get("settings", {}).items():
            if settings["experiment"].get(name) != value:
                return f"settings.{_below('experiment', name)} has another value than config.experiment.settings.{name}"
        return ""
    for part in _PARTS:
        given = settings[part].get("options")  # pairs, where a user's own class keeps its fields
        pairs = [pair for pair in given if isinstance(pair, list) and len(pair) == 2] if isinstance(given, list) else []
        options = {name: value for name, value in pairs if isinstance(name, str)}
        for name, value in condition["config"].get(part, {}).items():
            setting = settings[part].get(name, options.get(name))
            if name != "rev" and (_kind(setting) != _kind(value) or (not isinstance(value, dict) and setting != value)):
                return f"settings.{_below(part, name)} has another value than config.{_below(part, name)}"
    definitions = {name: evaluation_set["definition"] for name, evaluation_set in sets.items()}
    for name, changes in (*definitions.items(), *((name, own.get("task", {})) for name, own in condition["sets"].items())):
        if wrong := _options("task", settings["task"])(changes, f"sets.{name[:60]}.task"):
            return wrong
        for option, value in changes.items():
            setting = settings["task"].get(option)
            if setting is not None and not isinstance(setting, list) and _kind(setting) != _kind(value):
                return f"settings.{_below('task', option)} is another kind of value than in the set {name[:60]}"
    return ""


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)
