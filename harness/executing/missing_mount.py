"""A local store whose mount is away reads as an empty folder: what a study has written there tells the two apart.

The manifest is written before any pack starts, so a pack whose study has none in sight waits for the store instead of beginning at step 0
and committing below the bare mount point. Before the first manifest nothing is known: docs/reference/faults.md.
An object store that is away says so.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from harness.executing.run_pack import Outcome, run_pack
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack
from results.errors import StoreError
from results.store.manifest import FOLDER
from results.store.tables import Store, check_there, list_names


def begun(store: Store) -> bool:
    """Whether the study has a manifest in this store."""
    return bool(list_names(store, FOLDER))


def run_there(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None],
    should_stop: Callable[[], bool],
    say: Callable[[str], None] = lambda text: None,
    has_begun: bool = True,
) -> Outcome:
    """Run `run_pack`. If the study `has_begun`, wait for the store before the pack starts and before each file that it writes."""
    if not has_begun:
        return run_pack(pack, store, device, report, should_stop, say)
    try:
        patiently(partial(check_there, store), should_stop, say)
    except StoreError as error:
        return Outcome(pack.id, "unstored", len(pack.replicates), message=str(error))
    return run_pack(pack, replace(store, begun=True), device, report, should_stop, say)
