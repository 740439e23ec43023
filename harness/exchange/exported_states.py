"""The column State of the table that W&B exports: how each run has ended. One that has not finished is planned, and has no numbers."""

import datetime
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from harness.study.identity import digest
from results.errors import StudyError
from results.grouping import grouped
from results.plain_values import Row
from results.rows.plural import counted, first_of
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, read

STATE = "State"
_KINDS = {"failed": "raised", "crashed": "died", "killed": "died", "preempted": "died"}  # of a failure, by state
_WORDS = {"finished", "running", "pending", "preempting", *_KINDS}
_COUNTED = "counted as failed or missing"
_MOST_NAMED = 8


def split_rows(
    table: pa.Table, numbers: Sequence[int], identity: Sequence[str], where: str, say: Callable[[str], None]
) -> tuple[Sequence[int], pa.Table, list[tuple[int, Row]]]:
    """The rows of W&B's export whose run has finished, with their numbers; then each other run of which the seed and the settings are
    known. A column State of other words says nothing of that.

    identity: the columns of the seed and the settings.
    """
    if pa.types.is_nested(table[STATE].type) or not set(table[STATE].unique().to_pylist()) <= _WORDS:
        return numbers, table, []
    states = table[STATE].to_pylist()
    finished = [state == "finished" for state in states]
    if not any(finished):
        raise StudyError(f"none of the runs in {where} has the {STATE} finished: there is nothing to import")
    others = table.filter(pc.invert(pa.array(finished))).select([*identity, STATE]).to_pylist()
    whole = {repr(row) for row in table.filter(pa.array(finished)).select(identity).to_pylist()}
    kinds: dict[str, list[tuple[int, Row]]] = {_COUNTED: []}
    for number, row in zip([number for number, end in zip(numbers, finished, strict=True) if not end], others, strict=True):
        again = repr({name: row[name] for name in identity}) in whole
        what = _COUNTED if None not in row.values() else "left out for want of a seed or a setting"
        kinds.setdefault("left out, since the run has finished in another row" if again else what, []).append((number, row))
    for what, rows in kinds.items():
        if rows:
            words = " or ".join(sorted({row[STATE] for _, row in rows}))
            shown = first_of([str(number) for number, _ in rows], _MOST_NAMED)
            say(f"{what} ({STATE} {words}): {counted(len(rows), 'row')} of {where} ({shown})")
    return (
        [number for number, end in zip(numbers, finished, strict=True) if end],
        table.filter(pa.array(finished)),
        kinds[_COUNTED],
    )


def record_failures(store: Store, states: Mapping[str, str], where: str) -> None:
    """Commit a failure of every replicate that has ended without finishing and has none yet. states: by key."""
    there = {key for keys in read(store, "failures", ["keys"])["keys"].to_pylist() for key in keys}
    ended = {key: state for key, state in states.items() if state in _KINDS and key not in there}
    for state, keys in grouped((state, key) for key, state in ended.items()).items():
        pack = f"ff-{digest([state, *sorted(keys)], 16)}"
        row = {
            "pack": pack,
            "attempt": 1,
            "keys": sorted(keys),
            "stage": 0,
            "step": None,
            "kind": _KINDS[state],
            "traceback": "",
        }
        row |= {"exception": f"the {STATE} of the run in {where} is {state}", "at": datetime.datetime.now(datetime.UTC)}
        commit(store, f"{pack}-1", {"failures": pa.Table.from_pylist([row], SCHEMAS["failures"])})
