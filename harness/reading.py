"""A study file's text to plain containers: YAML that can neither make objects nor grow, whoever wrote it.

Limits of a file: MOST_BYTES of text, MOST_DEPTH levels, MOST_NODES values once aliases are copied out, MOST_REFERENCES of `${…}`.
"""

from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from results.errors import StudyError

MOST_BYTES = 2**20
MOST_DEPTH = 40
MOST_NODES = 100_000
MOST_REFERENCES = 20  # N references into each other can make a text 3^(N/3) times as long


def read_yaml(data: bytes, where: str) -> Any:
    """Plain containers, references not resolved. Raises ValueError in one sentence for what is no YAML, has tags or is too large."""
    if len(data) > MOST_BYTES:
        raise StudyError(f"{where} has {len(data)} bytes, and a study file at most {MOST_BYTES}: it is something else")
    try:
        text = data.decode()
        _refuse_growth(text, where)
        return OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except (OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{where} is not a readable YAML file: {' '.join(str(error).split())}") from error


def _refuse_growth(text: str, where: str) -> None:
    """ValueError where what the text stands for is deep or large: an alias of aliases doubles with every line."""
    if text.count("${") > MOST_REFERENCES:
        raise StudyError(
            f"{where} has {text.count('${')} references such as ${{other.key}}, and at most {MOST_REFERENCES} are read"
        )
    sizes: dict[str, int] = {}  # by anchor, aliases copied out
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]  # (anchor, size so far)
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
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
