"""The rows of a study, and all that is computed and drawn from them.

import results

rows = results.load("runs", "fflm-quick", "evaluations").to_pandas()
for array in results.arrays("runs", "forest", "importance"): array.seed, array.values
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from results.rows.arrays import KeptArray as KeptArray
    from results.rows.arrays import arrays as arrays
    from results.rows.load_rows import LoadedRows as LoadedRows
    from results.rows.load_rows import load as load

__all__ = ["KeptArray", "LoadedRows", "arrays", "load"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # imported late: pyarrow takes too long to load for a command's help
    if name in ("KeptArray", "arrays"):
        from results.rows import arrays

        return getattr(arrays, name)
    from results.rows import load_rows

    return getattr(load_rows, name)
