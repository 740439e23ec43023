"""At the end of a run, make one file per table of its many small ones, so that every later reader is quick.

Only where no other driver works on the study. Readers see the same rows before, during and after; a driver that is killed in the middle
leaves some rows twice, which readers show once and the next run tidies up (`results.store.merge.compact`).
"""

from collections.abc import Callable
from functools import partial

from harness.executing.leases import other_drivers
from harness.machine.store_retry import patiently
from results.errors import StoreError
from results.store.merge import compact
from results.store.parquet import COMPACTED
from results.store.schema import SCHEMAS
from results.store.tables import Store, table_files

MANY = 64  # files of a table; reading fewer takes no longer than a blink


def compact_alone(store: Store, say: Callable[[str], None]) -> None:
    """Compact the study where a table has MANY files and no other driver holds a lease. A store that refuses is told of, not raised."""
    try:
        if patiently(partial(_many, store), say=say) and not other_drivers(store):
            before, after = patiently(partial(compact, store), say=say)
            say(f"compacted: {before:,} files of the tables are now {after}")
    except StoreError as error:
        say(f"the tables' files are left as they are, which costs readers time and nothing else: {error}")


def _many(store: Store) -> bool:
    """Whether a table has many files, or two compacted ones, as an interrupted compaction leaves them."""
    for table in SCHEMAS:
        names = table_files(store, table)
        if len(names) >= MANY or sum(name.startswith(COMPACTED) for name in names) > 1:
            return True
    return False
