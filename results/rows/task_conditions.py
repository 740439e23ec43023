"""What the parts of a report begin with that are of one task: its conditions by label, their settings, and the sets that are reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from results.claims.evidence import flatten
from results.rows.summary import Replicate, reported_sets
from results.store.manifest import label, stage_of

Settings = Mapping[str, Mapping[str, Any]]
Members = Mapping[str, Sequence[Replicate]]


@dataclass(frozen=True)
class Family:
    """settings: options by dotted path; members: replicates; both by label of the condition, a later stage with a label of its own.
    definitions: of the reported sets, by name."""

    settings: Settings
    members: Members
    definitions: Mapping[str, Mapping[str, Any]]


def is_of(manifest: Mapping[str, Any], task: str) -> bool:
    """Whether every condition of a study trains on this task."""
    return all(each.get("settings", each["config"])["task"]["name"] == task for each in manifest["conditions"])


def family(manifest: dict[str, Any], known: Sequence[Replicate], task: str) -> Family | None:
    """None for a study of another task, and for a manifest that lacks the settings."""
    if not is_of(manifest, task) or any("settings" not in each for each in manifest["conditions"]):
        return None
    settings = {label(each["name"], stage_of(each)): flatten(each["settings"]) for each in manifest["conditions"]}
    members: dict[str, list[Replicate]] = {name: [] for name in settings}
    for each in known:
        members[label(each.condition, each.stage)].append(each)
    return Family(settings, members, {name: manifest["sets"][name]["definition"] for name in reported_sets(manifest)})
