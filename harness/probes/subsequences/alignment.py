"""Does a traced pair bring its answer back as often as the corpus has it? S_rep beside the generator's P(answer | pair in the string).

Sun et al. 2025, section 4.2 and figure 6, on the task whose P is exact.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harness.draw import Draw
from harness.probes.probe import Probe, Rows, of_model
from harness.probes.strings import SEED
from harness.tracing.last_logits import logits_at
from harness.tracing.search import Search
from harness.tracing.subsequence_search import search_tokens
from harness.tracing.tokens import TOKEN_FAMILIES, around, perturbed_tokens, places_of
from results.errors import StudyError
from tasks.subsequences.associations import FINAL, Associations

RATE = 0.5  # most tokens of a string that are replaced, as in the paper
_STRINGS = 2**14  # of the generator, to count in where the traced tokens are not one pair


@dataclass(frozen=True)
class Alignment:
    """replays: fresh strings of each family that S_rep is the mean over."""

    replays: int = 256

    def __post_init__(self) -> None:
        if self.replays < 1:
            raise StudyError(f"--option replays={self.replays} must be at least 1")


def alignment(model: nn.Module, task: Associations, count: int, settings: Alignment) -> Rows:
    """Rows of each pair, for one string that holds it and the pair's own answer: "pair=3 planted", "pair=3 srep" and "pair=3 exact";
    beside them "least error", that of the best answers. The model is a pack with R = 1.

    Two tokens are searched on `count` strings in which others of their kind stand for some. planted: the part of them that is the
    pair's. srep: mean probability of the answer around them, over the families of `harness.tracing.tokens`; an argmax would be the same
    for all pairs. exact: the generator's P(answer | the traced tokens stand in the string in order), counted in strings of it where they
    are not one pair.
    """
    law, table = task.law(Draw.of_seed), task.table(Draw.of_seed)
    pool, pool_pairs = _corpus(task)
    prompts = task.holding(_draw("prompts"), torch.arange(task.pairs)[None]).inputs[0, :, :-1]
    rows = [("least error", float((task.frequencies() * (1 - law.amax(-1))).sum()))]
    for pair, prompt in enumerate(prompts):
        answer, draw = int(table[pair, 2]), _draw(f"pair {pair}")
        choices = [[other for other in _kind(task, token) if other != token] for token in prompt.tolist()]
        strings = perturbed_tokens(prompt, choices, count, RATE, draw)
        traces = search_tokens(strings, prompt, _probability(model, strings, answer), Search(size=2, support=min(32, count)))
        if not traces:
            raise StudyError(f"no token of pair {pair} stands in enough of --strings {count}: make more strings")
        traced = traces[-1].events
        places = places_of(prompt, traced)
        spread = [
            around(prompt, places, family, settings.replays, draw, choices, (1, task.vocabulary)) for family in TOKEN_FAMILIES
        ]
        inside = torch.cat([pool_pairs, torch.tensor([pair])])[holds(torch.cat([pool, prompt[None]]), traced)]
        values = {
            "planted": len({*traced} & {*table[pair, :2].tolist()}) / 2,
            "srep": sum(float(_probability(model, strings, answer).mean()) for strings in spread) / len(spread),
            "exact": float(law[inside, answer].mean()),
        }
        rows += [(f"pair={pair} {name}", value) for name, value in values.items()]
    return of_model(rows)


def holds(strings: Tensor, subsequence: Sequence[int]) -> Tensor:
    """bool [N]: whether tokens stand in strings, int64 [N, m], in this order."""
    column, after = torch.arange(strings.shape[1]), torch.full((len(strings), 1), -1)
    for token in subsequence:
        after = torch.where((strings == token) & (column > after), column, strings.shape[1]).amin(-1, keepdim=True)
    return after[:, 0] < strings.shape[1]


def _corpus(task: Associations) -> tuple[Tensor, Tensor]:
    """Strings of the task without their final token, int64 [N, T - 1], and the pair of each, int64 [N]."""
    draw = _draw("corpus")
    pairs = draw.categorical(task.frequencies(), (_STRINGS,), 99)
    return task.holding(draw, pairs).inputs[0, :, :-1], pairs[0]


def _draw(name: str) -> Draw:
    return Draw(torch.tensor([SEED]), "evaluate").named(f"alignment {name}")


def _kind(task: Associations, token: int) -> range:
    """The first symbols, the second ones or the fillers: those that a token is one of."""
    ends = [1, 1 + task.symbols, 1 + 2 * task.symbols, task.vocabulary]
    return next(range(low, end) for low, end in itertools.pairwise(ends) if token < end)


def _probability(model: nn.Module, strings: Tensor, answer: int) -> Tensor:
    """The model's probability of the answer behind strings [N, T - 1] and the final token, float64 [N]."""
    tokens = torch.nn.functional.pad(strings, (0, 1), value=FINAL)
    query = torch.full((len(tokens),), tokens.shape[1] - 1)
    return logits_at(model, tokens, query).softmax(-1)[:, answer]


ALIGNMENT = Probe(
    alignment,
    lambda model, task: isinstance(task, Associations),
    "models of associations that have not diverged",
    strings=512,
    settings=Alignment,
)
