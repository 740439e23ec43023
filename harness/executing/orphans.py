"""Checkpoints of packs whose replicates other packs have committed: with another pack.size, or after an evaluation set was added."""

from collections.abc import Callable

import harness.planning.manifest as manifests
import harness.training.checkpoint as checkpoints
from harness.executing.leases import other_drivers
from harness.planning.plan import sets_of
from results.errors import StoreError
from results.store.tables import Store, list_names, scored


def remove_orphans(store: Store, say: Callable[[str], None]) -> None:
    """Remove the checkpoints of packs that nothing is left of, where no other driver works. A store that refuses is told of, not raised."""
    try:
        kept = set(list_names(store, "checkpoints"))
        if not kept or other_drivers(store):
            return
        scored_on: dict[str, int] = {}
        for row in scored(store).to_pylist():
            scored_on[row["key"]] = max(scored_on.get(row["key"], 0), len(row["sets"]))
        for manifest in manifests.read_all(store):
            keys = [key for key, *_ in manifest["replicates"]]
            for pack in manifest["packs"]:
                name = pack["id"]
                if name in kept and all(scored_on.get(keys[index], -1) >= sets_of(name) for index in pack["replicates"]):
                    checkpoints.clear(store, name)
                    kept.remove(name)
    except StoreError as error:
        say(f"checkpoints of packs that others have committed stay in the store, which costs space and nothing else: {error}")
