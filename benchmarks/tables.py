"""Pages of results, with their rows as Parquet and a note on the machine that they come from."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from harness.machine.device import describe, resolve
from harness.machine.provenance import code_state


def number(value: float | None, digits: int = 3) -> str | None:
    """The number with so many digits and without an exponent."""
    if value is None:
        return None
    if value == 0:
        return "0"
    places = max(0, digits - 1 - int(f"{value:e}".rpartition("e")[2]))
    return f"{value:,.{places}f}"


def ratio(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}×"


def conditions(device: str, precision: str, **further: Any) -> str:
    """One paragraph on where and how the numbers were taken."""
    commit, dirty = code_state()
    where = resolve(device)
    load = os.getloadavg()[0]
    facts = {
        "device": describe(where),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "precision": precision,
        "code": f"{commit}{' with changes' if dirty else ''}",
        "load before the start": f"{load:.1f}",
    } | further
    return "; ".join(f"{name}: {value}" for name, value in facts.items()) + "."


def write(folder: str, name: str, text: str, rows: Sequence[Mapping[str, Any]] = ()) -> None:
    """<folder>/<name>.md with the tables and, where there are rows, <folder>/<name>.parquet with every row they are of."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(text.rstrip() + "\n")
    if rows:
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), out / f"{name}.parquet")


def show(folder: str | None, name: str, text: str, rows: Sequence[Mapping[str, Any]] = ()) -> None:
    """Print the page, and `write` it where a folder is given."""
    print(text)
    if folder:
        write(folder, name, text, rows)


def add_device(parser: argparse.ArgumentParser, name: str) -> None:
    """The options --device, --precision and --out of a benchmark whose page has this name."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", help=f"folder for {name}.md and {name}.parquet (default: print only)")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), help="default: fp32, on CUDA bf16")


def precision_of(options: argparse.Namespace) -> str:
    """The precision that was chosen, or the default of the device."""
    return options.precision or ("bf16" if options.device == "cuda" else "fp32")
