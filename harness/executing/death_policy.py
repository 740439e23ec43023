"""What to do with a pack whose worker died: retry while it gets on, halve it when it does not, give it up when it is alone."""

from collections.abc import Collection
from dataclasses import dataclass, field

_PATIENCE = 3  # deaths at one step
UNHEARD = 16  # deaths in a row before a word of the pack, after which it is given up
_LONGEST_S = 60.0  # that a pack waits after such a death
WAITED_S = sum(min(2.0**count, _LONGEST_S) for count in range(UNHEARD - 1))  # in all, 10 minutes


@dataclass
class Deaths:
    """The deaths of every pack, by pack id: the checkpoint step they happened at, and the nodes."""

    _at: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    _unheard: dict[str, int] = field(default_factory=dict)

    def verdict(self, pack: str, size: int, step: int, node: str, lost: Collection[str], heard: bool = True) -> str:
        """retry | halve | died, after one more death on `node` ("" where unknown) with the newest checkpoint at `step`.

        Deaths on nodes that are `lost` by now are no fault of the pack and do not count: a worker is often missed before its node.
        Nor do deaths before the pack was `heard` of: the worker was idle when it died, or its node has no memory for one. The pack is
        tried again after `wait_s`, and given up whole at the 16th such death in a row, for which it has waited 10 minutes: no replicate
        of it has begun, so halves would end in the same way.
        """
        if not heard:
            if node not in lost:
                self._unheard[pack] = self._unheard.get(pack, 0) + 1
            return "retry" if self._unheard.get(pack, 0) < UNHEARD else "died"
        self._unheard.pop(pack, None)
        last, nodes = self._at.get(pack, (-1, []))
        nodes = [*nodes, node] if step == last else [node]
        self._at[pack] = (step, nodes)
        if sum(place not in lost for place in nodes) < _PATIENCE:
            return "retry"
        return "halve" if size > 1 else "died"

    def wait_s(self, pack: str) -> float:
        """Seconds from a death before the pack's first word to the next try: 1, 2, 4, … 60, and 0 where there was none."""
        count = self._unheard.get(pack, 0)
        return min(2.0 ** (count - 1), _LONGEST_S) if count else 0.0
