"""The conditions of a study of one task, by label: their settings, their replicates with accuracies, and the reported sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from results.plain_values import Options
from results.rows.options import flatten
from results.rows.summary import Replicate, errors_of, reported_sets
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, label, stage_of

Settings = Mapping[str, Options]
Members = Mapping[str, Sequence[Replicate]]


@dataclass(frozen=True)
class TaskConditions:
    """settings: options by dotted path; members: replicates; both by label of the condition, a later stage with a label of its own.
    definitions: of the reported sets, by name."""

    settings: Settings
    members: Members
    definitions: Mapping[str, Options]

    @property
    def lengths(self) -> list[int]:
        """Lengths of the training strings, each once, in order."""
        return sorted({options["task.length"] for options in self.settings.values()})


def is_of(manifest: Manifest, task: str) -> bool:
    """Whether every condition of a study trains on this task."""
    return all(
        condition.get("settings", condition["config"]).get("task", {}).get("name") == task
        for condition in manifest["conditions"]
    )


def has_settings_of(manifest: Manifest, *tasks: str) -> bool:
    """Whether a study is of one of these tasks, and its manifest has the settings of all conditions, as older ones do not."""
    return any(is_of(manifest, task) for task in tasks) and all("settings" in each for each in manifest["conditions"])


def conditions_of(manifest: Manifest, replicates: Sequence[Replicate], task: str) -> TaskConditions | None:
    """None for a study of another task, and for a manifest that lacks the settings."""
    if not has_settings_of(manifest, task):
        return None
    settings = {
        label(condition["name"], stage_of(condition)): flatten(condition["settings"]) for condition in manifest["conditions"]
    }
    members: dict[str, list[Replicate]] = {name: [] for name in settings}
    for replicate in replicates:
        members[replicate.label].append(replicate)
    return TaskConditions(settings, members, {name: manifest["sets"][name]["definition"] for name in reported_sets(manifest)})


def accuracy(members: Sequence[Replicate], name: str) -> Floats:
    """1 - error of the replicates that have a number on a set; 0 for one that diverged."""
    return 1 - np.minimum(errors_of(members, name), 1.0)
