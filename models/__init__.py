"""The registry of models. A new architecture is one file and one name, in `GENERAL` or in the `MODELS` of its family's folder.

A new family is one line here.
"""

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any

from models.custom.custom import configure as configure_custom
from models.draws import Draw
from models.dyck import MODELS as DYCK
from models.lego import MODELS as LEGO
from models.lstm import LSTM
from models.mlp import MLP
from models.model import Model
from models.ngram_mlp import NgramMLP
from models.ngrams import MODELS as NGRAMS
from models.transformer.transformer import Transformer

GENERAL: dict[str, type[Model]] = {"transformer": Transformer, "lstm": LSTM, "mlp": MLP, "ngram_mlp": NgramMLP}
REGISTRY: dict[str, type[Model]] = GENERAL | NGRAMS | LEGO | DYCK

__all__ = ["REGISTRY", "build", "configure"]


def configure(name: str, **fields: Any) -> Any:
    """Make the frozen configuration of the model called `name`; a name with a colon is the import path of a user's module.

    Raises ValueError for an unknown name, field or value.
    """
    if ":" in name:
        return configure_custom(name, **fields)
    if name not in REGISTRY:
        raise ValueError(f"there is no model {name!r}{_nearest(name, REGISTRY)}; models: {', '.join(REGISTRY)}")
    options = [field.name for field in dataclasses.fields(REGISTRY[name])]
    for field in fields:
        if field not in options:
            raise ValueError(
                f"model.{field} is not an option of the {name}{_nearest(field, options)}; options: {', '.join(options)}"
            )
    return REGISTRY[name](**fields)


def build(name: str, draw: Draw, *, vocabulary: int, length: int, **fields: Any) -> Any:
    """Make the model called `name` as a pack of `draw.replicates`: tokens [R, B, T] → logits [R, B, T, V]."""
    return configure(name, **fields).make(draw, vocabulary, length)


def _nearest(word: str, names: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(names), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
