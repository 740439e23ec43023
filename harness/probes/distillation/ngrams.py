"""L_robust and L_close of a trained model: what its predictions rest on (Panigrahi et al. 2025, Definition 25 of the thesis, figure 4.8).

A model of masked prediction reads the mask token wherever something is hidden; in the authors' script, whose models are trained so, it
does not attend to it either (`hide_masked`). A causal model predicts the next token from keys that are left out of its attention
(equations 4.100, 4.101).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.probes.probe import Probe, Rows, of_model
from harness.probes.strings import strings
from models.model import Model
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from tasks.distillation.ngrams import causally_hidden, hidden, median, shift
from tasks.distillation.pcfg import MASK, PADDING, PCFG
from tasks.task import Task
from tasks.text.corpus import Corpus

_TOKENS = 2**15  # of a forward pass
_MEASURES = ("robust", "close")


@dataclass(frozen=True)
class NGrams:
    """every, last: the predicted positions are every, 2 · every, … up to last, the start of a string being 0. largest: n is 2 … largest.

    hide_masked: of masked prediction, masked tokens are left out of attention too; false: they are only replaced; null: what the training
    did with selected positions.
    """

    every: int = 30
    last: int = 420
    largest: int = 5
    hide_masked: bool | None = None

    def __post_init__(self) -> None:
        if self.every < 1 or self.last < self.every:
            raise StudyError(f"every = {self.every} must be at least 1 and at most last = {self.last}")
        if self.largest < 2:
            raise StudyError(f"largest = {self.largest} must be at least 2: a window of one token holds no neighbour")


def ngrams(model: Decoder, task: PCFG | Corpus, count: int, settings: NGrams) -> Rows:
    """Medians over `count` strings and their predicted positions; the model is a pack with R = 1 that hides keys.

    "robust n=3 tv" and "robust n=3 l1", and the same of close, for n = 2 … largest; "predictions": how many the medians are of.
    ValueError where no string reaches the first position.
    """
    hide_masked = task.hide_selected_from_attention if settings.hide_masked is None else settings.hide_masked
    if task.objective == "next" and settings.hide_masked is False:
        raise StudyError(
            "hide_masked = false applies only to masked prediction: a causal model has no token in place of what is hidden"
        )
    names = [(measure, n) for measure in _MEASURES for n in range(2, settings.largest + 1)]
    shifts: dict[tuple[str, int], list[Tensor]] = {name: [] for name in names}
    for tokens in _strings(task, count, max(1, _TOKENS // (task.length * (len(names) + 1)))):
        for place in range(settings.every, min(settings.last, task.length - 1) + 1, settings.every):
            reaching = tokens[~_padding(task, tokens)[:, place]]
            if not len(reaching):
                break
            alone, *others = answers(model, task, reaching, place, names, hide_masked)
            for name, other in zip(names, others, strict=True):
                shifts[name].append(shift(alone, other)["l1"])
    if not shifts[names[0]]:
        raise StudyError(
            f"no string of {_name(task)} reaches position {settings.every}: write a smaller every than {settings.every}"
        )
    rows = [("predictions", float(sum(len(batch) for batch in shifts[names[0]])))]
    for (measure, n), values in shifts.items():
        l1 = float(median(torch.cat(values)[None]))
        rows += [(f"{measure} n={n} tv", l1 / 2), (f"{measure} n={n} l1", l1)]
    return of_model(rows)


@torch.no_grad()
def answers(
    model: Decoder, task: PCFG | Corpus, tokens: Tensor, place: int, names: list[tuple[str, int]], hide_masked: bool
) -> Tensor:
    """Logits of the token at `place` of strings int64 [B, T] that all reach it: [1 + len(names), B, V].

    First with nothing hidden but the token itself (of a causal model, and what follows), then with what (measure, n) hides.
    """
    length, causal = tokens.shape[1], task.objective == "next"
    begin = int(not isinstance(task, Corpus) or task.begin is not None)
    pairs = [
        causally_hidden(measure, place, n, length) if causal else hidden(measure, place, n, length, begin=begin)
        for measure, n in names
    ]
    masks = torch.stack([pairs[0][0], *(other for _, other in pairs)])[:, None]  # [P, 1, T]
    padding, mask = _padding(task, tokens), (task.mask if isinstance(task, Corpus) else MASK)
    read = tokens.expand(len(masks), -1, -1) if mask is None or causal else torch.where(masks & ~padding, mask, tokens)
    unseen = (masks if causal or hide_masked else torch.zeros_like(masks)) | padding
    needed = torch.full((1, len(masks) * len(tokens), 1), place - causal)
    logits = model(read.flatten(0, 1)[None], (needed,), hidden=unseen.flatten(0, 1)[None])
    return logits[0, :, 0].unflatten(0, (len(masks), len(tokens)))


def _strings(task: PCFG | Corpus, count: int, size: int) -> Iterator[Tensor]:
    """The whole strings, nothing masked, int64 [B, T]."""
    for batch in strings(task, count, size):
        yield (batch.inputs if task.objective == "next" else batch.targets)[0]


def _padding(task: PCFG | Corpus, tokens: Tensor) -> Tensor:
    """What is no text; windows of a corpus are full."""
    return torch.zeros_like(tokens, dtype=torch.bool) if isinstance(task, Corpus) else tokens == PADDING


def _name(task: PCFG | Corpus) -> str:
    return task.folder if isinstance(task, Corpus) else f"{task.grammar} from {task.root}"


def reads_strings(model: Model, task: Task) -> bool:
    """Whether a model is a transformer that can be asked for every token of a grammar's or a corpus's strings."""
    return isinstance(model, Transformer) and isinstance(task, PCFG | Corpus) and (task.objective == "masked" or model.causal)


NGRAMS = Probe(
    ngrams,
    reads_strings,
    "transformers of pcfg and corpus that have not diverged, causal ones where the objective is next",
    strings=1024,
    settings=NGrams,
    every_step=True,
)
