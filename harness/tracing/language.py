"""Tracing a causal language model of a local Hugging Face folder: which tokens of a text make it say a target (Sun et al. 2025).

`load` of `harness/exchange/language_model.py` opens the folder. All strings of a corpus have as many tokens as the text,
so they run in batches without padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import torch
from torch import Tensor

from harness.draw import Draw
from harness.exchange.language_model import LanguageModel
from harness.tracing.answers import alike, probability, said
from harness.tracing.masking import MASKINGS
from harness.tracing.search import Cause, Search
from harness.tracing.subsequence_search import search_tokens
from harness.tracing.text import Target, accepting, detect, refuse_echoes
from harness.tracing.tokens import TOKEN_FAMILIES, around, neighbours, perturbed_tokens, places_of
from results.errors import StudyError

_TOKENS = 2**13  # of a forward pass
_RAND = 100  # tokens at each end of a vocabulary that `rand` leaves out, as in the paper


@dataclass(frozen=True)
class TextSettings:
    """strings, rate, masking, nearest (k of Algorithm 1): of the corpus. search: Search(z=0, support=1) is the paper's code.

    hits: soft, the exact probability that the answer begins with a target; sampled, whether a target is in one sampled answer of
    new_tokens tokens at a temperature (the paper's way).
    """

    strings: int = 512
    rate: float = 0.5
    masking: str = "rgrand"
    nearest: int = 50
    hits: str = "soft"
    new_tokens: int = 128
    temperature: float = 1.0
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        if self.hits not in ("soft", "sampled") or self.masking not in MASKINGS:
            raise StudyError(
                f"hits = {self.hits!r} must be soft or sampled, and masking = {self.masking!r} {' or '.join(MASKINGS)}"
            )
        if min(self.strings, self.nearest, self.new_tokens) < 1 or not (0 < self.rate <= 1 and self.temperature > 0):
            raise StudyError(
                "strings, nearest and new_tokens must be at least 1, rate in 0 … 1 (0 excluded), temperature above 0"
            )


@dataclass(frozen=True)
class Asked:
    """A text as tokens [n], what always stands before and behind it, what its tokens may become, and the targets."""

    language: LanguageModel
    before: list[int]
    tokens: Tensor
    behind: list[int]
    choices: list[list[int]]
    targets: tuple[Target, ...]
    answers: list[list[int]]  # tokens of the targets, for soft hits
    seed: int

    @property
    def draw(self) -> Draw:
        """A function of the tokens and the seed."""
        whole = ",".join(str(token) for token in [*self.before, -1, *self.tokens.tolist(), -1, *self.behind])
        return Draw(torch.tensor([self.seed]), "evaluate", 2**31 + (crc32(whole.encode()) >> 1))


def ask(
    language: LanguageModel,
    text: str,
    targets: Sequence[Target],
    how: TextSettings,
    seed: int = 0,
    prefix: str = "",
    suffix: str = "",
) -> Asked:
    """A text to trace. targets: any of them is a hit; a tuple of strings is one where all of them are said.

    ValueError where a target is in the text already, has no token, or is too much for soft hits, and where the model is too short.
    """
    refuse_echoes(targets, prefix + text + suffix)
    alone = language.ids(text)
    if not alone:
        raise StudyError("the text has no token: give words to trace")
    answers: list[list[int]] = []
    if how.hits == "soft":
        for target in targets:
            if not isinstance(target, str):
                raise StudyError(f"the target {target} of several strings needs hits = 'sampled': it has no single probability")
            answers.append(language.ids(target))
        if not all(answers) or any(a[: len(b)] == b for i, a in enumerate(answers) for j, b in enumerate(answers) if i != j):
            raise StudyError(f"soft hits need targets with tokens of which none begins another: {', '.join(map(str, targets))}")
    before, behind = [*language.start(text), *language.ids(prefix)], language.ids(suffix)
    longest = len(before) + len(alone) + len(behind) + (max(map(len, answers)) if answers else how.new_tokens)
    if language.longest is not None and longest > language.longest:
        raise StudyError(
            f"the text and its answer have {longest} tokens, and {language.name} takes {language.longest}: shorten them"
        )
    tokens = torch.tensor(alone)
    embeddings = language.model.get_input_embeddings().weight
    choices = neighbours(embeddings, tokens, how.nearest, accepting(language.tokenizer))
    return Asked(language, before, tokens, behind, choices, tuple(targets), answers, seed)


def text_evidence(asked: Asked, how: TextSettings) -> tuple[Tensor, Tensor]:
    """The corpus of a text, int64 [N, n], and its hits, float64 [N]."""
    strings = perturbed_tokens(asked.tokens, asked.choices, how.strings, how.rate, asked.draw, how.masking)
    return strings, text_hits(asked, strings, how, asked.draw)


def trace_text(asked: Asked, how: TextSettings, given: tuple[Tensor, Tensor] | None = None) -> list[Cause]:
    """The best subsequence of 1, 2, … tokens (token numbers), up to 0.9 of the text as in the paper's code, or to search.size.

    given: what `text_evidence` gave. ValueError where no token stands in enough strings.
    """
    strings, hit = text_evidence(asked, how) if given is None else given
    most = Search(**(vars(how.search) | {"size": min(how.search.size, -(-9 * len(asked.tokens) // 10))}))
    causes = search_tokens(strings, asked.tokens, hit, most)
    if not causes:
        raise StudyError(
            f"no token stands in {how.search.support} of the {how.strings} strings: make more strings or ask for less"
        )
    return causes


def replay_text(asked: Asked, subsequence: Sequence[int], how: TextSettings, strings: int = 25) -> dict[str, float]:
    """S_rep of a subsequence of tokens at its right-most places: see `replay_places`."""
    return replay_places(asked, places_of(asked.tokens, subsequence), how, strings)


def replay_places(asked: Asked, places: Sequence[int], how: TextSettings, strings: int = 25) -> dict[str, float]:
    """By family (near, rand, moved) the mean hit of fresh strings that hold these tokens of the text, and their mean, `srep`.

    Sampled hits are replaced by greedy answers, as in the paper. Sets of places that are compared share their random numbers.
    """
    size = asked.language.model.get_input_embeddings().weight.shape[0]
    any_token = (_RAND, size - _RAND) if size > 10 * _RAND else (0, size)  # of a small vocabulary all tokens
    rates = {}
    for family in TOKEN_FAMILIES:
        replayed = around(asked.tokens, places, family, strings, asked.draw, asked.choices, any_token)
        rates[family] = float(text_hits(asked, replayed, how, None).mean())
    return rates | {"srep": sum(rates.values()) / len(rates)}


@torch.no_grad()
def text_hits(asked: Asked, strings: Tensor, how: TextSettings, draw: Draw | None) -> Tensor:
    """float64 [N] of strings int64 [N, n]; draw: of sampled answers, None for greedy ones."""
    rows = len(strings)
    whole = torch.cat([alike(asked.before, rows), strings, alike(asked.behind, rows)], dim=1)
    size = max(1, _TOKENS // (whole.shape[1] + (0 if asked.answers else how.new_tokens)))
    hits = []
    for first in range(0, rows, size):
        part = whole[first : first + size]
        if asked.answers:
            hits.append(torch.stack([probability(asked.language, part, answer) for answer in asked.answers]).sum(0))
        else:
            texts = said(
                asked.language, part, how.new_tokens, how.temperature, None if draw is None else draw.rows(draw.first + first)
            )
            hits.append(torch.tensor([float(detect(asked.targets, text)) for text in texts], dtype=torch.float64))
    return torch.cat(hits)
