"""The column State of the table that W&B exports: how each run has ended."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from results.errors import StudyError
from results.rows.plural import counted, first_of

STATE = "State"
_WORDS = {"finished", "failed", "crashed", "killed", "running", "pending", "preempting", "preempted"}
_MOST_NAMED = 8


def finished_rows(
    table: pa.Table, numbers: Sequence[int], where: str, say: Callable[[str], None]
) -> tuple[Sequence[int], pa.Table]:
    """The rows of W&B's export whose run has finished, with their numbers. A column State of other words says nothing of that."""
    if pa.types.is_nested(table[STATE].type) or not set(table[STATE].unique().to_pylist()) <= _WORDS:
        return numbers, table
    states = table[STATE].to_pylist()
    left = [number for number, state in zip(numbers, states, strict=True) if state != "finished"]
    if len(left) == len(states):
        raise StudyError(f"none of the runs in {where} has the {STATE} finished: there is nothing to import")
    if left:
        words = " or ".join(sorted(set(states) - {"finished"}))
        shown = first_of(list(map(str, left)), _MOST_NAMED)
        say(f"left out, as their {STATE} is {words}: {counted(len(left), 'row')} of {where} ({shown})")
    kept = [state == "finished" for state in states]
    return [number for number, keep in zip(numbers, kept, strict=True) if keep], table.filter(pa.array(kept))
