"""A study's rows as claims ask for them: conditions by what they are, sets by what they draw, never by a name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, settle
from results.errors import DamagedFile
from results.rows.probe_values import Name
from results.rows.summary import Replicate, reported_sets
from results.statistics.intervals import Floats, quantile
from results.store.manifest import label, reported, stage_of

PAPER = 0.8  # p_ignore of the distribution that the paper trains on
PLAIN = {
    "task.name": "flipflop",
    "task.mode": "deterministic",
    "model.name": "transformer",
    "model.positions": "learned",
    "model.activation": "gelu",
    "model.norm": "pre",
    "model.causal": True,
    "model.shift": 0,
    "model.embedding_dropout": 0,
    "model.attention_dropout": 0,
    "model.residual_dropout": 0,
    "model.feed_forward_dropout": 0,
    "train.optimizer": "adamw",
    "train.pool": 0,
    "train.sharpen.weight": 0,
    "train.clip": 0,
    "train.ema": 0,
}


@dataclass(frozen=True)
class Condition:
    """`settings`: every option by its dotted path, defaults included. `replicates`: those planned. A later stage is one of its own.
    `config`: what is hashed, the stages before it included."""

    name: str
    settings: dict[str, Any]
    replicates: tuple[Replicate, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    def errors(self, name: str) -> Floats:
        """Error rates on a set of the replicates that have a number there; infinity for those that diverged."""
        return np.array([error for each in self.replicates if (error := each.error(name)) is not None], dtype=np.float64)

    def joint_zeros(self, names: Sequence[str]) -> tuple[int, int]:
        """How many have no error on any of the sets, of how many that are known on all of them."""
        answers = [answer for each in self.replicates if (answer := each.jointly_zero(names)) is not None]
        return sum(answers), len(answers)


@dataclass(frozen=True)
class Evidence:
    """`sets`: p_ignore by name of every set that is scored at the end and differs from the training in p_ignore at most.

    trained: p_ignore of the training distribution, as `training_law` finds it: 0.8, or what a study at a shorter length has for it.
    probes: what `manyseeds probe` measured, by key (`results.rows.probe_values.by_key`). definitions: of every set that is scored
    at the end, the fields of the task in which it differs. evaluations: its reported rows, with every look during training;
    None: not read. measured: the table `probes`, with every stage and step; losses: the rows of `curves` of that metric;
    None: not read.
    """

    conditions: tuple[Condition, ...]
    sets: dict[str, float]
    sequences: dict[str, int]
    trained: float = PAPER
    probes: Mapping[str, Mapping[Name, float]] = field(default_factory=dict)
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evaluations: pa.Table | None = None
    measured: pa.Table | None = None
    losses: pa.Table | None = None

    def probed(self, condition: Condition, probe: str) -> list[tuple[Replicate, dict[Name, float]]]:
        """The replicates of a condition that have values of a probe, with these by (probe, layer, head, item)."""
        found = [(each, self.probes.get(each.key, {})) for each in condition.replicates]
        mine = [(each, {name: value for name, value in values.items() if name[0] == probe}) for each, values in found]
        return [(each, values) for each, values in mine if values]

    def sparse(self) -> str:
        """The set with most ignored instructions."""
        return self._set(
            [name for name, p in self.sets.items() if p > self.trained],
            lambda p: -p,
            f"sparse: p_ignore above {self.trained:g}",
        )

    def dense(self) -> str:
        """The set with fewest ignored instructions."""
        return self._set(
            [name for name, p in self.sets.items() if p < self.trained], lambda p: p, f"dense: p_ignore below {self.trained:g}"
        )

    def in_distribution(self) -> str:
        return self._set(
            [name for name, p in self.sets.items() if p == self.trained], lambda p: p, "of the training distribution"
        )

    def baseline(self) -> Condition:
        """The plain transformer with most replicates; of several, with fewest steps, then the one that the others differ least from."""
        plain = PLAIN | {"task.p_ignore": self.trained}
        found = [each for each in self.conditions if all(each.settings.get(k, v) == v for k, v in plain.items())]
        if not found:
            settle(NOT_RUN, f"no condition is the plain transformer trained on p_ignore = {self.trained:g}")

        def order(each: Condition) -> tuple[int, int, int]:
            differences = sum(len(differing(each, other)) for other in self.conditions)
            return -len(each.replicates), each.settings["train.steps"], differences

        return min(found, key=order)

    def beside(self, base: Condition, options: Iterable[str]) -> list[Condition]:
        """Conditions that differ from `base` in these options (or their parts) and in nothing else."""
        options = tuple(options)
        return [each for each in self.conditions if each is not base and _only(differing(each, base), options)]

    def _set(self, names: list[str], order: Callable[[float], float], what: str) -> str:
        if not names:
            settle(NOT_RUN, f"no set that is scored at the end is {what}")
        return min(names, key=lambda name: (order(self.sets[name]), -self.sequences[name]))


def gather(
    manifest: dict[str, Any],
    known: Sequence[Replicate],
    probes: Mapping[str, Mapping[Name, float]] | None = None,
    evaluations: pa.Table | None = None,
    measured: pa.Table | None = None,
    losses: pa.Table | None = None,
) -> Evidence:
    """Evidence of a manifest and the replicates of `results.rows.summary.replicates_of`. ValueError where the manifest is too old."""
    by: dict[tuple[str, int], list[Replicate]] = {}
    for replicate in known:
        by.setdefault((replicate.condition, replicate.stage), []).append(replicate)
    conditions = []
    for each in manifest["conditions"]:
        if "settings" not in each:
            raise DamagedFile(f"the manifest of {manifest['study']} lacks the settings of its conditions: run the study again")
        stage = stage_of(each)
        conditions.append(
            Condition(
                label(each["name"], stage), flatten(each["settings"]), tuple(by.get((each["name"], stage), ())), each["config"]
            )
        )
    sets, sequences, trained = {}, {}, training_law(conditions)
    for name in reported_sets(manifest):
        definition = manifest["sets"][name]["definition"]
        p = definition.get("p_ignore", trained)
        if definition.keys() <= {"p_ignore"} and isinstance(p, int | float):
            sets[name], sequences[name] = float(p), manifest["sets"][name]["sequences"]
    definitions = {name: manifest["sets"][name]["definition"] for name in reported_sets(manifest)}
    if evaluations is not None:
        evaluations = evaluations.filter(reported(manifest))
    return Evidence(tuple(conditions), sets, sequences, trained, probes or {}, definitions, evaluations, measured, losses)


def training_law(conditions: Sequence[Condition]) -> float:
    """The one p_ignore that most replicates are trained on; of several, the one nearest to the paper's 0.8; 0.8 for none."""
    votes: dict[float, int] = {}
    for each in conditions:
        p = each.settings.get("task.p_ignore")
        if isinstance(p, int | float):
            votes[float(p)] = votes.get(float(p), 0) + len(each.replicates)
    return min(votes, key=lambda p: (-votes[p], abs(p - PAPER), p), default=PAPER)


