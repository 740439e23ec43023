"""The tables of the throughput benchmark."""

import math
from collections.abc import Sequence

from benchmarks.cases import CASES
from benchmarks.floor import PEAK, needed_flop, needed_step
from benchmarks.tables import number, ratio
from results.markdown_table import markdown_table
from results.plain_values import Row

_STUDY = 100  # replicates of the study whose start-up is counted
_COLUMNS = ("plain needed", "x-transformers", "vmap full", "vmap needed", "packed full", "packed needed")


def complete(rows: Sequence[Row], peak: float | None, steps: int) -> list[Row]:
    """The rows with needed FLOP a step, FLOP/s, utilisation, µs a replicate-step, the floor model and the hours of a study."""
    completed = []
    for row in rows:
        case = CASES[row["case"]]
        model = needed_step(case)
        flop, rate = needed_flop(case), row["rate"]
        top = peak or (PEAK if row["device"] == "cuda" and row["precision"] == "bf16" else None)
        completed.append(
            row
            | {
                "needed_flop": flop,
                "flop_s": rate and flop * rate,
                "utilisation": flop * rate / top if rate and top else None,
                "us": rate and 1e6 / rate,
                "floor_eager_us": model and model.eager_us,
                "floor_fused_us": model and model.fused_us,
                "study_h": study_hours(row, steps),
            }
        )
    return completed


def study_hours(row: Row, steps: int) -> float | None:
    """Hours of 100 replicates, start-up of every process and building of every pack included; None where a pack holds more.

    One process per seed starts for every replicate; a process of packs starts once and builds each.
    """
    if not row["rate"] or row["size"] > _STUDY:
        return None
    units = math.ceil(math.ceil(_STUDY / row["size"]) / row["processes"])  # trainings in a row
    training_s = steps * row["size"] / (row["rate"] / row["processes"])
    if row["variant"].startswith(("packed", "vmap")):
        return (row["startup_s"] + (units - 1) * row["build_s"] + units * training_s) / 3600
    return units * (row["startup_s"] + training_s) / 3600


def text(rows: Sequence[Row], header: str, steps: int) -> str:
    """The whole page as Markdown."""
    parts = [
        "# Throughput of training",
        header,
        "## Against the plain model in full",
        "The first column of numbers is in replicate-steps/s, the others are medians over rounds of a round's ratio to it. R is of vmap "
        "and packed; the last column is what `pack.size: auto` chooses, in the row of its R, against the better of the two plain "
        "models. Of the MLPs the needed position is the only one that is computed, so the plain model is that. A dash: see the notes.",
        _summary(rows),
        "## Every row",
        f"MFU counts only the operations that the loss needs. Start-up is until the first step is done, build the part of it that a "
        f"further pack pays. The study is {_STUDY} replicates of {steps:,} steps. Floor: the model of an H200 with needed positions, "
        "eager and fused, a replicate-step.",
        _every(rows),
    ]
    notes: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        who = f"{row['variant']} (R = {row['size']}, {row['processes']} processes)"
        for note in ([row["note"]] if row["note"] else []) + [f"warned: {said}" for said in row["warnings"]]:
            notes.setdefault((row["case"], note), []).append(who)
    lines = [f"- {case}: {note}: {', '.join(who)}." for (case, note), who in notes.items()]
    return "\n\n".join([*parts, "## Notes", "\n".join(lines) if lines else "Everything ran, without a warning."])


def _summary(rows: Sequence[Row]) -> str:
    table = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        least = min(row["processes"] for row in own)
        by = {(row["variant"], row["size"]): row for row in own if row["processes"] == least}
        base = by.get(("plain full", 1)) or {}
        without_full = base.get("rate") is None  # then needed positions are the one form there is
        base = by.get(("plain needed", 1), base) if without_full else base
        column = "of_needed" if without_full else "of_full"
        for size in sorted({size for variant, size in by if variant.startswith(("vmap", "packed")) and size}) or [1]:
            cells = []
            for variant in _COLUMNS:
                row = by.get((variant, 1 if variant in ("plain needed", "x-transformers") else size))
                cells.append(ratio(row[column]) if row is not None else None)
            auto = next((row for row in own if row["auto"] and row["size"] == size), None)
            last = None if auto is None else ratio(auto["of_best"])
            table.append([case, size, number(base.get("rate")), *cells, last])
    return markdown_table(("case", "R", "plain, /s", *_COLUMNS, "auto / best plain"), table)


def _every(rows: Sequence[Row]) -> str:
    header = (
        "case",
        "variant",
        "R",
        "processes",
        "replicate-steps/s",
        "µs",
        "floor µs",
        "needed GFLOP/s",
        "MFU",
        "GB a process",
        "start-up s",
        "build s",
        "study h",
    )
    table = []
    for row in rows:
        if row["rate"] is None:
            continue
        floor = row["floor_eager_us"]
        table.append(
            [
                row["case"],
                row["variant"] + (" (auto)" if row["auto"] else ""),
                row["size"],
                row["processes"],
                number(row["rate"]),
                number(row["us"]),
                floor and f"{number(floor)} / {number(row['floor_fused_us'])}",
                number(row["flop_s"] / 1e9),
                None if row["utilisation"] is None else f"{row['utilisation']:.1%}",
                number(row["memory"] / 1e9),
                number(row["startup_s"], 2),
                number(row["build_s"], 2),
                number(row["study_h"]),
            ]
        )
    return markdown_table(header, table)
