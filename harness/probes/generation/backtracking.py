"""Generation with a verifier: a trained model completes prefixes, and verifiers that were trained on its errors let it backtrack.

Li 2025, section 3.2.1 (Botta et al. 2025). Prompts are the beginnings of strings in which "[" is as frequent as `first_type` says, all but
their last 1 … `left` brackets, and the same for every model. Three sets of them:

- "fresh", all of them: what shares of completions are wrong, what they cost, and whether flagged prefixes would have ended well.
- "error", prefixes after which the model, with nucleus 0.9 and no verifier, wrote its first wrong token: which share ends well.
- "diverse", few, each completed ten times: how many of ten completions differ.

An item says the prompts, the nucleus (top), the sampler with its quota Q and stride B, the verifier, and what is measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from harness.draw import Draw
from harness.experiments.generation import samplers
from harness.experiments.generation.oracles import Verifier
from harness.experiments.generation.samplers import Samples
from harness.probes.generation.generator import TrainedGenerator
from harness.probes.generation.verifier import ExactVerifier, RandomVerifier, Recorded, examples, trained
from harness.probes.probe import Probe, Rows, of_model
from harness.probes.strings import SEED
from models.model import Model
from models.transformer.positions import ENCODINGS
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from tasks.generation.bracket_errors import KINDS, first_errors, valid
from tasks.generation.bracket_strings import BracketStrings
from tasks.task import Task

NUCLEI = (0.9, 1.0)
HEADLINE = (4, 4)  # Q and B of tables 3.3, 3.5 and 3.16
CUTS = (1, 2, 4, 8)  # table 3.1
QUOTAS, STRIDES = (1, 2, 4), (2, 4, 6)  # table 3.2
DIVERSE, COMPLETIONS = 100, 10  # table 3.5
# first steps of the draws of each purpose
_FRESH, _COLLECTED, _COLLECT, _VERIFIERS, _ERROR, _FLAGGED, _DIVERSE, _RANDOM = (each << 20 for each in range(8))
_MOST = 300  # tokens of a string, after which rejection and tokenwise rejection give it up
_PART, _PARTS = 2000, 20  # prompts that are completed at once for errors to train on, and how often at most


@dataclass(frozen=True)
class Backtracking:
    """first_type: of the prompts. left: brackets that a prompt lacks at most. verifiers: how many are trained, on up to `errors` errors."""

    first_type: float = 0.8
    left: int = 7
    verifiers: int = 10
    errors: int = 441

    def __post_init__(self) -> None:
        for name in ("left", "verifiers", "errors"):
            if getattr(self, name) < 1:
                raise StudyError(f"--option {name}={getattr(self, name)} must be at least 1")
        if not 0 <= self.first_type <= 1:
            raise StudyError(f"--option first_type={self.first_type:g} must be from 0 to 1")


def prompts(task: BracketStrings, settings: Backtracking, step: int, first: int, count: int) -> tuple[Tensor, Tensor]:
    """Prompts number `first` … of a step: strings int64 [count, length + 1] and their lengths."""
    tilted = replace(task, first_type=settings.first_type)
    draw = Draw(torch.tensor([SEED]), "evaluate", step).rows(first)
    strings = torch.cat([tilted.strings(draw, count)[0], torch.zeros(count, 1, dtype=torch.int64)], dim=1)
    return strings, task.length - 1 - draw.integers(min(settings.left, task.length - 1), (count,), 1)[0]


def generation(model: Decoder, task: BracketStrings, count: int, settings: Backtracking) -> Rows:
    """All rows of one generator; count: fresh prompts."""
    generator = TrainedGenerator(model, task)
    given, collected = _errors(generator, settings)
    rows = [("collected prompts", float(collected)), ("verifier examples", float(len(given.right)))]
    if len(given.right) >= 20:
        verifiers = trained(generator, given, Draw(torch.tensor([SEED]), "evaluate", _VERIFIERS), settings.verifiers)
        rows += [(f"verifier={number} accuracy", each.accuracy) for number, each in enumerate(verifiers)]
    else:
        verifiers = []  # a generator without errors needs none
    trial = _Trial(generator, list(verifiers), *prompts(task, settings, _FRESH, 0, count))
    for part in (trial.fresh, trial.error, trial.diverse):
        rows += part()
    return of_model(rows)


def _errors(generator: TrainedGenerator, settings: Backtracking) -> tuple[Any, int]:
    """Examples for verifiers, and how many prompts they took."""
    kept: list[tuple[Samples, Tensor]] = []
    seen = 0
    for part in range(_PARTS):
        strings, lengths = prompts(generator.task, settings, _COLLECTED, part * _PART, _PART)
        samples_of_part = samplers.plain(generator, _draw(_COLLECT + part * 1024), strings, lengths, NUCLEI[0])
        kept.append((samples_of_part, lengths))
        seen += int((~valid(generator.task, samples_of_part.strings, samples_of_part.lengths)).sum())
        if seen >= settings.errors * 1.1:  # some have no right one beside them
            break
    samples = replace(
        kept[0][0], strings=torch.cat([each.strings for each, _ in kept]), lengths=torch.cat([each.lengths for each, _ in kept])
    )
    return examples(generator, samples, torch.cat([each for _, each in kept]), settings.errors), len(kept) * _PART


class _Trial:
    """The samplers on the prompts of one generator. Samplers of one purpose share their draws, so that they are compared like with like."""

    def __init__(self, generator: TrainedGenerator, verifiers: list[Verifier], strings: Tensor, lengths: Tensor):
        self.generator, self.verifiers, self.task = generator, verifiers, generator.task
        self.strings, self.lengths = strings, lengths

    def right(self, samples: Samples) -> Tensor:
        return valid(self.task, samples.strings, samples.lengths)

    def fresh(self) -> Iterator[tuple[str, float]]:
        quota, stride = HEADLINE
        sampler = f"Q={quota} B={stride}"
        draw, start = _draw(_FRESH + 1024), (self.strings, self.lengths)
        for top in NUCLEI:
            yield from self._costs(f"fresh top={top:g} plain", samplers.plain(self.generator, draw, *start, top))
            refusals = []
            for number, verifier in enumerate(self.verifiers):
                ways = {"thesis": {}, "sampled": {"greedy": False}} | ({"released": {"mode": "released"}} if top < 1 else {})
                for way, options in ways.items():
                    recorded = Recorded(verifier)
                    samples = samplers.backtracking(self.generator, recorded, draw, *start, quota, stride, top, **options)
                    where = f"fresh top={top:g} {way} {sampler} verifier={number}"
                    yield from self._costs(where, samples)
                    if way == "thesis":
                        refusals.append(float(samples.backtracks.sum() / samples.checks.sum()))
                        yield from self._flagged(where, recorded, top)
                        yield from self._mistakes(where, samples, quota)
            exact = ExactVerifier(self.generator)
            yield from self._costs(
                f"fresh top={top:g} thesis {sampler} exact",
                samplers.backtracking(self.generator, exact, draw, *start, quota, stride, top),
            )
            yield from self._costs(
                f"fresh top={top:g} tokenwise exact", samplers.tokenwise(self.generator, exact, draw, *start, top, _MOST)
            )
            yield from self._costs(
                f"fresh top={top:g} rejection exact", samplers.rejection(self.generator, exact, draw, *start, top, _MOST)
            )
            for number, share in enumerate(refusals):  # a verifier that refuses as many prefixes as the trained one, at random
                random = Recorded(RandomVerifier(_draw(_RANDOM + 1024 * number), len(self.lengths), share))
                samples = samplers.backtracking(self.generator, random, draw, *start, quota, stride, top)
                where = f"fresh top={top:g} thesis {sampler} random={number}"
                yield from self._costs(where, samples)
                yield from self._flagged(where, random, top)

    def error(self) -> Iterator[tuple[str, float]]:
        """Tables 3.1, 3.2 and 3.4."""
        plain = samplers.plain(self.generator, _draw(_FRESH + 1024), self.strings, self.lengths, NUCLEI[0])
        first = first_errors(self.task, plain.strings, plain.lengths)
        wrong = (first.kind >= 0).nonzero()[:, 0]
        strings, lengths = plain.strings[wrong], first.place[wrong].clamp(max=self.task.length)
        yield "error prompts", float(len(wrong))
        if not len(wrong):
            return
        draw, top = _draw(_ERROR), NUCLEI[0]

        def share(samples: Samples) -> float:
            return float(self.right(samples).double().mean())

        yield "error plain right", share(samplers.plain(self.generator, draw, strings, lengths, top))
        yield "error greedy right", share(samplers.plain(self.generator, draw, strings, lengths, top, self.generator.horizon))
        for cut in CUTS:
            start = (lengths - cut).clamp(min=0)
            yield f"error once B={cut} right", share(samplers.plain(self.generator, draw, strings, start, top, cut))
        for quota in QUOTAS:
            for stride in STRIDES:
                for number, verifier in enumerate(self.verifiers):
                    recorded = Recorded(verifier)
                    completed = samplers.backtracking(
                        self.generator, recorded, draw, strings, lengths, quota, stride, top, reach=stride
                    )
                    where = f"error thesis Q={quota} B={stride} verifier={number}"
                    yield f"{where} right", share(completed)
                    yield f"{where} generator_queries", _mean(completed.queries)
                    yield f"{where} verifier_queries", _mean(completed.checks)
                    yield from self._flagged(where, recorded, top)

    def diverse(self) -> Iterator[tuple[str, float]]:
        """Table 3.5."""
        strings, lengths = (each[:DIVERSE].repeat_interleave(COMPLETIONS, 0) for each in (self.strings, self.lengths))
        draw, (quota, stride) = _draw(_DIVERSE), HEADLINE

        def distinct(samples: Samples) -> float:
            counted = torch.arange(samples.strings.shape[1]) < samples.lengths[:, None]
            texts = torch.where(counted, samples.strings, -1).view(-1, COMPLETIONS, samples.strings.shape[1])
            return sum(len(each.unique(dim=0)) for each in texts) / len(texts)

        for top in NUCLEI:
            yield f"diverse top={top:g} plain distinct", distinct(samplers.plain(self.generator, draw, strings, lengths, top))
        for number, verifier in enumerate(self.verifiers):
            completed = samplers.backtracking(self.generator, verifier, draw, strings, lengths, quota, stride, 1.0)
            yield f"diverse top=1 thesis Q={quota} B={stride} verifier={number} distinct", distinct(completed)

    def _costs(self, where: str, samples: Samples) -> Iterator[tuple[str, float]]:
        yield f"{where} wrong", float((~self.right(samples)).double().mean())
        yield f"{where} generator_queries", _mean(samples.queries)
        yield f"{where} verifier_queries", _mean(samples.checks)

    def _flagged(self, where: str, recorded: Recorded, top: float) -> Iterator[tuple[str, float]]:
        """How many prefixes were refused, and which share of them ends well without a verifier: with this nucleus, and greedily."""
        strings, lengths = recorded.refused()
        yield f"{where} flagged", float(len(lengths))
        if len(lengths):
            for way, greedy in (("nucleus", 0), ("greedy", self.generator.horizon)):
                completed = samplers.plain(self.generator, _draw(_FLAGGED), strings, lengths, top, greedy)
                yield f"{where} flagged_{way}_right", float(self.right(completed).double().mean())

    def _mistakes(self, where: str, samples: Samples, quota: int) -> Iterator[tuple[str, float]]:
        """Strings that are wrong by the kind of their first error, and those of them whose quota was used up."""
        kinds = first_errors(self.task, samples.strings, samples.lengths).kind
        for number, name in enumerate(KINDS):
            yield f"{where} {name}", float((kinds == number).sum())
        yield f"{where} quota_used_up", float(((kinds >= 0) & (samples.backtracks == quota)).sum())


def _draw(step: int) -> Draw:
    return Draw(torch.tensor([SEED]), "evaluate", step)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def _suits(model: Model, task: Task) -> bool:
    """Whether the probe is for a model: it reads bracket strings from left to right, without a table of positions.

    A verifier reads the end too, one token more than there is in training, for which a table has no position.
    """
    if not (isinstance(task, BracketStrings) and isinstance(model, Transformer)):
        return False
    return model.causal and model.head == "linear" and not ENCODINGS[model.positions].table


BACKTRACKING = Probe(
    lambda model, task, count, settings: generation(cast(Decoder, model), task, count, settings),
    _suits,
    "replicates of bracket_strings with a causal transformer without learned positions",
    strings=2000,
    settings=Backtracking,
)
