"""Replicate-steps per second and core of batch-1 SGD: torch's own loop, vmap, batched by hand, and the compiled loop, in one run.

python -m benchmarks.batch_one [--size 64] [--width 100] [--rounds 5] [--seconds 1] [--out benchmarks/results/cpu]

Each variant trains a perceptron on (100, 6)-parity on one thread, and its time includes drawing the strings. Rates are per second of
processor time of that thread. A ratio to the plain loop is the median over rounds; each round times the plain loop too. The time of
students includes their teachers' answers.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from benchmarks.tables import conditions, number, ratio, show
from harness.draw import Draw
from harness.machine.device import prepare
from harness.planning.pack import Pack, Replicate
from harness.study.config import Condition
from harness.study.stages import Link, after
from harness.study.training_options import Train
from harness.training.pack_state import Training
from harness.training.training_strings import Feed
from models.mlp import MLP
from results.markdown_table import markdown_table
from results.plain_values import Row
from tasks.distillation.parity import SparseParity

CPU = torch.device("cpu")
LR = 5e-3
CHECKED = 1000  # steps whose losses are compared
TEACHER = 1000  # its width
TARGET = 60.0  # times the plain loop's replicate-steps per second

_STUDENT = f"students, each of a teacher of width {TEACHER:,}, compiled loop"

Advance = Callable[[], Tensor]  # takes steps of R replicates and returns their losses [S, R]


def pack(size: int, width: int) -> Pack:
    """`size` seeds of one condition; a curve every 1,000 steps, so that the compiled loop looks up as rarely as a long study does."""
    train = Train(steps=20_000_000, batch=1, optimizer="sgd", lr=LR, weight_decay=0.0, warmup=0, schedule="constant")
    condition = Condition("c", SparseParity(), MLP(width), train)
    return Pack("p", "s", tuple(Replicate(str(seed), condition, seed, seed, ()) for seed in range(size)), 1000, {})


def modules(size: int, width: int) -> list[nn.Module]:
    """Models of torch's own layers with the initial weights of the packed one."""
    packed: Any = MLP(width).make(Draw(torch.arange(size), "init"), 2, 100)
    models: list[nn.Module] = []
    for slot in range(size):
        hidden, head = nn.Linear(100, width), nn.Linear(width, 2)
        with torch.no_grad():
            for linear, theirs in ((hidden, packed.layers[0]), (head, packed.head)):
                linear.weight.copy_(theirs.weight[slot].T)
                linear.bias.copy_(theirs.bias[slot])
        models.append(nn.Sequential(hidden, nn.ReLU(), head))
    return models


