"""A small study as a tree of settings, and what loading it with changes gives or refuses."""

import pytest

from harness.study.load import from_tree

SETS = {"sparse": {"p_ignore": 0.98, "sequences": 100}}


def small_tree(**changes):
    return {
        "name": "trial",
        "task": {"name": "flipflop", "length": 16},
        "model": {"name": "transformer", "layers": 1, "width": 8, "heads": 2},
        "train": {"steps": 20},
        "evaluate": {"sets": SETS},
        "replicates": 2,
    } | changes


def small_study(*overrides, **changes):
    return from_tree(small_tree(**changes), overrides)


def refusal(*overrides, **changes):
    with pytest.raises(ValueError) as raised:
        small_study(*overrides, **changes)
    message = str(raised.value)
    assert "\n" not in message
    return message


def by_name(study):
    return {condition.name: condition for condition in study.conditions}
