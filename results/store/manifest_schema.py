"""The schema that every manifest is checked against when it is read: its fields, its options, and their agreement with each other.

Fields that `results.store.manifest_fields` does not name are left to the code that does: a newer version may have added them.
Options of tasks, models and trainings have the kinds of `option_kinds.json`, which `harness.study.option_kinds` writes.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from results.plain_values import Tree, Value
from results.store.manifest_fields import PARTS, Manifest, Readable
from results.store.shapes import LARGEST, MOST_NAME, Shape, anything, below, flag, items, number, record, shape_of, text, whole

MOST_DEPTH = 40  # most mappings and lists nested in each other, in a study file too
MOST_CONDITIONS = 20_000


def problem(content: Value) -> str:
    """The first problem of a manifest, such as "sets.dense.sequences must be a whole number"; "" where there is none."""
    return _unfit(content) or _MANIFEST(content, "") or _conditions(content["conditions"]) or _disagreement(content)


_MANIFEST = shape_of(Manifest, Readable.__required_keys__)


def _conditions(conditions: list[Tree]) -> str:
    return next((wrong for index, entry in enumerate(conditions) if (wrong := _condition(entry, f"conditions[{index}]"))), "")


def _condition(value: Tree, where: str) -> str:
    """Check every part of a condition: in `settings`, or in `config` for older manifests without them."""
    trained = "settings" not in value and "experiment" not in value["config"]
    if trained and (wrong := record(PARTS, required=PARTS)(value["config"], f"{where}.config")):
        return wrong
    sections: list[tuple[str, Tree]] = [(name, value[name]) for name in ("settings", "config") if name in value]
    sections += [(f"config.stages[{index}]", stage) for index, stage in enumerate(value["config"].get("stages", ()))]
    return next((wrong for name, section in sections if (wrong := _section(section, f"{where}.{name}"))), "")


def _section(value: Tree, where: str) -> str:
    """Check the options of a condition's stage: those of its task, its model, its training and its link to the stage before."""
    return next(
        (wrong for part, section in value.items() if (wrong := _options(part, section)(section, below(where, part)))), ""
    )


def _options(part: str, value: Value) -> Shape:
    """The shape of a section such as `task`; the options of a user's own class are not known."""
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
    return record({name: _of_kind(option) for name, option in kind["mapping"].items()})


def _any_of(shapes: list[Shape]) -> Shape:
    def check(value: Value, where: str) -> str:
        wrong = [shape(value, where) for shape in shapes]
        return "" if "" in wrong else ", or ".join(wrong)

    return check


def _null(value: Value, where: str) -> str:
    return "" if value is None else f"{where} must be null"


_KINDS: dict[str, Shape] = {"whole": whole(-LARGEST), "number": number, "text": text(MOST_NAME), "flag": flag, "null": _null}


def _unfit(content: Value) -> str:
    """The first value that no place of a manifest may hold: a number that is not finite, half a character, endless nesting; or ""."""
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
            elif isinstance(value, int) and value.bit_length() > 64:
                return f"{_place(content, value)} is a whole number of {value.bit_length()} bits, and at most 64 are read"
            elif (
                isinstance(value, str) and not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)
            ):
                return "it holds half of a character (a surrogate)"
        level = below
    return ""


def _place(content: Value, wanted: Value) -> str:
    """Where this object itself lies, such as "conditions[0].settings.experiment.shift"."""
    ahead: list[tuple[str, Any]] = [("", content)]
    while ahead:
        where, value = ahead.pop()
        if value is wanted:
            return where or "it"
        if isinstance(value, dict):
            ahead += [(below(where, name), entry) for name, entry in value.items()]
        elif isinstance(value, list):
            ahead += [(f"{where}[{index}]", entry) for index, entry in enumerate(value)]
    return "it"


def _disagreement(content: Tree) -> str:
    """The first place where parts of a well-formed manifest contradict each other; or ""."""
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
        if not pack["replicates"]:
            return f"packs[{index}] holds no replicate"
        if any(place >= len(rows) for place in pack["replicates"]):
            return f"packs[{index}] holds a replicate that is not listed"
    return ""


def _other_settings(condition: dict[str, Any], sets: Tree) -> str:
    """The first option that `settings` and `config` give different values, or a set a value of another kind; or ""."""
    settings = condition.get("settings")
    if settings is None:
        return ""
    if ("experiment" in settings) != ("experiment" in condition["config"]):
        return "settings and config must be of one kind: an experiment, or a training"
    if "experiment" in settings:
        for name, value in condition["config"]["experiment"].get("settings", {}).items():
            if settings["experiment"].get(name) != value:
                return f"settings.{below('experiment', name)} has another value than config.experiment.settings.{name}"
        return ""
    for part in PARTS:
        given = settings[part].get("options")  # pairs, where a user's own class keeps its fields
        pairs = [pair for pair in given if isinstance(pair, list) and len(pair) == 2] if isinstance(given, list) else []
        options = {name: value for name, value in pairs if isinstance(name, str)}
        for name, value in condition["config"].get(part, {}).items():
            setting = settings[part].get(name, options.get(name))
            if name != "rev" and (_kind(setting) != _kind(value) or (not isinstance(value, dict) and setting != value)):
                return f"settings.{below(part, name)} has another value than config.{below(part, name)}"
    definitions = {name: evaluation_set["definition"] for name, evaluation_set in sets.items()}
    for name, changes in (*definitions.items(), *((name, own.get("task", {})) for name, own in condition["sets"].items())):
        if wrong := _options("task", settings["task"])(changes, f"sets.{name[:60]}.task"):
            return wrong
        for option, value in changes.items():
            setting = settings["task"].get(option)
            if setting is not None and not isinstance(setting, list) and _kind(setting) != _kind(value):
                return f"settings.{below('task', option)} is another kind of value than in the set {name[:60]}"
    return ""


def _kind(value: Value) -> type:
    return float if type(value) is int else type(value)
