"""Sample strings of a finite process with a verifier, and say how far they are from the target and what they cost (Li 2025, chapter 3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from harness.draw import Draw
from harness.experiments.generation import samplers
from harness.experiments.generation.oracles import Judged, Written, states
from harness.experiments.generation.samplers import Samples
from harness.experiments.generation.walk import uniform_time, until_leaf
from results.plain_values import Options
from tasks.generation import processes
from tasks.generation.processes import Process

PROCESSES = ("tree", "brackets", "only_zeros", "some_zero", "hidden_parity")
WALKS = ("vgb_first_leaf", "vgb_uniform_time")
BY_VALUE = ("guided", *WALKS)  # samplers that read how good a prefix is; the others ask whether it may go on
SAMPLERS = ("plain", "rejection", "tokenwise", "backtracking", *BY_VALUE)
_COUNTED = 2**16  # strings of a process at most, for their frequencies to be compared one by one
_MOST = 2**20  # numbers in a table of one seed
_TOGETHER = 2**22  # numbers in the tables of all seeds that are measured at once
_CONTROL = 2**31  # first step of the draws of strings from the target itself
_RUNS = 64  # a level of the tree: runs of a walk, all of which may end inside the tree


@dataclass(frozen=True)
class VerifiedSampling:
    """A sampler on a finite process, with a verifier.

    process: what writes; horizon: H; alphabet: A of tree and only_zeros; depth, opens, first_type, wrong: of brackets.

    sampler: plain | rejection | tokenwise | backtracking | guided | vgb_first_leaf | vgb_uniform_time. noise: of the value that guided
    and vgb follow, its logarithm is uniformly wrong by at most so much inside the tree; leaf_noise: at leaves. flips: share of wrong
    answers of the verifier that rejection, tokenwise and backtracking ask. quota, stride, mode, greedy: of backtracking. steps: T of
    vgb_uniform_time. samples: strings a seed; most: tokens, or steps, after which a string is given up.
    """

    rev: ClassVar[int] = 1
    metrics: ClassVar[Mapping[str, str]] = {
        "divergence": "lower",  # KL(target ‖ law of the sampler), in nats, exact
        "distance": "lower",  # total variation distance of the samples' frequencies from the target
        "distance_of_target": "lower",  # of as many strings of the target itself: what chance alone makes
        "wrong": "lower",  # share of samples without a reward
        "generator_queries": "lower",  # a string
        "verifier_queries": "lower",
        "backtracks": "lower",
        "steps": "lower",  # of a walk
        "expected_steps": "lower",  # exact
        "leaf_mass": "higher",  # share of times at which a walk is at a leaf
        "expected_leaf_mass": "higher",  # exact, in the long run
        "unfinished": "lower",
    }

    process: str = "tree"
    horizon: int = 4
    alphabet: int = 2
    depth: int = 4
    opens: float = 0.5
    first_type: float = 0.5
    wrong: float = 0.1
    sampler: str = "guided"
    noise: float = 0.0
    leaf_noise: float = 0.0
    flips: float = 0.0
    quota: int = 4
    stride: int = 4
    mode: str = "thesis"
    greedy: bool = True
    steps: int = 1000
    samples: int = 1000
    most: int = 1_000_000

    def __post_init__(self) -> None:
        for name, words in {"process": PROCESSES, "sampler": SAMPLERS, "mode": samplers.MODES}.items():
            if getattr(self, name) not in words:
                raise ValueError(f"experiment.{name} = {getattr(self, name)!r} must be {' or '.join(words)}")
        least = {"horizon": 1, "alphabet": 2, "depth": 1, "quota": 0, "stride": 1, "steps": 1, "samples": 1, "most": 1}
        for name, at_least in least.items():
            if getattr(self, name) < at_least:
                raise ValueError(f"experiment.{name} = {getattr(self, name)} must be at least {at_least}")
        most = dict.fromkeys(("opens", "first_type", "wrong", "flips"), 1) | dict.fromkeys(("noise", "leaf_noise"), 20)
        for name, at_most in most.items():
            if not 0 <= getattr(self, name) <= at_most:
                raise ValueError(f"experiment.{name} = {getattr(self, name):g} must be from 0 to {at_most}")
        if self.process == "brackets" and self.horizon % 2:
            raise ValueError(f"experiment.horizon = {self.horizon} must be even, since brackets come in pairs")
        if self._numbers() > _MOST:
            raise ValueError(
                f"experiment.horizon = {self.horizon} makes a table of over {_MOST:,} numbers for the process {self.process}: choose less"
            )
        if self.flips and self.sampler in ("plain", *BY_VALUE):
            raise ValueError(
                f"experiment.flips belongs to rejection, tokenwise and backtracking, and the sampler is {self.sampler}: leave it out"
            )
        if (self.noise or self.leaf_noise) and self.sampler not in BY_VALUE:
            raise ValueError(
                f"experiment.noise belongs to {', '.join(BY_VALUE)}, and the sampler is {self.sampler}: leave it out"
            )

    def _numbers(self) -> int:
        """At least as many numbers as the law of the process has."""
        if self.horizon > 4096:
            return _MOST + 1
        if self.process == "tree":
            states = _MOST if self.horizon * (self.alphabet - 1).bit_length() > 24 else self.alphabet ** (self.horizon + 1)
            return states * self.alphabet * self.horizon
        states = 2 ** min(self.depth + 1, 24) if self.process == "brackets" else 3
        return states * max(4, self.alphabet) * self.horizon

    def built(self, draw: Draw) -> Process:
        """The process; for `tree`, one per seed."""
        if self.process == "tree":
            return processes.tree(draw, self.horizon, self.alphabet)
        if self.process == "brackets":
            return processes.brackets(self.horizon, self.depth, self.opens, self.first_type, self.wrong)
        if self.process == "only_zeros":
            return processes.only_zeros(self.horizon, self.alphabet)
        return getattr(processes, self.process)(self.horizon)  # type: ignore[no-any-return]

    def measure(self, draw: Draw) -> Iterator[Options]:
        size = max(1, _TOGETHER // max(self._numbers(), self.samples))
        parts = [self._measured(draw.of(slots)) for slots in torch.arange(draw.replicates).split(size)]
        yield {"count": self.samples} | {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _measured(self, draw: Draw) -> dict[str, Tensor]:
        process = self.built(draw)
        exact = processes.values(process)
        exact = exact.expand(draw.replicates, -1, -1)
        numbers: dict[str, Tensor] = {}
        if self.sampler in BY_VALUE:
            value = processes.mistaken(exact, draw, self.noise, self.leaf_noise)
            samples = self._by_value(process, value, draw, numbers)
        else:
            samples = self._by_answers(process, draw, numbers)
        numbers |= self._costs(samples, draw.replicates) | self._frequencies(process, samples, draw)
        return {name: numbers[name] for name in self.metrics if name in numbers}

    def _by_value(self, process: Process, value: Tensor, draw: Draw, numbers: dict[str, Tensor]) -> Samples:
        if self.sampler == "guided":
            law = processes.guided(process, value)
            numbers["divergence"] = processes.divergence(process, law)
            samples = self._plain(process, draw, law)
            asked = samples.queries * process.tokens  # the verifier is asked about every child
            return Samples(samples.strings, samples.lengths, samples.queries, asked, samples.backtracks, samples.finished)
        if self.sampler == "vgb_first_leaf":
            numbers["divergence"] = processes.divergence(
                process, processes.guided(process, processes.first_leaf(process, value))
            )
            numbers["expected_steps"] = processes.first_leaf_steps(process, value)
            samples, steps = until_leaf(process, value, draw, self.samples, self.most)
            numbers["steps"] = _means(steps, draw.replicates)
            return samples
        leaves = processes.values(process, value[:, -1])
        numbers["divergence"] = processes.divergence(process, processes.guided(process, leaves))
        numbers["expected_leaf_mass"] = processes.stationary(process, value)[:, -1].sum(-1)
        runs = _RUNS * self.horizon
        samples, tried = uniform_time(process, value, draw, self.samples, self.steps, runs)
        at_leaf = samples.finished.view(draw.replicates, -1).sum(1)
        numbers["leaf_mass"] = at_leaf / tried.view(draw.replicates, -1).sum(1).to(torch.float64)
        return samples

    def _by_answers(self, process: Process, draw: Draw, numbers: dict[str, Tensor]) -> Samples:
        if self.sampler == "plain":
            numbers["divergence"] = processes.divergence(process, process.law).expand(draw.replicates)
            return self._plain(process, draw, process.law)
        answers = processes.extendable(process).expand(draw.replicates, -1, -1)
        if self.flips:
            answers = processes.flipped(answers, draw, self.flips)
        generator, verifier = Written(process, self.samples), Judged(process, answers, self.samples)
        empty = self._empty(process, draw)
        if self.sampler == "rejection":
            return samplers.rejection(generator, verifier, draw, *empty, most=self.most)
        if self.sampler == "tokenwise":
            return samplers.tokenwise(generator, verifier, draw, *empty, most=self.most)
        return samplers.backtracking(
            generator, verifier, draw, *empty, self.quota, self.stride, mode=self.mode, greedy=self.greedy
        )

    def _plain(self, process: Process, draw: Draw, law: Tensor) -> Samples:
        return samplers.plain(Written(process, self.samples, law), draw, *self._empty(process, draw))

    def _empty(self, process: Process, draw: Draw) -> tuple[Tensor, Tensor]:
        """The empty prompts of all samples, and their lengths."""
        count = draw.replicates * self.samples
        return torch.zeros(count, process.horizon, dtype=torch.int64), torch.zeros(count, dtype=torch.int64)

    def _costs(self, samples: Samples, replicates: int) -> dict[str, Tensor]:
        parts = {"generator_queries": samples.queries, "verifier_queries": samples.checks, "backtracks": samples.backtracks}
        return {name: _means(costs, replicates) for name, costs in parts.items()} | {
            "unfinished": _means(~samples.finished, replicates)
        }

    def _frequencies(self, process: Process, samples: Samples, draw: Draw) -> dict[str, Tensor]:
        """The share of samples that are wrong, and how far the frequencies of samples are from the target."""
        last = states(process, samples.strings, samples.lengths)
        reward = process.reward.expand(draw.replicates, -1).gather(1, last.view(draw.replicates, -1))
        whole = samples.finished & (samples.lengths == process.horizon)
        numbers = {"wrong": 1 - _means(whole & (reward.flatten() > 0), draw.replicates)}
        if process.tokens**process.horizon > _COUNTED:
            return numbers
        wanted = processes.target(process)
        law = processes.leaf_law(process, wanted)
        control = self._plain(process, replace(draw, step=_CONTROL), wanted)
        for name, drawn, own in (("distance", samples, whole), ("distance_of_target", control, control.finished)):
            numbers[name] = processes.distance(_shares(process, drawn.strings, own, draw.replicates), law)
        return numbers


def _shares(process: Process, strings: Tensor, whole: Tensor, replicates: int) -> Tensor:
    """Frequencies [R, A^H] of the strings that are whole, among all."""
    number = torch.zeros(len(strings), dtype=torch.int64)
    for place in range(process.horizon):
        number = number * process.tokens + strings[:, place]
    counts = torch.zeros(replicates, process.tokens**process.horizon, dtype=torch.float64)
    counts.scatter_add_(1, number.view(replicates, -1), whole.view(replicates, -1).to(torch.float64))
    return counts * replicates / len(strings)


def _means(values: Tensor, replicates: int) -> Tensor:
    return values.view(replicates, -1).to(torch.float64).mean(1)
