"""A live view of studies, from their store alone: a table on a terminal, plain lines elsewhere. Trains and writes nothing."""

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from results.errors import MissingFile, StoreError, StudyError
from results.progress.snapshot import COLUMNS, Snapshot, failed_keys, in_flight, snapshot
from results.progress.status import head, of_planned
from results.rows.plural import counted, significant
from results.store.filesystem import listing
from results.store.manifest import FOLDER, Manifest, newest_manifest
from results.store.parquet import COMPACTED, SUFFIX, read_file
from results.store.schema import SCHEMAS
from results.store.tables import Store, check_there, first_rows
from results.terminal import printable

_MOST = 20  # most conditions or nodes in a table
_LONGEST_S = 86_400
_SCHEMA = pa.schema([SCHEMAS["replicates"].field(name) for name in COLUMNS])
_File = tuple[str, int, int]  # name, time of the last change in ns, bytes


class Follower:
    """A reader of one study's snapshots, which does not read a file again that has not changed."""

    def __init__(self, store: Store):
        self.store = store
        self._parts: dict[_File, pa.Table] = {}
        self._plan: tuple[list[_File], Manifest | None] = ([], None)
        self._failures: tuple[list[_File], set[str]] = ([], set())

    def take(self) -> Snapshot:
        """As `results.progress.snapshot.take`, with the same errors; StoreError also where a manifest was seen before and none is now."""
        plans = self._files(FOLDER)
        if plans != self._plan[0]:
            if self._plan[1]:  # nothing removes manifests, so a folder without one has lost its mount, or was moved
                check_there(self.store)
            newest = newest_manifest(self.store)
            self._plan = (plans, newest[1] if newest else None)
        failures = self._files("failures")
        if failures != self._failures[0]:
            self._failures = (failures, failed_keys(self.store))
        return snapshot(self.store.study, self._plan[1], self.rows(), self._failures[1], in_flight(self.store))

    def rows(self) -> pa.Table:
        """`COLUMNS` of the winning replicates."""
        for attempt in range(3):
            files = [file for file in self._files("replicates") if file[0].endswith(SUFFIX)]
            files.sort(key=lambda file: (not file[0].startswith(COMPACTED), file))
            try:
                self._parts = {file: self._parts[file] if file in self._parts else self._read(file[0]) for file in files}
                break
            except MissingFile:
                if attempt == 2:  # compaction took a listed file away: list again
                    raise
        return first_rows(pa.concat_tables([_SCHEMA.empty_table(), *self._parts.values()]))

    def _read(self, name: str) -> pa.Table:
        return read_file(self.store.filesystem, self.store.path("replicates", name), "replicates", COLUMNS).cast(_SCHEMA)

    def _files(self, folder: str) -> list[_File]:
        infos = listing(self.store.filesystem, self.store.path(folder))
        return sorted((i.base_name, i.mtime_ns or 0, i.size or 0) for i in infos if not i.base_name.startswith("."))


def watch(stores: list[Store], every: float, once: bool, say: Callable[[str], None]) -> None:
    """Show the studies every `every` seconds until Ctrl-C, or once. A look that fails is shown, and the next one tries again.

    ValueError as `check_interval`, before anything is shown; with `once` also as `Follower.take`.
    """
    check_interval(every)
    followers = [Follower(store) for store in stores]
    if once:
        for follower in followers:
            _write([follower.take()], say)
        return
    try:
        with _screen(say) as show:
            while True:
                show([_try(follower) for follower in followers])
                time.sleep(every)
    except KeyboardInterrupt:
        return  # Ctrl-C is how a person leaves


def check_interval(every: float) -> None:
    """StudyError unless `every` is from 0.1 seconds to a day."""
    if not 0.1 <= every <= _LONGEST_S:
        raise StudyError(f"--every {every:g} must be at least 0.1 seconds, and at most {_LONGEST_S:,} (a day)")


