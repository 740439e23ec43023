"""The process behind a live W&B run and TensorBoard files: it reads what packs commit, and the states that a driver hands over.

`results.dashboards.live_feed` starts it. Its standard input is a line of JSON with the study, then `{"state": …}` every minute, then
`{"end": true}`; it answers each with a line, the last after a line for each run that it has written. If the driver disappears, the run
is closed as it stands.
"""

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from results.dashboards.dashboard_rows import live_run, scalars, spreads, summary_of
from results.dashboards.publish import LiveRun, publish, sync_line
from results.errors import MissingFile, StoreError, StudyError
from results.job_folder import in_ray_job
from results.plain_values import Tree
from results.rows.measures import is_experimental
from results.rows.summary import replicates_of
from results.store.manifest import Manifest, newest_manifest, reported
from results.store.parquet import COMPACTED
from results.store.schema import SCHEMAS
from results.store.tables import Store, first_rows, open_store, read, read_files, semi_join, table_files


class DriverGone(Exception):
    """Nobody reads the answers any longer."""


class CommittedRows:
    """The last scores of the committed replicates; each call reads the files of new packs alone."""

    def __init__(self, store: Store):
        self._store = store
        self._seen: set[str] = set()
        self._replicates = SCHEMAS["replicates"].empty_table()
        self._evaluations = SCHEMAS["evaluations"].empty_table()

    def summary(self, manifest: Manifest) -> pa.Table:
        """`results.dashboards.dashboard_rows.summary_of` what is committed now."""
        experimental = is_experimental(manifest)  # their last values may be of any step
        names = [name for name in table_files(self._store, "replicates") if name not in self._seen]
        try:
            fresh = read_files(self._store, "replicates", names)
            scores = read(
                self._store,
                "evaluations",
                filter=reported(manifest)
                if experimental
                else reported(manifest) & pc.field("step").isin(fresh["steps"].unique()),
                winning=first_rows(fresh),
                packs=None if any(name.startswith(COMPACTED) for name in names) else set(fresh["pack"].unique().to_pylist()),
            )
        except MissingFile:
            pass  # a compaction took them away meanwhile: the next minute finds the file that it made
        else:
            self._seen.update(names)
            self._replicates = first_rows(pa.concat_tables([self._replicates, fresh]))
            self._evaluations = semi_join(pa.concat_tables([self._evaluations, scores]), self._replicates)
        replicates = replicates_of(manifest, self._replicates, self._evaluations, SCHEMAS["failures"].empty_table())
        return summary_of(manifest, replicates, self._evaluations)


def live_values(state: Mapping[str, float], summary: pa.Table) -> dict[str, float]:
    """A line of the live run: the study's state, and the finite quantiles of each set over the committed replicates."""
    values = {f"live/{name}": float(value) for name, value in state.items()}
    for where, quantiles, share in spreads(summary):
        values |= {f"live/{where}/{name}": value for name, value in (quantiles | share).items()}
    return values


class Views:
    """The live views of one study: a W&B run, TensorBoard's files, or both. tell: sends the driver a line while it waits."""

    def __init__(self, about: Mapping[str, str], tell: Callable[[Tree], None]):
        self._about, self._tell = about, tell
        self._store = open_store(about["store"], about["study"])
        self._rows = CommittedRows(self._store)
        self._run: LiveRun | None = None
        self._began = time.time()
        self._writer: Any = None
        if about["tensorboard"]:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(os.path.join(about["tensorboard"], about["study"]))

    def show(self, state: Mapping[str, float]) -> None:
        newest = newest_manifest(self._store)
        if newest is None:
            return
        values = live_values(state, self._rows.summary(newest[1]))
        minutes = (time.time() - self._began) / 60
        self._write({name.removeprefix("live/"): value for name, value in values.items()})
        if self._about["mode"] != "off":
            self._run = self._run or LiveRun(self._about["mode"], self._store, live_run(self._about["study"], *newest))
            self._run.log(values | {"live/minutes": minutes})

    def end(self) -> list[str]:
        """Show the tables as they are now; returns the lines that say where."""
        newest = newest_manifest(self._store)
        if newest is None:
            return []
        lines = []
        if self._writer is not None:
            self._write(scalars(self._rows.summary(newest[1])))
            self._writer.close()
            lines.append(f"TensorBoard: tensorboard --logdir {self._about['tensorboard']}")
        mode = self._about["mode"]
        if mode != "off":
            where = publish(
                self._store,
                mode,
                runs=self._about["runs"],
                say=lambda line: self._tell({"say": line}),
                live=self._run,
                written=lambda: self._tell({"alive": True}),  # the driver gives up a process that is silent
            )
            if mode == "offline" and not self._store.is_local and in_ray_job():
                lines.append(
                    f"W&B (offline): `{self._again('online')}` sends it from any machine; that of this job is not kept"
                )
            else:
                lines += [f"W&B ({mode}): {where}", *sync_line(mode, where, self._about["study"], self._about["runs"])]
        return lines

    def trouble(self) -> list[str]:
        """What is said of an exception that is a defect: the study goes on, what writes the view later, and the traceback."""
        later = f": `{self._again(mode)}` writes it" if (mode := self._about["mode"]) != "off" else ""
        return [f"the view of the study failed, and the study goes on{later}", *traceback.format_exc().splitlines()]

    def _again(self, mode: str) -> str:
        """The command that makes the W&B runs from the tables."""
        runs = self._about["runs"]
        more = "" if runs == "study" else f" --runs {runs}"
        return f"manyseeds publish {self._store.shell_word} {self._about['study']} --mode {mode}{more}"

    def close(self) -> None:
        """Close the views after the driver is gone; what was sent stays."""
        if self._run is not None:
            self._run.close()

    def _write(self, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, int(time.time() - self._began))
            self._writer.flush()


def answers(lines: Iterator[str], tell: Callable[[Tree], None]) -> None:
    """Answer every line until the input ends, or until `tell` raises DriverGone."""
    views = Views(json.loads(next(lines)), tell)
    with contextlib.suppress(DriverGone):
        for line in lines:
            question = json.loads(line)
            answer: Tree = {"done": True}
            try:
                if "state" in question:
                    views.show(question["state"])
                else:
                    tell(answer | {"lines": views.end()})
                    return
            except DriverGone:
                raise
            except (StudyError, StoreError) as error:
                answer["trouble"] = [f"W&B: {error}"]
            except Exception:
                answer["trouble"] = views.trouble()
            tell(answer)
    views.close()


def teller(to: IO[str]) -> Callable[[Tree], None]:
    """Make a function that writes an answer to the driver. It raises DriverGone where the driver has died, and `to` then writes nowhere."""

    def tell(answer: Tree) -> None:
        try:
            to.write(json.dumps(answer) + "\n")
            to.flush()
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), to.fileno())  # what is still buffered goes there when the process ends
            raise DriverGone from error

    return tell


def main() -> None:
    told = os.fdopen(os.dup(1), "w")  # the pipe to the driver
    os.dup2(2, 1)  # whatever else prints, prints to stderr
    answers(iter(sys.stdin), teller(told))
