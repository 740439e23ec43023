"""Planted causes: models that are right except where a known subsequence stands in the string, and prompts in which it does.

What a tracer must find is known, so its recall can be counted: docs/explanation/tracing.md has the protocol,
`python -m benchmarks.planted` runs it.
"""

from benchmarks.planted.families import FAMILIES
from benchmarks.planted.flipflop import Defect, plant
from benchmarks.planted.literal import Literal, plant_literal
from benchmarks.planted.score import expected_recall, recall

__all__ = ["FAMILIES", "Defect", "Literal", "expected_recall", "plant", "plant_literal", "recall"]
