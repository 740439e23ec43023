"""Nested options as one flat mapping."""

from collections.abc import Mapping
from typing import Any

from results.errors import DamagedFile


class Settings(dict[str, Any]):
    """Options by dotted path. One that a reader needs and that is not there is an error of the store."""

    def __missing__(self, name: str) -> Any:
        raise DamagedFile(
            f"a condition in the manifest lacks the setting {name}: move the manifest away, and run the study again"
        )


def flatten(node: Mapping[str, Any], prefix: str = "") -> Settings:
    """Nested options by dotted path; an empty mapping is a value."""
    flat = Settings()
    for name, value in node.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) and value else {f"{prefix}{name}": value}
    return flat
