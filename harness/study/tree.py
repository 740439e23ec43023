"""The nested mappings of a study file and of `key=value` words: read, merged, resolved (with `safe_yaml`, all that knows OmegaConf).

Interpolations may point at other keys of the file; resolvers such as `${oc.env:HOME}` are refused. ValueError in one sentence on anything
that is no such mapping.
"""

import copy
import difflib
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.study.limits import MOST_STEPS
from harness.study.safe_yaml import MOST_BYTES, read_yaml, refuse_odd_yaml
from results.errors import StudyError
from results.plain_values import Options, Tree, Value
from results.store.filesystem import public_override, reason

_MOST_WORDS = 1000  # overrides
_MOST_KEY = 200  # characters
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.]+\}")
_ITEM = re.compile(r"0|[1-9][0-9]*")  # of a list, as a key


def read_file(path: Path) -> Tree:
    """The mapping of a YAML file. StudyError also where there is no such file."""
    if not path.is_file():
        there = {file.stem: file for file in sorted(path.parent.glob("*.y*ml"))}
        meant = [f"; did you mean {there[stem]}?" for stem in difflib.get_close_matches(path.stem, there, n=1)]
        raise StudyError(f"there is no study file {path}: give the path of a YAML file{''.join(meant)}")
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise StudyError(f"{path} can't be read: {reason(error)}") from error
    return read_tree(data, str(path))


def read_tree(data: bytes, where: str) -> Tree:
    """The mapping of the bytes of a YAML file. where: its name in sentences."""
    tree = read_yaml(data, where)
    if not tree:
        raise StudyError(f"{where} is empty: a study has keys such as name, task, model, train and evaluate")
    return _plain(tree, where)


def parse_words(overrides: Iterable[str]) -> Tree:
    """`key=value` words as one tree."""
    words = list(overrides)
    if len(words) > _MOST_WORDS:
        raise StudyError(
            f"{len(words):,} overrides on the command line are more than {_MOST_WORDS}: write them into a study file"
        )
    for index, word in enumerate(words):
        if not re.match(r"[A-Za-z_][^=\s\[\]]*=", word):
            before = next((other for other in reversed(words[:index]) if "=" in other), "")
            key = before.partition("=")[0]
            instead = "write key=value, such as train.lr=1e-3" if _closed(before) else f"put quotes around all of {key}=…"
            raise StudyError(f"{public_override(word)!r} on the command line is no override: {instead}")
    keys = [word.split("=", 1)[0] for word in words]
    for one, other in itertools.combinations(keys, 2):
        if overlap(one, other):
            if one == other:
                raise StudyError(f"{one} on the command line is given twice: keep one")
            mode = ", or write wandb.mode=… in place of wandb=…" if "wandb" in (one, other) else ""
            raise StudyError(f"{one} and {other} on the command line set the same thing: keep one{mode}")
    try:
        for word, key in zip(words, keys, strict=True):
            refuse_odd_yaml(word.partition("=")[2], f"{key}=… on the command line", numbered=False)
            if len(key) > _MOST_KEY:
                raise StudyError(f"{key[:40]}… on the command line has {len(key):,} characters, and a key at most {_MOST_KEY}")
        tree = OmegaConf.to_container(OmegaConf.from_dotlist(words), resolve=False)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        if odd := re.search(r"Incompatible key type '(\w+)'\s+full_key: (\S*)", str(error)):
            kind = "null" if odd[1] == "NoneType" else f"of type {odd[1]}"
            raise StudyError(f"the command line: {odd[2]}: a key that is {kind} is not a word: put it in quotes") from error
        raise StudyError(
            f"the overrides {' '.join(map(public_override, words))} can't be read: {' '.join(str(error).split())}"
        ) from error
    return _plain(tree, "the command line")


def _closed(word: str) -> bool:
    """Whether every bracket that a word opens is closed in it."""
    return all(word.count(opening) <= word.count(closing) for opening, closing in ("[]", "{}"))


def texts(node: Tree, key: str) -> list[str]:
    """The list of texts under a key, [] where there is none."""
    values: list[str] = typed(node, key, list, [])
    if odd := next((value for value in values if not isinstance(value, str)), None):
        raise StudyError(
            f"{key} holds {short(odd)[:60]}, which is no text: write a list of sentences, in quotes where YAML reads another kind"
        )
    return values


def resolve(tree: Tree, where: str) -> Tree:
    """The tree with every `${key}` replaced by the value that it points at."""
    if not _has_references(tree):  # OmegaConf takes most of the time that loading a study takes
        return _plain(copy.deepcopy(tree), where)
    try:
        resolved = OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise StudyError(f"{where}: {str(error).splitlines()[0]}") from error
    return _plain(resolved, where)


def _has_references(node: Value) -> bool:
    """Whether a value is for OmegaConf to read: `${key}`, or `???` for one that is missing."""
    if isinstance(node, dict):
        return any(map(_has_references, node.values()))
    if isinstance(node, list):
        return any(map(_has_references, node))
    return isinstance(node, str) and ("${" in node or node == "???")


def _plain(tree: Value, where: str) -> Tree:
    if not isinstance(tree, dict):
        raise StudyError(f"{where} must be a mapping with keys such as name, task, model and train")
    _refuse_odd(tree, where)
    return tree


