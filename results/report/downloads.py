"""The rows behind a report, the files of them to download beside its page, and the page's part for a paper: methods, citations, tables."""

from collections.abc import Sequence
from concurrent.futures import Future

import pyarrow as pa
import pyarrow.compute as pc

from results import second_process
from results.plain_values import Tree
from results.report.citations import harness, references
from results.report.family import ReportFamily
from results.rows.summary import Replicate, at_last_step, copy_of, to_parquet
from results.store.manifest import Manifest, named_as_planned, planned_rows
from results.store.schema import TABLES as STORE_TABLES
from results.store.tables import ROW, Store, committed, read

TABLES = (
    ("Summary, one row per condition and evaluation set", ("summary.csv", "summary.tex", "summary.parquet")),
    ("Replicates, a row each", ("replicates.csv", "replicates.parquet")),
    ("Evaluations at the last step, counts and sums of squares", ("evaluations.parquet",)),
    ("Whole tables, only the rows that count", tuple(f"tables/{name}.parquet" for name in STORE_TABLES)),
)
LONG = ("profiles", "curves")  # the tables that have most rows in a large study


class ReportTables:
    """The rows that count, each table read once.

    replicates: the committed ones, under the plan's names of their conditions; of the other tables only rows of planned ones are read.
    shared: whether a second process writes the copies of the long tables, while this one reads only the rows of them that it draws.
    """

    def __init__(self, store: Store, manifest: Manifest, shared: bool):
        self._store, self.replicates = store, named_as_planned(manifest, committed(store))
        self._planned = planned_rows(manifest, self.replicates)
        self._copies = {"replicates": to_parquet(self._planned)}
        self._coming: dict[str, Future[bytes]] = {}
        if shared:
            keys = self._planned.select(ROW)
            self._coming = {table: second_process.submit(copy_of, store, table, keys) for table in LONG}

    def read(self, table: str, keys: Sequence[str] | None = None) -> pa.Table:
        """The rows of a table that count, of these replicates or of all."""
        wanted = None if keys is None else pc.field("key").isin(pa.array(keys, pa.string()))
        if table in self._coming:
            packs = None if wanted is None else set(self._planned.filter(wanted)["pack"].to_pylist())
            return read(self._store, table, filter=wanted, winning=self._planned, packs=packs)
        rows = read(self._store, table, winning=self._planned)
        self._copies[table] = to_parquet(rows)
        return rows if wanted is None else rows.filter(wanted)

    def copies(self) -> dict[str, bytes]:
        """Every table that was read, by its path in the report's folder."""
        copies = {table: coming.result() for table, coming in self._coming.items()} | self._copies
        return {f"tables/{table}.parquet": data for table, data in copies.items()}


def more_tables(planned: Sequence[Replicate], rows: pa.Table, replicates: pa.Table, evaluations: pa.Table) -> dict[str, bytes]:
    """{file name: content} of the tables that `results.report.report` does not write already; `rows` is of
    `results.rows.summary.raw_rows`.
    """
    return {
        "replicates.parquet": to_parquet(rows),
        "evaluations.parquet": to_parquet(final_rows(planned, replicates, evaluations)),
    }


def final_rows(planned: Sequence[Replicate], replicates: pa.Table, evaluations: pa.Table) -> pa.Table:
    """The rows of `evaluations` at the last step of the planned replicates, in an order that depends on the rows alone."""
    keys = pa.array(sorted({replicate.key for replicate in planned}), pa.string())
    last_rows = at_last_step(evaluations, replicates.filter(pc.is_in(replicates["key"], keys)))
    order = [(name, "ascending") for name in ("key", "stage", "set", "set_hash", "weights", "length", "metric")]
    return last_rows.select(evaluations.column_names).sort_by(order)


def for_a_paper(
    manifest: Manifest,
    planned: Sequence[Replicate],
    replicates: pa.Table,
    families: Sequence[ReportFamily],
    text: str,
    downloads: Sequence[tuple[str, Sequence[str]]] = TABLES,
) -> Tree:
    """The values that `methods.html` shows. text: the methods paragraph."""
    keys = pa.array([replicate.key for replicate in planned], pa.string())
    commits = replicates.filter(pc.is_in(replicates["key"], keys))["git"].drop_null().unique().to_pylist()
    papers = {name: entries for family in families for name, entries in family.references.items()}
    return {
        "methods_text": text,
        "references": [*references(manifest.get("source"), papers), harness(sorted(commits))],
        "downloads": downloads,
    }
