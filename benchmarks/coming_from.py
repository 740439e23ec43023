"""The study of docs/guides/coming-from.md in every tool of that page that is installed: lines, times and whether the accuracies are equal.

    python -m benchmarks.coming_from

Each runs from its files in `examples/coming_from`, copied into an empty folder. A W&B sweep needs W&B's server, so only its lines are
counted.
"""

import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from results.markdown_table import markdown_table

ROOT = Path(__file__).parents[1]
FILES = ROOT / "examples" / "coming_from"
_ROW = re.compile(r"^\d+\s+(0\.\d+)\s+(\d+)\s+(0\.\d+)$", re.MULTILINE)  # of Tune's data frame
_TUPLE = re.compile(r"\((0\.\d+), (\d+), (?:np\.float64\()?(0\.\d+)")
Accuracies = dict[tuple[float, int], float]


@dataclass(frozen=True)
class Tool:
    """files: what a person writes beside the training. read: the accuracies by learning rate and seed, from the folder and the output."""

    name: str
    files: tuple[str, ...]
    command: tuple[str, ...]
    read: Callable[[Path, str], Accuracies]
    needs: str = "sklearn"


def _of_files(folder: Path, said: str) -> Accuracies:
    lines = {path.stem: json.loads(path.read_text()) for path in (folder / "out").iterdir()}
    return {(float(name.split("-")[0]), int(name.split("-")[1])): line["accuracy"] for name, line in lines.items()}


def _of_output(pattern: re.Pattern[str]) -> Callable[[Path, str], Accuracies]:
    return lambda folder, said: {(float(lr), int(seed)): float(value) for lr, seed, value in pattern.findall(said)}


def _of_report(study: str) -> Callable[[Path, str], Accuracies]:
    def read(folder: Path, said: str) -> Accuracies:
        with (folder / "runs" / study / "report" / "replicates.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        return {(float(row["condition"].partition("=")[2]), int(row["seed"])): float(row["accuracy"]) for row in rows}

    return read


_RUN = (sys.executable, "-m", "launch", "run")
TOOLS = (
    Tool("shell loop", ("loop.sh",), ("bash", "loop.sh"), _of_files),
    Tool("Ray Tune", ("with_tune.py",), (sys.executable, "with_tune.py"), _of_output(_ROW)),
    Tool("exca", ("with_exca.py",), (sys.executable, "with_exca.py"), _of_output(_TUPLE), "exca"),
    Tool("here, the script", ("study.yaml",), (*_RUN, "study.yaml", "--allow-command", "wandb=off"), _of_report("rates")),
    Tool(
        "here, a function",
        ("function.yaml", "measured.py"),
        (*_RUN, "function.yaml", "--allow-import", "measured", "wandb=off"),
        _of_report("rates-function"),
    ),
)


def lines_of(*names: str) -> int:
    return sum(len((FILES / name).read_text().splitlines()) for name in names)


def measured(tool: Tool) -> tuple[float, Accuracies]:
    """Seconds from the command to its end, and the accuracies."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(FILES, Path(place) / "study"))
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        if "with_tune.py" in tool.files:
            environment["RAY_ADDRESS"] = "local"  # no cluster that someone else has started
        began = time.monotonic()
        done = subprocess.run(tool.command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        if done.returncode:
            raise RuntimeError(f"{tool.name} ended with {done.returncode}: {done.stderr[-2000:]}")
        return seconds, tool.read(folder, done.stdout)


def main() -> None:
    rows: list[list[str | int]] = [
        ["W&B sweep", lines_of("sweep.yaml", "train_wandb.py"), "–", "not run: it needs W&B's server"]
    ]
    expected: Accuracies = {}
    for tool in TOOLS:
        if importlib.util.find_spec(tool.needs) is None:
            rows.append([tool.name, lines_of(*tool.files), "–", "not run: not installed"])
            continue
        seconds, accuracies = measured(tool)
        expected = expected or accuracies
        # a data frame prints six digits
        equal = accuracies.keys() == expected.keys() and all(
            abs(accuracies[key] - value) < 1e-6 for key, value in expected.items()
        )
        said = f"{len(accuracies)} accuracies, {'equal' if equal else 'NOT equal'} to the loop's"
        rows.append([tool.name, lines_of(*tool.files), f"{seconds:.0f}", said])
        print(rows[-1], flush=True)
    print(markdown_table(("tool", "lines", "seconds", "results"), rows))


if __name__ == "__main__":
    main()
