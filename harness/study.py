"""A study file (YAML) and `key=value` overrides to a `Study`: the only module that knows OmegaConf.

    study = load(find_study("fflm", "baseline"), ["replicates=25", "model.layers=2"])

Order: defaults < file < scale < command line < condition / grid. Changing the `name` of a task or model replaces the node, so an LSTM
does not inherit `heads`. Interpolations may point at other keys of the file; resolvers such as `${oc.env:HOME}` are refused.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness import stages
from harness.configuration import Condition, EvaluationSet, Study, Train, build, keep_steps, keep_tail, nearest, refuse_unknown
from harness.identity import canonical
from harness.kinds import Kind
from harness.kinds import parse as parse_kinds
from harness.reading import MOST_BYTES, read_yaml
from harness.seeds import pairs_of
from results.adaptive_rules import Rule, as_dict, parse
from results.claims import REGISTRY as CLAIMS
from results.claims import TERMS, terms_of
from results.dashboard_count import RUNS, check_count
from results.filesystem import public_override, reason

STUDIES = Path(__file__).resolve().parent.parent / "launch" / "studies"

_HASHED = ("task", "model", "train")
_VARIED = (*_HASHED, "stages", "replicates", "seeds")
_KEYS = (
    *"name question source scale scales only reductions evaluate conditions grid sweeps replicates seeds budget".split(),
    *"keep pack device slots executor leases store wandb claims".split(),
    *_HASHED,
    "stages",
)
_CHOICES = {"executor": ("ray", "local"), "leases": ("on", "off")}
_WANDB = ("off", "offline", "online")
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.]+\}")


def find_family(family: str) -> list[Path]:
    """The files of a family's studies, by name. ValueError listing the families where there is none of that name."""
    families = sorted(path.name for path in STUDIES.iterdir() if path.is_dir())
    if family not in families:
        raise ValueError(
            f"there is no family of studies {family!r}; families: {', '.join(families)}{nearest(family, families)}"
        )
    return sorted((STUDIES / family).glob("*.yaml"))


def find_study(family: str, name: str) -> Path:
    """The file of a family's study. ValueError listing the studies where there is none of that name."""
    names = [path.stem for path in find_family(family)]
    if name not in names:
        raise ValueError(f"there is no study {name!r} of {family}; studies: {', '.join(names)}{nearest(name, names)}")
    return STUDIES / family / f"{name}.yaml"


def load(path: str | Path, overrides: Sequence[str] = ()) -> Study:
    """The study of a file with `key=value` overrides. ValueError or FileNotFoundError in one sentence on anything wrong."""
    path = Path(path)
    return from_tree(_read(path), overrides, str(path))


def from_tree(tree: dict[str, Any], overrides: Sequence[str] = (), where: str = "the study") -> Study:
    """As `load`, from plain containers."""
    given = _parse(overrides)
    for words, source in ((tree, where), (given, "the command line")):
        refuse_unknown(words, _KEYS, source)
        _refuse_resolvers(words, source)
    scales = {"paper": {}} | _mapping(tree, "scales")
    scale = given.pop("scale", tree.get("scale", "paper"))
    if scale not in scales:
        raise ValueError(f"scale = {scale!r} is not a scale of {where}; scales: {', '.join(scales)}{nearest(scale, scales)}")
    base = {key: value for key, value in tree.items() if key not in ("scale", "scales")}
    smaller = _mapping(scales, scale)
    refuse_unknown(smaller, [key for key in _KEYS if key not in ("scale", "scales", "name")], f"scales.{scale}")
    merged = _resolve(_merge(_merge(_with_wandb(base), _with_wandb(smaller)), _with_wandb(given)), where)

    for section in _HASHED:
        if section in merged:
            build(section, merged[section])
    rule = _adaptive(merged)
    points = _select(_points(merged if rule is None else merged | {"replicates": rule.maximum}), merged.get("only"))
    _refuse_hidden_overrides(given, merged, points)
    sets, seed, curve_every = _evaluate(merged)
    study = Study(
        name=_name(merged),
        question=_typed(merged, "question", str, ""),
        conditions=_conditions(merged, points),
        sets=sets,
        source=_mapping(merged, "source"),
        scale=scale,
        reductions=(*_typed(merged, "reductions", list, []), *_reductions(base, smaller)),
        overrides=tuple(overrides),
        evaluate_seed=seed,
        curve_every=curve_every,
        keep=_keep(merged),
        pack_size=_pack_size(merged),
        compile=_typed(_mapping(merged, "pack"), "compile", bool, False),
        device=_device(merged),
        executor=_choice(merged, "executor", "ray"),
        leases=_choice(merged, "leases", "on") == "on",
        store=_typed(merged, "store", str, "runs"),
        wandb=_wandb(merged)[0],
        wandb_runs=_wandb(merged)[1],
        claims=_claims(merged),
        adaptive=None if rule is None else as_dict(rule),
        slots=_slots(merged),
    )
    _validate_sets(study)
    _validate_keep(study)
    check_count(study.wandb_runs, len(study.conditions), sum(len(each.seeds) for each in study.conditions))
    if rule is not None:
        _validate_rule(study, rule, points)
    return study