class Strings:
    """Signs [R, 1, 100] and classes [R, 1] step by step, drawn as the harness draws them, many steps at once."""

    def __init__(self, one: Pack):
        self.feed, self.size, self.step = Feed(one, CPU), len(one.replicates), 0
        self.chunk = max(1, min(4096, 2**20 // (100 * self.size)))

    def next(self) -> tuple[Tensor, Tensor]:
        place = self.step % self.chunk
        if not place:
            batch = self.feed.batch(self.step + 1, self.chunk)
            self.signs = (1.0 - 2.0 * batch.inputs).view(self.chunk, self.size, 1, 100)
            self.classes = batch.targets[..., -1].view(self.chunk, self.size, 1)
        self.step += 1
        return self.signs[place], self.classes[place]


def plain(width: int, seed: int = 0) -> Advance:
    """One replicate in plain PyTorch."""
    model = modules(seed + 1, width)[seed]
    condition = pack(1, width).replicates[0].condition
    strings = Strings(Pack("p", "s", (Replicate("0", condition, seed, seed, ()),), 1000, {}))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)

    def advance() -> Tensor:
        signs, classes = strings.next()
        loss = nn.functional.cross_entropy(model(signs[0]), classes[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()[None, None]

    return advance


def mapped(size: int, width: int) -> Advance:
    """The plain model packed by torch.func."""
    models = modules(size, width)
    stacked, _ = stack_module_state(models)
    weights = {name: nn.Parameter(value.detach()) for name, value in stacked.items()}
    optimizer, strings = torch.optim.SGD(weights.values(), lr=LR), Strings(pack(size, width))

    def loss(one: dict[str, Tensor], signs: Tensor, classes: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(models[0], one, (signs,)), classes)

    def advance() -> Tensor:
        gradients, losses = vmap(grad_and_value(loss))(dict(weights), *strings.next())
        for name, parameter in weights.items():
            parameter.grad = gradients[name]
        optimizer.step()
        return losses.detach()[None]

    return advance


def batched(size: int, width: int) -> Advance:
    """Forward, backward and update of a pack by hand, a dozen lines of batched torch."""
    stacked, _ = stack_module_state(modules(size, width))
    w1, b1, w2, b2 = (value.detach().contiguous() for value in stacked.values())  # [R, W, 100], [R, W], [R, 2, W], [R, 2]
    strings = Strings(pack(size, width))

    @torch.no_grad()
    def advance() -> Tensor:
        signs, classes = strings.next()
        x = signs[:, 0]
        hidden = torch.baddbmm(b1[..., None], w1, x[..., None])[..., 0].relu_()
        logs = torch.baddbmm(b2[..., None], w2, hidden[..., None])[..., 0].log_softmax(-1)
        d = logs.exp()
        d.scatter_add_(1, classes, torch.full_like(classes, -1.0, dtype=d.dtype))
        g = torch.bmm(d[:, None], w2)[:, 0] * (hidden > 0)
        w2.baddbmm_(d[..., None], hidden[:, None], alpha=-LR)
        b2.sub_(d, alpha=LR)
        w1.baddbmm_(g[..., None], x[:, None], alpha=-LR)
        b1.sub_(g, alpha=LR)
        return -logs.gather(1, classes).T

    return advance


def students(size: int, width: int) -> Pack:
    """The same models as students. Each has a teacher of its own, of width TEACHER and with fresh weights."""
    plain = pack(size, width)
    own = plain.replicates[0].condition
    teacher = replace(own, model=MLP(TEACHER))
    condition = after(teacher, Link(labels="teacher"), own.task, own.model, own.train, "the student")
    return replace(plain, replicates=tuple(replace(replicate, condition=condition) for replicate in plain.replicates), stage=1)


def ordinary(one: Pack) -> Advance:
    """The harness without its compiled loop."""
    training = Training(one, CPU)
    training.loop = None

    def advance() -> Tensor:
        training.advance()
        return training.recent[training.step % 100][None].clone()

    return advance


def compiled(one: Pack) -> Advance:
    """The compiled loop as a study has it. ValueError where it can't be compiled."""
    import harness.training.sgd_loop as sequential

    if said := sequential.missing():
        raise ValueError(f"there is nothing to measure: {said}")
    training = Training(one, CPU)
    loop = training.loop
    assert loop is not None

    def advance() -> Tensor:
        losses = loop.advance(training.step, sequential.until(one, training.step))
        training._took(losses)
        return losses

    return advance


def ways(size: int, width: int) -> dict[str, tuple[int, Advance]]:
    """By name of a variant: its number of replicates, and the function that takes their steps."""
    return {
        "plain PyTorch loop": (1, plain(width)),
        f"vmap, R = {size}": (size, mapped(size, width)),
        f"batched by hand, R = {size}": (size, batched(size, width)),
        f"packed, ordinary loop, R = {size}": (size, ordinary(pack(size, width))),
        f"packed, compiled loop, R = {size}": (size, compiled(pack(size, width))),
        "packed, compiled loop, R = 1": (1, compiled(pack(1, width))),
        f"{_STUDENT}, R = {size}": (size, compiled(students(size, width))),
    }


def rate(size: int, advance: Advance, seconds: float) -> float:
    """Replicate-steps per second of processor time of this thread."""
    steps, start = 0, time.thread_time()
    while (spent := time.thread_time() - start) < seconds:
        steps += len(advance())
    return steps * size / spent


def losses(advance: Advance, steps: int) -> Tensor:
    """Losses of the first steps, [S, R]."""
    taken, have = [], 0
    while have < steps:
        taken.append(advance())
        have += len(taken[-1])
    return torch.cat(taken)[:steps]


def furthest(size: int, width: int, steps: int) -> dict[str, float]:
    """Largest relative difference of a loss from the plain loop's over the first steps, of the first replicate and the last; of students
    from the ordinary loop's, whose losses are divergences: a difference from 0.1 below that."""
    expected = torch.stack([losses(plain(width, seed), steps)[:, 0] for seed in (0, size - 1)], dim=-1).double()
    taught = losses(ordinary(students(size, width)), steps).double()[:, [0, size - 1]]
    apart = {}
    for name, (count, advance) in ways(size, width).items():
        got = losses(advance, steps).double()[:, [0, count - 1]]
        theirs = taught if name.startswith(_STUDENT) else expected if count == size else expected[:, [0, 0]]
        apart[name] = float(((got - theirs).abs() / theirs.clamp(min=0.1 if theirs is taught else 0)).max())
    return apart


def measure(size: int, width: int, rounds: int, seconds: float, steps: int = CHECKED) -> list[Row]:
    """One row per variant: its rates, its ratios to the plain loop by round, and how far its losses are from the plain loop's."""
    apart = furthest(size, width, steps)
    tried = ways(size, width)
    for count, advance in tried.values():
        rate(count, advance, seconds / 10)  # to warm up
    rates: dict[str, list[float]] = {name: [] for name in tried}
    for _ in range(rounds):
        for name, (count, advance) in tried.items():
            rates[name].append(rate(count, advance, seconds))
    base = next(iter(rates.values()))
    return [
        {
            "way": name,
            "rates": rates_of_way,
            "rate": statistics.median(rates_of_way),
            "ratio": statistics.median(own / theirs for own, theirs in zip(rates_of_way, base, strict=True)),
            "apart": apart[name],
        }
        for name, rates_of_way in rates.items()
    ]


def table(rows: list[Row]) -> str:
    return markdown_table(
        ("way", "replicate-steps/s and core", "µs a replicate-step", "× plain", "losses apart, relative"),
        [
            [row["way"], number(row["rate"]), number(1e6 / row["rate"]), ratio(row["ratio"]), f"{row['apart']:.1e}"]
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="replicates of a pack")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a way in a round")
    parser.add_argument("--out", help="folder for batch_one.md and batch_one.parquet; nothing is written without it")
    chosen = parser.parse_args()
    header = conditions("cpu", "fp32")
    prepare(CPU)
    rows = measure(chosen.size, chosen.width, chosen.rounds, chosen.seconds)
    gain = next(row["ratio"] for row in rows if row["way"].startswith(f"packed, compiled loop, R = {chosen.size}"))
    text = "\n\n".join(
        [
            f"# Batch-1 SGD, width {chosen.width}",
            f"`python -m benchmarks.batch_one --size {chosen.size} --width {chosen.width} --rounds {chosen.rounds} "
            f"--seconds {chosen.seconds:g}`. {header} Processor time of one thread. Losses: over the first {CHECKED:,} steps.",
            table(rows),
            f"The compiled loop is at {gain:.1f} times the plain loop (bound {TARGET:g}: {'held' if gain >= TARGET else 'missed'}).",
        ]
    )
    show(chosen.out, "batch_one", text, rows)


if __name__ == "__main__":
    main()
