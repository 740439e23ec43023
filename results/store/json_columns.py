"""The columns of `replicates` that hold JSON, such as numerics and versions, as the readers show them."""

import json

from results.plain_values import Tree


def entries(text: str) -> Tree:
    """The object that a column's text is; text that is none is shown as it stands, under the name "text"."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"text": text}
