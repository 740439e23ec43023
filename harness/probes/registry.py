"""The probes by name: one line per family. Nothing that measures is imported before `probe` asks for it, so that names cost no time."""

from importlib import import_module
from typing import TYPE_CHECKING

from harness.probes.automata import PROBES as AUTOMATA
from harness.probes.distillation import PROBES as DISTILLATION
from harness.probes.dyck import PROBES as DYCK
from harness.probes.flipflop import PROBES as FLIPFLOP
from harness.probes.generation import PROBES as GENERATION
from harness.probes.lego import PROBES as LEGO
from harness.probes.subsequences import PROBES as SUBSEQUENCES

if TYPE_CHECKING:
    from harness.probes.probe import PairProbe, Probe

# MODULE:NAME of a `Probe` by its name
PROBES: dict[str, str] = FLIPFLOP | LEGO | AUTOMATA | DISTILLATION | SUBSEQUENCES | DYCK | GENERATION


def probe(name: str) -> "Probe | PairProbe":
    """The probe of that name, one of `PROBES`."""
    from harness.probes.probe import PairProbe, Probe  # which imports torch

    module, _, attribute = PROBES[name].partition(":")
    chosen = getattr(import_module(module), attribute)
    assert isinstance(chosen, Probe | PairProbe), f"{PROBES[name]} is no Probe"
    return chosen
