"""What a scale and the command line make smaller than a study file has it, as "path: old -> new"."""

from collections.abc import Collection, Iterator
from dataclasses import asdict

from harness.study.training_options import Train
from harness.study.tree import leaves, mapping, nested, short
from results.plain_values import Tree, Value


def reductions(base: Tree, smaller: Tree, given: Tree, kept: Collection[str] | None) -> list[str]:
    """Each setting that a scale changes, with the value that the command line gives it instead, if it does.

    base: the file without its scales; smaller: the scale; given: the command line. kept: the conditions that the study has; None for
    all. A setting that each of them has of its own is told of these alone.
    """
    names = [name for name in mapping(base, "conditions") | mapping(smaller, "conditions") if kept is None or name in kept]
    defaults: Tree = {f"train.{name}": value for name, value in asdict(Train()).items()}
    written, changed, instead = (
        dict(leaves(nested(tree, where, unique=False)))
        for tree, where in ((base, "the study"), (smaller, "scales"), (given, "the command line"))
    )
    bare = not names or any("sweeps" in tree for tree in (base, smaller, given))  # points that belong to no condition
    changes = _changes(defaults | written, changed, instead, names, bare)
    told = [_conditions(base, after) if path == "only" else (path, before, after) for path, before, after in changes]
    return [f"{path}: {short(before)} -> {short(after)}" for path, before, after in told if before != after]


def _changes(written: Tree, changed: Tree, instead: Tree, names: list[str], bare: bool) -> Iterator[tuple[str, Value, Value]]:
    """Path, old and new value of each setting, by path: of the file, of the scale and of the command line."""
    settings = written | changed | instead
    dropped = tuple(f"{path}." for path, value in instead.items() if value is None)
    for path, value in changed.items():
        if path.startswith(dropped):
            continue
        name = next((name for name in names if path.startswith(f"conditions.{name}.")), None)
        if name is not None:
            yield path, _before(written, name, path.removeprefix(f"conditions.{name}.")), instead.get(path, value)
        elif not path.startswith("conditions."):
            own = {name: f"conditions.{name}.{path}" for name in names}
            if bare or any(own[name] not in settings and not _replaces(settings, name, path) for name in names):
                yield path, written.get(path, "unset"), instead.get(path, value)
            for name in names:
                if own[name] in instead and own[name] not in changed:
                    yield own[name], _before(written, name, path), instead[own[name]]


def _before(written: Tree, name: str, path: str) -> Value:
    """A setting of a condition in the file, which may be that of the whole study."""
    shared = "unset" if _replaces(written, name, path) else written.get(path, "unset")
    return written.get(f"conditions.{name}.{path}", shared)


def _replaces(settings: Tree, name: str, path: str) -> bool:
    """Whether a condition has a task or model of another name, which takes over none of the options of the study's."""
    section = path.partition(".")[0]
    own = settings.get(f"conditions.{name}.{section}.name")
    return section in ("task", "model") and own is not None and own != settings.get(f"{section}.name")


def _conditions(base: Tree, after: Value) -> tuple[str, Value, Value]:
    """A choice of conditions as a change of their list."""
    return (
        "conditions",
        ", ".join(mapping(base, "conditions")),
        ", ".join(map(str, after)) if isinstance(after, list) else after,
    )
