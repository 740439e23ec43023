"""Labelled tokens per second of the semiautomata on one core, labelled clauses of LEGO, and strings of the grammars and of parity.

python -m benchmarks.generators [--device cpu] [--rounds 7] [--out benchmarks/results/cpu]
python -m benchmarks.generators --cases --grammars --out benchmarks/results/cpu      # LEGO alone
python -m benchmarks.generators --cases --lego --out benchmarks/results/cpu          # grammars and parity alone

A call draws one batch by the task's `sample`, as a training does: inputs, labels, weights, positions. CPU rates are per second of
processor time of one thread, so that other processes on the machine change them little.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.tables import conditions, number, show
from harness.draw import Draw
from harness.machine.device import finish
from results.markdown_table import markdown_table
from results.plain_values import Row
from tasks.automata.automata import Automaton
from tasks.automata.composition import transition_monoid
from tasks.automata.named_automata import NINETEEN, semiautomaton
from tasks.distillation.derivations import Trees
from tasks.distillation.grammars import NAMES
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity
from tasks.distillation.pcfg import PCFG
from tasks.lego.lego import Lego
from tasks.task import Task

TARGET = 1e7  # labelled tokens per second
SMALL = 4  # words of the small batch: what a batch costs that fills nothing


LEGO = ("C6:5", "C6:160", "S5:5", "S5:10", "S5:20", "S5:40", "S5:160")  # group and length: the trainings and tests of the paper


def seconds(task: "Task | _WithTrees", device: torch.device, words: int, rounds: int) -> list[float]:
    """Seconds of each of `rounds` batches of task.sample(draw, words), after one that is not counted."""
    seeds = torch.tensor([0], device=device)
    times = []
    for step in range(rounds + 1):
        finish(device)
        clock = time.perf_counter if device.type == "cuda" else time.thread_time
        start = clock()
        task.sample(Draw(seeds, step=step), words)
        finish(device)
        times.append(clock() - start)
    return times[1:]


def measure(name: str, device: torch.device, length: int, words: int, rounds: int) -> Row:
    """One row: the rates of each round, of batches of `words` and of `SMALL` words."""
    task, machine = Automaton(name, length=length), semiautomaton(name)
    monoid = transition_monoid(machine)
    large, small = (seconds(task, device, count, rounds) for count in (words, SMALL))
    return {
        "automaton": name,
        "states": len(machine.states),
        "tokens": task.vocabulary,
        "elements": None if monoid is None else len(monoid.states),
        "words": words,
        "length": length,
        "rates": [words * length / time for time in large],
        "small_rates": [SMALL * length / time for time in small],
    }


def measure_lego(case: str, device: torch.device, clauses: int, rounds: int) -> Row:
    """One row: the rates of each round in answers, each of which comes with its predicate, of batches of about `clauses` answers."""
    group, _, length = case.partition(":")
    task = Lego(group, length=int(length))
    sentences = max(1, clauses // task.length)
    large, small = (seconds(task, device, count, rounds) for count in (sentences, SMALL))
    return {
        "group": group,
        "length": task.length,
        "sentences": sentences,
        "rates": [sentences * task.length / time for time in large],
        "small_rates": [SMALL * task.length / time for time in small],
    }


class _WithTrees:
    """A grammar whose sampling keeps the symbols over every token."""

    def __init__(self, task: PCFG):
        self.task = task

    def sample(self, draw: Draw, batch: int) -> Trees:
        return self.task.trees(draw, batch)


def measure_strings(case: str, device: torch.device, strings: int, rounds: int) -> Row:
    """One row: the rates of each round in strings, for a grammar also of strings with their trees (without inputs and weights)."""
    tasks: Row = {"sparse_parity": SparseParity(), "hierarchical_parity": HierarchicalParity()}
    task = tasks[case] if case in tasks else PCFG(case)
    trees = [] if case in tasks else seconds(_WithTrees(task), device, strings, rounds)
    large, small = (seconds(task, device, count, rounds) for count in (strings, SMALL))
    return {
        "task": case,
        "length": task.length,
        "strings": strings,
        "rates": [strings / time for time in large],
        "tree_rates": [strings / time for time in trees],
        "small_rates": [SMALL / time for time in small],
    }


def median(rates: list[float], unit: float = 1e6) -> str | None:
    """The median as a rate per second; None if there are no rates."""
    return number(float(torch.tensor(rates, dtype=torch.float64).median()) / unit) if rates else None


def page(title: str, head: str, header: Sequence[str], cells: list[list[Any]], note: str) -> str:
    return f"# {title}\n\nWritten by `python -m benchmarks.generators`. {head}\n\n{markdown_table(header, cells)}\n\n{note}"


def grammars(cases: list[str], device: torch.device, strings: int, rounds: int, head: str, out: str | None) -> None:
    rows = [measure_strings(case, device, strings, rounds) for case in cases]
    parts = ("rates", "tree_rates", "small_rates")
    cells = [[row["task"], row["length"], *(median(row[part], 1e3) for part in parts)] for row in rows]
    header = ("task", "positions", "10³ strings/s", "with every symbol of the trees", f"in batches of {SMALL} strings")
    note = "A string of a grammar comes with its masks, weights and boundary levels; with the trees, without masks and weights."
    show(out, "generators_strings", page("Speed of grammars and parity", head, header, cells, note), rows)


def lego(cases: list[str], device: torch.device, clauses: int, rounds: int, head: str, out: str | None) -> None:
    rows = [measure_lego(case, device, clauses, rounds) for case in cases]
    cells = [[row["group"], row["length"], row["sentences"], median(row["rates"]), median(row["small_rates"])] for row in rows]
    header = ("group", "length", "sentences", "10⁶ labelled clauses/s", f"in batches of {SMALL} sentences")
    note = "A labelled clause is an answer of five tokens, drawn with the predicate that it follows from."
    show(out, "generators_lego", page("Speed of the LEGO generator", head, header, cells, note), rows)


def automata(cases: list[str], device: torch.device, length: int, words: int, rounds: int, head: str, out: str | None) -> None:
    rows = [measure(name, device, length, words, rounds) for name in cases]
    about, parts = ("automaton", "states", "tokens", "elements"), ("rates", "small_rates")
    cells = [[*(row[name] for name in about), *(median(row[part]) for part in parts)] for row in rows]
    speeds = ("10⁶ labelled tokens/s", f"in batches of {SMALL} words")
    header = ("automaton", "states", "tokens", "elements of its monoid", *speeds)
    missed = [row["automaton"] for row in rows if sorted(row["rates"])[len(row["rates"]) // 2] < TARGET]
    note = f"Below 10⁷ labelled tokens/s: {', '.join(missed) or 'none'}."
    show(out, "generators", page("Speed of the generators", head, header, cells, note), rows)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--length", type=int, default=100, help="tokens of a word")
    parser.add_argument(
        "--words", type=int, default=1024, help="words of a batch: 64 steps of 16, which a training draws at once"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", nargs="*", default=list(NINETEEN), help="names of semiautomata")
    parser.add_argument("--lego", nargs="*", default=list(LEGO), help="GROUP:LENGTH of sentences")
    parser.add_argument("--clauses", type=int, default=2**16, help="labelled clauses of a batch of LEGO sentences")
    parser.add_argument(
        "--grammars", nargs="*", default=[*NAMES, "sparse_parity", "hierarchical_parity"], help="grammars, or parities, by name"
    )
    parser.add_argument(
        "--strings", type=int, default=512, help="strings of a batch of a grammar: what a training draws at once"
    )
    parser.add_argument(
        "--out", help="folder for generators.md, generators_lego.md, generators_strings.md and the same as Parquet"
    )
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    head = conditions(options.device, "none", length=options.length, words=options.words, rounds=options.rounds)
    device = torch.device(options.device)
    if options.cases:
        automata(options.cases, device, options.length, options.words, options.rounds, head, options.out)
    if options.lego:
        further = conditions(options.device, "none", clauses=options.clauses, rounds=options.rounds)
        lego(options.lego, device, options.clauses, options.rounds, further, options.out)
    if options.grammars:
        further = conditions(options.device, "none", strings=options.strings, rounds=options.rounds)
        grammars(options.grammars, device, options.strings, options.rounds, further, options.out)


if __name__ == "__main__":
    main()
