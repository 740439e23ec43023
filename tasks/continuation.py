"""Greedy decoding: a causal model continues strings with its own words.

The greedy continuation is the only one that the model agrees with at every position, so it is found in rounds instead of word by word.
Each round guesses a whole continuation, computes all its positions in one pass, and keeps the guess up to the first disagreement, where
the model's own word takes its place (parallel decoding by fixed points: Song et al., ICML 2021; with a draft: Leviathan et al., ICML
2023).
"""

from collections.abc import Callable

import torch
from torch import Tensor

Draft = Callable[[Tensor, Tensor, Tensor], Tensor]


@torch.no_grad()
def continued(forward: Callable[..., Tensor], given: Tensor, count: int, draft: Draft | None = None) -> Tensor:
    """The model's own `count` words after the strings `given` int64 [R, B, P, …]: int64 [R, B, count, …]; of equal logits the lowest.

    forward(inputs, blocks): a causal model, whose answer at a position is the word of the next one. draft(given, said [R, B, count, …],
    known [R, B]) guesses what follows the first `known` of the words `said`; without a draft the words of the last pass are the guess.
    A string takes a pass for every wrong guess, at most one a word. The draft changes the cost and nothing else.
    """
    place = torch.arange(count, device=given.device)
    answered = (given.shape[2] - 1 + place).expand(*given.shape[:2], -1)
    said = given.new_zeros((*given.shape[:2], count, *given.shape[3:]))
    known = given.new_zeros(given.shape[:2])
    while int(known.min()) < count:
        guess = said if draft is None else draft(given, said, known)
        answers = forward(torch.cat([given, guess[:, :, :-1]], dim=2), [answered]).argmax(-1)
        settled = place < known[..., None]  # [R, B, count]
        same = (answers == guess).flatten(3).all(-1) if guess.dim() > 3 else answers == guess
        agreed = (same | settled).cumprod(-1).sum(-1)
        said = torch.where(settled.view(*settled.shape, *[1] * (guess.dim() - 3)), said, answers)
        known = (agreed + 1).clamp(max=count)
    return said
