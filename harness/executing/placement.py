"""Which pack an idle slot takes, where a study has several kinds of them: its own first, then what fits and is done sooner there."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from harness.planning.pack import Pack
from harness.planning.plan import shape
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind


@dataclass(frozen=True)
class Placement:
    """What decides which pack an idle slot takes.

    rates: by `plan.shape`, so by kind and signature; rooms: bytes that tensors may take in a slot, by the kind's name, of kinds that there
    were when the study was planned. With one kind every pack is its own, and neither is read; experiments have neither.
    """

    kinds: tuple[Kind, ...]
    rates: Mapping[str, Rate] = field(default_factory=dict)
    rooms: Mapping[str, int] = field(default_factory=dict)

    def kind_of(self, pack: Pack) -> Kind:
        """The kind that a pack was sized for."""
        return next((kind for kind in self.kinds if kind.name == pack.kind), self.kinds[0])

    def memory(self, pack: Pack, kind: Kind) -> int:
        """Bytes that the pack is expected to take in a slot of a kind: as measured there, or else on its own kind."""
        rate = self.rates.get(shape(pack.signature, kind.name)) or self.rates[shape(pack.signature, pack.kind)]
        return math.ceil(rate.memory * len(pack.replicates) / rate.size)

    def seconds(self, pack: Pack, kind: Kind) -> float:
        """Seconds that the whole pack is expected to take in a slot of a kind; infinite where its shape was not measured there."""
        rate = self.rates.get(shape(pack.signature, kind.name))
        if rate is None:
            return math.inf
        return rate.pack_seconds(pack.replicates[0].condition.steps) * len(pack.replicates) / rate.size

    def rank(self, pack: Pack, kind: Kind, left: Mapping[str, float]) -> int | None:
        """Preference of an idle slot of a kind for this pack; 0 is best, None refuses it.

        left: seconds until the slots of each kind have done what there is of theirs, infinite for a kind that has none now.
        """
        own = self.kind_of(pack)
        if own == kind or not pack.kind:  # packs of experiments are sized for no kind
            return 0
        if kind.name not in self.rooms:  # its first node joined after planning: nothing is known of its slots
            return None
        if self.memory(pack, kind) > self.rooms[kind.name] or self.seconds(pack, kind) >= left[own.name]:
            return None
        return 1 if kind.device == own.device or kind.device == "cuda" else 2


def time_left(
    placement: Placement, queued: Collection[Pack], running: Mapping[str, float], slots: Mapping[str, int]
) -> dict[str, float]:
    """Seconds until the slots of each kind have done their packs in the queue and what they run, by the kind's name.

    running: seconds of work that the slots of a kind still have in hand; slots: how many there are now.
    """
    work = {kind.name: running.get(kind.name, 0.0) for kind in placement.kinds}
    for pack in queued:
        own = placement.kind_of(pack)
        work[own.name] += placement.seconds(pack, own)
    return {name: seconds / slots[name] if slots.get(name) else math.inf for name, seconds in work.items()}
