"""`manyseeds show`: every setting of a study as it will be used, and who set it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.planning.manifest import settings_of
from harness.study.config import Condition, Study
from harness.study.load import Sources, from_tree, sources_of
from harness.study.sweep import VARIED, Point, points_of
from harness.study.tree import leaves, nested, read_file, short
from results.plain_values import Options, Value
from results.rows.plural import counted

DEFAULT, CONDITION = "default", "condition"
_ELSEWHERE = ("name", *VARIED[: VARIED.index("replicates")], "conditions", "grid", "sweeps")  # keys that conditions show


@dataclass(frozen=True)
class Setting:
    """origin: default, study, scale NAME, command line, condition, or stage N."""

    path: str
    value: Value
    origin: str


def show(path: Path, overrides: Sequence[str], changed: bool) -> Iterable[str]:
    """The lines that `manyseeds show` prints. changed: leave out what has its default value."""
    tree = read_file(path)
    study, sources = from_tree(tree, overrides, str(path)), sources_of(tree, overrides, str(path))
    yield f"{study.name} (scale {study.scale}), from {path}"
    yield from _table(study_settings(study, sources), changed)
    own = {condition.label: condition_settings(condition, sources) for condition in study.conditions}
    shared = [setting for setting in next(iter(own.values())) if all(setting in settings for settings in own.values())]
    if len(own) > 1 and shared:
        yield f"every condition ({len(own)})"
        yield from _table(shared, changed)
    least = "" if study.adaptive is None else f"{study.adaptive['minimum']} to "
    for condition in study.conditions:
        settings = own[condition.label]
        yield f"condition {condition.label}: {least}{counted(len(condition.seeds), 'replicate')}"
        yield from _table([setting for setting in settings if len(own) == 1 or setting not in shared], changed)


def study_settings(study: Study, sources: Sources) -> list[Setting]:
    """What belongs to the study and not to a condition, in the order of docs/reference/study-file.md."""
    values = {
        "question": study.question,
        **dict(leaves({"source": dict(study.source)})),
    }
    if not study.is_experimental:
        values |= {"evaluate.seed": study.evaluate_seed, "evaluate.curve_every": study.curve_every}
    for scored in study.sets:
        where = f"evaluate.sets.{scored.name}"
        values |= {f"{where}.{name}": value for name, value in scored.definition.items()}
        values |= {f"{where}.sequences": scored.sequences, f"{where}.every": scored.every}
    values |= dict(leaves({"replicates": sources.merged.get("replicates", 1)}))
    values |= dict(leaves({"seeds": sources.merged.get("seeds", {"from": 0})}))
    values |= {"only": sources.merged["only"]} if "only" in sources.merged else {}
    values |= {
        "keep": study.keep,
        "pack.size": study.pack_size or "auto",
        "pack.compile": study.compile,
        "device": study.device,
        "executor": study.executor,
        "leases": "on" if study.leases else "off",
        "store": study.store,
        "wandb.mode": study.wandb,
        "wandb.runs": study.wandb_runs,
        "tensorboard": study.tensorboard,
        **dict(leaves({"claims": dict(study.claims)} if study.claims else {})),
    }
    others = {path: value for path, value in leaves(sources.merged) if path.split(".")[0] not in _ELSEWHERE}
    origins = _origins(sources.layers)
    return [Setting(name, value, origins.get(name, DEFAULT)) for name, value in (values | others | values).items()]


def condition_settings(condition: Condition, sources: Sources) -> list[Setting]:
    """Every option of one condition and stage, defaults included."""
    rule = isinstance(sources.merged.get("replicates"), dict)
    points = points_of(sources.merged | {"replicates": 1} if rule else sources.merged)
    point = next(point for point in points if point.name == condition.name)
    origins = _origins(sources.layers)
    layers: list[tuple[str, Options]] = [*sources.layers, (CONDITION, point.sets)]
    layers += [(f"stage {number}", stage) for number, stage in enumerate(_later(point, sources)[: condition.stage], 1)]
    own = _origins(layers)
    for path, who in own.items():
        if who == CONDITION and (elsewhere := origins.get(f"conditions.{point.condition}.{path}", "study")) != "study":
            own[path] = elsewhere  # set for the condition, but not by the study file
    if condition.stage:
        own |= {f"stage.{path}": who for path, who in own.items() if who == f"stage {condition.stage}"}
        own["stage.number"] = f"stage {condition.stage}"
    return [Setting(path, value, own.get(path, DEFAULT)) for path, value in leaves(settings_of(condition))]


def _later(point: Point, sources: Sources) -> list[Options]:
    return point.sets.get("stages", sources.merged.get("stages")) or []


def _origins(layers: Iterable[tuple[str, Options]]) -> dict[str, str]:
    """{path: who set it last}. A changed name of a task or model forgets the settings of the one before, as in `merge`."""
    setters: dict[str, tuple[Any, str]] = {}
    for origin, words in layers:
        tree = nested(dict(words), origin, unique=False)
        for section, node in tree.items():
            if isinstance(node, dict) and "name" in node and node["name"] != setters.get(f"{section}.name", (None, ""))[0]:
                setters = {path: setter for path, setter in setters.items() if not path.startswith(f"{section}.")}
        setters |= {path: (value, origin) for path, value in leaves(tree)}
    return {path: origin for path, (_, origin) in setters.items()}


def _table(settings: Sequence[Setting], changed: bool) -> Iterable[str]:
    settings = [setting for setting in settings if not (changed and setting.origin == DEFAULT)]
    shown = [(setting.path, short(setting.value), setting.origin) for setting in settings]
    first = max((len(path) for path, _, _ in shown), default=0)
    second = min(40, max((len(value) for _, value, _ in shown), default=0))
    for path, value, origin in shown:
        yield f"  {path:<{first}}  {value:<{second}}  {origin}"
