"""The failures of a study, and where to read why they happened."""

import re
from collections.abc import Callable, Mapping

import pyarrow.fs

from results.errors import store_errors
from results.plain_values import Value
from results.rows.plural import counted
from results.store.filesystem import info_of
from results.store.manifest import Manifest, label, newest_manifest, stage_of
from results.store.manifest_fields import PlannedRow
from results.store.tables import LOGS, Store, list_names, log_path, read

_HEAD = 4096  # bytes of a log that are read for its host
_FIELDS = ["pack", "attempt", "keys", "stage", "step", "kind", "exception", "traceback", "at"]


def show_failures(store: Store, full: bool, say: Callable[[str], None]) -> None:
    """Print every failure, the newest last: kind, step, exception, host, replicates, and the places of its traceback and its log.

    full: print the tracebacks too. Raises ValueError for a store that can't be read.
    """
    rows = sorted(read(store, "failures", _FIELDS).to_pylist(), key=lambda row: (row["at"], row["pack"], row["attempt"]))
    newest = newest_manifest(store)
    seeds = {row[0]: _who(newest[1], row) for row in newest[1]["replicates"]} if newest and rows else {}
    done = set(read(store, "replicates", ["key"])["key"].to_pylist()) if rows else set()
    keys = {key for row in rows for key in row["keys"]}
    since = f", {len(keys & done)} of them committed since" if keys & done else ""
    say(
        f"{store.study}: {counted(len(keys), 'replicate')} failed{since}, in {counted(len(rows), 'failure')}"
        if rows
        else f"{store.study}: no failures"
    )
    logs = set(list_names(store, LOGS)) if rows else set()
    for row in rows:
        _show(store, row, seeds, done, logs, full, say)
    if rows and not full:
        say("tracebacks: the same command with --full")


def _show(
    store: Store,
    row: Mapping[str, Value],
    seeds: Mapping[str, str],
    done: set[str],
    logs: set[str],
    full: bool,
    say: Callable[[str], None],
) -> None:
    path = log_path(row["pack"], row["attempt"])
    kept = path.removeprefix(f"{LOGS}/") in logs
    host = _host(store, path) if kept else _of_ray(row["traceback"])
    step = "" if row["step"] is None else f" after step {row['step']}"
    say(f"  {row['at']:%Y-%m-%d %H:%M:%S} UTC  {row['kind']}{step}, host {host or 'unknown'}")
    say(f"    {' '.join(row['exception'].split())}")
    for key in row["keys"]:
        again = ", committed since" if key in done else ""
        say(f"    replicate {key} {seeds.get(key, '(not of the newest plan)')}{again}")
    say(f"    pack {row['pack']}, attempt {row['attempt']}")
    if kept:
        say(f"    log: {store.path(LOGS, path.removeprefix(f'{LOGS}/'))}")
    elif process := re.search(r"\bpid: (\d+)", row["traceback"]):
        say(f"    log: on that host, the files worker-*-{process[1]}.out and .err of its Ray session")
    if full:
        for line in row["traceback"].rstrip().splitlines():
            say(f"    | {line}")


def _who(manifest: Manifest, row: PlannedRow) -> str:
    condition = manifest["conditions"][row[1]]
    return f"{label(condition['name'], stage_of(condition))}, seeds {row[2]} {row[3]}"


def _host(store: Store, path: str) -> str:
    info = info_of(store.filesystem, store.path(*path.split("/")))
    if info.type != pyarrow.fs.FileType.File:
        return ""
    with store_errors(info.path), store.filesystem.open_input_file(info.path) as stream:
        match = re.match(r"host: (\S{1,255})\n", stream.read(_HEAD).decode(errors="replace"))
    return match[1] if match else ""


def _of_ray(text: str) -> str:
    """The worker's address in Ray's message about a worker that died."""
    match = re.search(r"\bip: ([0-9a-fA-F.:]+)", text)
    return match[1] if match else ""
