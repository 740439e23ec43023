"""What pages on students and teachers print: accuracies on the test set, of each condition."""

from statistics import median

from results.rows.study_rows import read_study
from results.store.manifest import manifest_of


def accuracies_of(store, conditions, each):
    """By condition, of which there are so many, the accuracy of each replicate."""
    found = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        found.setdefault(replicate.condition, []).append(1 - replicate.error("test"))
    assert len(found) == conditions
    assert {len(members) for members in found.values()} == {each}
    return found


def shown(values):
    """The least, the median and the most, as the tables have them."""
    return f"{min(values):.3f} / {median(values):.3f} / {max(values):.3f}"
