"""The probes by name: what each is for, how many strings it takes by default, what can be set, and at which steps it looks.

A new probe is a function in a file of its own and an entry here; `launch/cli.py` lists the names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.probes.automata.boundaries import boundaries
from harness.probes.distillation.ngrams import NGrams, ngrams
from harness.probes.distillation.nonterminals import NonTerminals, nonterminals
from harness.probes.distillation.parity import Monomials, SupportAttention, monomials, support_attention
from harness.probes.flipflop.attention import Rows, attention, pattern
from harness.probes.flipflop.dilution import dilution
from harness.probes.flipflop.drift import drift
from harness.probes.flipflop.heads import heads
from harness.probes.lego.concentration import concentrations
from harness.probes.subsequences.alignment import Alignment, alignment
from harness.probes.subsequences.associations import PairGaps, associations
from models.lego.clauses import Clauses
from models.lego.lego_theory import LegoTheory
from models.lego.lego_transformer import LegoTransformer
from models.transformer.transformer import Transformer
from tasks.automata.automata import Automaton
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity
from tasks.distillation.pcfg import PCFG
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation
from tasks.lego.lego import Lego
from tasks.subsequences.associations import Associations
from tasks.text.corpus import Corpus


@dataclass(frozen=True)
class Nothing:
    """No option."""


@dataclass(frozen=True)
class Probe:
    """run(model, task, strings, settings) gives rows; `suits(model's configuration, task)`; kind: what it is for, in words.

    every_step: at each step whose weights are kept, not at the last alone. beside(model, task): rows of further names.
    """

    run: Callable[[Any, Any, int, Any], Rows]
    suits: Callable[[Any, Any], bool]
    kind: str
    strings: int = 64
    settings: type = Nothing
    every_step: bool = False
    beside: Callable[[Any, Any], dict[str, Rows]] = lambda model, task: {}


def _of_flipflop(model: Any, task: Any) -> bool:
    return isinstance(model, Transformer) and isinstance(task, FlipFlop | Simulation)


def _of_simulation(model: Any, task: Any) -> bool:
    return isinstance(model, Transformer) and isinstance(task, Simulation)


def _of_walks(model: Any, task: Any) -> bool:
    walks = isinstance(task, Automaton) and str(task.automaton).startswith("Grid") and not task.scratchpad
    return walks and isinstance(model, Transformer) and model.causal


def _of_grammars(model: Any, task: Any) -> bool:
    return isinstance(task, PCFG) and _of_strings(model, task)


def _of_strings(model: Any, task: Any) -> bool:
    return isinstance(model, Transformer) and isinstance(task, PCFG | Corpus) and (task.objective == "masked" or model.causal)


_GRAMMARS = "transformers of pcfg that have not diverged, causal ones where the objective is next"
_STRINGS = "transformers of pcfg and corpus that have not diverged, causal ones where the objective is next"

PROBES: dict[str, Probe] = {
    "attention": Probe(
        lambda model, task, count, settings: attention(model, task, count),
        _of_flipflop,
        "transformers of flipflop and flipflop_simulation that have not diverged",
        beside=lambda model, task: {"pattern": pattern(model)} if isinstance(task, Simulation) else {},
    ),
    "dilution": Probe(
        lambda model, task, count, settings: dilution(model, task, count),
        lambda model, task: _of_flipflop(model, task) and model.positions not in ("rotary", "alibi"),
        "such transformers without rotary and alibi positions",
    ),
    "drift": Probe(
        lambda model, task, count, settings: drift(model, task),
        lambda model, task: _of_simulation(model, task) and (model.layers, model.heads, model.positions) == (1, 1, "linear"),
        "transformers of flipflop_simulation with 1 layer, 1 head and positions: linear",
    ),
    "heads": Probe(
        lambda model, task, count, settings: heads(model, task, count),
        _of_simulation,
        "transformers of flipflop_simulation that have not diverged",
        every_step=True,
    ),
    "concentration": Probe(
        lambda model, task, count, settings: concentrations(model, task, count),
        lambda model, task: isinstance(task, Lego) and isinstance(model, Clauses | LegoTransformer | LegoTheory),
        "models of lego that have not diverged",
    ),
    "boundaries": Probe(
        lambda model, task, count, settings: boundaries(model, task, count),
        _of_walks,
        "causal transformers of automaton on Grid<n>, without scratchpad, that have not diverged",
    ),
    "monomials": Probe(
        monomials,
        lambda model, task: isinstance(task, SparseParity | HierarchicalParity),
        "models of sparse_parity and hierarchical_parity that have not diverged",
        strings=100_000,
        settings=Monomials,
        every_step=True,
    ),
    "support_attention": Probe(
        support_attention,
        lambda model, task: isinstance(task, SparseParity) and isinstance(model, Transformer),
        "transformers of sparse_parity that have not diverged",
        strings=1024,
        settings=SupportAttention,
        every_step=True,
    ),
    "ngrams": Probe(ngrams, _of_strings, _STRINGS, strings=1024, settings=NGrams, every_step=True),
    "associations": Probe(
        associations,
        lambda model, task: isinstance(task, Associations),
        "models of associations that have not diverged",
        settings=PairGaps,
        every_step=True,
    ),
    "alignment": Probe(
        alignment,
        lambda model, task: isinstance(task, Associations),
        "models of associations that have not diverged",
        strings=512,
        settings=Alignment,
    ),
    "nonterminals": Probe(nonterminals, _of_grammars, _GRAMMARS, strings=51_200, settings=NonTerminals, every_step=True),
}
