"""What to do with a pack whose worker died: retry while it gets on, halve it when it does not, give it up when it is alone."""

from collections.abc import Collection
from dataclasses import dataclass, field

_PATIENCE = 3  # deaths at one step
_UNHEARD = 10  # deaths before a word of the pack that are put down to its worker


@dataclass
class Deaths:
    """The deaths of every pack, by pack id: the checkpoint step they happened at, and the nodes."""

    _at: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    _unheard: dict[str, int] = field(default_factory=dict)

    def verdict(self, pack: str, size: int, step: int, node: str, lost: Collection[str], heard: bool = True) -> str:
        """retry | halve | died, after one more death on `node` ("" where unknown) with the newest checkpoint at `step`.

        Deaths on nodes that are `lost` by now are no fault of the pack and do not count: a worker is often missed before its node.
        Nor do the first ten that came before the pack was `heard` of at all: the worker may have died while it was idle. Ten, because a
        pack that ends every process before its first word would otherwise be tried forever.
        """
        if not heard:
            self._unheard[pack] = self._unheard.get(pack, 0) + 1
            if self._unheard[pack] <= _UNHEARD:
                return "retry"
        last, nodes = self._at.get(pack, (-1, []))
        nodes = [*nodes, node] if step == last else [node]
        self._at[pack] = (step, nodes)
        if node in lost or sum(place not in lost for place in nodes) < _PATIENCE:
            return "retry"
        return "halve" if size > 1 else "died"
