"""The columns of `replicates` that hold JSON, such as numerics and versions, as the readers show them."""

import json

from results.plain_values import Tree


def entries(text: str) -> Tree:
    """Parse a column's text as a JSON object; any other text is returned as it stands, under the name "text"."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"text": text}
