"""What a model of parities has found: correlations with monomials, and attention on the support (Panigrahi et al. 2025, section 4.2.7)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harness.draw import Draw
from harness.probes.probe import Nothing, Probe, Rows, of_model
from harness.probes.strings import SEED, at_once, see, strings
from models.model import config_of
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.monomials import contrast, correlations, first_class, inside, outside, signs_of
from tasks.distillation.ngrams import median
from tasks.distillation.parity import SparseParity

_ELEMENTS = 2**24  # of one layer's activations in a forward pass
_MOST_OUTSIDE = 10**5
_SETS = 100  # sets of a support beyond which only their mean is written


@dataclass(frozen=True)
class Monomials:
    """degrees: 1 … this one. outside: random sets of coordinates a degree that are not within the support."""

    degrees: int = 3
    outside: int = 100

    def __post_init__(self) -> None:
        if self.degrees < 1 or self.outside < 1:
            raise StudyError(f"degrees = {self.degrees} and outside = {self.outside} must be at least 1")
        if self.outside > _MOST_OUTSIDE:
            raise StudyError(f"outside = {self.outside} must be at most {_MOST_OUTSIDE:,}")


def monomials(model: nn.Module, task: SparseParity | HierarchicalParity, count: int, settings: Monomials) -> Rows:
    """|E [p(x)]_1 · ∏ x_i| over `count` inputs, p at temperature 1 and its first class; the model is a pack with R = 1.

    Of each degree: "degree=2 x0 x5" for every set within the support (no more than 100), "degree=2 inside", "degree=2 outside",
    "degree=2 outside_sd" and "degree=2 ratio", those of `tasks.distillation.monomials.contrast`. Of hierarchical parity each node
    on the way to class 0
    has its own: "node=2 degree=2 inside"; sets outside hold an irrelevant coordinate, or one of another branch where there are none.
    """
    said, signs = _answers(model, task, count)
    rows = []
    for name, support, free in _groups(task):
        for degree in range(1, min(settings.degrees, len(support)) + 1):
            sets, label = inside(support, degree), f"{name}degree={degree}"
            within = correlations(said, signs, sets)
            if len(sets) <= _SETS:
                words = (" ".join(f"x{coordinate}" for coordinate in one) for one in sets.tolist())
                rows += [(f"{label} {word}", value) for word, value in zip(words, within[0].tolist(), strict=True)]
            if len(support) == task.length:
                rows.append((f"{label} inside", float(within.mean())))
                continue
            draw = Draw(torch.tensor([SEED]), "pool", degree)
            beyond = correlations(said, signs, outside(task.length, support, degree, settings.outside, draw, free))
            rows += [(f"{label} {item}", float(value)) for item, value in contrast(within, beyond).items()]
    return of_model(rows)


def support_attention(model: Decoder, task: SparseParity, count: int, settings: Nothing) -> Rows:
    """Attention from the last position to the support along all paths, median over `count` inputs (figure 4.14).

    sum: ⟨a_d of the last layer, …⟩ with v_i = Σ_{j in S} a_i[j] of the first, heads added up, so at most H^L. mean: of heads, at most 1.
    """
    heads = model.config.heads
    support = torch.zeros(task.length, dtype=torch.float64)
    support[list(task.coordinates)] = 1
    reaches = []
    for batch in strings(task, count, at_once(heads, task.length)):
        maps: list[Tensor] = []

        def look(layer: int, weights: Tensor, maps: list[Tensor] = maps) -> None:
            maps.append(weights[0].double().sum(1))  # [B, T, T]

        see(model, batch.inputs, look)
        reached = support.expand(len(maps[0]), -1)
        for attention in maps:
            reached = (attention @ reached[..., None])[..., 0]
        reaches.append(reached[:, -1])
    whole = float(median(torch.cat(reaches)[None]))
    values = {"sum": whole, "mean": whole / heads**model.config.layers}
    return of_model(values.items())


@torch.no_grad()
def _answers(model: nn.Module, task: SparseParity | HierarchicalParity, count: int) -> tuple[Tensor, Tensor]:
    """[p]_1 of the model, [1, N], and its inputs as signs [N, d]."""
    said, signs = [], []
    config = config_of(model)
    size = (0 if config is None else config.width) or task.length
    for batch in strings(task, count, max(1, min(2**12, _ELEMENTS // (4 * task.length * size)))):
        last = torch.full((1, batch.inputs.shape[1], 1), task.length - 1)
        said.append(first_class(model(batch.inputs, (last,))[:, :, 0]))
        signs.append(signs_of(batch.inputs[0]))
    return torch.cat(said, dim=1), torch.cat(signs)


def _groups(task: SparseParity | HierarchicalParity) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """(name, support, coordinates of which a set outside has one at least, () for any) of every group that is measured."""
    if isinstance(task, SparseParity):
        return [("", task.coordinates, ())]
    path = task.path(0)
    free = tuple(range(task.nodes * task.degree, task.length))
    away = tuple(coordinate for node in range(1, task.nodes + 1) if node not in path for coordinate in task.group(node))
    return [(f"node={node} ", task.group(node), free or away) for node in path]


MONOMIALS = Probe(
    monomials,
    lambda model, task: isinstance(task, SparseParity | HierarchicalParity),
    "models of sparse_parity and hierarchical_parity that have not diverged",
    strings=100_000,
    settings=Monomials,
    every_step=True,
)
SUPPORT_ATTENTION = Probe(
    support_attention,
    lambda model, task: isinstance(task, SparseParity) and isinstance(model, Transformer),
    "transformers of sparse_parity that have not diverged",
    strings=1024,
    every_step=True,
)
