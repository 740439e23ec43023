"""Strings near a prompt of a large vocabulary: the paper's own perturbation and evaluation, on tokens.

Sun et al. 2025, Algorithm 1 and section 5; the forms that only their code has are named.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from harness.draw import Draw
from harness.tracing.masking import kept

TOKEN_FAMILIES = ("near", "rand", "moved")

_SITE = 128  # of the draws, behind those of `corpus`
_CHOICE, _ANY, _MOVE = 2, 3, 4
_BLOCK = 8


def neighbours(
    embeddings: Tensor, prompt: Tensor, top: int, accept: Callable[[int, list[int]], list[int]] | None = None
) -> list[list[int]]:
    """What each token of the prompt may become: of its `top` nearest rows of embeddings [V, D] by cosine, those that are accepted.

    prompt int64 [n]. accept(token, nearest first) → a part of them; None: all but the token itself. The token is one of its nearest.
    """
    unit = torch.nn.functional.normalize(embeddings.detach().float().cpu(), dim=-1)
    choices: dict[int, list[int]] = {}
    for token in prompt.unique().tolist():
        nearest = (unit @ unit[token]).topk(min(top, len(unit))).indices.tolist()
        choices[token] = [other for other in nearest if other != token] if accept is None else accept(token, nearest)
    return [choices[token] for token in prompt.tolist()]


def perturbed_tokens(
    prompt: Tensor, choices: Sequence[Sequence[int]], count: int, rate: float, draw: Draw, masking: str = "rgrand"
) -> Tensor:
    """int64 [N, n]: the prompt with some tokens (see `kept`) replaced by one of their choices; one without a choice stays."""
    keep = kept(len(prompt), count, rate, masking, draw, _SITE)
    return torch.where(keep, prompt, _chosen(prompt, choices, count, draw, _SITE + _CHOICE))


def _chosen(prompt: Tensor, choices: Sequence[Sequence[int]], count: int, draw: Draw, site: int) -> Tensor:
    most = max(1, *(len(others) for others in choices))
    table = torch.tensor(
        [[*(others or [token]), *[0] * most][:most] for token, others in zip(prompt.tolist(), choices, strict=True)]
    )
    sizes = torch.tensor([max(1, len(others)) for others in choices])
    at = draw.words((count, len(prompt)), site)[0] * sizes >> 32  # [N, n]
    return table.expand(count, -1, -1).gather(-1, at[..., None])[..., 0]


def places_of(prompt: Tensor, subsequence: Sequence[int]) -> list[int]:
    """The right-most places of a subsequence of tokens in the prompt, as the paper's code has it. ValueError where it is none."""
    places: list[int] = []
    end = len(prompt)
    for token in reversed(subsequence):
        before = torch.nonzero(prompt[:end] == token)[:, 0]
        if not len(before):
            raise ValueError(f"the tokens {list(subsequence)} are no subsequence of the prompt")
        end = int(before[-1])
        places.append(end)
    return places[::-1]


def around(
    prompt: Tensor,
    places: Sequence[int],
    family: str,
    count: int,
    draw: Draw,
    choices: Sequence[Sequence[int]],
    any_token: tuple[int, int],
) -> Tensor:
    """int64 [N, n]: strings that hold the tokens at these places of the prompt, everything else replaced.

    near: by neighbours. rand: by any token of the range any_token (first, last + 1), the paper's `rand`. moved: as rand, the kept tokens
    at random places in their order (the paper's text, where pads are inserted anywhere).
    """
    base = _SITE + _BLOCK * (1 + TOKEN_FAMILIES.index(family))
    n, k = len(prompt), len(places)
    if family == "near":
        other = _chosen(prompt, choices, count, draw, base + _CHOICE)
    else:
        low, end = any_token
        other = draw.integers(end - low, (count, n), base + _ANY)[0] + low
    at = torch.tensor(sorted(places), dtype=torch.int64)
    to = at.expand(count, k)
    if family == "moved":
        to = draw.subset(n, k, (count,), base + _MOVE)[0].sort(-1).values
    return other.scatter(1, to, prompt[at].expand(count, k))