# ---- points of the sweep


@dataclass(frozen=True)
class _Point:
    """One combination before its values are built: what it sets over the base, and its replicates' seeds."""

    name: str
    condition: str | None
    sets: dict[str, Any]
    seeds: list[tuple[int, int]]
    own_seeds: bool = False  # not the study's


def _points(merged: dict[str, Any]) -> list[_Point]:
    named = {name: _nested(value or {}, f"conditions.{name}") for name, value in _mapping(merged, "conditions").items()}
    for name, sets in named.items():
        refuse_unknown(sets, _VARIED, f"conditions.{name}")
    grid, sweeps = _mapping(merged, "grid"), _typed(merged, "sweeps", list, [])
    points = []
    if named or grid or not sweeps:
        over: list[tuple[str | None, dict[str, Any]]] = [*named.items()] or [(None, {})]
        for condition, sets in over:
            points += [_point(merged, condition, sets, swept) for swept in _product(_axes(grid, "grid"))]
    for index, sweep in enumerate(sweeps):
        points += _sweep(merged, sweep, f"sweeps[{index}]")
    return points


def _sweep(merged: dict[str, Any], sweep: Any, where: str) -> Iterator[_Point]:
    """The points of one entry of `sweeps`, over the base."""
    if not isinstance(sweep, dict):
        raise ValueError(f"{where} = {sweep!r} must be a mapping with grid, each or zip")
    refuse_unknown(sweep, ("grid", "each", "zip", "replicates", "seeds"), where)
    kinds = [kind for kind in ("grid", "each", "zip") if kind in sweep]
    if len(kinds) != 1:
        raise ValueError(f"{where} must have exactly one of grid, each and zip, and has {' and '.join(kinds) or 'none'}")
    axes = _axes(_mapping(sweep, kinds[0]), f"{where}.{kinds[0]}")
    own = {key: sweep[key] for key in ("replicates", "seeds") if key in sweep}
    if kinds[0] == "grid":
        combinations = _product(axes)
    elif kinds[0] == "each":
        combinations = [{path: value} for path, values in axes.items() for value in values]
    else:
        if len({len(values) for values in axes.values()}) > 1:
            lengths = ", ".join(f"{path} has {len(values)}" for path, values in axes.items())
            raise ValueError(f"{where}.zip pairs values one to one, but {lengths}: give lists of one length")
        combinations = [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]
    for swept in combinations:
        yield _point(merged, None, own, swept)


def _axes(grid: dict[str, Any], where: str) -> dict[str, list[Any]]:
    """{dotted path: its values}."""
    axes = dict(_leaves(_nested(grid, where)))
    for path, values in axes.items():
        if path.split(".")[0] not in _HASHED:
            raise ValueError(f"{where}.{path} can't be swept; sweep keys of {', '.join(_HASHED)}{nearest(path, _HASHED)}")
        if not isinstance(values, list) or not values:
            raise ValueError(f"{where}.{path} = {values!r} must be a list of at least one value")
    return axes


