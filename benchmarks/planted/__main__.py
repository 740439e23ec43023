"""Recall of planted causes, by the protocol of docs/explanation/tracing.md, which was written before the tracer.

python -m benchmarks.planted [--defects 20] [--first 1000] [--seeds 2] [--families …] [--effects …] [--out benchmarks/results/cpu]
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.planted import FAMILIES, expected_recall, plant, plant_literal, recall
from benchmarks.tables import conditions, show
from harness.draw import Draw
from harness.machine.device import prepare
from harness.tracing.flipflop.baselines import last_write, leave_one_out, lime, random_scores
from harness.tracing.flipflop.prompt import prompt_of
from harness.tracing.flipflop.trace import Settings, evidence, searched
from harness.tracing.last_logits import logits_at
from harness.tracing.scores import ridge
from harness.tracing.search import Search
from harness.tracing.subsequence_search import search_tokens
from harness.tracing.tokens import neighbours, perturbed_tokens
from results.markdown_table import markdown_table
from results.plain_values import Row

EFFECTS = (0.1, 0.2, 0.5, 0.8)
LITERAL_STRINGS, LITERAL_TOP = 512, 10
BOUND, STRONG = 0.95, 0.5  # what must hold, from which effect

Rows = list[Row]


def flipflop(family: str, number: int, effect: float, seed: int) -> Iterator[tuple[str, float, float]]:
    """(method, recall at k, share of the k that are decoys) of one defect; baselines that score events have no decoys' share."""
    defect = plant(family, number, effect)
    prompt = prompt_of(defect.task, defect.prompt)
    k = len(defect.truth[0])
    how = Settings(search=Search(size=k))
    given = evidence(defect, prompt, how, seed)
    events = searched(given, prompt, how.search).of(k).events
    yield "trace", recall(events, defect.truth), len(defect.decoys & set(events)) / k
    scored = {
        "random": random_scores(prompt),
        "last write": last_write(prompt),
        "leave one out": leave_one_out(defect, prompt, seed),
        "lime": lime(given),
    }
    for method, scores in scored.items():
        chosen = set(scores.topk(k).indices.tolist())
        yield method, expected_recall(scores, k, defect.truth), len(defect.decoys & chosen) / k


def literal(number: int, effect: float, seed: int) -> Iterator[tuple[str, float, float]]:
    """The same of a literal defect, traced as here and as the paper's code does (hard hits, by the mean, any support)."""
    defect = plant_literal(number, effect)
    choices = neighbours(defect.embeddings, defect.prompt, LITERAL_TOP)
    draw = Draw(torch.tensor([seed]), "evaluate", number)
    strings = perturbed_tokens(defect.prompt, choices, LITERAL_STRINGS, 0.5, draw)
    logits = logits_at(defect, strings, torch.full((len(strings),), strings.shape[1] - 1))
    p = logits.softmax(-1)[:, defect.target]
    sampled = (draw.uniform((len(p),), 1000)[0] < p).double()  # the paper samples one generation a string
    k, truth = len(defect.cause), set(defect.cause)
    ways = {"trace": (p, Search(size=k)), "trace, the paper's code": (sampled, Search(size=k, z=0, support=1))}
    for method, (hit, how) in ways.items():
        tokens = search_tokens(strings, defect.prompt, hit, how)[-1].events
        yield method, len(truth & set(tokens)) / k, 0.0 if set(tokens) <= truth else float("nan")
    scores = ridge(strings == defect.prompt, p)
    places = {frozenset(_places(defect))}
    for method, ranking in (("random", torch.zeros_like(scores)), ("lime", scores)):
        yield method, expected_recall(ranking, k, tuple(places)), len(defect.decoys & set(ranking.topk(k).indices.tolist())) / k


def _places(defect: Any) -> Sequence[int]:
    """The one occurrence of a literal cause."""
    first, second, third = (torch.nonzero(defect.prompt == token)[:, 0].tolist() for token in defect.cause)
    return next((i, j, m) for i in first for j in second for m in third if i < j < m)


