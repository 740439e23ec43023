"""What to do with a pack whose worker died: retry while it gets on, halve it when it does not, give it up when it is alone."""

from collections.abc import Collection
from dataclasses import dataclass, field

_PATIENCE = 3  # deaths at one step


@dataclass
class Deaths:
    """The deaths of every pack, by pack id: the checkpoint step they happened at, and the nodes."""

    _at: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def verdict(self, pack: str, size: int, step: int, node: str, lost: Collection[str]) -> str:
        """retry | halve | died, after one more death on `node` ("" where unknown) with the newest checkpoint at `step`.

        Deaths on nodes that are `lost` by now are no fault of the pack and do not count: a worker is often missed before its node.
        """
        last, nodes = self._at.get(pack, (-1, []))
        nodes = [*nodes, node] if step == last else [node]
        self._at[pack] = (step, nodes)
        if node in lost or sum(each not in lost for each in nodes) < _PATIENCE:
            return "retry"
        return "halve" if size > 1 else "died"
