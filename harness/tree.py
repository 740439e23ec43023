"""The nested mappings of a study file and of `key=value` words: read, merged, resolved (with `reading`, all that knows OmegaConf).

Interpolations may point at other keys of the file; resolvers such as `${oc.env:HOME}` are refused. ValueError in one sentence on anything
that is no such mapping.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.reading import MOST_BYTES, read_yaml
from results.errors import StudyError
from results.filesystem import public_override, reason

_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.]+\}")


def read_file(path: Path) -> dict[str, Any]:
    """The mapping of a YAML file. Also FileNotFoundError."""
    if not path.is_file():
        raise StudyError(f"there is no study file {path}: give the path of a YAML file")
    try:
        with path.open("rb") as stream:
            tree = read_yaml(stream.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise StudyError(f"{path} can't be read: {reason(error)}") from error
    if not tree:
        raise StudyError(f"{path} is empty: a study has keys such as name, task, model, train and evaluate")
    return _plain(tree, str(path))


def parse_words(overrides: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as one tree."""
    words = list(overrides)
    for word in words:
        if not re.match(r"[A-Za-z_][^=\s]*=", word):
            raise StudyError(
                f"{public_override(word)!r} on the command line is no override: write key=value, such as train.lr=1e-3"
            )
    keys = [word.split("=", 1)[0] for word in words]
    for one, other in itertools.combinations(keys, 2):
        if overlap(one, other):
            raise StudyError(f"{one} and {other} on the command line set the same thing: keep one")
    try:
        tree = OmegaConf.to_container(OmegaConf.from_dotlist(words), resolve=False)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise StudyError(
            f"the overrides {' '.join(map(public_override, words))} can't be read: {' '.join(str(error).split())}"
        ) from error
    return _plain(tree, "the command line")


def resolve(tree: dict[str, Any], where: str) -> dict[str, Any]:
    """With every `${key}` replaced by the value it points at."""
    try:
        resolved = OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise StudyError(f"{where}: {str(error).splitlines()[0]}") from error
    return _plain(resolved, where)


def _plain(tree: Any, where: str) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise StudyError(f"{where} must be a mapping with keys such as name, task, model and train")
    _refuse_odd_keys(tree, where)
    return tree


def _refuse_odd_keys(node: Any, where: str) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            if not isinstance(key, str):
                raise StudyError(f"{where}: the key {key!r} is not a word: put it in quotes")
            _refuse_odd_keys(value, f"{where}: {key}")
    elif isinstance(node, list):
        for value in node:
            _refuse_odd_keys(value, where)


def refuse_resolvers(node: Any, where: str) -> None:
    """Only `${key.of.the.file}` is allowed: nothing in a study reads the environment or runs anything."""
    if isinstance(node, dict):
        for value in node.values():
            refuse_resolvers(value, where)
    elif isinstance(node, list):
        for value in node:
            refuse_resolvers(value, where)
    elif isinstance(node, str) and "${" in _REFERENCE.sub("", node):
        raise StudyError(f"{node!r} in {where} is refused: only ${{other.key}} may be referred to; write the value itself")


def merge(base: Any, over: Any, root: bool = True) -> Any:
    """`over` into `base`; below the root, a node whose `name` changes is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    if not root and "name" in over and over["name"] != base.get("name"):
        return over
    return base | {key: merge(base[key], value, root=False) if key in base else value for key, value in over.items()}


def nested(node: Any, where: str) -> dict[str, Any]:
    """A mapping whose keys may be dotted paths, as nested mappings."""
    if not isinstance(node, dict):
        raise StudyError(f"{where} = {node!r} must be a mapping")
    out: dict[str, Any] = {}
    for key, value in node.items():
        inner = nested(value, where) if isinstance(value, dict) else value
        for part in reversed(key.split(".")):
            inner = {part: inner}
        out = merge(out, inner)
    return out


def leaves(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every value that is no mapping."""
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def overlap(one: str, other: str) -> bool:
    """Whether two dotted paths are one, or one lies within the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def short(value: Any) -> str:
    """As one would write it in YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(short, value)) + "]"
    return str(value).lower() if type(value) is bool else "null" if value is None else str(value)


def mapping(node: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The mapping under a key, {} where there is none."""
    value = node.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StudyError(f"{key} = {value!r} must be a mapping")
    return value


def typed(node: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """The value under a key, or the default; of this very type."""
    value = node.get(key, default)
    if type(value) is not kind:
        raise StudyError(f"{key} = {value!r} must be {'a list' if kind is list else 'a word or a sentence'}")
    return value


def count(node: Mapping[str, Any], key: str, prefix: str, alternative: str = "") -> int:
    """A whole number from 1 on. prefix: of the key in the sentence; alternative: what else may be written there."""
    if type(node[key]) is not int or node[key] < 1:
        raise StudyError(f"{prefix}{key} = {node[key]!r} must be a whole number of at least 1{alternative}")
    return node[key]