def measure(families: Sequence[str], effects: Sequence[float], numbers: Sequence[int], seeds: Sequence[int]) -> Rows:
    """One row per family, effect, defect, corpus seed and method."""
    rows = []
    for family in families:
        for effect in effects:
            for number in numbers:
                for seed in seeds:
                    recalls = literal(number, effect, seed) if family == "literal" else flipflop(family, number, effect, seed)
                    rows += [
                        {"family": family, "effect": effect, "number": number, "seed": seed}
                        | {"method": method, "recall": share, "decoys": decoys}
                        for method, share, decoys in recalls
                    ]
    return rows


def summary(rows: Rows, resamples: int = 9999) -> Rows:
    """Mean recall by family, effect and method, with its bootstrap interval over defects (seeds of one are averaged)."""
    groups: dict[tuple[str, float, str], dict[int, list[float]]] = {}
    for row in rows:
        name = row["family"], row["effect"], row["method"]
        groups.setdefault(name, {}).setdefault(row["number"], []).append(row["recall"])
    out = []
    for (family, effect, method), by_number in groups.items():
        means = np.array([np.mean(values) for values in by_number.values()])
        drawn = np.random.default_rng(0).choice(means, (resamples, len(means))).mean(-1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        out.append(
            {"family": family, "effect": effect, "method": method}
            | {"recall": float(means.mean()), "low": float(low), "high": float(high)}
        )
    return out


def table(summed: Rows) -> str:
    """Families and effects down, methods across."""
    methods = list(dict.fromkeys(row["method"] for row in summed))
    cells = {(row["family"], row["effect"], row["method"]): row for row in summed}
    lines = []
    for family, effect in dict.fromkeys((row["family"], row["effect"]) for row in summed):
        cells_of_row = [cells.get((family, effect, method)) for method in methods]
        shown = [row and f"{row['recall']:.3f} [{row['low']:.2f}, {row['high']:.2f}]" for row in cells_of_row]
        lines.append([family, effect, *shown])
    return markdown_table(["family", "effect", *methods], lines)


def verdict(summed: Rows) -> str:
    """What must hold, and where it does not."""
    strong = [row for row in summed if row["method"] == "trace" and row["effect"] >= STRONG]
    missed = [f"{row['family']} at {row['effect']:g} ({row['recall']:.3f})" for row in strong if row["recall"] < BOUND]
    held = len(strong) - len(missed)
    said = f"Recall of at least {BOUND:.0%} from an effect of {STRONG:g}: held in {held} of {len(strong)} cells"
    return said + (f"; missed: {', '.join(missed)}." if missed else ".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defects", type=int, default=20)
    parser.add_argument("--first", type=int, default=1000, help="number of the first defect; below 1000 for trials")
    parser.add_argument("--seeds", type=int, default=2, help="corpus seeds of a defect")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES, "literal"], choices=[*FAMILIES, "literal"])
    parser.add_argument("--effects", nargs="+", type=float, default=EFFECTS)
    parser.add_argument("--out", help="folder for planted.md and planted.parquet; nothing is written without it")
    chosen = parser.parse_args()
    header = conditions("cpu", "fp32")
    prepare(torch.device("cpu"))
    began = time.process_time()
    numbers = range(chosen.first, chosen.first + chosen.defects)
    rows = measure(chosen.families, chosen.effects, numbers, range(chosen.seeds))
    summed = summary(rows)
    command = f"--defects {chosen.defects} --first {chosen.first} --seeds {chosen.seeds}"
    text = "\n\n".join(
        [
            "# Recall of planted causes",
            f"`python -m benchmarks.planted {command}`. {header} {time.process_time() - began:.0f} s of processor time.",
            verdict(summed),
            "Mean recall at k over defects, with the 95 % bootstrap interval over defects.",
            table(summed),
        ]
    )
    show(chosen.out, "planted", text, rows)


if __name__ == "__main__":
    main()