def _refuse_odd(node: Value, where: str, path: str = "") -> None:
    """StudyError for keys that are no words, and for values that no study can hold."""
    if isinstance(node, dict):
        for key, value in node.items():
            inside = f"{where}: {path}" if path else where
            if not isinstance(key, str):
                raise StudyError(f"{inside}: the key {short(key)} is not a word: put it in quotes")
            if "." in key and "" in key.split("."):
                raise StudyError(
                    f"{inside}: the key {key[:40]!r} has a dot with nothing beside it: write a path such as train.lr"
                )
            if value is None and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*:[^ :]+", key) and path != "conditions":
                raise StudyError(f"{inside}: {key[:40]!r} has no space after the colon: write {key[:40].replace(':', ': ')}")
            if not _is_text(key) or len(key) > _MOST_KEY:
                raise StudyError(f"{inside}: the key {key[:40]!r} must be of at most {_MOST_KEY} whole characters")
            _refuse_odd(value, where, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for value in node:
            _refuse_odd(value, where, path)
    elif isinstance(node, float) and not math.isfinite(node):
        raise StudyError(f"{where}: {path} = {node} must be a finite number")
    elif isinstance(node, str) and not _is_text(node):
        raise StudyError(f"{where}: {path} = {node[:40]!r} holds half a character (a surrogate): write the whole one")
    elif not isinstance(node, str | int | float | None):
        raise StudyError(f"{where}: {path} = {str(node)[:40]} is of type {type(node).__name__} in YAML: put it in quotes")


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def refuse_unprintable(name: Value, what: str, where: str) -> None:
    """StudyError for a name that can't be shown on a line of its own, such as an empty one."""
    if not (isinstance(name, str) and name.strip() == name != "" and name.isprintable()):
        raise StudyError(f"{where}: {name!r} can't be the name of {what}: write a word or a few, on one line")


def refuse_resolvers(node: Value, where: str) -> None:
    """StudyError for any `${…}` but `${key.of.the.file}`: nothing in a study reads the environment or runs anything."""
    if isinstance(node, dict):
        for value in node.values():
            refuse_resolvers(value, where)
    elif isinstance(node, list):
        for value in node:
            refuse_resolvers(value, where)
    elif isinstance(node, str) and "${" in _REFERENCE.sub("", node):
        raise StudyError(f"{node!r} in {where} is refused: only ${{other.key}} may be referred to; write the value itself")


def merge(base: Value, over: Value, path: str = "") -> Value:
    """Merge `over` into `base`; below the root, a node whose `name` changes is replaced. A number as a key names an item of a list, from 0.

    path: of both, "" at the root. StudyError for an item that the list does not have.
    """
    if isinstance(base, list) and isinstance(over, dict) and over and all(map(_ITEM.fullmatch, over)):
        items = list(base)
        for key, value in over.items():
            if int(key) >= len(base):
                there = f"its items are 0 to {len(base) - 1}" if base else "it is empty"
                raise StudyError(f"{path}.{key}: {path} has no item {key} ({there}): change another, or write the whole list")
            items[int(key)] = merge(base[int(key)], value, f"{path}.{key}")
        return items
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    if path and "name" in over and over["name"] != base.get("name"):
        return over
    inside = f"{path}." if path else ""
    return base | {key: merge(base[key], value, f"{inside}{key}") if key in base else value for key, value in over.items()}


def nested(node: Value, where: str, unique: bool = True) -> Tree:
    """A mapping whose keys may be dotted paths, as nested mappings. unique: whether a path that is given twice is refused."""
    if not isinstance(node, dict):
        raise StudyError(f"{where} = {node!r} must be a mapping, such as {{train.lr: 1e-3}}")
    out: Tree = {}
    taken: set[str] = set()  # paths of values
    inside: set[str] = set()  # what these paths begin with
    for key, value in node.items():
        inner = nested(value, where, unique) if isinstance(value, dict) else value
        for part in reversed(key.split(".")):
            inner = {part: inner}
        if not unique:
            out = merge(out, inner)
            continue
        for path, _ in list(leaves(inner)):
            above = list(itertools.accumulate(path.split("."), "{}.{}".format))
            if path in inside or not taken.isdisjoint(above):
                raise StudyError(f"{where} gives {path} twice: keep one of them")
            taken.add(path)
            inside.update(above[:-1])
        out = united(out, inner)
    return out


def united(one: Tree, other: Tree) -> Tree:
    """Two trees without a common leaf as one."""
    both = {key: united(one[key], other[key]) for key in one.keys() & other.keys()}
    return one | other | both


def leaves(node: Tree, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """(dotted path, value) of every value that is no mapping."""
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def overlap(one: str, other: str) -> bool:
    """Whether two dotted paths are one, or one lies within the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def short(value: Value) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(short, value)) + "]"
    return str(value).lower() if type(value) is bool else "null" if value is None else str(value)


def mapping(node: Options, key: str, prefix: str = "") -> Tree:
    """The mapping under a key, {} where there is none. prefix: stands before the key in the sentence."""
    value = node.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StudyError(f"{prefix}{key} = {value!r} must be a mapping: write keys with values below it, or leave it out")
    return value


def typed(node: Options, key: str, kind: type, default: Value, prefix: str = "") -> Value:
    """The value under a key, or the default, of exactly this type. prefix: stands before the key in the sentence."""
    value = node.get(key, default)
    if type(value) is not kind:
        kinds = {list: "a list, such as [a, b]", bool: "true or false"}
        wanted = kinds.get(kind, "a word or a sentence")
        if value is None:
            raise StudyError(f"{prefix}{key} is empty: write {wanted}, or leave it out")
        raise StudyError(f"{prefix}{key} = {value!r} must be {wanted}")
    return value


def count(node: Options, key: str, prefix: str, alternative: str = "", most: int = MOST_STEPS) -> int:
    """A whole number from 1 to `most`. prefix: stands before the key in the sentence; alternative: what else may be written there."""
    if type(node[key]) is not int or node[key] < 1:
        raise StudyError(f"{prefix}{key} = {node[key]!r} must be a whole number of at least 1{alternative}")
    if node[key] > most:
        raise StudyError(f"{prefix}{key} = {node[key]} is too large: write at most {most:,}{alternative}")
    return node[key]
