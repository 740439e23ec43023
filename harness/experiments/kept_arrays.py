"""Arrays that a function returns: one safetensors file a replicate and step, <store>/artifacts/<key>/0/<step>.safetensors.

The metadata holds the configuration and the seed as JSON, the pack that measured them, and a digest of the file (`results.store.seal`).
`results.arrays` reads them.
"""

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import NDArray
from safetensors.numpy import save

from harness.experiments.entries import Entry
from harness.planning.pack import Pack, Replicate
from harness.training.weights import origin, path
from results.rows.measures import label
from results.store.seal import seal
from results.store.tables import Store, write_file


def keep(store: Store, pack: Pack, replicate: Replicate, entries: Sequence[Entry]) -> list[Entry]:
    """Write the arrays of a replicate, before its rows are committed; returns its entries with the arrays' names alone. Of several arrays
    of one name, set and step the last is kept."""
    by_step: dict[int, dict[str, NDArray]] = {}
    for entry in entries:
        for name, array in entry.arrays.items():
            by_step.setdefault(entry.step, {})[label(entry.set, name)] = array
    for step, arrays in by_step.items():
        write_file(store, path(store, replicate.key, 0, step), seal(save(arrays, origin(pack, replicate))))
    return [replace(entry, arrays={}, kept=(*entry.kept, *entry.arrays)) for entry in entries]
