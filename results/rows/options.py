"""Nested options as one flat mapping."""

from collections.abc import Sequence
from typing import Any

from results.errors import DamagedFile
from results.plain_values import Options, Tree


class Settings(dict[str, Any]):
    """Options by dotted path. Looking up one that is missing raises an error of the store."""

    def __missing__(self, name: str) -> Any:
        raise DamagedFile(
            f"a condition in the manifest lacks the setting {name}: move the manifest away, and run the study again"
        )


def flatten(node: Options, prefix: str = "") -> Settings:
    """Flatten nested options to dotted paths; an empty mapping is a value.

    The settings in a manifest hold the options of a model of a person's own as pairs. They become model.width and so on, as in the study.

    >>> flatten({"model": {"path": "mine:Net", "options": [["width", 32]]}})
    {'model.path': 'mine:Net', 'model.width': 32}
    """
    flat = Settings()
    for name, value in node.items():
        if f"{prefix}{name}" == "model.options" and _are_pairs(value):
            flat |= flatten(dict(value), prefix)
        elif isinstance(value, dict) and value:
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _are_pairs(value: Any) -> bool:
    """Whether a value is a list of names, each with a value."""
    pairs = isinstance(value, list) and bool(value)
    return pairs and all(isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in value)


def split(configs: Sequence[Options]) -> tuple[Tree, list[str]]:
    """Split flat options into those that all share, and the names of those that differ or that some lack, in the order they occur."""
    names = list(dict.fromkeys(name for config in configs for name in config))
    first = configs[0] if configs else {}
    shared = {name: first[name] for name in names if all(name in config and config[name] == first[name] for config in configs)}
    return shared, [name for name in names if name not in shared]
