"""The registries hold what every family's folder offers, and no two families offer the same name."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import models
import tasks


def offered(floor: ModuleType, attribute: str) -> list[str]:
    """Names in the attribute of each package of a floor, in the order of the packages."""
    packages = [import_module(f"{floor.__name__}.{each.name}") for each in pkgutil.iter_modules(floor.__path__) if each.ispkg]
    return [name for package in packages for name in getattr(package, attribute, {})]


@pytest.mark.parametrize(
    ("floor", "attribute", "general", "registry"),
    [(tasks, "TASKS", {}, tasks.REGISTRY), (models, "MODELS", models.GENERAL, models.REGISTRY)],
    ids=["tasks", "models"],
)
def test_a_registry_is_the_union_of_its_families(
    floor: ModuleType, attribute: str, general: Mapping[str, Any], registry: Mapping[str, Any]
):
    names = offered(floor, attribute)
    assert len(names) > 1
    assert sorted([*general, *names]) == sorted(registry)
