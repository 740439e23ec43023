"""Greedy answers that are fed back: a causal model continues its own words.

What it says greedily is the one continuation that it agrees with at every position, so it is found by rounds instead of word by word: a
whole continuation is guessed, all its positions are computed in one pass, and each string keeps the guess up to its first disagreement,
with what the model says there (parallel decoding by fixed points: Song et al., ICML 2021; with a draft: Leviathan et al., ICML 2023).
"""

from collections.abc import Callable

import torch
from torch import Tensor

Draft = Callable[[Tensor, Tensor, Tensor], Tensor]


@torch.no_grad()
def continued(forward: Callable[..., Tensor], given: Tensor, count: int, draft: Draft | None = None) -> Tensor:
    """The model's own `count` words after the strings `given` int64 [R, B, P, …]: int64 [R, B, count, …]; of equal logits the lowest.

    forward(inputs, blocks): a causal model, whose answer at a position is the word of the next one. draft(given, said [R, B, count, …],
    known [R, B]) guesses what follows the first `known` words; without one the words of the last pass are guessed. A string takes a pass
    for every guess that is wrong, at most one a word; the guess changes the cost alone.
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
