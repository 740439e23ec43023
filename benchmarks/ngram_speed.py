"""Replicate-steps per second and core of in-context trigrams: plain PyTorch one seed after another, vmap, and a pack, in one run.

python -m benchmarks.ngram_speed [--size 64] [--rounds 5] [--steps 4] [--out benchmarks/results/cpu]

The training is that of launch/studies/ngrams/figure3.yaml on one thread. Each variant's time includes drawing its strings; the plain ones
use torch's own Dirichlet and categorical draws. A ratio to the plain variant is the median over rounds; each round times it too.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

import models
from benchmarks.tables import conditions, number, ratio, show
from harness import compiled_draw
from harness.draw import Draw
from harness.machine.device import prepare
from harness.planning.pack import Pack, Replicate
from harness.study.load import load
from harness.training.pack_state import Training
from launch.families import find_study
from results.markdown_table import markdown_table

CPU = torch.device("cpu")
S, N, T, B, LR = 5, 3, 32, 128, 0.01
HIDDEN = torch.ones(T, T, dtype=torch.bool).triu(1)
TARGET = 8.0  # times the plain way's replicate-steps per second

Weights = dict[str, Tensor]
Advance = Callable[[], int]  # takes a step of each of its replicates and returns how many


def strings(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens [B, T] and the distribution of the next one [B, S], drawn in plain PyTorch."""
    gammas = torch._standard_gamma(
        torch.ones(B, S ** (N - 1), S), generator=generator
    )  # what torch.distributions.Dirichlet calls
    laws = gammas / gammas.sum(-1, keepdim=True)
    rows = torch.arange(B)
    tokens = torch.randint(S, (B, N - 1), generator=generator)
    context, columns = tokens[:, 0] * S + tokens[:, 1], list(tokens.unbind(-1))
    for _ in range(N - 1, T):
        token = torch.multinomial(laws[rows, context], 1, generator=generator)[:, 0]
        columns.append(token)
        context = (context * S + token) % S ** (N - 1)
    return torch.stack(columns, -1), laws[rows, context]


def loss(weights: Weights, tokens: Tensor, law: Tensor) -> Tensor:
    """Section 2.2 of Varre et al. 2025, as it is written, and its loss."""
    r0 = torch.eye(S)[tokens]
    attention = weights["scores"].masked_fill(HIDDEN, -math.inf).softmax(-1)
    heads = torch.einsum("mij,bjs,mst->mbit", attention, r0, weights["value"])
    r1 = torch.cat([r0, *heads], -1)
    scores = ((r1[:, -1] @ weights["query"])[:, None] * (r1 @ weights["key"])).sum(-1)
    p = (scores.softmax(-1)[..., None] * r0).sum(1)
    return -(law * (p + 1e-8).log()).sum(-1).mean()


def initial(size: int) -> Weights:
    """The weights of `size` seeds, stacked."""
    made = models.build("simple_disentangled", Draw(torch.arange(size), "init"), vocabulary=S, length=T)
    return {name: weight.detach().clone() for name, weight in made.named_parameters()}


def plain() -> Advance:
    """One seed, with autograd and torch's Adam."""
    weights = {name: weight[0].clone().requires_grad_() for name, weight in initial(1).items()}
    adam, generator = torch.optim.Adam(weights.values(), lr=LR), torch.Generator().manual_seed(0)

    def advance() -> int:
        adam.zero_grad()
        loss(weights, *strings(generator)).backward()
        adam.step()
        return 1

    return advance


def mapped(size: int) -> Advance:
    """The plain loss of all seeds through vmap; strings are drawn one seed after another."""
    weights = {name: weight.requires_grad_() for name, weight in initial(size).items()}
    adam = torch.optim.Adam(weights.values(), lr=LR)
    generators = [torch.Generator().manual_seed(seed) for seed in range(size)]
    step = vmap(grad_and_value(loss))

    def advance() -> int:
        tokens, laws = (torch.stack(part) for part in zip(*(strings(generator) for generator in generators), strict=True))
        gradients, _ = step({name: weight.detach() for name, weight in weights.items()}, tokens, laws)
        for name, weight in weights.items():
            weight.grad = gradients[name]
        adam.step()
        return size

    return advance


def packed(size: int) -> Advance:
    """A pack of the study, without its evaluations."""
    condition = load(find_study("ngrams", "figure3"), ["only=[alpha_1]"]).conditions[0]
    members = tuple(Replicate(str(seed), condition, seed, seed, ()) for seed in range(size))
    state = Training(Pack("p", "s", members, 1000, {}), CPU)

    def advance() -> int:
        state.advance()
        return size

    return advance


def timed(advance: Advance, steps: int) -> float:
    """Replicate-steps per second of processor time of this thread."""
    started, taken = time.thread_time(), 0
    for _ in range(steps):
        taken += advance()
    return taken / (time.thread_time() - started)


def measure(size: int, rounds: int, steps: int) -> dict[str, list[float]]:
    """Rates of each variant by round; the plain one takes as many steps as the pack has replicates."""
    prepare(CPU)
    torch.set_num_threads(1)
    compiled_draw.prepare()  # as in a training of more than a few steps
    ways = {"plain PyTorch, one seed after another": (plain(), steps * size)}
    ways |= {f"vmap over {size}": (mapped(size), steps), f"a pack of {size}": (packed(size), steps)}
    for advance, _ in ways.values():
        advance()
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (advance, count) in ways.items():
            rates[name].append(timed(advance, count))
    return rates


def table(rates_by_way: dict[str, list[float]]) -> str:
    """One line per variant: the median rate, and the median over rounds of the ratio to the first."""
    first = next(iter(rates_by_way.values()))
    lines = []
    for name, rates in rates_by_way.items():
        ratios = [rate / base for rate, base in zip(rates, first, strict=True)]
        lines.append([name, number(statistics.median(rates)), ratio(statistics.median(ratios))])
    return markdown_table(["way", "replicate-steps/s and core", "times plain"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--out", help="folder for ngram_speed.md and .parquet")
    options = parser.parse_args()
    rates_by_way = measure(options.size, options.rounds, options.steps)
    pack = list(rates_by_way.values())[-1]
    times = statistics.median(one / base for one, base in zip(pack, next(iter(rates_by_way.values())), strict=True))
    head = conditions("cpu", "fp32", seeds=options.size, rounds=options.rounds, threads=1)
    text = f"# In-context trigrams in three ways\n\n{head}\n\n{table(rates_by_way)}\n\n"
    text += f"target: {TARGET:g} times plain; measured: {times:.1f}"
    rows = [{"way": way, "round": i, "rate": rate} for way, rates in rates_by_way.items() for i, rate in enumerate(rates)]
    show(options.out, "ngram_speed", text, rows)


if __name__ == "__main__":
    main()
