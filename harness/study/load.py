"""A study file (YAML) and `key=value` overrides to a `Study`.

    study = load("my_study.yaml", ["replicates=25", "model.layers=2"])

Order: defaults < file < scale < command line < condition / grid. Changing the `name` of a task or model replaces the node, so an LSTM
does not inherit `heads`.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.study import run_options
from harness.study.conditions import conditions_of
from harness.study.config import (
    Condition,
    EvaluationSet,
    Metric,
    Study,
    Watch,
    build,
    keep_steps,
    keep_tail,
    nearest,
    one_of,
    refuse_unknown,
)
from harness.study.identity import canonical
from harness.study.limits import MOST_SEQUENCES, refuse_many_points, refuse_many_replicates
from harness.study.reductions import reductions
from harness.study.seeds import replaces_seeds
from harness.study.sweep import (
    HASHED,
    TRAINED,
    Point,
    points_of,
    refuse_changes_of_nothing,
    refuse_emptying,
    refuse_hidden_overrides,
    refuse_lost_replicates,
    select,
    with_section,
)
from harness.study.tree import (
    count,
    leaves,
    mapping,
    merge,
    nested,
    parse_words,
    read_file,
    refuse_resolvers,
    refuse_unprintable,
    resolve,
    short,
    texts,
    typed,
)
from results.dashboards.dashboard_count import check_count
from results.errors import StudyError
from results.plain_values import Tree, Value
from results.statistics.adaptive_rules import Rule, first_look, parse
from results.store.tables import KEPT, MOST_NAME

KEYS = (
    *"name question source scale scales only reductions evaluate conditions grid sweeps replicates seeds budget".split(),
    *"keep pack device slots executor leases store wandb tensorboard claims".split(),
    *HASHED,
    "stages",
)


def load(path: str | Path, overrides: Sequence[str] = ()) -> Study:
    """The study of a file with `key=value` overrides. StudyError, in one sentence, on anything wrong."""
    path = Path(path)
    return from_tree(read_file(path), overrides, str(path))


def from_tree(tree: Tree, overrides: Sequence[str] = (), where: str = "the study") -> Study:
    """As `load`, from plain containers."""
    sources = sources_of(tree, overrides, where)
    scale, base, smaller, given, merged = sources.scale, sources.base, sources.smaller, sources.given, sources.merged

    experimental = _is_experimental(merged, where)
    for section in TRAINED:
        if section in merged:
            build(section, merged[section])
    rule = _adaptive(merged)
    if rule is not None:
        refuse_many_replicates(rule.maximum, f"replicates.max = {rule.maximum}", 1)
    points = select(points_of(merged if rule is None else merged | {"replicates": rule.maximum}), merged.get("only"))
    refuse_hidden_overrides(given, merged, points)
    refuse_lost_replicates(given, merged, "on the command line")
    refuse_lost_replicates(smaller, merged, f"of scale {scale}")
    sets, seed, curve_every, watch = ((), 0, 10, None) if experimental else _evaluate(merged)
    conditions = conditions_of(merged, points, experimental)
    if not experimental:
        _refuse_idle_overrides(given, conditions)
    study = Study(
        name=_name(merged),
        question=typed(merged, "question", str, ""),
        conditions=conditions,
        sets=sets,
        source=mapping(merged, "source"),
        scale=scale,
        reductions=reductions_of(sources, {point.condition for point in points if point.condition}),
        overrides=tuple(overrides),
        evaluate_seed=seed,
        curve_every=curve_every,
        watch=watch,
        metrics=_metrics(merged, conditions) if experimental else {},
        keep=_keep(merged),
        pack_size=run_options.pack_size(merged),
        compile=typed(mapping(merged, "pack"), "compile", bool, False, "pack."),
        device=run_options.device(merged),
        executor=run_options.executor(merged),
        leases=run_options.leases(merged),
        store=run_options.store(merged),
        wandb=run_options.wandb(merged)[0],
        wandb_runs=run_options.wandb(merged)[1],
        tensorboard=typed(merged, "tensorboard", str, ""),
        claims=_claims(base, merged, experimental),
        adaptive=None if rule is None else asdict(rule),
        slots=run_options.slots(merged),
    )
    if not experimental:
        for condition in study.conditions:
            refuse_many_points(condition.train.steps, study.curve_every)
        _validate_sets(study)
        _validate_keep(study)
        _validate_watch(study)
    check_count(study.wandb_runs, len(study.conditions), sum(len(condition.seeds) for condition in study.conditions))
    if rule is not None:
        _validate_rule(study, rule, points)
    return study


@dataclass(frozen=True)
class Sources:
    """The settings of a study file, its scale and the command line.

    base: the file without its scales; smaller: what the scale changes; given: the command line. layers: (who sets it, settings), a later
    one over the earlier ones; merged: all of them, with references resolved.
    """

    scale: str
    base: Tree
    smaller: Tree
    given: Tree
    layers: tuple[tuple[str, Tree], ...]
    merged: Tree


def sources_of(tree: Tree, overrides: Sequence[str] = (), where: str = "the study") -> Sources:
    """The settings of a study, before anything is built from them."""
    given = parse_words(overrides)
    for words, source in ((tree, where), (given, "the command line")):
        _refuse_without_section(words, tree, source)
        refuse_unknown(words, KEYS, source)
        refuse_resolvers(words, source)
    if "scales" in given:
        raise StudyError(
            "scales can't be set on the command line: write them into the study file, and choose one with scale=NAME"
        )
    if mapping(tree, "scales").get("paper"):
        raise StudyError(
            f"scales.paper of {where} can't be set, since scale=paper is the file itself: give that scale another name, or "
            "write its keys outside of scales"
        )
    scales: Tree = {"paper": {}} | mapping(tree, "scales")
    scale = given.pop("scale", tree.get("scale", "paper"))
    if not isinstance(scale, str) or scale not in scales:
        raise StudyError(f"scale = {scale!r} is not a scale of {where}; scales: {', '.join(scales)}{nearest(scale, scales)}")
    base = {key: value for key, value in tree.items() if key not in ("scale", "scales")}
    smaller = mapping(scales, scale, "scales.")
    refuse_changes_of_nothing(
        overrides, "conditions", "condition", mapping(base, "conditions") | mapping(smaller, "conditions")
    )
    sets = [mapping(mapping(part, "evaluate"), "sets", "evaluate.") for part in (base, smaller)]
    refuse_changes_of_nothing(overrides, "evaluate.sets", "evaluation set", sets[0] | sets[1])
    refuse_emptying(given, base, smaller)
    refuse_unknown(smaller, [key for key in KEYS if key not in ("scale", "scales", "name")], f"scales.{scale}")
    named = ((base, where), (smaller, f"scales.{scale}"), (given, "the command line"))
    first, second, last = (run_options.with_wandb(_one_spelling(words, source)) for words, source in named)
    merged = resolve(_merge_with_rule(_merge_with_rule(first, second), last), where)
    return Sources(scale, base, smaller, given, (("study", first), (f"scale {scale}", second), ("command line", last)), merged)


def _refuse_without_section(words: Tree, tree: Tree, where: str) -> None:
    """StudyError for an option of a section that stands alone, such as `lr` instead of `train.lr`."""
    for key in words:
        if key not in KEYS and (paths := with_section(key, tree)):
            raise StudyError(f"{where} has no key {key!r}; did you mean {' or '.join(paths)}?")


_READ_BY = {  # options that are read with some values of another one alone
    **dict.fromkeys(("train.betas", "train.eps"), ("train.optimizer", ("adam", "adamw"))),
    "train.final_lr": ("train.schedule", ("cosine",)),
    "train.decay_steps": ("train.schedule", ("linear", "cosine")),
    **dict.fromkeys(("train.patience", "train.factor"), ("train.schedule", ("plateau",))),
    "train.sharpen.period": ("train.sharpen.schedule", ("oscillating",)),
    "model.final_norm": ("model.norm", ("pre", "branch")),
}


def _refuse_idle_overrides(given: Tree, conditions: Sequence[Condition]) -> None:
    """StudyError for a command-line key that no condition reads: it would give every replicate another key, and change nothing else."""
    for path, _ in leaves({section: given[section] for section in TRAINED if isinstance(given.get(section), dict)}):
        option, readers = _READ_BY.get(path, ("", ()))
        if option and all(_setting(condition, option) not in (None, *readers) for condition in conditions):
            raise StudyError(
                f"{path} on the command line changes nothing: it applies only to {option}: {' or '.join(readers)}, and no "
                "condition has that; leave it out"
            )


def _setting(condition: Condition, path: str) -> Value:
    """The value of an option such as train.sharpen.schedule; None where a part of the path is None or no option."""
    node: Any = condition
    for name in path.split("."):
        node = None if node is None else vars(node).get(name)
    return node


def _is_experimental(merged: Tree, where: str) -> bool:
    """Whether nothing is trained. StudyError where a study of experiments asks for what only a training has, or the reverse."""
    conditions = mapping(merged, "conditions")
    own = [
        name
        for name, sets in conditions.items()
        if isinstance(sets, dict) and "experiment" in nested(sets, f"conditions.{name}")
    ]
    if "experiment" not in merged and not own:
        return False
    if "experiment" not in merged and (others := [name for name in conditions if name not in own]):
        raise StudyError(f"condition {others[0]} has no experiment, and {own[0]} has one: write two studies")
    for key in (*TRAINED, "stages"):
        if key in merged:
            raise StudyError(f"{where} has both experiment and {key}: an experiment trains nothing, so leave one of them out")
        for name in (name for name, sets in conditions.items() if isinstance(sets, dict) and key in sets):
            raise StudyError(f"condition {name}: {key} is set here, and an experiment trains nothing: leave it out")
    if isinstance(merged.get("replicates"), dict):
        raise StudyError("replicates of an experiment can't be adaptive: give their number, such as replicates: 100")
    if "keep" in merged and merged["keep"] != "none":
        raise StudyError(f"keep = {merged['keep']!r}: an experiment has no weights; leave it out")
    return True


def _metrics(merged: Tree, conditions: Sequence[Condition]) -> dict[str, Metric]:
    """The metrics that `evaluate.metrics` declares, such as {accuracy: higher}.

    Metrics that it leaves out are as the built-in experiments of the conditions declare them.
    """
    node = mapping(merged, "evaluate")
    refuse_unknown(node, ("metrics",), "evaluate")
    built_in = [condition.experiment.built_in for condition in conditions if condition.experiment is not None]
    metrics = {name: Metric(better) for kind in built_in if kind is not None for name, better in kind.metrics.items()}
    for name, better in mapping(node, "metrics", "evaluate.").items():
        refuse_unprintable(name, "a metric", "evaluate.metrics")
        metrics[name] = Metric(one_of(better, f"evaluate.metrics.{name}", ("lower", "higher")))
    return metrics


def _evaluate(merged: Tree) -> tuple[tuple[EvaluationSet, ...], int, int, Watch | None]:
    node = mapping(merged, "evaluate")
    refuse_unknown(node, ("seed", "sets", "curve_every", "watch"), "evaluate")
    sets = []
    for name, definition in mapping(node, "sets", "evaluate.").items():
        where = f"evaluate.sets.{name}"
        refuse_unprintable(name, "an evaluation set", "evaluate.sets")
        if not isinstance(definition, dict):
            raise StudyError(f"{where} = {definition!r} must be a mapping such as {{p_ignore: 0.98, sequences: 10000}}")
        if "sequences" not in definition:
            meant = next((f"; did you mean it by {key}?" for key in definition if nearest(key, ("sequences",))), "")
            raise StudyError(f"{where}.sequences is missing: the number of strings in the set{meant}")
        if "name" in definition:
            raise StudyError(f"{where}.name can't be set: an evaluation set is of the condition's own task")
        fields = {key: value for key, value in definition.items() if key not in ("sequences", "every")}
        every = None if definition.get("every") is None else count(definition, "every", f"{where}.")
        sets.append(EvaluationSet(name, fields, count(definition, "sequences", f"{where}.", most=MOST_SEQUENCES), every))
    if not sets:
        raise StudyError(
            "evaluate.sets is missing: at least one evaluation set, such as {sparse: {p_ignore: 0.98, sequences: 10000}}"
        )
    seed = node.get("seed", 0)
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise StudyError(f"evaluate.seed = {seed!r} must be a whole number from 0 to 2^63 - 1")
    watch = None
    if node.get("watch") is not None:
        watched = mapping(node, "watch", "evaluate.")
        refuse_unknown(watched, Watch.__dataclass_fields__, "evaluate.watch")
        watch = Watch(**watched)
    return tuple(sets), seed, count({"curve_every": 10} | node, "curve_every", "evaluate."), watch


def _validate_sets(study: Study) -> None:
    seen = set()
    for condition in study.conditions:
        hashes: dict[str, str] = {}
        if (task := canonical(condition.config()["task"])) in seen:
            continue
        seen.add(task)
        for asked in study.sets:
            where = f"evaluate.sets.{asked.name}"
            asked.refuse_unknown_options(condition.task, f"{where}.", ("sequences", "every"))
            try:
                digest = asked.hash(condition.task, study.evaluate_seed)
            except StudyError as error:
                raise StudyError(f"{where} of condition {condition.label}: {error}") from error
            if digest in hashes:
                raise StudyError(f"evaluate.sets.{hashes[digest]} and evaluate.sets.{asked.name} are the same set: remove one")
            hashes[digest] = asked.name


def _one_spelling(words: Tree, source: str) -> Tree:
    """The grid and the conditions of one source, dotted paths as nested mappings: a later source can then replace a part of them."""
    grid, conditions = words.get("grid"), words.get("conditions")
    if isinstance(grid, dict):
        words = words | {"grid": nested(grid, f"grid of {source}")}
    if isinstance(conditions, dict):
        named = {
            name: nested(sets, f"conditions.{name}") if isinstance(sets, dict) else sets for name, sets in conditions.items()
        }
        words = words | {"conditions": named}
    return words


def _merge_with_rule(base: Tree, over: Tree) -> Tree:
    """Merge `over` into `base`.

    A rule over a plain number of replicates takes that number as its maximum; another rule under `until` replaces the earlier one; a plain
    number over a rule leaves nothing to spend a budget on. Paired seeds replace a product of seeds, and the reverse.
    """
    number, rule = base.get("replicates"), over.get("replicates")
    if replaces_seeds(base.get("seeds"), over.get("seeds")):
        base = {key: value for key, value in base.items() if key != "seeds"}
    if isinstance(number, dict) and type(rule) is int:
        base = {key: value for key, value in base.items() if key != "budget"}
    elif isinstance(rule, dict) and type(number) is int:
        base = base | {"replicates": {"min": first_look(number), "max": number}}
    elif isinstance(rule, dict) and isinstance(number, dict):
        old, new = number.get("until"), rule.get("until")
        if isinstance(old, dict) and isinstance(new, dict) and set(old) != set(new):
            base = base | {"replicates": {key: value for key, value in number.items() if key != "until"}}
    return merge(base, over)


def _adaptive(merged: Tree) -> Rule | None:
    """The rule of `replicates: {min, max, until}` with its `budget`; None where their number is fixed."""
    replicates = merged.get("replicates")
    if isinstance(replicates, dict):
        if "seeds" in merged:
            raise StudyError(
                "seeds beside adaptive replicates can't be given: the seeds are 0 … max - 1, paired; drop one of them"
            )
        return parse(replicates, merged.get("budget"))
    if "budget" in merged:
        raise StudyError(
            "budget needs adaptive replicates, such as replicates: {min: 15, max: 100, until: {…}}: it spends hours on them"
        )
    return None


def _validate_rule(study: Study, rule: Rule, points: list[Point]) -> None:
    """StudyError unless all that the rule names exists, and no condition has stages or replicates of its own."""
    staged = next((condition.name for condition in study.conditions if condition.stage), None)
    if staged is not None:
        raise StudyError(f"condition {staged} has stages, and adaptive replicates have none: give replicates a number")
    names = [asked.name for asked in study.sets]
    if rule.set not in names:
        raise StudyError(
            f"replicates.until: there is no evaluation set {rule.set!r}; sets: {', '.join(names)}{nearest(rule.set, names)}"
        )
    conditions = [condition.name for condition in study.conditions]
    if rule.baseline is not None and rule.baseline not in conditions:
        raise StudyError(
            f"replicates.until: there is no condition {rule.baseline!r} to be the baseline; conditions: {'; '.join(conditions)}"
            f"{nearest(rule.baseline, conditions)}"
        )
    if rule.baseline is not None and len(conditions) < 2:
        raise StudyError(
            f"replicates.until: {rule.baseline} is the only condition, so there is no ratio: add another condition"
        )
    own = [point.name for point in points if point.own_seeds]
    if own:
        raise StudyError(
            f"condition {own[0]} has replicates or seeds of its own, and those of the study are adaptive: leave them out"
        )


def _name(merged: Tree) -> str:
    name = merged.get("name")
    if type(name) in (int, float, bool):
        raise StudyError(f'name = {short(name)} is no text in YAML: put it in quotes, such as name: "{short(name)}"')
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise StudyError(
            f"name = {name!r} must be a word of letters, digits, '.', '_' and '-': it is the study's folder in the store"
        )
    if len(name) > MOST_NAME:
        raise StudyError(f"name = {name[:40]}… has {len(name)} characters, and a study's name at most {MOST_NAME}: write less")
    if name == KEPT:
        raise StudyError(f"name = {name!r} is taken: a store has its kept weights in a folder of that name; choose another")
    return name


def _claims(base: Tree, merged: Tree, experimental: bool) -> Tree:
    """What the study states of the paper's claims, checked: {id: {value: …}}, without those that a scale or the command line makes null.

    base: the file without its scales, in which null is a value forgotten. experimental: whether it trains nothing.
    """
    for name, node in mapping(base, "claims").items():
        if node is None:
            raise StudyError(f"claims.{name} has no value: write one, such as {{value: 0.5}}, or leave the line out")
    stated = mapping(merged, "claims")
    if not stated:
        return stated
    from results.claims import REGISTRY, TERMS, terms_of  # here, since the import takes a tenth of the time of a plan

    refuse_unknown(stated, REGISTRY, "claims")
    claims = {name: node for name, node in stated.items() if node is not None}
    for name, node in claims.items():
        if isinstance(node, dict):
            refuse_unknown(node, TERMS, f"claims.{name}")
        terms_of(REGISTRY[name], node)
        if REGISTRY[name].of_experiments != experimental:
            about, here = ("experiments", "trains") if REGISTRY[name].of_experiments else ("trainings", "has experiments")
            raise StudyError(f"claims.{name} is about {about}, and this study {here}: leave it out")
    return claims


def _keep(merged: Tree) -> str:
    keep = typed(merged, "keep", str, "none")
    keep_tail(keep)
    return keep


def _validate_keep(study: Study) -> None:
    longest = max(condition.train.steps for condition in study.conditions)
    late = [step for step in keep_steps(study.keep) if step > longest]
    if late:
        raise StudyError(f"keep = {study.keep!r}: no condition has a step {late[0]}, the longest training has {longest} steps")


def _validate_watch(study: Study) -> None:
    """StudyError for lags that no model has attention for, or that are longer than a condition's strings."""
    if study.watch is None or study.watch.lags < 0:
        return
    lags, attending = study.watch.lags, [condition for condition in study.conditions if condition.model.attends]
    if not attending:
        raise StudyError(f"evaluate.watch.lags = {lags} measures attention, and no condition's model has any: leave it out")
    shortest = min(attending, key=lambda condition: condition.task.tokens)
    if lags >= shortest.task.tokens:
        raise StudyError(
            f"evaluate.watch.lags = {lags} is too large for condition {shortest.label}, whose strings have {shortest.task.tokens} tokens: "
            f"write at most {shortest.task.tokens - 1}"
        )


def reductions_of(sources: Sources, kept: Collection[str] | None = None) -> tuple[str, ...]:
    """What is smaller than in the paper: what the file lists, and what the scale changes, as "path: old -> new".

    What the command line sets instead counts, and of conditions only those that are `kept`; None for all.
    """
    return (*texts(sources.merged, "reductions"), *reductions(sources.base, sources.smaller, sources.given, kept))
