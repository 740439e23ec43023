"""The fields of a manifest. `results.store.manifest_schema` checks a file against them when it is read."""

from typing import Annotated, Any, NotRequired, TypedDict

from results.plain_values import Options, Value
from results.store.shapes import LARGEST, MOST_NAME, below, items, record, shape_of, text, whole

Name = Annotated[str, text(MOST_NAME)]
Positive = Annotated[int, whole(1)]


def _planned_row(value: Value, where: str) -> str:
    if type(value) is not list or len(value) < 4:
        return f"{where} must be a list of a key, a condition and two seeds"
    if type(value[0]) is not str or len(value[0]) > MOST_NAME:
        return f"{where}[0] must be a key"
    for index in (1, 2, 3):
        if type(value[index]) is not int or not 0 <= value[index] <= LARGEST:
            return f"{where}[{index}] must be a whole number of at least 0"
    return ""


PlannedRow = Annotated[list[Any], _planned_row]  # key, place of the condition, init_seed, data_seed; more may follow


class SetFields(TypedDict):
    """An evaluation set of the study. `every`: steps between looks, absent or None where it is scored at the end only."""

    definition: Options
    sequences: Positive
    every: NotRequired[Positive | None]
    seed: NotRequired[int]


class ConditionSet(TypedDict):
    """An evaluation set as one condition is scored on it: its hash, and the task that it samples."""

    hash: Name
    task: NotRequired[Options]


class ScoringFields(TypedDict):
    """What a condition's task says of its numbers (`results.store.manifest.Scoring`)."""

    metrics: Annotated[list[str], items(text(MOST_NAME), least=1)]
    direction: Name
    error: str
    tokens: NotRequired[int | None]
    outputs: NotRequired[int | None]


# the options of a part depend on its name; a reader that misses one raises an error (`results.rows.options.Settings`)
_NAMED = record({"name": text(MOST_NAME), "length": whole()}, required=["name"])
PARTS = {
    "task": _NAMED,
    "model": _NAMED,
    "train": record(dict.fromkeys(("steps", "batch", "warmup", "patience", "pool"), whole())),
}
_STAGED = PARTS | {"stages": items(shape_of(Options)), "stage": shape_of(Options)}
_EXPERIMENT = record({"name": text(MOST_NAME), "command": items(text()), "settings": shape_of(Options)})


def _settings(value: Value, where: str) -> str:
    experiment = isinstance(value, dict) and "experiment" in value
    return record({"experiment": _EXPERIMENT} if experiment else _STAGED, required=[] if experiment else PARTS)(value, where)


class ConditionFields(TypedDict):
    """A condition. config: what is hashed, without defaults; settings: every option; scored: positions of a string that are scored;
    signature: what its packs' shapes and code follow from.
    """

    name: Name
    config: Annotated[Options, record(_STAGED | {"experiment": _EXPERIMENT, "code": text(MOST_NAME)})]
    sets: dict[str, ConditionSet]
    replicates: int
    settings: NotRequired[Annotated[Options, _settings]]
    scored: NotRequired[int | None]
    signature: NotRequired[str]
    scoring: NotRequired[ScoringFields | None]


class PackFields(TypedDict):
    """A planned pack: places of its replicates in the manifest's list. signature: in manifests whose conditions have none."""

    id: Name
    replicates: list[int]
    stage: NotRequired[int]
    signature: NotRequired[str]
    kind: NotRequired[Name]


class MetricFields(TypedDict):
    """A number that an experiment returns (`harness.study.config.Metric`)."""

    better: Name
    kind: Name


class TermsFields(TypedDict):
    """What a study states of a claim (`results.claims.claim.Terms`)."""

    value: float
    gate: NotRequired[float]
    of: NotRequired[Positive | None]
    replicates: NotRequired[Positive | None]


class RuleFields(TypedDict):
    """A rule of adaptive replicates (`results.statistics.adaptive_rules.Rule`)."""

    minimum: Positive
    maximum: Positive
    step: Positive
    set: Name
    limit: float
    baseline: NotRequired[Name | None]
    budget: NotRequired[float | None]


def _rule(value: Value, where: str) -> str:
    """Refuse unknown fields, since with one more it would be another rule."""
    if wrong := shape_of(RuleFields)(value, where):
        return wrong
    return next((f"{below(where, name)} is no part of a rule" for name in value if name not in RuleFields.__annotations__), "")


class Described(TypedDict):
    """The fields that describe a study."""

    study: Name
    question: str
    source: Options
    scale: Name
    reductions: list[str]
    overrides: list[str]


class Planned(TypedDict):
    """The fields that a reader of rows needs."""

    sets: dict[str, SetFields]
    conditions: list[ConditionFields]
    replicates: list[PlannedRow]
    metrics: NotRequired[dict[str, MetricFields]]


class Readable(Described, Planned):
    """The fields that every manifest must have to be read."""


class Manifest(Readable):
    """A manifest that can be run. Optional fields are those that older ones lack."""

    packs: list[PackFields]
    wandb: str
    wandb_runs: NotRequired[str]
    keep: str
    device: str
    executor: str
    store: str
    pack_size: Positive | None
    curve_every: int
    numerics: Options
    versions: Options
    git: Name | None
    dirty: bool | None
    claims: NotRequired[dict[str, TermsFields]]
    adaptive: NotRequired[Annotated[RuleFields, _rule] | None]
    slots: NotRequired[list[Options]]
    parts: NotRequired[dict[str, list[Options]]]
    watch: NotRequired[dict[str, Annotated[int, whole(-1)]]]  # lags: -1 for none
