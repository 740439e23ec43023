"""Beam search for the token subsequence whose presence goes with the error: Algorithm 2 of Sun et al. 2025, by token identity.

A subsequence stands in a string where its tokens do in their order, with anything between them. `Search(z=0, support=1)` is the paper's
code, which ranks by the conditional probability of the hit; z and support guard against candidates that few strings hold.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from harness.tracing.search import Cause, Search, chosen, lower_bound, powers


def search_tokens(strings: Tensor, prompt: Tensor, hit: Tensor, how: Search) -> list[Cause]:
    """The best subsequence of 1, 2, … tokens of the prompt; `events` are token numbers. Ties go to the lower tokens.

    strings int64 [N, m], prompt int64 [n], hit float64 [N] in 0 … 1. A subsequence of l + 1 tokens is one of the beam with a token inserted
    such that it is still one of the prompt.
    """
    base, wilson, values = powers(hit)
    tokens = prompt.unique()  # ascending
    prompt_table, string_table = _Table(prompt[None], tokens), _Table(strings, tokens)
    beam: list[tuple[int, ...]] = [()]  # numbers in `tokens`
    causes: list[Cause] = []
    for _ in range(min(how.size, len(prompt))):
        best: dict[tuple[int, ...], tuple[float, int, float]] = {}
        for events in beam:
            fits, contains = prompt_table.inserted(events), string_table.inserted(events)  # [1, gaps, K], [N, gaps, K]
            count, total, square = torch.einsum("sn,ngk->sgk", values, contains.double()).unbind(0)
            bound = lower_bound(count, total, square, how.z, wilson).masked_fill(count < how.support, -math.inf)
            for gap, token in torch.nonzero(fits[0] & (bound > -math.inf)).tolist():
                name = (*events[:gap], token, *events[gap:])
                if name not in best:
                    n = int(count[gap, token])
                    best[name] = float(bound[gap, token]), n, float(total[gap, token]) / n
        if not best:
            break
        beam = sorted(best, key=lambda events: (-best[events][0], events))[: how.beam]
        bounded, support, mean = best[beam[0]]
        causes.append(Cause(tuple(int(tokens[event]) for event in beam[0]), support, mean, bounded, base))
        if how.patience is not None and len(causes) - chosen(causes) > how.patience:
            break
    return causes


class _Table:
    """Where tokens follow and precede each place of strings [N, m]: containment of a subsequence is one look-up a token."""

    def __init__(self, strings: Tensor, tokens: Tensor):
        rows, m = strings.shape
        place = torch.arange(m, dtype=torch.int32)[:, None]
        is_token = strings[..., None] == tokens  # [N, m, K]
        # end of the first occurrence at or after a place, m + 1 for none; so that m + 1 leads to m + 1
        ends = torch.where(is_token, place + 1, m + 1).flip(1).cummin(1).values.flip(1)
        self.after = torch.nn.functional.pad(ends, (0, 0, 0, 2), value=m + 1)  # [N, m + 2, K]
        # begin of the last occurrence before a place, -1 for none; row b + 1 is of place b, so that -1 leads to -1
        begins = torch.where(is_token, place, -1).cummax(1).values
        self.before = torch.nn.functional.pad(begins, (0, 0, 2, 0), value=-1)  # [N, m + 2, K]
        self.row, self.m = torch.arange(rows), m

    def inserted(self, subsequence: Sequence[int]) -> Tensor:
        """bool [N, l + 1, K]: whether the subsequence (numbers of known tokens) stands in a string with token k inserted at a gap."""
        ends = [torch.zeros_like(self.row)]
        for token in subsequence:
            ends.append(self.after[self.row, ends[-1], token].long())
        begins = [torch.full_like(self.row, self.m)]
        for token in reversed(subsequence):
            begins.append(self.before[self.row, begins[-1] + 1, token].long())
        first = torch.stack(ends, dim=1)  # [N, l + 1]: where the part before the gap ends at the earliest
        last = torch.stack(begins[::-1], dim=1)  # where the part behind it begins at the latest
        return self.after[self.row[:, None], first] <= last[..., None]
