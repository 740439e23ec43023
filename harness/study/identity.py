"""What a replicate is, as a hash: the same on every machine, forever.

    config = {"task": {"name": "automaton"}, "model": {"name": "lstm"}, "train": {"steps": 500}}
    key(config, stage=0, init_seed=0, data_seed=0)             # 32 hexadecimal digits

A field equal to its default is left out and a default never changes, so a new option re-hashes nothing; a change of meaning bumps
the `rev` of its dataclass, which is hashed unless it is 1. Frozen by the golden keys of `tests/harness/study/test_identity.py`.
"""

import dataclasses
import difflib
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from results.errors import StudyError
from results.plain_values import Options, Tree

PLACE, HASHED = "folder", "content"  # options of a task: the folder of its files, never hashed, and the hash of their content


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces, floats by `repr`. TypeError or ValueError on what has no single spelling in JSON."""
    _check(value, "value")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key(config: Options, stage: int, init_seed: int, data_seed: int, parent: str | None = None) -> str:
    """First 128 bits of SHA-256 over {task, model, train, stages, init_seed, data_seed}; `config` is a `Condition.config()`.

    A later stage also hashes its number and its parent's key.
    """
    if (stage > 0) != (parent is not None):
        raise ValueError(f"stage {stage} with parent {parent!r}: a later stage has a parent's key and stage 0 has none")
    identity = {**placeless(config), "init_seed": init_seed, "data_seed": data_seed}
    if stage:
        identity |= {"stage": stage, "parent": parent}
    return digest(identity, 32)


def set_hash(task: Options, sequences: int, seed: int, every: int | None = None) -> str:
    """16 digits that name an evaluation set: the task it samples (as `describe` writes it), its size, its seed and its cadence.

    The cadence belongs to it: a replicate scored only at the end lacks the rows that `every: 100` asks for.
    """
    identity: Tree = {**placeless({"task": task}), "sequences": sequences, "seed": seed}
    if every is not None:
        identity["every"] = every
    return digest(identity, 16)


def placeless(config: Options) -> Tree:
    """A `Condition.config()` without the `PLACE` of a task that has the hash of its files, in earlier stages too."""
    kept = dict(config)
    if HASHED in kept.get("task", {}):
        kept["task"] = {name: value for name, value in kept["task"].items() if name != PLACE}
    if "stages" in kept:
        kept["stages"] = [placeless(stage) for stage in kept["stages"]]
    return kept


def digest(value: object, digits: int) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]


def describe(config: Any, name: str | None = None) -> Tree:
    """A configuration dataclass as a dict: its name, its `rev` unless 1, and the fields that differ from their defaults.

    A field that is a dataclass is described likewise; a configuration with a method `described` says it itself.
    """
    if hasattr(config, "described"):
        return config.described()
    out: Tree = {} if name is None else {"name": name}
    if getattr(config, "rev", 1) != 1:
        out["rev"] = config.rev
    section: Any = type(config)
    for name, kind, declared, default in _options(section):
        value = getattr(config, name)
        if value is declared:
            continue  # most of them, and a study describes each condition many times
        value = typed(kind, value, name)
        if default is dataclasses.MISSING or value != default:
            out[name] = _plain(value)
    return out


@functools.cache
def _options(kind: Any) -> tuple[tuple[str, Any, Any, Any], ...]:
    """(name, declared type, default as declared, default as that type) of each field of a configuration dataclass, MISSING for none."""
    kinds, options = declared_types(kind), []
    for field in dataclasses.fields(kind):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if default is not dataclasses.MISSING:
            default = typed(kinds[field.name], default, field.name)
        options.append((field.name, kinds[field.name], field.default, default))
    return tuple(options)


@functools.cache
def declared_types(kind: Any) -> dict[str, Any]:
    """The declared type of each field of a configuration dataclass, cached, since evaluating annotations is slow."""
    return typing.get_type_hints(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return describe(value) if dataclasses.is_dataclass(value) else value


def typed(kind: Any, value: Any, where: str) -> Any:
    """`value` as the declared type, so that 1 and 1.0, a list and a tuple are one value. ValueError where it can't be."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        lists = [member for member in members if typing.get_origin(member) is tuple]
        if len(lists) == 1 and isinstance(value, list | tuple):
            return typed(lists[0], value, where)
        for member in members:
            if dataclasses.is_dataclass(member) and isinstance(value, Mapping):
                return typed(member, value, where)  # its own sentence says more than "must be … or null"
            try:
                return typed(member, value, where)
            except ValueError:
                continue
    elif origin is tuple:
        if isinstance(value, list | tuple):
            if members[-1] is Ellipsis:
                return tuple(typed(members[0], item, where) for item in value)
            if len(members) == len(value):
                return tuple(typed(member, item, where) for member, item in zip(members, value, strict=True))
    elif kind is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value) + 0.0  # + 0.0 makes -0.0 the one zero
    elif kind is int:
        if type(value) is int or (type(value) is float and value.is_integer()):
            return int(value)
    elif dataclasses.is_dataclass(kind):
        if type(value) is kind:
            return value
        if isinstance(value, Mapping):
            return _section(kind, value, where)
    elif type(value) is kind:
        return value
    raise StudyError(f"{where} = {value!r} must be {_in_words(kind)}")


def _section(kind: Any, value: Options, where: str) -> Any:
    kinds = declared_types(kind)
    options = [field.name for field in dataclasses.fields(kind)]
    for name in value:
        if name not in options:
            match = difflib.get_close_matches(str(name), options, n=1)
            hint = f"; did you mean {where}.{match[0]}?" if match else f"; options: {', '.join(options)}"
            raise StudyError(f"{where}.{name} is unknown{hint}")
    for field in dataclasses.fields(kind):
        if field.default is field.default_factory is dataclasses.MISSING and field.name not in value:
            raise StudyError(f"{where}.{field.name} is missing: give {_in_words(kinds[field.name])}")
    return kind(**{name: typed(kinds[name], own, f"{where}.{name}") for name, own in value.items()})


def _in_words(kind: Any) -> str:
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_in_words(member) for member in members)
    if origin is tuple:
        return "a list" if members[-1] is Ellipsis else f"a list of {len(members)}"
    if dataclasses.is_dataclass(kind):
        return "a mapping"
    words = {int: "a whole number", float: "a finite number", str: "a word", bool: "true or false", type(None): "null"}
    unfit = f"{getattr(kind, '__name__', kind)}, which no option can be: declare int, float, str, bool or tuple[…]"
    return words.get(kind, unfit)


def _check(value: Any, where: str) -> None:
    if type(value) is dict:
        for name, item in value.items():
            if type(name) is not str:
                raise TypeError(f"{where} has the key {name!r}: only words can be keys of canonical JSON")
            _check(item, f"{where}.{name}")
    elif type(value) in (list, tuple):
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]")
    elif type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where} = {value} can't be written in canonical JSON")
    elif type(value) not in (str, int, bool, type(None)):
        raise TypeError(f"{where} is a {type(value).__name__}, which has no canonical JSON")
