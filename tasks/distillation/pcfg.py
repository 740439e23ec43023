"""Strings of a context-free grammar: masked prediction as with BERT, or the next token at the ends of spans as with GPT-2.

Panigrahi et al., "Progressive distillation induces an implicit curriculum" (ICLR 2025), sections 4.2.8 and 4.2.9 of the thesis. Tokens,
as in the authors' code: 0, 1, 2 the terminals, 3 the start of a string, 4 its end (unused), 5 padding, 6 the mask.

    3 1 0 2 1 0 5 5        position 0 is the start, the string follows, padding fills up to `length`
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from tasks.batch import Batch
from tasks.distillation.derivations import Trees, derive
from tasks.distillation.grammars import LEVELS, START, TERMINALS, grammar, level_of
from tasks.draws import Draw
from tasks.quantile import quantile
from tasks.task import Task
from tasks.text.masking import masked, mean_weights, refuse_rate

KINDS, BEGIN, PADDING, MASK = len(TERMINALS), 3, 5, 6
_FIT = 0.99  # probability at least that a string fits


@dataclass(frozen=True)
class PCFG(Task):
    """Strings of a grammar with masked or next-token prediction. No token attends to padding: it is hidden with `masked`, and comes after
    the string with `next`.

    grammar: a name of `tasks/distillation/grammars.py`. root: the symbol that strings are derived from, 22 for whole strings, else a
    part. length: positions, the start included; a longer string is drawn again. objective: masked | next.
    For `masked` alone: mask_rate, the probability that a position is predicted; mask_start, whether the start may be predicted, as in the
    authors' code; hide_selected_from_attention, whether no token attends to a predicted position, whatever it shows, as in the authors'
    code (false: as in BERT).
    For `next` alone: level, counted from the leaves, of which a span must at least end at a token that is predicted: 1 is every token, 2
    the ends of 7-9, … 4 those of 13-15.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read",)
    error: ClassVar[str] = "a predicted position where the most probable token of the whole vocabulary is not the string's own"
    vocabulary: ClassVar[int] = 8
    vectors: ClassVar[tuple[str, ...]] = (  # may differ within a pack
        "grammar",
        "root",
        "mask_rate",
        "mask_start",
        "level",
        "hide_selected_from_attention",
    )

    grammar: str = "cfg3b"
    root: int = START
    length: int = 512
    objective: str = "masked"
    mask_rate: float = 0.3
    mask_start: bool = True
    level: int = 1
    hide_selected_from_attention: bool = False

    @property
    def rev(self) -> int:
        """2 for `masked`, since padding is hidden from attention; 1 for `next`, whose meaning has not changed."""
        return 2 if self.objective == "masked" else 1

    def __post_init__(self) -> None:
        rules = grammar(self.grammar)
        if self.root not in rules.rules:
            raise ValueError(f"task.root = {self.root} must be a non-terminal, {min(rules.rules)} … {START}")
        if self.objective not in ("masked", "next"):
            raise ValueError(f"task.objective = {self.objective!r} must be masked or next")
        if self.objective == "masked":
            refuse_rate(self.mask_rate, KINDS)
        if not 1 <= self.level <= level_of(self.root):
            raise ValueError(
                f"task.level = {self.level} must be from 1, every token, to {level_of(self.root)}, that of task.root = {self.root}"
            )
        if self.objective == "masked" and self.level != 1:
            raise ValueError(
                f"task.level = {self.level} applies only to objective: next: write task.objective = next, or leave it out"
            )
        if self.objective == "next" and (self.mask_rate != 0.3 or not self.mask_start):
            raise ValueError("task.mask_rate and task.mask_start apply only to objective: masked: leave them out")
        if self.objective == "next" and self.hide_selected_from_attention:
            raise ValueError("task.hide_selected_from_attention applies only to objective: masked: leave it out")
        law = rules.lengths(self.root)
        fits = float(law[: max(0, self.length)].sum())
        if fits < _FIT:
            raise ValueError(
                f"task.length = {self.length} holds only {fits:.1%} of the strings of {self.grammar} from {self.root}: write at least "
                f"{quantile(law, _FIT) + 1}"
            )

    @property
    def answers_ahead(self) -> bool:
        """Whether an answer is the next token."""
        return self.objective == "next"

    def scored_positions(self) -> int | None:
        """Positions a string that the loss needs, K: the 0.999 quantile of their number, rounded up to 8; None = all."""
        rules = grammar(self.grammar)
        if self.objective == "next":
            if self.level == 1:
                return None
            law = rules.counts(self.root, level=self.level)
        else:
            coin = (1 - self.mask_rate, self.mask_rate)
            law = rules.counts(self.root, coin)
            law = np.convolve(law, coin) if self.mask_start else law
        return min(self.length, -(-max(1, quantile(law, 0.999)) // 8) * 8)

    def trees(self, draw: Draw, batch: int, ancestors: bool = True) -> Trees:
        """The strings that `sample` makes of this draw, without the start, [R, B, length - 1], with their parse trees."""
        return derive(self.grammar, self.root, draw, batch, self.length - 1, ancestors)

    def shown(self, trees: Trees) -> tuple[Tensor, Tensor]:
        """These strings as a model reads them, with start and padding, int64 [R, B, T], and which tokens are no padding, bool [R, B, T]."""
        inside = torch.arange(self.length, device=trees.tokens.device) <= trees.lengths[..., None]
        return torch.where(inside, pad(trees.tokens, (1, 0), value=BEGIN), PADDING), inside

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets [R, B, T] int64, weights [R, B, T], which average over a string's scored positions.

        about: level [R, B, T], the highest level of a span that ends at the predicted token (0 for the start). hidden [R, B, T], with
        `masked` alone: the padding, and the predicted positions if they are hidden from attention.
        """
        trees = self.trees(draw, batch, ancestors=False)
        ends = pad(trees.ends.long(), (1, 0))
        tokens, inside = self.shown(trees)
        if self.objective == "masked":
            allowed = inside if self.mask_start else inside & (tokens != BEGIN)
            inputs, selected = masked(tokens, allowed, self.mask_rate, MASK, KINDS, draw)
            hidden = ~inside | selected if self.hide_selected_from_attention else ~inside
            return Batch(inputs, tokens, mean_weights(selected), {"level": ends}, hidden)
        ends = pad(ends[..., 1:], (0, 1))
        return Batch(tokens, pad(tokens[..., 1:], (0, 1), value=PADDING), mean_weights(ends >= self.level), {"level": ends})

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong; logits [..., V], targets [...].

        read, the name that reports and claims use: the argmax over the whole vocabulary is another token. 1 - its rate is the paper's
        top-1 accuracy.
        """
        return {"read": logits.argmax(-1) != targets}


def level_from_root(level: int) -> int:
    """The level of Definition 26 and of the authors' generator, 0 at the symbol 22, from one counted from the leaves."""
    return LEVELS - level