def _product(axes: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _point(merged: dict[str, Any], condition: str | None, sets: dict[str, Any], swept: dict[str, Any]) -> _Point:
    parts = ([condition] if condition else []) + [f"{path}={_short(value)}" for path, value in swept.items()]
    name = ", ".join(parts) or str(merged.get("model", {}).get("name", "base"))
    own = "replicates" in sets or "seeds" in sets
    seeds = pairs_of(merged, sets, f"{name}: " if own else "")
    return _Point(name, condition, _merge(sets, _nested(swept, name)), seeds, own)


def _select(points: list[_Point], only: Any) -> list[_Point]:
    """The points that `only` names, by condition or by full name."""
    if only is None:
        return points
    if not isinstance(only, list) or not only:
        raise ValueError(f"only = {only!r} must be a list of conditions, such as [lstm]")
    names = list(dict.fromkeys(name for point in points for name in (point.condition, point.name) if name))
    for each in only:
        if each not in names:
            raise ValueError(f"only: there is no condition {each!r}; conditions: {', '.join(names)}{nearest(each, names)}")
    return [point for point in points if point.condition in only or point.name in only]


def _conditions(merged: dict[str, Any], points: list[_Point]) -> tuple[Condition, ...]:
    """Points built, those with equal configurations merged: the name of the first, the union of their seeds."""
    base = {section: merged[section] for section in _HASHED if section in merged}
    found: dict[str, tuple[Condition, dict[tuple[int, int], None]]] = {}
    for point in points:
        try:
            whole = _merge({"task": {}, "model": {}, "train": {}} | base, point.sets)
            chain = _chain(point.name, whole, point.sets.get("stages", merged.get("stages")))
        except ValueError as error:
            raise ValueError(f"condition {point.name}: {error}") from error
        for built in stages.with_seeds(chain, point.seeds):
            _, seeds = found.setdefault(canonical(built.config()), (built, {}))
            seeds.update(dict.fromkeys(built.seeds))
    conditions = [replace(condition, seeds=tuple(seeds)) for condition, seeds in found.values()]
    names = [(condition.name, condition.stage) for condition in conditions]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two different conditions are called {name[0]!r}: rename the one under conditions")
    return tuple(conditions)


def _chain(name: str, whole: dict[str, Any], later: Any) -> list[Condition]:
    """The condition of a point, and those of its later stages, each over the one before it."""
    chain = [Condition(name, *(build(section, whole[section]) for section in _HASHED))]
    if later is not None and not (isinstance(later, list) and all(isinstance(each, dict) for each in later)):
        raise ValueError(
            f"stages = {_short(later)} must be a list of mappings such as {{task: {{length: 10}}, labels: previous}}"
        )
    for index, given in enumerate(later or []):
        where, node = f"stages[{index}]", _nested(given, f"stages[{index}]")
        link = stages.link(node, where)
        whole = _merge(whole, {section: node[section] for section in _HASHED if section in node})
        try:
            task, model, train = (build(section, whole[section]) for section in _HASHED)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        chain.append(stages.after(chain[-1], link, task, model, train, where))
    return chain


def _refuse_hidden_overrides(given: dict[str, Any], merged: dict[str, Any], points: list[_Point]) -> None:
    """A command-line key that a condition sets too would be lost in silence."""
    for path, value in _leaves({key: given[key] for key in _VARIED if key in given}):
        setters = [point.name for point in points if any(_overlap(path, other) for other, _ in _leaves(point.sets))]
        if setters:
            more = f" and {len(setters) - 6} more" if len(setters) > 6 else ""
            raise ValueError(
                f"{path}={_short(value)} on the command line is also set by {len(setters)} of {len(points)} conditions "
                f"({'; '.join(setters[:6])}{more}): change it there (conditions.<name>.{path}=…, or the sweep), or drop it"
            )
        section = path.split(".")[0]
        if section in ("task", "model") and all(_replaces(point.sets.get(section), merged[section]) for point in points):
            raise ValueError(
                f"{path}={_short(value)} on the command line changes nothing: every condition has its own {section}"
            )
    if "replicates" in given and {"init", "data"} & set(_mapping(merged, "seeds")):
        raise ValueError(
            "replicates on the command line changes nothing: the study gives seeds; override seeds.init and seeds.data"
        )


def _replaces(over: Any, base: dict[str, Any]) -> bool:
    return isinstance(over, dict) and over.get("name", base["name"]) != base["name"]


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


# ---- the other sections


def _evaluate(merged: dict[str, Any]) -> tuple[tuple[EvaluationSet, ...], int, int]:
    node = _mapping(merged, "evaluate")
    refuse_unknown(node, ("seed", "sets", "curve_every"), "evaluate")
    sets = []
    for name, definition in _mapping(node, "sets").items():
        where = f"evaluate.sets.{name}"
        if not isinstance(definition, dict):
            raise ValueError(f"{where} = {definition!r} must be a mapping such as {{p_ignore: 0.98, sequences: 10000}}")
        if "sequences" not in definition:
            raise ValueError(f"{where}.sequences is missing: the number of strings in the set")
        if "name" in definition:
            raise ValueError(f"{where}.name can't be set: an evaluation set is of the condition's own task")
        fields = {key: value for key, value in definition.items() if key not in ("sequences", "every")}
        every = None if definition.get("every") is None else _count(definition, "every", f"{where}.")
        sets.append(EvaluationSet(name, fields, _count(definition, "sequences", f"{where}."), every))
    if not sets:
        raise ValueError(
            "evaluate.sets is missing: at least one evaluation set, such as {sparse: {p_ignore: 0.98, sequences: 10000}}"
        )
    seed = node.get("seed", 0)
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise ValueError(f"evaluate.seed = {seed!r} must be a whole number of 0 or more")
    return tuple(sets), seed, _count({"curve_every": 10} | node, "curve_every", "evaluate.")


def _validate_sets(study: Study) -> None:
    for condition in study.conditions:
        hashes: dict[str, str] = {}
        for each in study.sets:
            try:
                digest = each.hash(condition.task, study.evaluate_seed)
            except ValueError as error:
                raise ValueError(f"evaluate.sets.{each.name} of condition {condition.name}: {error}") from error
            if digest in hashes:
                raise ValueError(f"evaluate.sets.{hashes[digest]} and evaluate.sets.{each.name} are the same set: remove one")
            hashes[digest] = each.name


def _adaptive(merged: dict[str, Any]) -> Rule | None:
    """The rule of `replicates: {min, max, until}` with its `budget`; None where their number is fixed."""
    replicates = merged.get("replicates")
    if isinstance(replicates, dict):
        if "seeds" in merged:
            raise ValueError(
                "seeds beside adaptive replicates can't be given: the seeds are 0 … max - 1, paired; drop one of them"
            )
        return parse(replicates, merged.get("budget"))
    if "budget" in merged:
        raise ValueError(
            "budget needs adaptive replicates, such as replicates: {min: 15, max: 100, until: {…}}: it spends hours on them"
        )
    return None


def _validate_rule(study: Study, rule: Rule, points: list[_Point]) -> None:
    """What the rule names exists, and no condition has stages or replicates of its own."""
    staged = next((each.name for each in study.conditions if each.stage), None)
    if staged is not None:
        raise ValueError(f"condition {staged} has stages, and adaptive replicates have none: give replicates a number")
    names = [each.name for each in study.sets]
    if rule.set not in names:
        raise ValueError(
            f"replicates.until: there is no evaluation set {rule.set!r}; sets: {', '.join(names)}{nearest(rule.set, names)}"
        )
    conditions = [each.name for each in study.conditions]
    if rule.baseline is not None and rule.baseline not in conditions:
        raise ValueError(
            f"replicates.until: there is no condition {rule.baseline!r} to be the baseline; conditions: {', '.join(conditions)}"
            f"{nearest(rule.baseline, conditions)}"
        )
    if rule.baseline is not None and len(conditions) < 2:
        raise ValueError(
            f"replicates.until: {rule.baseline} is the only condition, so there is no ratio: add another condition"
        )
    own = [point.name for point in points if point.own_seeds]
    if own:
        raise ValueError(
            f"condition {own[0]} has replicates or seeds of its own, and those of the study are adaptive: leave them out"
        )


def _name(merged: dict[str, Any]) -> str:
    name = merged.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            f"name = {name!r} must be a word of letters, digits, '.', '_' and '-': it is the study's folder in the store"
        )
    return name


