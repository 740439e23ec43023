"""The probes of progressive distillation by name: what each is for, how many strings it takes by default, and what can be set."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.probes.attention import Rows
from harness.probes.ngrams import NGrams, ngrams
from harness.probes.nonterminals import NonTerminals, nonterminals
from harness.probes.parity import Monomials, SupportAttention, monomials, support_attention
from models.transformer import Transformer
from tasks.hierarchical_parity import HierarchicalParity
from tasks.parity import SparseParity
from tasks.pcfg import PCFG


@dataclass(frozen=True)
class Measure:
    """run(model, task, strings, settings) gives rows; `suits(model's configuration, task)`; kind: what it is for, in words."""

    run: Callable[[Any, Any, int, Any], Rows]
    settings: type
    strings: int
    suits: Callable[[Any, Any], bool]
    kind: str


def _of_strings(model: Any, task: Any) -> bool:
    return isinstance(model, Transformer) and isinstance(task, PCFG) and (task.objective == "masked" or model.causal)


MEASURES: dict[str, Measure] = {
    "monomials": Measure(
        monomials,
        Monomials,
        100_000,
        lambda model, task: isinstance(task, SparseParity | HierarchicalParity),
        "models of sparse_parity and hierarchical_parity that have not diverged",
    ),
    "support_attention": Measure(
        support_attention,
        SupportAttention,
        1024,
        lambda model, task: isinstance(task, SparseParity) and isinstance(model, Transformer),
        "transformers of sparse_parity that have not diverged",
    ),
    "ngrams": Measure(
        ngrams,
        NGrams,
        1024,
        _of_strings,
        "transformers of pcfg that have not diverged, causal ones where the objective is next",
    ),
    "nonterminals": Measure(
        nonterminals,
        NonTerminals,
        51_200,
        _of_strings,
        "transformers of pcfg that have not diverged, causal ones where the objective is next",
    ),
}
