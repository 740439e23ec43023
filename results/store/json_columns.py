"""The columns of `replicates` that hold JSON, such as numerics and versions, as the readers show them."""

import json
from typing import Any


def entries(text: str) -> dict[str, Any]:
    """The object that a column's text is; text that is none is shown as it stands, under the name "text"."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"text": text}
