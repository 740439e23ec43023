"""Which non-terminal stands over a token, read from a frozen model: multi-head position-based linear probing.

Panigrahi et al. 2025, Definition 26 of the thesis, after Allen-Zhu and Li; sizes and training as in the authors' script. The vectors e_k of
the last layer are combined by weights that depend on positions alone,

    G_i(x) = Σ_{r, k} w_{r,i→k} f_r(e_k),    w_{r,i→k} = softmax_k ⟨P_{i,r}, P_{k,r}⟩ over the string's own positions,

with f_r linear and P trained. One probe answers for all levels, each with outputs of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from harness.draw import Draw
from harness.probes.distillation.ngrams import reads_strings
from harness.probes.probe import Probe, Rows, of_model
from harness.probes.strings import SEED
from harness.study.training_options import Train
from harness.training.key_mask import hiding
from harness.training.schedule import learning_rate
from models.linear import Linear, parameter
from models.transformer.transformer import Decoder
from results.errors import StudyError
from tasks.distillation.derivations import Trees
from tasks.distillation.grammars import level_of, symbols_of
from tasks.distillation.pcfg import PCFG, level_from_root

_CLASSES = 3  # symbols of a level


@dataclass(frozen=True)
class NonTerminals:
    """heads: H; width: of P; lr: Adam's, after `warmup` of the steps a cosine to 0; validation: strings that are scored.

    positions: every | boundary, where the probe is trained: at every token, as in the authors' script, or at the right ends of spans.
    """

    heads: int = 16
    width: int = 256
    lr: float = 1e-2
    warmup: float = 0.06
    epochs: int = 4
    batch: int = 64
    validation: int = 1024
    positions: str = "every"

    def __post_init__(self) -> None:
        for name in ("heads", "width", "epochs", "batch", "validation"):
            if getattr(self, name) < 1:
                raise StudyError(f"{name} = {getattr(self, name)} must be at least 1")
        if self.lr <= 0 or not 0 <= self.warmup < 1:
            raise StudyError(f"lr = {self.lr:g} must be above 0 and warmup = {self.warmup:g} a share below 1")
        if self.positions not in ("every", "boundary"):
            raise StudyError(f"positions = {self.positions!r} must be every or boundary")


class NonTerminalReader(nn.Module):
    """e [B, T, D] of strings whose own positions are `inside`, bool [B, T] → logits [B, T, levels · 3]."""

    def __init__(self, settings: NonTerminals, width: int, length: int, levels: int):
        super().__init__()
        draw = Draw(torch.tensor([SEED]), "init")
        shape = (settings.heads, length, settings.width)
        # of length one, so that a query begins about evenly; the paper does not say
        self.positions = parameter(draw, "probe.positions", shape, "normal", settings.width**-0.5)
        self.maps = Linear(draw, "probe.maps", width, settings.heads * levels * _CLASSES)

    def forward(self, vectors: Tensor, inside: Tensor) -> Tensor:
        strings, length, _ = vectors.shape
        places = self.positions[0, :, :length]
        scores = places @ places.transpose(1, 2)  # [H, T, T]
        scale = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
        values = self.maps(vectors.flatten(0, 1)[None])[0].view(strings, length, len(places), -1) * inside[..., None, None]
        # a softmax over each string's own positions: two sums over all, with zeros beyond its end
        total = (scale @ values.permute(2, 1, 0, 3).flatten(2)).unflatten(2, (strings, -1))  # [H, T, B, C]
        mass = scale @ inside.to(scale.dtype).T  # [H, T, B]
        return (total / mass.clamp(min=torch.finfo(mass.dtype).tiny)[..., None]).sum(0).transpose(0, 1)


def nonterminals(model: Decoder, task: PCFG, count: int, settings: NonTerminals) -> Rows:
    """Train a probe on `count` strings and score it on `validation` others; the model is a pack with R = 1.

    Levels are counted from the root, as in Definition 26. "level=3 boundary": share of right answers at the right ends of the spans of
    level 3; "level=3 every": at all tokens; "level=3 largest": share of the commonest symbol at the ends.
    """
    levels = range(2, level_of(task.root))
    if not levels:
        raise StudyError(f"task.root = {task.root} has no non-terminals below it: nothing can be asked for")
    probe = NonTerminalReader(settings, model.config.width, task.length - 1, len(levels))
    optimizer = torch.optim.Adam(probe.parameters(), lr=settings.lr)
    steps = settings.epochs * -(-count // settings.batch)
    schedule = Train(steps=steps, lr=settings.lr, warmup=round(settings.warmup * steps), schedule="cosine")
    for step, (vectors, trees) in enumerate(_training(model, task, count, settings), 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(schedule, step)
        logits, labels = _asked(probe(vectors, trees.ends[0] > 0), trees, levels)
        loss = torch.zeros(())
        for place, level in enumerate(levels):
            where = trees.ends[0] >= (level if settings.positions == "boundary" else 1)
            loss = loss + cross_entropy(logits[where][:, place], labels[where][:, place])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return _scores(probe, model, task, settings, levels)


@torch.no_grad()
def _scores(probe: NonTerminalReader, model: Decoder, task: PCFG, settings: NonTerminals, levels: range) -> Rows:
    right = torch.zeros(len(levels), 2, dtype=torch.int64)
    asked = torch.zeros(len(levels), 2, dtype=torch.int64)
    seen = torch.zeros(len(levels), _CLASSES, dtype=torch.int64)
    draw = Draw(torch.tensor([SEED]), "evaluate")
    for first in range(0, settings.validation, settings.batch):
        vectors, trees = _read(model, task, draw.rows(first), min(settings.batch, settings.validation - first))
        logits, labels = _asked(probe(vectors, trees.ends[0] > 0), trees, levels)
        correct = logits.argmax(-1) == labels
        for place, level in enumerate(levels):
            ends = trees.ends[0] >= level
            for column, where in enumerate((ends, trees.ends[0] > 0)):
                right[place, column] += correct[where][:, place].sum()
                asked[place, column] += where.sum()
            seen[place] += torch.bincount(labels[ends][:, place], minlength=_CLASSES)
    rates = []
    for place, level in enumerate(levels):
        boundary, every = (right[place] / asked[place]).tolist()
        largest = float(seen[place].max() / seen[place].sum())
        values = {"boundary": boundary, "every": every, "largest": largest}
        rates += [(f"level={level_from_root(level)} {item}", value) for item, value in values.items()]
    return of_model(rates)


def _training(model: Decoder, task: PCFG, count: int, settings: NonTerminals) -> Iterator[tuple[Tensor, Trees]]:
    """Every string once an epoch, in another order each."""
    seed = torch.tensor([SEED])
    for epoch in range(settings.epochs):
        order = Draw(seed, "shuffle", epoch).permutation(count)
        for rows in order.split(settings.batch, dim=1):
            yield _read(model, task, Draw(seed, "pool").pick(rows), rows.shape[1])


@torch.no_grad()
def _read(model: Decoder, task: PCFG, draw: Draw, batch: int) -> tuple[Tensor, Trees]:
    """The vectors of the tokens of whole strings, nothing masked, [B, T - 1, D], and their trees with R = 1."""
    trees = task.trees(draw, batch)
    tokens, inside = task.shown(trees)
    return model.states(tokens, **hiding(model, ~inside))[0, :, 1:], trees


def _asked(logits: Tensor, trees: Trees, levels: range) -> tuple[Tensor, Tensor]:
    """Logits [B, T, levels, 3], and the symbols as numbers within their level, int64 [B, T, levels]; 0 beyond a string's end."""
    if trees.ancestors is None:
        raise ValueError("these trees hold no symbols over the tokens: draw them with ancestors = True")
    first = torch.tensor([symbols_of(level)[0] for level in levels])
    symbols = trees.ancestors[0][..., [level - 1 for level in levels]].long()
    return logits.unflatten(-1, (len(levels), _CLASSES)), (symbols - first).clamp(min=0)


NONTERMINALS = Probe(
    nonterminals,
    lambda model, task: isinstance(task, PCFG) and reads_strings(model, task),
    "transformers of pcfg that have not diverged, causal ones where the objective is next",
    strings=51_200,
    settings=NonTerminals,
    every_step=True,
)
