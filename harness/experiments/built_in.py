"""The experiments that come with this project: one line per family.

An experiment is a frozen dataclass. Its fields are the settings that a study gives it, checked by their annotations and by
`__post_init__`. A field that has its default is not hashed, and a change of meaning raises `rev`, as for tasks and models.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from harness.draw import Draw
from harness.experiments.generation import EXPERIMENTS as GENERATION
from harness.experiments.ngrams import EXPERIMENTS as NGRAMS
from results.plain_values import Options


class BuiltIn(Protocol):
    """A seeded measurement of R seeds at once."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # its fields are what a key hashes

    metrics: ClassVar[Mapping[str, str]]
    """Which way is better, lower | higher, of each number that `measure` may return; the first is reported first."""

    rev: ClassVar[int]
    """Revision of what the experiment means. It is hashed into every key unless it is 1."""

    def measure(self, draw: Draw) -> Iterator[Options]:
        """Mappings of names to [R] numbers, as a packed function of a person's own returns them (docs/guides/experiments.md)."""


REGISTRY: dict[str, type[BuiltIn]] = {**GENERATION, **NGRAMS}
