"""What to do with a pack whose worker died: retry while it gets on, halve it when it does not, give it up when it is alone."""

from dataclasses import dataclass, field

_PATIENCE = 3  # deaths at one step


@dataclass
class Deaths:
    """The deaths of every pack, by pack id: the checkpoint step they happened at and how often."""

    _at: dict[str, tuple[int, int]] = field(default_factory=dict)

    def verdict(self, pack: str, size: int, step: int, node_gone: bool) -> str:
        """retry | halve | died, after one more death with the newest checkpoint at `step`.

        A lost node is no fault of the pack and is not counted.
        """
        if node_gone:
            return "retry"
        last, count = self._at.get(pack, (-1, 0))
        count = count + 1 if step == last else 1
        self._at[pack] = (step, count)
        if count < _PATIENCE:
            return "retry"
        return "halve" if size > 1 else "died"
