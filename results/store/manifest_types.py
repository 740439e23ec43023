"""The fields of a manifest, as types; `results.store.manifest_schema` checks a file against them when it is read."""

from typing import Any, NotRequired, TypedDict

from results.plain_values import Options, Value

PlannedRow = list[Any]  # key, place of the condition, init_seed, data_seed


class SetFields(TypedDict):
    """An evaluation set of the study. `every`: steps between looks, absent or None where it is scored at the end only."""

    definition: Options
    sequences: int
    every: NotRequired[int | None]
    seed: NotRequired[int]


class ConditionSet(TypedDict):
    """An evaluation set as one condition is scored on it: its hash, and the task that it samples."""

    hash: str
    task: NotRequired[Options]


class ScoringFields(TypedDict):
    """What a condition's task says of its numbers (`results.store.manifest.Scoring`)."""

    metrics: list[str]
    direction: str
    error: str
    tokens: NotRequired[int | None]
    outputs: NotRequired[int | None]


class ConditionFields(TypedDict):
    """A condition. config: what is hashed, without defaults; settings: every option; scored: positions of a string that are scored."""

    name: str
    config: Options
    sets: dict[str, ConditionSet]
    replicates: int
    settings: NotRequired[Options]
    scored: NotRequired[int | None]
    scoring: NotRequired[ScoringFields | None]


class PackFields(TypedDict):
    """A planned pack: places of its replicates in the manifest's list."""

    id: str
    stage: int
    replicates: list[int]
    signature: str
    kind: NotRequired[str]


class Planned(TypedDict):
    """What a reader of rows needs."""

    sets: dict[str, SetFields]
    conditions: list[ConditionFields]
    replicates: list[PlannedRow]
    metrics: NotRequired[dict[str, dict[str, str]]]


class Manifest(Planned):
    """A manifest. Optional fields are those that older ones lack."""

    study: str
    question: str
    source: Options
    scale: str
    reductions: list[str]
    overrides: list[str]
    packs: list[PackFields]
    wandb: str
    wandb_runs: NotRequired[str]
    keep: str
    device: str
    executor: str
    store: str
    pack_size: int | None
    curve_every: int
    numerics: Options
    versions: dict[str, str]
    git: str | None
    dirty: bool | None
    claims: NotRequired[dict[str, dict[str, Value]]]
    adaptive: NotRequired[Options | None]
    slots: NotRequired[list[Options]]
    parts: NotRequired[dict[str, list[Options]]]
    watch: NotRequired[dict[str, int]]
