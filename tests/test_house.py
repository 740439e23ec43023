"""The rules of the house: which room may import which, what general code may name, and how full a room may be.

Every rule is read from the imports and the text of the files, so nothing is imported here.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("launch", "harness", "tasks", "models", "results")
BELOW = {"launch": {"harness", "tasks", "models", "results"}, "harness": {"tasks", "models", "results"}}
FAMILIES = {path.name for path in (ROOT / "launch" / "studies").iterdir() if path.is_dir()}
REGISTRIES = {  # one a floor: where general code learns which families there are
    "tasks": "tasks/__init__.py",
    "models": "models/__init__.py",
    "harness/probes": "harness/probes/registry.py",
    "harness/experiments": "harness/experiments/built_in.py",
    "launch/cli": "launch/cli/family_commands.py",
    "results/claims": "results/claims/__init__.py",
    "results/report": "results/report/family_sections.py",
}
SCRIPTS = (  # what papers call their families, and the thin script of each paper
    "launch/families.py",
    "launch/fflm_replicates.py",
    "launch/length_generalization.py",
    "launch/progressive_distillation.py",
)
ROOM = 26  # files of its own that a folder may have


@cache
def _modules() -> dict[str, Path]:
    """Dotted name → file of every module of the five floors."""
    found = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _imports(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a module imports anywhere in it: modules of ours, and top-level names of others."""
    ours, others = set(), set()
    for node in ast.walk(ast.parse(_modules()[module].read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{module}: imports are absolute here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.partition(".")[0] not in FLOORS:
                others.add(name.partition(".")[0])
                continue
            while name not in _modules():
                name = name.rpartition(".")[0]
            if name != module:
                ours.add(name)
    return frozenset(ours), frozenset(others)


def _arrows() -> Iterator[tuple[str, str]]:
    for module in _modules():
        for imported in _imports(module)[0]:
            yield module, imported


def _family(module: str) -> str | None:
    """The family whose folder a module lies in."""
    folders = _modules()[module].relative_to(ROOT).parts[1:-1]
    return next((name for name in folders if name in FAMILIES), None)


def _general() -> Iterator[str]:
    """Modules outside the folders of families that are neither a registry nor the script of a paper."""
    registries = {ROOT / path for path in (*REGISTRIES.values(), *SCRIPTS)}
    return (module for module, path in _modules().items() if _family(module) is None and path not in registries)


def test_an_import_only_goes_down():
    upward = [
        f"{module} imports {imported}"
        for module, imported in _arrows()
        if (floor := module.partition(".")[0]) != (other := imported.partition(".")[0]) and other not in BELOW.get(floor, ())
    ]
    assert upward == []


def test_no_files_import_each_other_in_a_circle():
    below: dict[str, set[str]] = {}

    def reach(module: str, path: tuple[str, ...]) -> set[str]:
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module not in below:
            below[module] = set()
            for imported in _imports(module)[0]:
                below[module] |= {imported} | reach(imported, (*path, module))
        return below[module]

    for module in _modules():
        assert module not in reach(module, ())


def test_general_code_imports_no_family():
    assert [f"{m} imports {i}" for m in _general() for i in _imports(m)[0] if _family(i)] == []


def test_a_family_imports_no_other_family_of_its_own_floor():
    crossed = [
        f"{module} imports {imported}"
        for module, imported in _arrows()
        if (family := _family(module)) and (other := _family(imported)) and family != other
    ]
    assert crossed == []


def test_general_code_names_no_family():
    named = re.compile("|".join(rf"\b{name}\b" for name in sorted(FAMILIES)) + r"|flip.?flop|\blego\b|\bpcfg\b", re.IGNORECASE)
    assert [
        f"{m}: {line.strip()}" for m in _general() for line in _modules()[m].read_text().splitlines() if named.search(line)
    ] == []


@pytest.mark.parametrize("floor", REGISTRIES)
def test_every_family_of_a_floor_is_registered_there(floor):
    registry = ROOT / REGISTRIES[floor]
    module = ".".join(registry.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    folders = {path.name for path in (ROOT / floor).iterdir() if path.is_dir() and path.name in FAMILIES}
    assert folders
    assert folders == {
        _family(imported) for imported in _imports(module)[0] if _modules()[imported].is_relative_to(ROOT / floor)
    } - {None}


def test_rooms_are_not_crowded():
    rooms = {path.parent for path in _modules().values()}
    crowded = {str(room.relative_to(ROOT)): len(files) for room in rooms if len(files := list(room.glob("*.py"))) > ROOM}
    assert crowded == {}


def test_no_file_is_named_for_no_subject():
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}
    assert [str(path) for path in _modules().values() if path.stem in vague] == []


def test_results_needs_neither_torch_nor_ray():
    results = [module for module in _modules() if module.startswith("results")]
    assert [module for module in results if _imports(module)[1] & {"torch", "ray"}] == []


@pytest.mark.parametrize(("package", "folder"), [("ray", "harness/executing"), ("wandb", "results/dashboards")])
def test_a_large_dependency_is_imported_in_one_folder(package, folder):
    folders = {str(path.parent.relative_to(ROOT)) for module, path in _modules().items() if package in _imports(module)[1]}
    assert folders == {folder}


def test_tasks_and_models_know_torch_alone():
    allowed = set(sys.stdlib_module_names) | {"torch", "numpy"}
    reads_arrow = {"tasks.text.token_files": {"pyarrow"}}  # a corpus of a user's own may be Arrow or Parquet
    floors = [module for module in _modules() if module.partition(".")[0] in ("tasks", "models")]
    assert {m: foreign for m in floors if (foreign := _imports(m)[1] - allowed - reads_arrow.get(m, set()))} == {}


def test_no_test_imports_another_test():
    imported = {}
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.startswith("tests.") and name.rpartition(".")[2].startswith("test_") for name in names):
                imported[str(path.relative_to(ROOT))] = names
    assert imported == {}
