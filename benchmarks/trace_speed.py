"""Seconds of tracing one wrong read at T = 512: the corpus, the model's answers, the search, S_rep; --baselines: the other methods too.

python -m benchmarks.trace_speed [--layers 2] [--width 128] [--heads 4] [--length 512] [--baselines] [--out benchmarks/results/cpu]

It runs on one thread, so that processor time is what a quiet core takes. The weights are random, because the time of a trace does not
depend on them. The prompt is a whole string, the longest possible.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

import models
from benchmarks.tables import conditions, number, show
from harness.draw import Draw
from harness.machine.device import prepare
from harness.tracing.flipflop.corpus import perturbed
from harness.tracing.flipflop.hits import hits
from harness.tracing.flipflop.methods import BASELINES, Case, asked
from harness.tracing.flipflop.prompt import prompt_of
from harness.tracing.flipflop.replay import replay
from harness.tracing.flipflop.trace import Evidence, Settings
from harness.tracing.search import search
from results.markdown_table import markdown_table
from results.plain_values import Row
from tasks.flipflop.flipflop import FlipFlop

BOUND = 60.0  # seconds, on two cores; held where one core is enough
_TRACE = ("corpus", "answers", "search", "S_rep")


def measure(
    layers: int, width: int, heads: int, length: int, how: Settings, baselines: bool = False, replays: int = 1024
) -> list[Row]:
    """Rows of part, seconds of wall clock and of processor time."""
    fields = {"layers": layers, "width": width, "heads": heads}
    model = models.build("transformer", Draw(torch.tensor([0]), "init"), vocabulary=5, length=length, **fields)
    task = FlipFlop(length)
    prompt = prompt_of(task, task.sample(Draw(torch.tensor([0])), 1).inputs[0, 0])
    rows: list[Row] = []

    def timed(part: str, work: Callable[[], Any]) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        rows.append({"part": part, "wall": time.perf_counter() - wall, "processor": time.process_time() - processor})
        return result

    corpus = timed("corpus", lambda: perturbed(prompt, how.family, how.strings, how.rate, prompt.draw(0)))
    soft, _ = timed("answers", lambda: hits(model, corpus))
    causes = timed("search", lambda: search(corpus.same, soft, list(range(prompt.query)), how.search))
    timed("S_rep", lambda: replay(model, prompt, causes[0].events, 0, replays))
    case = Case(model, prompt, Evidence(corpus.same, soft, 1.0), 0)
    for method in asked([], model)[0] if baselines else []:
        if method in BASELINES:
            timed(method, lambda method=method: BASELINES[method].scores(case))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("layers", 2), ("width", 128), ("heads", 4), ("length", 512)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--baselines", action="store_true", help="also time the methods that a trace is compared with")
    parser.add_argument("--out", help="folder for trace_speed.md and trace_speed.parquet; nothing is written without it")
    chosen = parser.parse_args()
    header = conditions("cpu", "fp32")
    prepare(torch.device("cpu"))
    how = Settings()
    rows = measure(chosen.layers, chosen.width, chosen.heads, chosen.length, how, chosen.baselines)
    parts = [row for row in rows if row["part"] in _TRACE]
    whole = {"part": "the trace: the four above"} | {name: sum(row[name] for row in parts) for name in ("wall", "processor")}
    listed = [*parts, whole, *(row for row in rows if row["part"] not in _TRACE)]
    sizes = " ".join(f"--{name} {getattr(chosen, name)}" for name in ("layers", "width", "heads", "length"))
    text = "\n\n".join(
        [
            "# Tracing one wrong read",
            f"`python -m benchmarks.trace_speed {sizes}`. {header} {how.strings} strings, beam {how.search.beam}, up to "
            f"{how.search.size} events; S_rep on 4 families of 1,024 strings. Other work shared the machine: read the processor time.",
            markdown_table(
                ["part", "wall, s", "processor, s"],
                [[row["part"], number(row["wall"]), number(row["processor"])] for row in listed],
            ),
            f"The trace takes {whole['processor']:.1f} s of one core (bound {BOUND:.0f} on two: "
            f"{'held' if whole['processor'] <= BOUND else 'not shown'}).",
        ]
    )
    show(chosen.out, "trace_speed", text, rows)


if __name__ == "__main__":
    main()
