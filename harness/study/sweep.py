"""The points of a study: conditions × grid, and `sweeps`; which of them are trained, and what the command line may change of them."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

import models
import tasks
from harness.study.config import nearest, refuse_unknown
from harness.study.experiment import build_experiment
from harness.study.limits import refuse_many_conditions, refuse_many_replicates
from harness.study.seeds import count_of, pairs_of
from harness.study.training_options import Train
from harness.study.tree import leaves, mapping, nested, overlap, refuse_unprintable, short, typed, united
from results.errors import OTHER_NAMES, StudyError
from results.plain_values import Tree, Value

TRAINED = ("task", "model", "train")
HASHED = (*TRAINED, "experiment")
VARIED = (*HASHED, "stages", "replicates", "seeds")


@dataclass(frozen=True)
class Point:
    """One point of the sweep, before its values are built: what it sets over the base, and the seeds of its replicates."""

    name: str
    condition: str | None
    sets: Tree
    seeds: list[tuple[int, int]]
    own_seeds: bool = False  # rather than the study's


def points_of(merged: Tree) -> list[Point]:
    """The points of `conditions` × `grid`, then of every entry of `sweeps`; without either, the base alone."""
    conditions = mapping(merged, "conditions")
    for name in conditions:
        refuse_unprintable(name, "a condition", "conditions")
    named = {name: nested({} if value is None else value, f"conditions.{name}") for name, value in conditions.items()}
    for name, sets in named.items():
        for key in sets:
            if paths := _meant(key, merged):
                raise StudyError(f"conditions.{name} has no key {key!r}; did you mean {' or '.join(paths)}?")
        refuse_unknown(sets, VARIED, f"conditions.{name}")
    grid, sweeps = mapping(merged, "grid"), typed(merged, "sweeps", list, [])
    groups: list[_Group] = []
    if named or grid or not sweeps:
        axes = _axes(grid, "grid", merged)
        size = math.prod(map(len, axes.values()))
        over: list[tuple[str | None, Tree]] = [*named.items()] or [(None, {})]
        groups = [_Group(condition, sets, size, _product(axes)) for condition, sets in over]
    groups += [_sweep(sweep, f"sweeps[{index}]", merged) for index, sweep in enumerate(sweeps)]
    refuse_many_conditions(sum(group.size for group in groups))
    total = 0
    for group in groups:
        replicates, key = count_of(merged, group.sets)
        total += group.size * replicates
        own = f"condition {group.condition}: " if group.condition and {"replicates", "seeds"} & group.sets.keys() else ""
        refuse_many_replicates(total, f"{own}{key}", sum(swept_group.size for swept_group in groups))
    return [_point(merged, group.condition, group.sets, swept) for group in groups for swept in group.combinations]


@dataclass(frozen=True)
class _Group:
    """Points with the same fixed settings, which differ in what is swept. combinations: `size` of them, made one at a time."""

    condition: str | None
    sets: Tree
    size: int
    combinations: Iterable[Tree]


def _sweep(sweep: Value, where: str, merged: Tree) -> _Group:
    """The points of one entry of `sweeps`, over the base."""
    if not isinstance(sweep, dict):
        raise StudyError(f"{where} = {sweep!r} must be a mapping with grid, each or zip")
    refuse_unknown(sweep, ("grid", "each", "zip", "replicates", "seeds"), where)
    kinds = [kind for kind in ("grid", "each", "zip") if kind in sweep]
    if len(kinds) != 1:
        raise StudyError(f"{where} must have exactly one of grid, each and zip, and has {' and '.join(kinds) or 'none'}")
    axes = _axes(mapping(sweep, kinds[0], f"{where}."), f"{where}.{kinds[0]}", merged)
    if not axes:
        raise StudyError(f"{where}.{kinds[0]} is empty: give it at least one key with its values, such as {{train.lr: [1e-3]}}")
    own = {key: sweep[key] for key in ("replicates", "seeds") if key in sweep}
    if kinds[0] == "grid":
        return _Group(None, own, math.prod(map(len, axes.values())), _product(axes))
    combinations: list[Tree]
    if kinds[0] == "each":
        combinations = [{path: value} for path, values in axes.items() for value in values]
    else:
        if len({len(values) for values in axes.values()}) > 1:
            lengths = ", ".join(f"{path} has {len(values)}" for path, values in axes.items())
            raise StudyError(f"{where}.zip pairs values one to one, but {lengths}: give lists of one length")
        combinations = [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]
    return _Group(None, own, len(combinations), combinations)


def with_section(key: str, tree: Tree) -> list[str]:
    """The paths that may be meant by an option without its section, such as train.lr by lr. tree: of the study."""
    nothing: Value = {} if "task" in tree else None  # a file may leave out `train`
    nodes = {section: node for section in HASHED if isinstance(node := tree.get(section, nothing), dict)}
    for name in (key, OTHER_NAMES.get(key, key)):
        if paths := [f"{section}.{name}" for section, node in nodes.items() if name in node or name in _options(section, node)]:
            return paths
    return []


def _meant(key: str, merged: Tree) -> list[str]:
    """As `with_section`, for a key of a condition or a grid; settings of an experiment may have any name."""
    if key in VARIED:
        return []
    settings = [f"experiment.{key}"] if "experiment" in merged and not nearest(key, VARIED) else []
    return with_section(key, merged) or settings


def _options(section: str, node: Tree) -> Collection[str]:
    """The options of a section whose node in the study file is given."""
    if section == "train":
        return Train.__dataclass_fields__
    kinds: dict[str, Mapping[str, type]] = {"task": tasks.REGISTRY, "model": models.REGISTRY}
    kind = kinds.get(section, {}).get(str(node.get("name")))
    return () if kind is None else [field.name for field in fields(kind)]


def _axes(grid: Tree, where: str, merged: Tree) -> dict[str, list[Value]]:
    """{dotted path: its values}."""
    axes = dict(leaves(nested(grid, where)))
    for path, values in axes.items():
        if path.split(".")[0] not in HASHED:
            if paths := _meant(path, merged):
                raise StudyError(f"{where}.{path} can't be swept; did you mean {' or '.join(paths)}?")
            raise StudyError(f"{where}.{path} can't be swept; sweep keys of {', '.join(HASHED)}{nearest(path, HASHED)}")
        if not isinstance(values, list) or not values:
            raise StudyError(f"{where}.{path} = {values!r} must be a list of at least one value")
    return axes


def _product(axes: dict[str, list[Value]]) -> Iterator[Tree]:
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _point(merged: Tree, condition: str | None, sets: Tree, swept: Tree) -> Point:
    named = [f"{path.removeprefix('experiment.')}={short(value)}" for path, value in swept.items()]
    parts = [condition, *named] if condition else named
    name = ", ".join(parts) or _title(merged)
    if not name.isprintable():
        raise StudyError(f"{name!r} can't be the name of a condition: sweep values that are written on one line")
    for path in swept:
        if condition and (set_twice := [other for other, _ in leaves(sets) if overlap(path, other)]):
            raise StudyError(
                f"grid.{path} is also set by condition {condition}, as {set_twice[0]}: leave it out of one of them, or write a sweep "
                "under sweeps"
            )
    own = "replicates" in sets or "seeds" in sets
    seeds = pairs_of(merged, sets, f"{name}: " if own else "")
    # united, not merged: a swept name of a task or model would drop what the condition sets beside it
    return Point(name, condition, united(sets, nested(swept, name)), seeds, own)


def _title(merged: Tree) -> str:
    """What the only condition of a study is called: its model, its function, or the file of its command."""
    if "experiment" in merged:
        return build_experiment(merged["experiment"]).title
    return str(merged.get("model", {}).get("name", "base"))


def select(points: list[Point], only: Value) -> list[Point]:
    """The points that `only` names, by condition or by full name."""
    if only is None:
        return points
    if not isinstance(only, list) or not only:
        raise StudyError(f"only = {only!r} must be a list of conditions, such as [lstm]")
    names = list(dict.fromkeys(name for point in points for name in (point.condition, point.name) if name))
    for wanted in only:
        if wanted not in names:
            raise StudyError(f"only: there is no condition {wanted!r}; conditions: {'; '.join(names)}{nearest(wanted, names)}")
    return [point for point in points if point.condition in only or point.name in only]


def refuse_hidden_overrides(given: Tree, merged: Tree, points: list[Point]) -> None:
    """StudyError for a command-line key that a condition sets to another value, so that it would be lost in silence."""
    for path, value in leaves({key: given[key] for key in VARIED if key in given}):
        if path.startswith("replicates."):  # of a rule, beside which `load` lets no condition have replicates of its own
            continue
        setters = [point.name for point in points if _hides(point, path, value)]
        if setters:
            more = f" and {len(setters) - 6} more" if len(setters) > 6 else ""
            raise StudyError(
                f"{path}={short(value)} on the command line is also set by {len(setters)} of {len(points)} conditions "
                f"({'; '.join(setters[:6])}{more}): change it there (conditions.<name>.{path}=…, or the sweep), or drop it"
            )
        section = path.split(".")[0]
        if section in ("task", "model", "experiment") and all(
            _replaces(point.sets.get(section), merged[section]) for point in points
        ):
            raise StudyError(
                f"{path}={short(value)} on the command line changes nothing: every condition has its own {section}"
            )


def refuse_changes_of_nothing(overrides: Iterable[str], section: str, kind: str, there: Collection[str]) -> None:
    """StudyError for a word that changes a part of something that the section of the study lacks.

    It would be one more of its kind, and the one that was meant would stay as it is.
    """
    for word in overrides:
        key = word.partition("=")[0]
        name, _, inner = key.removeprefix(f"{section}.").partition(".")
        if key.startswith(f"{section}.") and inner and there and name not in there:
            if dotted := next((own for own in there if "." in own and f"{key}.".startswith(f"{section}.{own}.")), None):
                raise StudyError(
                    f"{key} on the command line: the {kind} {dotted!r} has a dot in its name, so write "
                    f"'{section}={{{dotted}: {{…}}}}', in quotes"
                )
            raise StudyError(
                f"{key} on the command line: the study has no {kind} {name!r}; {kind}s: {', '.join(there)}{nearest(name, there)}; "
                f"to add one, write {section}.{name}={{…}}"
            )


def refuse_emptying(given: Tree, *study: Tree) -> None:
    """StudyError for an empty mapping on the command line where the study has something: merged with it, it takes nothing away."""
    for path, value in leaves(given):
        if value == {} and any(own.startswith(f"{path}.") for tree in study for own, _ in leaves(tree)):
            instead = "choose conditions with only=[…]" if path == "conditions" else "take it out of the study file"
            raise StudyError(
                f"{path}={{}} on the command line changes nothing, since it is merged with the study's own: leave it out, or {instead}"
            )


def _hides(point: Point, path: str, value: Value) -> bool:
    """Whether a point sets something else than the `value` given at `path`.

    Lists of seeds are a number of replicates too, and the other way round.
    """
    if path == "replicates" and {"init", "data"} & set(mapping(point.sets, "seeds")):
        return True
    if path.startswith(("seeds.init", "seeds.data")) and "replicates" in point.sets:
        return True
    return any(overlap(path, other) and (other, own) != (path, value) for other, own in leaves(point.sets))


def refuse_lost_replicates(given: Tree, merged: Tree, where: str) -> None:
    """StudyError for a number of replicates of a scale or of the command line beside the study's lists of seeds."""
    if "replicates" in given and {"init", "data"} & set(mapping(merged, "seeds")):
        raise StudyError(
            f"replicates {where} changes nothing: the study gives seeds; override seeds.init and seeds.data, or write "
            "seeds={from: 0}"
        )


def _replaces(over: Value, base: Tree) -> bool:
    return isinstance(over, dict) and over.get("name", base.get("name")) != base.get("name")
