"""Checkpoints of packs whose replicates other packs have committed: with another pack.size, or after an evaluation set was added."""

from collections.abc import Callable

import harness.planning.manifest as manifests
import harness.training.checkpoint as checkpoints
from harness.executing.leases import other_drivers
from results.errors import StoreError
from results.store.tables import Store, list_names, scored


def remove_orphans(store: Store, say: Callable[[str], None]) -> None:
    """Remove the checkpoints of packs that nothing is left of, where no other driver works. A store that refuses is told of, not raised."""
    try:
        kept = set(list_names(store, "checkpoints"))
        if not kept or other_drivers(store):
            return
        sets = manifests.sets_by_key(scored(store))
        for manifest in manifests.read_all(store):
            for pack in manifest["packs"]:
                name = pack["id"]
                if name in kept and manifests.is_committed(pack, manifest, sets):
                    checkpoints.clear(store, name)
                    kept.remove(name)
    except StoreError as error:
        say(f"checkpoints of packs that others have committed stay in the store, which costs space and nothing else: {error}")
