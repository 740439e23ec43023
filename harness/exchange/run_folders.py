"""Folders that other tools leave behind, as a table with one row per run or per step: W&B's offline runs, and TensorBoard's event files."""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.exchange.exported_states import STATE
from harness.experiments.entries import BadResult
from harness.experiments.event_files import EVENTS, scalars_of
from harness.study.config import nearest
from results.dashboards.offline_runs import PATTERN, offline_run
from results.errors import StudyError
from results.plain_values import Options, Row, Tree
from results.rows.plural import first_of

_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*?)=([^,/_ ]+)")  # in the name of a folder: lr=0.1_seed=3


def read_folder(path: Path, metrics: Iterable[str], step: str, say: Callable[[str], None]) -> pa.Table:
    """The runs below a folder as a table: their settings, and of their numbers those that are named, the last ones or those by `step`.

    A W&B run that failed or has not ended is named, and has a row without numbers. StudyError where there are no runs, or no such number.
    """
    wandb_files = sorted(file for file in path.rglob(PATTERN) if not file.parent.is_symlink())  # latest-run is a link
    if wandb_files:
        rows = _of_wandb(wandb_files, step, say)
    elif folders := sorted({_run_folder(file.parent, path) for file in path.rglob(EVENTS)}):
        rows = [(_settings_of(folder.relative_to(path)), _by_step(_scalars(folder), step)) for folder in folders]
    else:
        raise StudyError(
            f"{path} holds no runs: a folder with W&B's run-….wandb or TensorBoard's {EVENTS} files can be imported"
        )
    wanted = [*metrics, *([step] if step else [])]
    names = sorted({name for _, values in rows for entry in values for name in entry})
    for name in wanted:
        refuse_direction(name, names)
        if name not in names:
            hint = nearest(name, names) or f"; they have {', '.join(names)[:300]}"
            raise StudyError(f"the runs in {path} have no number {name!r}{hint}")
    settings = list(dict.fromkeys(name for run_settings, _ in rows for name in run_settings))
    rows_read = [own | {name: entry.get(name) for name in wanted} for own, values in rows for entry in values]
    return pa.table(
        {name: _column([row.get(name) for row in rows_read], name, path) for name in dict.fromkeys([*settings, *wanted])}
    )


def refuse_direction(metric: str, names: Collection[str]) -> None:
    """StudyError for a metric such as accuracy=up, of which `names` holds the part before the sign alone."""
    column, _, better = metric.rpartition("=")
    if better and metric not in names and column in names:
        raise StudyError(
            f"--metric {metric}: better values are higher or lower ones, so write {column}=higher or {column}=lower"
        )


Rows = list[tuple[Row, list[Row]]]


def _of_wandb(files: Iterable[Path], step: str, say: Callable[[str], None]) -> Rows:
    """Settings and numbers of each run; where some have not finished, with W&B's State, those last and without numbers."""
    runs, unfinished, left = Rows(), Rows(), []
    for file in files:
        run = offline_run(file)
        if run.status == 0:
            runs.append((run.config, _by_step(run.history, step) if step else [run.summary]))
        else:
            unfinished.append((run.config | {STATE: "running" if run.status is None else "failed"}, [{}]))
            left.append(f"{file.parent.name} ({'has not ended' if run.status is None else f'exit status {run.status}'})")
    if not runs:
        raise StudyError("none of the W&B runs has ended with exit status 0: there is nothing to import")
    if left:
        say(f"not finished: {first_of(left, 5)}")
    if not left or any(STATE in config for config, _ in runs):  # as a setting
        return runs
    return [({**config, STATE: "finished"}, entries) for config, entries in runs] + unfinished


def _by_step(entries: Iterable[Options], step: str) -> list[Row]:
    """The entries of each step merged into one, in their order; without a step all of them, so that the last value of each name stays."""
    steps: dict[Any, Row] = {}
    for entry in entries:
        steps.setdefault(entry.get(step) if step else None, {}).update(entry)
    return [entry for at, entry in steps.items() if at is not None or not step]


def _scalars(folder: Path) -> list[Row]:
    try:
        return list(scalars_of(folder))
    except BadResult as error:
        raise StudyError(f"{folder}: {error}") from error


def _run_folder(folder: Path, root: Path) -> Path:
    """The folder of the run that a folder of event files belongs to: the last one whose name says a setting. Writers of several series, as
    of training and validation, make folders within it."""
    within = folder
    while within != root and not _SETTING.search(within.name):
        within = within.parent
    return folder if within == root else within


def _settings_of(folder: Path) -> Tree:
    """What the names of folders say of a run, as in lr=0.1/seed=3 or lr=0.1_seed=3: numbers where they read as such."""
    settings = dict(_SETTING.findall(folder.as_posix()))
    if not settings:
        raise StudyError(
            f"the folder {folder} of a run does not say its settings: name it as in lr=0.1_seed=3, or write the runs as CSV"
        )
    return {name: _number(text) for name, text in settings.items()}


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _column(values: list[Any], name: str, path: Path) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise StudyError(f"{name} is {' and '.join(kinds)} in the runs of {path}: give it one kind of values") from error