def _claims(merged: dict[str, Any]) -> dict[str, Any]:
    """What the study states of the paper's claims, checked: {id: {value: …}}."""
    claims = _mapping(merged, "claims")
    refuse_unknown(claims, CLAIMS, "claims")
    for name, node in claims.items():
        if isinstance(node, dict):
            refuse_unknown(node, TERMS, f"claims.{name}")
        terms_of(CLAIMS[name], node)
    return claims


def _keep(merged: dict[str, Any]) -> str:
    keep = _typed(merged, "keep", str, "none")
    keep_tail(keep)
    return keep


def _validate_keep(study: Study) -> None:
    longest = max(condition.train.steps for condition in study.conditions)
    late = [step for step in keep_steps(study.keep) if step > longest]
    if late:
        raise ValueError(f"keep = {study.keep!r}: no condition has a step {late[0]}, the longest training has {longest} steps")


def _pack_size(merged: dict[str, Any]) -> int | None:
    pack = _mapping(merged, "pack")
    refuse_unknown(pack, ("size", "compile"), "pack")
    return None if pack.get("size", "auto") == "auto" else _count(pack, "size", "pack.", " or auto")


def _device(merged: dict[str, Any]) -> str:
    device = _typed(merged, "device", str, "auto")
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ValueError(f"device = {device!r} must be auto, cpu, cuda or cuda:<number>")
    return device


