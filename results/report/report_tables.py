"""The rows that a report is made of. Each table is read once, and the rows that count stand beside the page as Parquet.

Of a large study a second process writes the copies of the long tables, while this one reads of them what it draws.
"""

from collections.abc import Sequence
from concurrent.futures import Future

import pyarrow as pa
import pyarrow.compute as pc

from results import second_process
from results.rows.summary import copy_of, to_parquet
from results.store.tables import ROW, Store, committed, read

LONG = ("profiles", "curves")


class ReportTables:
    """`replicates`: the committed rows. shared: whether a second process takes the long tables."""

    def __init__(self, store: Store, shared: bool):
        self._store, self.replicates = store, committed(store)
        self._copies = {"replicates": to_parquet(self.replicates)}
        self._coming: dict[str, Future[bytes]] = {}
        if shared:
            keys = self.replicates.select(ROW)
            self._coming = {table: second_process.submit(copy_of, store, table, keys) for table in LONG}

    def read(self, table: str, keys: Sequence[str] | None = None) -> pa.Table:
        """The rows of a table that count, of these replicates or of all."""
        wanted = None if keys is None else pc.field("key").isin(pa.array(keys, pa.string()))
        if table in self._coming:
            packs = None if wanted is None else set(self.replicates.filter(wanted)["pack"].to_pylist())
            return read(self._store, table, filter=wanted, winning=self.replicates, packs=packs)
        rows = read(self._store, table, winning=self.replicates)
        self._copies[table] = to_parquet(rows)
        return rows if wanted is None else rows.filter(wanted)

    def copies(self) -> dict[str, bytes]:
        """Every table that was read, by its path in the report's folder."""
        copies = {table: coming.result() for table, coming in self._coming.items()} | self._copies
        return {f"tables/{table}.parquet": data for table, data in copies.items()}
