"""What a pack spends on drawing the strings of its evaluation sets, which a cache on each node could save.

python -m benchmarks.fixed_sets launch/studies/flipflop/quick.yaml [scale=… key=value …] [--size 1]

One row per condition: seconds of a pack of `--size` replicates, and the part of them in which strings of the sets are drawn. Both are
processor time of one thread, so that other processes on the machine change them little. Parts of the sets are drawn and scaled up.
"""

import argparse
import collections
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch

from benchmarks.tables import conditions, number
from harness.machine.device import prepare
from harness.planning.pack import Pack, Replicate, ScoredSet, scored_sets
from harness.study.config import Condition, Study
from harness.study.load import load
from harness.training.evaluate import score, strings
from harness.training.pack_state import Training
from results.markdown_table import markdown_table

_CPU = torch.device("cpu")
_TOKENS = 2**17  # of a set that are drawn to time it


def seconds(run: Callable[[], object], rounds: int = 3) -> float:
    """The median processor time of `rounds` calls, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return sorted(times)[rounds // 2]


def drawn(scored: ScoredSet) -> None:
    """Draw all strings of a set, and drop them as an evaluation does."""
    collections.deque(strings(scored, _CPU), maxlen=0)


def shares(study: Study, condition: Condition, size: int) -> tuple[float, float]:
    """Seconds of a pack, and those in which its sets are drawn: each as often as it is scored."""
    sets = scored_sets(study, condition)
    replicates = tuple(Replicate(f"{seed}", condition, seed, seed, sets) for seed in range(size))
    training = Training(Pack("speed", "", replicates, study.curve_every, {}), _CPU)
    steps = condition.train.steps
    whole, drawing = seconds(training.advance, 15) * steps, 0.0
    for scored in sets:
        part = replace(scored, sequences=min(scored.sequences, max(1, _TOKENS // scored.task.length)))
        times = (1 + (steps - 1) // scored.every if scored.every else 1) * scored.sequences / part.sequences
        drawing += seconds(partial(drawn, part)) * times
        whole += seconds(partial(score, training.model, [part] * size, _CPU, "fp32"), 1) * times
    return whole, drawing


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixed_sets", description=__doc__)
    parser.add_argument("study", help="a study file")
    parser.add_argument("overrides", nargs="*", help="key=value")
    parser.add_argument("--size", type=int, default=1, help="replicates a pack (default: 1, where the share is largest)")
    options = parser.parse_args(arguments)
    study = load(options.study, options.overrides)
    prepare(_CPU)
    rows = []
    for condition in study.conditions:
        whole, drawing = shares(study, condition, options.size)
        rows.append([condition.name, options.size, number(whole), number(drawing), f"{100 * drawing / whole:.2f} %"])
    print(f"# Drawing the evaluation sets of {study.name}\n\n{conditions('cpu', 'fp32', processes=1)}\n")
    print(markdown_table(("condition", "R", "s a pack", "of it drawing", "share"), rows))


if __name__ == "__main__":
    main()