def lines(at: Snapshot) -> list[str]:
    """A snapshot as plain text."""
    out = [f"{at.at:%Y-%m-%d %H:%M:%S} UTC  {head(at)}", f"  packs: {_packs(at)}", f"  {_pace(at)}"]
    for condition in at.conditions:
        extra = f", {condition.diverged} diverged" * bool(condition.diverged) + f", {condition.failed} failed" * bool(
            condition.failed
        )
        out.append(f"  condition {condition.name}: {of_planned(condition)}{extra}")
    for node in at.nodes:
        last = f"last {node.last:%Y-%m-%d %H:%M:%S} UTC"
        out.append(f"  node {node.name}: {counted(node.committed, 'replicate')}, {node.recent} in the last hour, {last}")
    return out


def _try(follower: Follower) -> Snapshot | str:
    try:
        return follower.take()
    except (StudyError, StoreError) as error:
        return f"{follower.store.study}: {error}"


def _packs(at: Snapshot) -> str:
    p = at.packs
    return f"{p.committed} committed, {p.in_flight} in flight, {p.waiting} waiting, {p.failed} failed"


def _pace(at: Snapshot) -> str:
    if not at.recent:
        return "no commit in the last hour" + (f"; the last was {at.last:%Y-%m-%d %H:%M:%S} UTC" if at.last else "")
    text = f"{counted(at.recent, 'replicate')} in the last hour, {significant(at.per_minute)} a minute"
    if at.planned and at.committed + at.failed >= at.planned:
        return f"{text}; nothing is left to do"
    return text + (f"; ends {at.ends:%Y-%m-%d %H:%M} UTC ({_words(at.ends - at.at)})" if at.ends else "")


def _words(left: datetime.timedelta) -> str:
    minutes = round(left.total_seconds() / 60)
    if minutes < 120:
        return f"in {minutes} min"
    return f"in {minutes / 60:.1f} h" if minutes < 2880 else f"in {minutes / 1440:.1f} days"


def _write(snapshots: list[Snapshot | str], say: Callable[[str], None]) -> None:
    for shown in snapshots:
        for line in [shown] if isinstance(shown, str) else lines(shown):
            say(line)


@contextmanager
def _screen(say: Callable[[str], None]) -> Iterator[Callable[[list[Snapshot | str]], None]]:
    """Provide the function that shows snapshots: a table that is redrawn in place, or lines where there is no terminal."""
    if not sys.stdout.isatty():
        yield lambda snapshots: _write(snapshots, say)
        return
    from rich.console import Group
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        yield lambda snapshots: live.update(Group(*map(drawn, snapshots)), refresh=True)


def drawn(at: Snapshot | str) -> Any:
    """A snapshot, or the reason why there is none, for rich to draw; names are text, never markup."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if isinstance(at, str):
        return Text(printable(at), style="red")
    conditions = Table("condition", "committed", "planned", "diverged", "failed")
    nodes = Table("node", "replicates", "last hour", "last commit")
    for condition in at.conditions[:_MOST]:
        numbers = (condition.committed, condition.planned, condition.diverged, condition.failed)
        conditions.add_row(Text(printable(condition.name)), *(Text(str(n), justify="right") for n in numbers))
    for node in at.nodes[:_MOST]:
        cells = (str(node.committed), str(node.recent), f"{node.last:%m-%d %H:%M:%S}")
        nodes.add_row(Text(printable(node.name)), *(Text(cell, justify="right") for cell in cells))
    more = [
        Text(f"… and {len(listed) - _MOST} more {what}: --once lists all")
        for listed, what in ((at.conditions, "conditions"), (at.nodes, "nodes"))
        if len(listed) > _MOST
    ]
    top = Text(f"{printable(head(at))}\npacks: {_packs(at)}\n{_pace(at)}")
    return Group(top, conditions, nodes, *more, Text(f"{at.at:%H:%M:%S} UTC · Ctrl-C ends the watching, not the study"))