class Settings(dict[str, Any]):
    """Options by dotted path. One that a reader needs and that is not there is an error of the store."""

    def __missing__(self, name: str) -> Any:
        raise DamagedFile(
            f"a condition in the manifest lacks the setting {name}: move the manifest away, and run the study again"
        )


def flatten(node: Mapping[str, Any], prefix: str = "") -> Settings:
    """Nested options by dotted path."""
    flat = Settings()
    for name, value in node.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) and value else {f"{prefix}{name}": value}
    return flat


def differing(one: Condition, other: Condition) -> set[str]:
    """Options that the two have different values of."""
    absent = object()
    names = one.settings.keys() | other.settings.keys()
    return {name for name in names if one.settings.get(name, absent) != other.settings.get(name, absent)}


def require(conditions: Iterable[Condition], names: Iterable[str], needs: int) -> None:
    """Settles a claim as too few replicates unless each condition has ended, with `needs` numbers on each set.

    Those that end first are no fair sample, so a number is waited for; a replicate that failed is left out.
    """
    names = tuple(names)
    for each in conditions:
        waiting = sum(replicate.ending(name) == "missing" for name in names for replicate in each.replicates)
        if waiting:
            settle(
                TOO_FEW, f"{waiting} numbers of {each.name} are still missing, and replicates that end first are no fair sample"
            )
        for name in names:
            found = len(each.errors(name))
            if found < needs:
                settle(TOO_FEW, f"{each.name} has {found} replicates with a number on {name}, and the claim needs {needs}")


def gate_in_distribution(evidence: Evidence, base: Condition, share: float) -> None:
    """Settles a claim unless `share` of the replicates have no error on the training distribution."""
    errors = base.errors(evidence.in_distribution())
    zero = int((errors == 0).sum())
    if zero < share * len(errors):
        settle(
            PRECONDITION,
            f"{zero} of {len(errors)} replicates of {base.name} have no error on the training distribution, and {share:.0%} must",
        )


def gate_tail(base: Condition, name: str) -> None:
    """Settles a claim that compares medians with a baseline that mostly has no error."""
    if quantile(base.errors(name), 0.5) == 0:
        settle(PRECONDITION, f"the median error of {base.name} on {name} is 0: there is no tail to improve")


def require_probed(evidence: Evidence, conditions: Iterable[Condition], probe: str, needs: int) -> None:
    """Settles a claim unless every replicate that finished has values of a probe, and `needs` of each condition have.

    Those whose weights were kept because they are the worst are no fair sample.
    """
    for each in conditions:
        finished = sum(replicate.status == "finished" for replicate in each.replicates)
        found = len(evidence.probed(each, probe))
        if not found:
            settle(
                NOT_RUN, f"{each.name} has no {probe} rows: manyseeds probe STORE --probe {probe}, with keep: all in its study"
            )
        if found < max(needs, finished):
            settle(
                TOO_FEW,
                f"{found} of {finished} finished replicates of {each.name} have {probe} rows, and the claim needs {needs} and all",
            )


def _only(names: set[str], options: tuple[str, ...]) -> bool:
    return bool(names) and all(any(name == o or name.startswith(f"{o}.") for o in options) for name in names)
