"""Trim a Kubernetes CRD to one version's schema, for jsonschema: `python tests/launch/cluster/schemas/trim.py CRD.yaml OUT.json`.

Descriptions are dropped, an object with named properties takes no others (as `kubectl apply` refuses unknown fields), and subtrees that
are repeated are written once, under `$defs`.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

_SMALLEST = 120  # characters of a subtree that is worth a definition


def strict(schema: Any) -> Any:
    """A copy without descriptions, where unknown fields are errors unless the CRD keeps them."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value
        for key, value in schema.items()
        if key != "properties" and not (key == "description" and isinstance(value, str))
    }
    made = {key: strict(value) for key, value in kept.items() if not key.startswith("x-kubernetes-")}
    if "properties" in schema:
        made["properties"] = {name: strict(value) for name, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
            made["additionalProperties"] = False
    return made


def shared(schema: Any) -> Any:
    """The same schema with its repeated subtrees under `$defs`."""
    seen: Counter[str] = Counter()

    def count(node: Any) -> None:
        text = json.dumps(node, sort_keys=True)
        if isinstance(node, dict) and len(text) >= _SMALLEST and "type" in node:
            seen[text] += 1
            if seen[text] > 1:
                return
        for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            count(each)

    count(schema)
    names = {text: f"d{index}" for index, text in enumerate(sorted(text for text, times in seen.items() if times > 1))}

    def place(node: Any, itself: str = "") -> Any:
        if isinstance(node, list):
            return [place(each) for each in node]
        if not isinstance(node, dict):
            return node
        text = json.dumps(node, sort_keys=True)
        if text in names and text != itself:
            return {"$ref": f"#/$defs/{names[text]}"}
        return {key: place(value) for key, value in node.items()}

    return place(schema) | {"$defs": {name: place(json.loads(text), text) for text, name in names.items()}}


def main(source: str, out: str, version: str = "v1") -> None:
    crd = yaml.safe_load(Path(source).read_text())
    (schema,) = [each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == version]
    Path(out).write_text(json.dumps(shared(strict(schema)), sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
