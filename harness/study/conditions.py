"""The conditions of a study, with their stages and seeds, from the points of its conditions, grid and sweeps."""

from collections import Counter
from dataclasses import replace

from harness.study import stages
from harness.study.config import Condition, build, experiment_condition, own_digest
from harness.study.experiment import build_experiment
from harness.study.identity import canonical
from harness.study.sweep import TRAINED, Point
from harness.study.training_options import Train
from harness.study.tree import merge, nested, short
from models.model import Model
from results.errors import StudyError
from results.plain_values import Tree
from tasks.task import Task


def conditions_of(merged: Tree, points: list[Point], experimental: bool) -> tuple[Condition, ...]:
    """The conditions of the points. Points with equal configurations become one, with the seeds of all.

    Its name is that of the first point whose last stage it is, else of the first with this stage: what `teacher: {}` trains is called so,
    whatever other condition begins with the same stage. StudyError where two points under `conditions` are the same in all stages, since
    one of the names would be lost.
    """
    merged_points: dict[str, tuple[Condition, dict[tuple[int, int], None]]] = {}
    named: dict[str, str] = {}  # by the configurations of all stages
    ends: dict[str, str] = {}  # names by the configuration of the last stage
    for point in points:
        try:
            chain = [_experiment(merged, point)] if experimental else _chain(merged, point)
        except StudyError as error:
            raise StudyError(f"condition {point.name}: {error}") from error
        if experimental and any(init != data for init, data in point.seeds):
            raise StudyError(
                "seeds: an experiment has one seed, so init and data can't differ: write replicates, or seeds: {from: 100}"
            )
        if point.condition is not None:
            first = named.setdefault(canonical([condition.config() for condition in chain]), point.condition)
            if first != point.condition:
                raise StudyError(
                    f"conditions.{first} and conditions.{point.condition} are the same: change a setting of one, or leave it out"
                )
        ends.setdefault(canonical(chain[-1].config()), point.name)
        for built in stages.with_seeds(chain, point.seeds):
            _, seeds = merged_points.setdefault(canonical(built.config()), (built, {}))
            seeds.update(dict.fromkeys(built.seeds))
    conditions = tuple(
        replace(condition, name=ends.get(config, condition.name), seeds=tuple(seeds))
        for config, (condition, seeds) in merged_points.items()
    )
    for name, times in Counter(condition.label for condition in conditions).items():
        if times > 1:
            raise StudyError(
                f"two different conditions are called {name!r}: rename the one under conditions; where both are of one sweep, "
                'leave out a value that looks like another, such as "1" beside 1'
            )
    return conditions


def _experiment(merged: Tree, point: Point) -> Condition:
    if others := [section for section in (*TRAINED, "stages") if section in point.sets]:
        raise StudyError(f"{others[0]} is set here, and an experiment trains nothing: leave it out")
    whole = merge({"experiment": merged.get("experiment", {})}, {"experiment": point.sets.get("experiment", {})})
    return experiment_condition(point.name, build_experiment(whole["experiment"]))


def _chain(merged: Tree, point: Point) -> list[Condition]:
    """The condition of a point and those of its later stages, each of which changes the settings of the one before it."""
    if "experiment" in point.sets:
        raise StudyError("experiment is set here, and this study trains: leave it out")
    whole = merge({section: merged.get(section, {}) for section in TRAINED}, point.sets)
    later = point.sets.get("stages", merged.get("stages"))
    task, model, train = _built(whole)
    chain = [Condition(point.name, task, model, train, code=own_digest(task, model))]
    if later is not None and not (isinstance(later, list) and all(isinstance(stage, dict) for stage in later)):
        raise StudyError(
            f"stages = {short(later)} must be a list of mappings such as {{task: {{length: 10}}, labels: previous}}"
        )
    for index, given in enumerate(later or []):
        where, node = f"stages[{index}]", nested(given, f"stages[{index}]")
        link = stages.link(node, where)
        whole = merge(whole, {section: node[section] for section in TRAINED if section in node})
        try:
            task, model, train = _built(whole)
        except StudyError as error:
            raise StudyError(f"{where}: {error}") from error
        chain.append(stages.after(chain[-1], link, task, model, train, where))
    return chain


def _built(whole: Tree) -> tuple[Task, Model, Train]:
    """The task, model and training of one stage. StudyError for a penalty on attention without a weight."""
    task, model, train = (build(section, whole[section]) for section in TRAINED)
    sharpen = whole["train"].get("sharpen")
    if sharpen is not None:
        if "weight" not in sharpen:
            raise StudyError("train.sharpen.weight is missing, so there would be no penalty: write one, such as weight: 0.01")
        layers = sharpen.get("layers")
        if layers is not None and len(set(layers)) < len(layers):
            raise StudyError(f"train.sharpen.layers = {list(layers)} names a layer twice, which counts once: keep one")
    return task, model, train
