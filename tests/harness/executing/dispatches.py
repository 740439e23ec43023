"""A dispatch of packs with all that it needs."""

from harness.executing.dispatch import Dispatch
from harness.executing.leases import Leases
from harness.executing.progress import Progress


def dispatch_of(packs, store, asked=lambda: False, leases=True):
    progress = Progress(packs, {each.id: 1.0 for each in packs}, 0, sum(len(each.replicates) for each in packs))
    return Dispatch(packs, store, progress, Leases(store, leases), asked)
