"""Studies as their files plan them, and rows of their replicates with the errors that a test asks for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.rows.options import flatten
from results.rows.summary import Replicate, Score

READS = 100_000
Rates = Callable[
    [Mapping[str, Any], Mapping[str, Any]], Sequence[float] | float
]  # settings, what a set changes → errors by seed


def planned(family: str, name: str, scale: str = "paper", overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of a study."""
    study = load(find_study(family, name), [f"scale={scale}", *overrides])
    return manifests.build(plan(study, None, 16, numerics={}), {}, {}, None, None)


def spread(middle: float, n: int, width: float = 0.2) -> list[float]:
    """n different rates around one, from (1 - width) to (1 + width) times it, not sorted."""
    return [middle * (1 + width * (2 * ((7 * i) % n) / max(n - 1, 1) - 1)) for i in range(n)]


def replicates(manifest: Mapping[str, Any], rates: Rates) -> list[Replicate]:
    """Every planned replicate finished, with these error rates on each set; a single rate is spread over the seeds."""
    found, seen = [], {}
    sets = {name: each["definition"] for name, each in manifest["sets"].items()}
    errors: dict[tuple[int, str], Sequence[float]] = {}
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        at = seen[index] = seen.get(index, -1) + 1
        scores = {}
        for name, definition in sets.items():
            if (index, name) not in errors:
                wanted = rates(flatten(condition["settings"]), definition)
                errors[index, name] = spread(wanted, condition["replicates"]) if isinstance(wanted, float | int) else wanted
            count = round(min(errors[index, name][at], 1) * READS)
            scores[name] = Score(count, READS, 1000, count / READS, 0.0, 1.0)
        found.append(Replicate(condition["name"], 0, key, init_seed, data_seed, "finished", 0.1, None, scores))
    return found
