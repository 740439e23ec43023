"""The kinds of value that options take, from the annotations of tasks, models, trainings and built-in experiments.

Readers of manifests import none of these, and check the options by `results/store/option_kinds.json`. After a change of an option:

    python -m harness.study.option_kinds > results/store/option_kinds.json

A kind is "whole", "number", "text", "flag" or "null", {"list": kind}, {"mapping": {option: kind}}, or a list of kinds, any of which fits.
"""

import dataclasses
import json
import sys
import types
import typing
from typing import Any

import models
import tasks
from harness.experiments.built_in import REGISTRY
from harness.study.stages import Link
from harness.study.training_options import Train
from results.plain_values import Tree

_NAMES = {int: "whole", float: "number", str: "text", bool: "flag", type(None): "null"}


def option_kinds() -> Tree:
    """{section: {option: kind}} for `train` and `stage`, {section: {registered name: {option: kind}}} for task, model and experiment."""
    named: dict[str, dict[str, Any]] = {"task": {**tasks.REGISTRY}, "model": {**models.REGISTRY}, "experiment": {**REGISTRY}}
    sections = {section: {name: _options(kind) for name, kind in registry.items()} for section, registry in named.items()}
    return {**sections, "train": _options(Train), "stage": _options(Link) | {"number": "whole"}}


def _options(config: Any) -> Tree:
    kinds = typing.get_type_hints(config)
    return {field.name: _kind(kinds[field.name]) for field in dataclasses.fields(config)}


def _kind(annotation: Any) -> Any:
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return [_kind(member) for member in members]
    if origin is tuple:
        return {"list": _kind(members[0])}
    return {"mapping": _options(annotation)} if dataclasses.is_dataclass(annotation) else _NAMES[annotation]


if __name__ == "__main__":
    sys.stdout.buffer.write((json.dumps(option_kinds(), indent=1) + "\n").encode())
