"""The registries hold what every family's folder offers, and no two families offer the same name."""

import pkgutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import harness.probes
import models
import tasks
from harness.probes import registry
from harness.probes.probe import PairProbe, Probe


def offered(floor: ModuleType, attribute: str) -> list[str]:
    """Names in the attribute of each package of a floor, in the order of the packages."""
    packages = [import_module(f"{floor.__name__}.{each.name}") for each in pkgutil.iter_modules(floor.__path__) if each.ispkg]
    return [name for package in packages for name in getattr(package, attribute, {})]


@pytest.mark.parametrize(
    ("floor", "attribute", "general", "registry"),
    [
        (tasks, "TASKS", {}, tasks.REGISTRY),
        (models, "MODELS", models.GENERAL, models.REGISTRY),
        (harness.probes, "PROBES", {}, registry.PROBES),
    ],
    ids=["tasks", "models", "probes"],
)
def test_a_registry_is_the_union_of_its_families(
    floor: ModuleType, attribute: str, general: Mapping[str, Any], registry: Mapping[str, Any]
):
    names = offered(floor, attribute)
    assert len(names) > 1
    assert sorted([*general, *names]) == sorted(registry)


def test_every_name_of_a_probe_leads_to_one_and_is_known_without_torch():
    probes = {name: registry.probe(name) for name in registry.PROBES}
    assert all(isinstance(probe, Probe | PairProbe) for probe in probes.values())
    assert len({id(probe) for probe in probes.values()}) == len(probes)
    code = "import sys, harness.probes.registry; assert not {'torch', 'pyarrow', 'matplotlib'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
