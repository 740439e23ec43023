"""Settings for large tables hold while they are asked for, and no longer."""

import gc

import pyarrow as pa
import pytest

from results.large_tables import for_large_tables


@pytest.mark.parametrize("collects", [True, False])
def test_the_settings_are_taken_back_also_after_an_error(collects):
    pool = pa.default_memory_pool().backend_name
    (gc.enable if collects else gc.disable)()
    try:
        with for_large_tables():
            assert (pa.default_memory_pool().backend_name, gc.isenabled()) == ("system", False)
        assert (pa.default_memory_pool().backend_name, gc.isenabled()) == (pool, collects)
        with pytest.raises(ZeroDivisionError), for_large_tables():
            _ = 1 / 0
        assert (pa.default_memory_pool().backend_name, gc.isenabled()) == (pool, collects)
    finally:
        gc.enable()
