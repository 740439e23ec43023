"""Verifiers of a trained generator: linear maps of what its head reads, trained on its own errors (Li 2025, section 3.2.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harness.draw import WORD, Draw
from harness.experiments.generation.oracles import Verifier
from harness.experiments.generation.samplers import Samples, Uniforms
from harness.probes.generation.generator import TrainedGenerator
from results.grouping import grouped
from tasks.generation.bracket_errors import FirstErrors, first_errors

_STEPS, _LOOKS, _RATE, _DECAY = 500, 10, 0.01, 0.1  # of full batches with AdamW; the thesis does not say


@dataclass(frozen=True)
class Examples:
    """features float32 [2N, D]; right, bool [2N]: N prefixes that end with a string's first error, then N right ones of these lengths."""

    features: Tensor
    right: Tensor


@dataclass(frozen=True)
class TrainedVerifier:
    """Accepts a prefix that it holds to be right with a probability of at least 1/2. weight [D], bias []; accuracy: on examples that it
    was not trained on."""

    generator: TrainedGenerator
    weight: Tensor
    bias: Tensor
    accuracy: float

    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self.generator.features(strings, lengths) @ self.weight + self.bias >= 0


@dataclass(frozen=True)
class ExactVerifier:
    """Accepts the prefixes without an error."""

    generator: TrainedGenerator

    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return first_errors(self.generator.task, strings, lengths).kind < 0


class RandomVerifier:
    """Refuses a share of all prefixes, whatever they are."""

    def __init__(self, draw: Draw, batch: int, share: float):
        self._uniforms, self._share = Uniforms(draw, batch), share
        self._all, self._number = torch.ones(batch, dtype=torch.bool), -1

    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        self._number += 1
        return self._uniforms.at(self._number, rows, self._all) >= self._share


class Recorded:
    """A verifier, and the prefixes that it refused."""

    def __init__(self, verifier: Verifier):
        self.verifier = verifier
        self._refused: list[tuple[Tensor, Tensor]] = []

    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        accepted = self.verifier.accepts(strings, lengths, rows)
        self._refused.append((strings[~accepted], lengths[~accepted]))
        return accepted

    def refused(self) -> tuple[Tensor, Tensor]:
        """strings [N, H] and lengths [N]."""
        strings, lengths = zip(*self._refused, strict=True)
        return torch.cat(strings), torch.cat(lengths)


def examples(generator: TrainedGenerator, samples: Samples, starts: Tensor, most: int) -> Examples:
    """Up to `most` prefixes that end with the first error of a sample, and as many of samples without one, cut to the same lengths.

    starts [N]: lengths of the prompts; a prefix holds at least one token that the generator wrote. An error is left out where no sample
    without one is left to be cut to its length.
    """
    errors: FirstErrors = first_errors(generator.task, samples.strings, samples.lengths)
    wrong, whole = (errors.kind >= 0).nonzero()[:, 0].tolist(), (errors.kind < 0).nonzero()[:, 0].tolist()
    begins, place = starts.tolist(), errors.place.tolist()
    by_start = grouped((begins[row], row) for row in reversed(whole))
    pairs: list[tuple[int, int, int]] = []
    for row in wrong:
        length = place[row] + 1
        # of the prompts that are short enough the longest: the others fit more errors
        start = next((each for each in range(length - 1, -1, -1) if by_start.get(each)), None)
        if start is not None and length <= generator.horizon and len(pairs) < most:
            pairs.append((row, by_start[start].pop(), length))
    rows = torch.tensor([each[0] for each in pairs] + [each[1] for each in pairs], dtype=torch.int64)
    lengths = torch.tensor([each[2] for each in pairs] * 2, dtype=torch.int64)
    return Examples(generator.features(samples.strings[rows], lengths), torch.arange(len(rows)) >= len(pairs))


def trained(
    generator: TrainedGenerator, given: Examples, draw: Draw, count: int, held: float = 90 / 882
) -> list[TrainedVerifier]:
    """`count` verifiers that share their examples, each with a start and held-out examples of its own: the share `held` of them.

    Each is the one of its training's looks with the highest accuracy on the held-out examples, the first of equals.
    """
    size, width = given.features.shape
    words = draw.words((count, size))[0]  # [count, 2N]
    order = words.argsort(dim=-1, stable=True)
    validation = max(1, round(size * held))
    uniform = (draw.words((count, width), 1)[0].to(torch.float64) + 0.5) / WORD
    weight = nn.Parameter(((2 * uniform - 1) / width**0.5).float())
    bias = nn.Parameter(torch.zeros(count))
    optimizer = torch.optim.AdamW([weight, bias], lr=_RATE, weight_decay=_DECAY)
    parts = [(given.features[rows], given.right[rows]) for rows in (order[:, validation:], order[:, :validation])]
    (features, right), (held_features, held_right) = parts
    best, kept = torch.full((count,), -1.0), (weight.detach().clone(), bias.detach().clone())
    for step in range(1, _STEPS + 1):
        optimizer.zero_grad()
        logits = (features @ weight[..., None])[..., 0] + bias[:, None]
        losses = nn.functional.binary_cross_entropy_with_logits(logits, right.float(), reduction="none").mean(-1)
        losses.sum().backward()
        optimizer.step()
        if step % _LOOKS == 0:
            with torch.no_grad():
                said = (held_features @ weight[..., None])[..., 0] + bias[:, None] >= 0
                accuracy = (said == held_right).float().mean(-1)
                better = accuracy > best
                best = torch.where(better, accuracy, best)
                kept = (torch.where(better[:, None], weight, kept[0]), torch.where(better, bias, kept[1]))
    weights, biases = kept
    return [TrainedVerifier(generator, weights[each], biases[each], float(best[each])) for each in range(count)]