def _slots(merged: dict[str, Any]) -> tuple[Kind, ...]:
    if merged.get("slots") is None:
        return ()
    for key, default, why in (("device", "auto", "each of the slots has its own"), ("executor", "ray", "the slots are Ray's")):
        if merged.get(key, default) != default:
            raise ValueError(f"{key} = {merged[key]!r} beside slots: leave one of them out, {why}")
    return parse_kinds(merged["slots"])


def _choice(merged: dict[str, Any], key: str, default: str) -> str:
    return _one_of(merged.get(key, default), key, _CHOICES[key])


def _one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if isinstance(value, bool):  # YAML 1.1 reads a bare `off` as false
        value = "on" if value else "off"
    if value not in choices:
        raise ValueError(f"{name} = {value!r} must be {' or '.join(choices)}{nearest(value, choices)}")
    return str(value)


def _with_wandb(tree: dict[str, Any]) -> dict[str, Any]:
    """`wandb: offline` as `wandb: {mode: offline}`, so that a file's and the command line's words merge."""
    value = tree.get("wandb", {})
    return tree if isinstance(value, dict) else tree | {"wandb": {"mode": value}}


def _wandb(merged: dict[str, Any]) -> tuple[str, str]:
    """Its mode, and what gets a run of its own beside the study."""
    node = _mapping(merged, "wandb")
    refuse_unknown(node, ("mode", "runs"), "wandb")
    return _one_of(node.get("mode", "offline"), "wandb", _WANDB), _one_of(node.get("runs", "study"), "wandb.runs", RUNS)


def _count(node: Mapping[str, Any], key: str, prefix: str, alternative: str = "") -> int:
    if type(node[key]) is not int or node[key] < 1:
        raise ValueError(f"{prefix}{key} = {node[key]!r} must be a whole number of at least 1{alternative}")
    return node[key]


