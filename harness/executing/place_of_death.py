"""Where a worker died, from Ray's own words where the worker had not said it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# "(IP: 10.0.0.7, ID: 0a1b…)" of the memory monitor; "ip: 10.0.0.7" of an actor that died; "ip=10.0.0.7" of one that did not start
_ID = re.compile(r"\bIP: [^\s,]+, ID: ([^\s,)]+)")
_ADDRESS = re.compile(r"\b(?:IP: |ip: |ip=)([^\s,]+)")


def place_of(node: str, text: str, nodes: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """(Ray's id of the node, its host), each "" where it is unknown. node: as the worker said it, or "".

    text: the error in one line. nodes: as `ray.nodes()` gives them. An address that several nodes share names the host alone.
    """
    if not node and (named := _ID.search(text)):
        node = named[1]
    address = found[1] if (found := _ADDRESS.search(text)) else ""
    there = [entry for entry in nodes if (entry["NodeID"] == node if node else entry.get("NodeManagerAddress") == address)]
    if not node and len(there) == 1:
        node = there[0]["NodeID"]
    host = there[0].get("NodeManagerHostname", "") if there else address
    return node, host
