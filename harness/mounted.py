"""A local store whose mount is away reads as an empty folder: what a study has written there tells the two apart.

The manifest is written before any pack starts, so a pack whose study has none in sight waits for the store instead of beginning at step 0
and committing below the bare mount point. Before the first manifest nothing is known: docs/faults.md. An object store that is away says so.
"""

from collections.abc import Callable
from functools import partial

import torch

from harness.execute import Outcome, run_pack
from harness.pack import Pack
from harness.patience import patiently
from results.errors import StoreError
from results.manifest import FOLDER
from results.store import Store, list_names


def begun(store: Store) -> bool:
    """Whether the study has a manifest in this store."""
    return bool(list_names(store, FOLDER))


def check_there(store: Store) -> None:
    """StoreError where a local store does not show the manifest that the study has in it."""
    if store.is_local and not begun(store):
        raise StoreError(f"the store {store.root} is away: it shows no manifest of {store.study}, which has one there")


def run_there(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None],
    should_stop: Callable[[], bool],
    say: Callable[[str], None] = lambda text: None,
    has_begun: bool = True,
) -> Outcome:
    """`run_pack`; of a study that `has_begun` the store is waited for before the pack starts and before it commits."""
    if not has_begun:
        return run_pack(pack, store, device, report, should_stop, say)
    steps = pack.replicates[0].condition.train.steps

    def wait() -> None:
        patiently(partial(check_there, store), should_stop, say)

    def noted(step: int) -> None:
        report(step)
        if step == steps:
            wait()

    try:
        wait()
    except StoreError as error:
        return Outcome(pack.id, "unstored", len(pack.replicates), message=str(error))
    return run_pack(pack, store, device, noted, should_stop, say)
