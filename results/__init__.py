"""What is kept of a study, and what is said of it.

import results

rows = results.load("runs", "fflm-quick", "evaluations").to_pandas()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from results.rows.load_rows import LoadedRows as LoadedRows
    from results.rows.load_rows import load as load

__all__ = ["LoadedRows", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from results.rows import load_rows  # and with it pyarrow, which takes too long for a command's help

    return getattr(load_rows, name)
