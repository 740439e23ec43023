"""Replicates that share an initialisation or a data seed with others, which are no independent sample."""

from collections.abc import Collection

from results.grouping import grouped
from results.store.manifest import Manifest


def share_seeds(seeds: Collection[tuple[int, int]]) -> bool:
    """Whether (init, data) seeds are crossed: several seeds of one kind, some of them in several replicates.

    One seed for all does not count: what is said of the replicates is then said of that seed.
    """
    distinct = (len(set(kind)) for kind in zip(*seeds, strict=True))
    return any(1 < number < len(seeds) for number in distinct)


def caution(manifest: Manifest) -> str:
    """A sentence for a study in which the replicates of a condition share seeds; "" for others."""
    seeds = grouped((row[1], (row[2], row[3])) for row in manifest["replicates"])
    if not any(share_seeds(members) for members in seeds.values()):
        return ""
    return (
        "Replicates share initialisation or data seeds, so they are no independent sample, and intervals over them are narrower than "
        "they should be."
    )
