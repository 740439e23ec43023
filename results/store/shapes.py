"""Shapes of values that come from files: what each kind of field may hold, and the shape that an annotated type stands for.

A shape is a function of a value and of where it lies; it returns what is wrong as a part of a sentence, "" where nothing is.
"""

import types
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from results.plain_values import Value

Shape = Callable[[Value, str], str]

MOST_NAME = 2_000  # characters of what is drawn or is a name
MOST_TEXT = 1_000_000
LARGEST = 2**63 - 1  # what a table's column holds


def text(most: int = MOST_TEXT) -> Shape:
    def check(value: Value, where: str) -> str:
        if not isinstance(value, str):
            return f"{where} must be text"
        return f"{where} has {len(value)} characters, and at most {most} are read" if len(value) > most else ""

    return check


def whole(least: int = 0) -> Shape:
    def check(value: Value, where: str) -> str:
        fits = type(value) is int and least <= value <= LARGEST
        return "" if fits else f"{where} must be a whole number" + (f" of at least {least}" if least > -LARGEST else "")

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
            if wrong := shape(entry, below(where, name)):
                return wrong
        return ""

    return check


def record(shapes: Mapping[str, Shape], required: Collection[str] = ()) -> Shape:
    """A mapping that has the `required` ones of these names, and may have the others; names beside them are ignored."""

    def check(value: Value, where: str) -> str:
        if not isinstance(value, dict):
            return f"{where or 'it'} must be a mapping"
        for name in required:
            if name not in value:
                return f"{below(where, name)} is missing"
        return next(
            (wrong for name, shape in shapes.items() if name in value and (wrong := shape(value[name], below(where, name)))),
            "",
        )

    return check


def below(where: str, name: str) -> str:
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    return f"{where}.{shown}" if where else shown


def shape_of(kind: Any, required: Collection[str] | None = None) -> Shape:
    """The shape of an annotated type: the one that `Annotated` names, else that of its kind; whole numbers are at least 0.

    required: names that a TypedDict must have, where these are fewer than its class requires.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        named: Shape = arguments[1]
        return named
    if origin is NotRequired:
        return shape_of(arguments[0])
    if origin in (Union, types.UnionType):
        return optional(shape_of(arguments[0]))
    if origin is list:
        return items(shape_of(arguments[0]))
    if origin in (dict, Mapping):
        return mapping(shape_of(arguments[1]))
    if is_typeddict(kind):
        shapes = {name: shape_of(field) for name, field in get_type_hints(kind, include_extras=True).items()}
        return record(shapes, [name for name in shapes if name in (kind.__required_keys__ if required is None else required)])
    return {str: text(), int: whole(), float: number, bool: flag, Any: anything}[kind]
