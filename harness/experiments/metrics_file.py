"""Read the metrics that a script leaves: JSON lines, JSON, CSV, TensorBoard's event files, or a W&B run of its own.

What is no number is left out: a script may log its arguments beside its losses.
"""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.experiments.entries import PLACES, BadResult
from harness.experiments.event_files import scalars_of
from harness.experiments.own_wandb_runs import values_of_run
from results.plain_values import Row
from results.store.manifest import without_twins

MOST_BYTES = 2**26  # of a file


def results_in(path: Path, name: str, step: str = "", declared: Collection[str] = ()) -> Iterator[Any]:
    """The mappings at `path`, a file or a folder that the study calls `name`. BadResult where there are none, or another kind of file.

    step: what the file calls its steps; declared: metrics that the study names, which are kept whatever they are.
    """
    step_name, texts, numbers, kept = step or "step", Row(), set[str](), list[Row]()
    for result in _in_folder(path, name) if name.endswith("/") else _in_file(path, name):
        if not isinstance(result, Mapping):
            yield result  # to be refused
            continue
        places = {"step": _whole(result.get(step_name)), "set": result.get("set"), "count": _whole(result.get("count"))}
        values = {}
        for key, value in result.items():
            if key in (*PLACES, step_name, "") or value is None:  # pandas writes its index under no name
                continue
            if isinstance(value, int | float):
                numbers.add(key)
            else:
                texts[key] = value
            if isinstance(value, int | float) or key in declared:
                values[key] = value
        if values:
            kept.append({place: value for place, value in places.items() if value is not None} | values)
    if mixed := sorted(numbers & texts.keys()):
        raise BadResult(f"{name}: {mixed[0]} is a number in one line and {str(texts[mixed[0]])[:60]!r} in another")
    if not numbers:
        left_out = next((f"; {key} is {str(value)[:60]!r}" for key, value in texts.items()), "")
        raise BadResult(f"{name} holds no number: a run without a result has failed{left_out}")
    if step and not any("step" in result for result in kept):
        raise BadResult(f"{name} holds no {step_name}, which experiment.metrics names as its step")
    yield from _numbered(kept)


def _numbered(results: list[Row]) -> Iterator[Row]:
    """The results; where several of one set have no step, as of folds, they are numbered, so that all of them are kept."""
    lines = Counter(str(result.get("set")) for result in results)
    if any("step" in result for result in results) or max(lines.values()) == 1:
        yield from results
        return
    numbers = Counter[str]()
    for result in results:
        numbers[str(result.get("set"))] += 1
        yield {"step": numbers[str(result.get("set"))]} | result


def _in_folder(path: Path, name: str) -> Iterator[Row]:
    rows = list(scalars_of(path)) or values_of_run(path)
    if not rows:
        raise _nothing(name)
    yield from rows


def _in_file(path: Path, name: str) -> Iterator[Any]:
    if not path.is_file():
        raise _nothing(name)
    if path.stat().st_size > MOST_BYTES:
        raise BadResult(f"{name} has {path.stat().st_size:,} bytes, and at most {MOST_BYTES:,} are read: write fewer lines")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadResult(f"{name} is not UTF-8 at byte {error.start}: open it with encoding='utf-8' in the script") from None
    if path.suffix == ".csv":
        yield from _of_csv(text, name)
        return
    for number, line in enumerate([text] if path.suffix == ".json" else text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line, object_pairs_hook=without_twins)
        except (ValueError, RecursionError) as error:
            where = "" if path.suffix == ".json" else f"line {number} of "
            raise BadResult(f"{where}{name} is not JSON ({error}): {line[:80]!r}") from None
        yield from parsed if isinstance(parsed, list) else [parsed]


def _nothing(name: str) -> BadResult:
    return BadResult(f"the command ended with exit status 0 and left no {name}: a run without a result has failed")


def _of_csv(text: str, name: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    try:
        header = reader.fieldnames = [column.strip() for column in reader.fieldnames or []]
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise BadResult(f"line {reader.line_num} of {name} can't be read: {error}") from None
    if len(set(header)) < len(header):
        raise BadResult(f"{name} has two columns of the same name: rename one")
    if rows and all(isinstance(_cell(column), float) for column in header if column):
        raise BadResult(f"line 1 of {name} has only numbers, and must have the names of the columns: write a header")
    for number, row in rows:
        if None in row or None in row.values():
            raise BadResult(f"line {number} of {name} has another number of values than its header")
        yield {column: value.strip() if column == "set" else _cell(value) for column, value in row.items() if value.strip()}


def _cell(value: str) -> float | bool | str:
    try:
        return float(value)
    except ValueError:
        return {"true": True, "false": False}.get(value.strip().lower(), value)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value
