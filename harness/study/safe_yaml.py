"""A study file's text to plain containers: YAML that can neither make objects nor grow, whoever wrote it.

Limits of a file: MOST_BYTES of text, MOST_DEPTH levels, MOST_NODES values once aliases are copied out, MOST_REFERENCES of `${…}`,
MOST_TEXT characters in a value and MOST_DIGITS in a number.

YAML 1.1 reads `060` as 48 and `1:30` as 90: numbers that are written so are refused, since nobody means that.
"""

import collections
import re
from collections.abc import Iterator
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from results.errors import StudyError
from results.store.manifest_schema import MOST_DEPTH

MOST_BYTES = 2**18
MOST_NODES = 5000
MOST_TEXT = 10_000
MOST_DIGITS = 100
MOST_REFERENCES = 20  # N references into each other can make a text 3^(N/3) times as long
_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_HINTS = {  # by words of YAML's own errors
    "'\\t'": "indent with spaces",
    "cannot start any token": "put the text in quotes",
    "mapping values are not allowed": 'indent all keys of a mapping alike, and put a text with ": " in quotes',
}
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # which a PyYAML without libyaml lacks
_NUMBER = re.compile(r"[-+]?[0-9][0-9a-fA-FxX_.:+-]*")


def read_yaml(data: bytes, where: str) -> Any:
    """The text as plain containers, references not resolved. ValueError, in one sentence, for what is no YAML, has tags or is too large."""
    if len(data) > MOST_BYTES:
        raise StudyError(f"{where} has {len(data)} bytes, and a study file at most {MOST_BYTES}: it is something else")
    try:
        text = data.decode()
        refuse_odd_yaml(text, where)
        root = next((event for event in _events(text) if isinstance(event, yaml.NodeEvent)), None)
        if isinstance(root, yaml.ScalarEvent):  # OmegaConf would make a key of it
            return None if root.value in ("", "~", "null") else root.value
        return OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except yaml.MarkedYAMLError as error:
        raise StudyError(f"{where} is not a readable YAML file: {_fault(error)}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{where} is not a readable YAML file: line {line} is not UTF-8: save the file as UTF-8") from error
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise StudyError(f"{where} is not a readable YAML file: {' '.join(str(error).split())}") from error


def _events(text: str) -> Iterator[yaml.Event]:
    """The text's events, by libyaml where it is there; what it can't read is told by PyYAML's own parser, whose sentences say more."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError:
        collections.deque(yaml.parse(text, Loader=yaml.SafeLoader), maxlen=0)
        raise


def _fault(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, in which line, and what to write instead where that is known."""
    at, began = error.problem_mark, error.context_mark
    line = "" if at is None else f"line {at.line + 1}: "
    within = "" if began is None or at is None or began.line == at.line else f", {error.context} from line {began.line + 1} on"
    hint = next((f": {hint}" for words, hint in _HINTS.items() if words in str(error.problem)), "")
    return f"{line}{error.problem or error.context}{within}{hint}"


def refuse_odd_yaml(text: str, where: str, numbered: bool = True) -> None:
    """StudyError for a text with tags, odd numbers, or that expands to something deep or large.

    An alias of aliases doubles with every line. numbered: whether the sentence says in which line.
    """
    if text.count("${") > MOST_REFERENCES:
        raise StudyError(
            f"{where} has {text.count('${')} references such as ${{other.key}}, and at most {MOST_REFERENCES} are read"
        )
    sizes: dict[str, int] = {}  # by anchor, aliases copied out
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]  # (anchor, size so far)
    for event in _events(text):
        line = f"{where}, line {event.start_mark.line + 1}" if numbered else where
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in _TAGS and tag != "!":
            shown = tag.replace("tag:yaml.org,2002:", "!!")[:60]
            raise StudyError(f"{line}: {shown} is a tag of YAML that no study needs: leave it out, and write the value itself")
        if isinstance(event, yaml.ScalarEvent):
            _refuse_scalar(event, line)
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
        elif isinstance(event, yaml.CollectionEndEvent | yaml.ScalarEvent | yaml.AliasEvent):
            anchor, size = open_nodes.pop() if isinstance(event, yaml.CollectionEndEvent) else (event.anchor, 1)
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in sizes:
                    raise StudyError(
                        f"{where} has the alias *{event.anchor[:100]} of nothing that ends before it: write the value"
                    )
                size = sizes[event.anchor]
            elif anchor is not None:
                sizes[anchor] = size
            outer, total = open_nodes[-1]
            open_nodes[-1] = (outer, total + size)
        if len(open_nodes) > MOST_DEPTH or open_nodes[-1][1] > MOST_NODES:
            raise StudyError(
                f"{where} is nested more than {MOST_DEPTH} levels or has more than {MOST_NODES} values: it is no study"
            )


def _refuse_scalar(event: yaml.ScalarEvent, line: str) -> None:
    """StudyError for a value that is too long, and for a number that YAML 1.1 reads otherwise than it is meant."""
    text = str(event.value)
    shown = text if len(text) <= 40 else f"{text[:37]}…"
    if len(text) > MOST_TEXT:
        raise StudyError(f"{line}: {shown!r} has {len(text):,} characters, and a value at most {MOST_TEXT:,}: write less")
    if not event.implicit[0]:  # in quotes
        return
    if len(text) > MOST_DIGITS and _NUMBER.fullmatch(text):
        raise StudyError(f"{line}: {shown} has {len(text):,} digits, and a number at most {MOST_DIGITS}: write a smaller one")
    if _OCTAL.fullmatch(text):
        plain = text.replace("_", "").lstrip("+-0") or "0"
        raise StudyError(f'{line}: {shown} begins with 0, which YAML reads as octal: write {plain}, or "{shown}" for text')
    if _SIXTIES.fullmatch(text):
        raise StudyError(f'{line}: {shown} is a number to the base 60 in YAML: write "{shown}" for text, or the number itself')