def _typed(node: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = node.get(key, default)
    if type(value) is not kind:
        raise ValueError(f"{key} = {value!r} must be {'a list' if kind is list else 'a word or a sentence'}")
    return value


def _mapping(node: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{key} = {value!r} must be a mapping")
    return value


def _reductions(base: dict[str, Any], smaller: dict[str, Any]) -> list[str]:
    """What a scale changes, as "path: old -> new"."""
    defaults = {f"train.{name}": value for name, value in asdict(Train()).items()}
    old = defaults | dict(_leaves(_nested(base, "the study")))
    out = []
    for path, new in _leaves(_nested(smaller, "scales")):
        before = ", ".join(_mapping(base, "conditions")) if path == "only" else old.get(path, "unset")
        after = ", ".join(map(str, new)) if path == "only" and isinstance(new, list) else new
        if before != after:
            out.append(f"{'conditions' if path == 'only' else path}: {_short(before)} -> {_short(after)}")
    return out


# ---- plain trees


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no study file {path}: give the path of a YAML file")
    try:
        with path.open("rb") as stream:
            tree = read_yaml(stream.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise ValueError(f"{path} can't be read: {reason(error)}") from error
    if not tree:
        raise ValueError(f"{path} is empty: a study has keys such as name, task, model, train and evaluate")
    return _plain(tree, str(path))


def _parse(overrides: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as one tree."""
    words = list(overrides)
    for word in words:
        if not re.match(r"[A-Za-z_][^=\s]*=", word):
            raise ValueError(
                f"{public_override(word)!r} on the command line is no override: write key=value, such as train.lr=1e-3"
            )
    keys = [word.split("=", 1)[0] for word in words]
    for one, other in itertools.combinations(keys, 2):
        if _overlap(one, other):
            raise ValueError(f"{one} and {other} on the command line set the same thing: keep one")
    try:
        tree = OmegaConf.to_container(OmegaConf.from_dotlist(words), resolve=False)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise ValueError(
            f"the overrides {' '.join(map(public_override, words))} can't be read: {' '.join(str(error).split())}"
        ) from error
    return _plain(tree, "the command line")


def _plain(tree: Any, where: str) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise ValueError(f"{where} must be a mapping with keys such as name, task, model and train")
    _refuse_odd_keys(tree, where)
    return tree


def _refuse_odd_keys(node: Any, where: str) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            if not isinstance(key, str):
                raise ValueError(f"{where}: the key {key!r} is not a word: put it in quotes")
            _refuse_odd_keys(value, f"{where}: {key}")
    elif isinstance(node, list):
        for value in node:
            _refuse_odd_keys(value, where)


def _refuse_resolvers(node: Any, where: str) -> None:
    """Only `${key.of.the.file}` is allowed: nothing in a study reads the environment or runs anything."""
    if isinstance(node, dict):
        for value in node.values():
            _refuse_resolvers(value, where)
    elif isinstance(node, list):
        for value in node:
            _refuse_resolvers(value, where)
    elif isinstance(node, str) and "${" in _REFERENCE.sub("", node):
        raise ValueError(f"{node!r} in {where} is refused: only ${{other.key}} may be referred to; write the value itself")


def _resolve(tree: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        resolved = OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ValueError(f"{where}: {str(error).splitlines()[0]}") from error
    return _plain(resolved, where)


def _merge(base: Any, over: Any, root: bool = True) -> Any:
    """`over` into `base`; below the root, a node whose `name` changes is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    if not root and "name" in over and over["name"] != base.get("name"):
        return over
    return base | {key: _merge(base[key], value, root=False) if key in base else value for key, value in over.items()}


def _nested(node: Any, where: str) -> dict[str, Any]:
    """A mapping whose keys may be dotted paths, as nested mappings."""
    if not isinstance(node, dict):
        raise ValueError(f"{where} = {node!r} must be a mapping")
    out: dict[str, Any] = {}
    for key, value in node.items():
        inner = _nested(value, where) if isinstance(value, dict) else value
        for part in reversed(key.split(".")):
            inner = {part: inner}
        out = _merge(out, inner)
    return out


def _leaves(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every value that is no mapping."""
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_short, value)) + "]"
    return str(value).lower() if type(value) is bool else "null" if value is None else str(value)
