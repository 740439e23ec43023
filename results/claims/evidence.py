"""A study's rows as claims read them: conditions are found by what they are, and sets by what they draw, never by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.errors import DamagedFile
from results.grouping import grouped
from results.plain_values import Options, Tree
from results.rows.options import flatten
from results.rows.probe_values import Items, Name, OfPair, Values, by_pair, by_step
from results.rows.summary import Replicate, errors_of, online_sets, reported_sets
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, label, reported, stage_of

Seeds = tuple[int, int]  # init_seed, data_seed
_ABSENT = object()


@dataclass(frozen=True)
class Condition:
    """A condition; a later stage is a condition of its own.

    settings: every option by its dotted path, defaults included. replicates: the planned ones. config: what is hashed, the stages before it
    included.
    """

    name: str
    settings: Tree
    replicates: tuple[Replicate, ...]
    config: Options = field(default_factory=dict)

    def has(self, options: Mapping[str, object]) -> bool:
        """Whether it has each of these settings, with this value."""
        return all(self.settings.get(name, _ABSENT) == value for name, value in options.items())

    @property
    def finished(self) -> list[Replicate]:
        """The replicates that reached their last step."""
        return [replicate for replicate in self.replicates if replicate.status == "finished"]

    @property
    def ended(self) -> list[Replicate]:
        """The replicates that were trained to their end: neither failed nor missing, nor without a checkpoint to learn from."""
        return [replicate for replicate in self.replicates if replicate.status in ("finished", "diverged")]

    def errors(self, name: str) -> Floats:
        """Error rates on a set of the replicates that have a number there; infinity for those that diverged."""
        return errors_of(self.replicates, name)

    def wrong(self, name: str) -> Floats:
        """Error rates as `errors`, with 1 for a replicate that diverged."""
        return np.minimum(self.errors(name), 1.0)

    def accuracies(self, name: str) -> Floats:
        """1 - `wrong`: 0 for a replicate that diverged."""
        return 1 - self.wrong(name)

    def wrong_by_seeds(self, name: str) -> dict[Seeds, float]:
        """As `wrong`, by (init_seed, data_seed)."""
        errors = {replicate.seeds: replicate.error(name) for replicate in self.replicates}
        return {seeds: min(error, 1.0) for seeds, error in errors.items() if error is not None}

    def accuracy_by_seeds(self, name: str) -> dict[Seeds, float]:
        """1 - `wrong_by_seeds`."""
        return {seeds: 1 - error for seeds, error in self.wrong_by_seeds(name).items()}

    def rates(self, names: Sequence[str]) -> Floats:
        """Error rates as `errors`, on several sets, of the replicates that have a number on each: [replicates, sets]."""
        rows = [[replicate.error(name) for name in names] for replicate in self.replicates]
        return np.array([row for row in rows if None not in row], dtype=np.float64).reshape(-1, len(names))

    def joint_zeros(self, names: Sequence[str]) -> tuple[int, int]:
        """How many replicates have no error on any of the sets, of how many that have a number on all of them."""
        answers = [answer for replicate in self.replicates if (answer := replicate.jointly_zero(names)) is not None]
        return sum(answers), len(answers)


class Tables(TypedDict, total=False):
    """The tables that may be read of a study beside its replicates, as in `Evidence`."""

    probes: Mapping[str, Mapping[Name, float]]
    evaluations: pa.Table | None
    measured: pa.Table | None
    curves: pa.Table | None
    averages: pa.Table | None
    watched: pa.Table | None


@dataclass(frozen=True)
class Evidence:
    """The rows of one study.

    definitions: of every set that is scored at the end, the fields of the task in which it differs; sequences: its size. online:
    the same fields of every set that is scored on the way.
    probes: what `manyseeds probe` measured, by key (`results.rows.probe_values.by_key`). evaluations: the reported rows, with
    every look during training. measured: the table `probes`, with every stage and step. curves: the losses, and how right the
    labels of self-training were; averages, watched: tables of `results.rows.looks`. A table that was not read is None.
    """

    conditions: tuple[Condition, ...]
    definitions: Mapping[str, Options]
    sequences: Mapping[str, int]
    probes: Mapping[str, Mapping[Name, float]] = field(default_factory=dict)
    evaluations: pa.Table | None = None
    measured: pa.Table | None = None
    curves: pa.Table | None = None
    averages: pa.Table | None = None
    watched: pa.Table | None = None
    online: Mapping[str, Options] = field(default_factory=dict)
    _by_step: dict[str, dict[str, dict[int, Items]]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_pair: dict[str, dict[frozenset[str], Values[OfPair]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def measured_by_step(self, probe: str) -> Mapping[str, Mapping[int, Items]]:
        """Values of a probe at every step, by key, step and item, as `probe_values.by_step`; read once for all claims."""
        if self.measured is None:
            return {}
        if probe not in self._by_step:
            self._by_step[probe] = by_step(self.measured, probe)
        return self._by_step[probe]

    def measured_by_pair(self, probe: str) -> Mapping[frozenset[str], Values[OfPair]]:
        """Values of a probe of pairs, as `probe_values.by_pair`; read once for all claims."""
        if self.measured is None:
            return {}
        if probe not in self._by_pair:
            self._by_pair[probe] = by_pair(self.measured, probe)
        return self._by_pair[probe]

    def probed(self, condition: Condition, probe: str) -> list[tuple[Replicate, Values[Name]]]:
        """The replicates of a condition that have values of a probe, with these by (probe, layer, head, item)."""
        probed = []
        for replicate in condition.replicates:
            values = Values((name, value) for name, value in self.probes.get(replicate.key, {}).items() if name[0] == probe)
            if values:
                probed.append((replicate, values))
        return probed

    def values(self, condition: Condition, metric: str) -> Floats:
        """The last value of a metric of experiments, by replicate; infinity of one that diverged. One without a value is left out."""
        return np.array(list(self.values_by_seeds(condition, metric).values()), dtype=np.float64)

    def values_by_seeds(self, condition: Condition, metric: str) -> dict[Seeds, float]:
        """As `values`, by (init_seed, data_seed)."""
        if self.evaluations is None:
            return {}
        keys = pa.array([replicate.key for replicate in condition.replicates], pa.string())
        rows = self.evaluations.filter((pc.field("metric") == metric) & pc.field("key").isin(keys)).sort_by("step")
        last = dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))
        values = {replicate.seeds: last[replicate.key] for replicate in condition.replicates if replicate.key in last}
        return {seeds: np.inf if value is None else value for seeds, value in values.items()}

    @property
    def training_lengths(self) -> list[int]:
        """Lengths of the training strings, each once, in order."""
        return sorted({condition.settings["task.length"] for condition in self.conditions})

    def named(self, name: str) -> Condition:
        """The condition of this name."""
        return next(condition for condition in self.conditions if condition.name == name)

    def with_settings(self, options: Mapping[str, object]) -> list[Condition]:
        """The conditions with these settings, in their order."""
        return [condition for condition in self.conditions if condition.has(options)]

    def of_task(self, name: str) -> list[Condition]:
        """The conditions on a task, in their order."""
        return self.with_settings({"task.name": name})

    def beside(self, base: Condition, options: Iterable[str]) -> list[Condition]:
        """Conditions that differ from `base` only in these options or their parts."""
        options = tuple(options)
        return [
            condition for condition in self.conditions if condition is not base and _only(differing(condition, base), options)
        ]


def gather(manifest: Manifest, replicates: Sequence[Replicate], **tables: Unpack[Tables]) -> Evidence:
    """Evidence from a manifest and its replicates (`results.rows.summary.replicates_of`). ValueError if the manifest is too old."""
    by = grouped(((replicate.condition, replicate.stage), replicate) for replicate in replicates)
    conditions = []
    for planned in manifest["conditions"]:
        if "settings" not in planned:
            raise DamagedFile(f"the manifest of {manifest['study']} lacks the settings of its conditions: run the study again")
        stage = stage_of(planned)
        conditions.append(
            Condition(
                label(planned["name"], stage),
                flatten(planned["settings"]),
                tuple(by.get((planned["name"], stage), ())),
                planned["config"],
            )
        )
    sets = {name: manifest["sets"][name] for name in reported_sets(manifest)}
    definitions = {name: value["definition"] for name, value in sets.items()}
    sequences = {name: value["sequences"] for name, value in sets.items()}
    online = {name: manifest["sets"][name]["definition"] for name in online_sets(manifest)}
    if (evaluations := tables.get("evaluations")) is not None:
        tables["evaluations"] = evaluations.filter(reported(manifest))
    tables["probes"] = tables.get("probes") or {}
    return Evidence(tuple(conditions), definitions, sequences, online=online, **tables)


def differing(one: Condition, other: Condition) -> set[str]:
    """Options in which two conditions differ."""
    names = one.settings.keys() | other.settings.keys()
    return {name for name in names if one.settings.get(name, _ABSENT) != other.settings.get(name, _ABSENT)}


def _only(names: set[str], options: tuple[str, ...]) -> bool:
    return bool(names) and all(any(name == o or name.startswith(f"{o}.") for o in options) for name in names)
