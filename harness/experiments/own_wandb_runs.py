"""W&B runs that a script makes of its own, recognised by the files that W&B writes for every run, offline and online.

A script is given a folder of its own for them, so that they are known to be those of one replicate. Once it has ended they move to where
W&B's files are expected: WANDB_DIR of this process, or the current folder.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from harness.experiments.entries import BadResult
from results.dashboards.offline_runs import offline_run
from results.errors import output_errors


def hand_over_settings(folder: Path) -> None:
    """Link W&B's own settings into the folder of a script, such as those that `wandb offline` writes."""
    settings = _place() / "settings"
    if settings.is_file():
        (folder / "wandb").mkdir(exist_ok=True)
        (folder / "wandb" / "settings").symlink_to(settings)


def keep_own_runs(folder: Path) -> list[str]:
    """Move the folders of all W&B runs below `folder` to W&B's own, and return the ids of these runs. StudyError where that fails."""
    place, files = _place(), _files(folder)
    for file in files:
        with output_errors(place):
            _move(file.parent, place)
    return [file.stem.removeprefix("run-") for file in files]


def values_of_run(folder: Path) -> list[dict[str, Any]]:
    """What the one W&B run below a folder has logged, by W&B's steps; nothing where there is no run. BadResult for several."""
    files = _files(folder)
    if len(files) > 1:
        raise BadResult(f"the script made {len(files)} W&B runs, and the metrics of one are read: log into one")
    entries = []
    for run in map(offline_run, files):
        if run.status is None:
            raise BadResult("the script's W&B run has not ended: call its finish(), or end the script without os._exit")
        history = [entry | {"step": entry.get("_step")} for entry in run.history]
        logged = {name for entry in history for name in entry}
        summary = {name: value for name, value in run.summary.items() if name not in logged}
        last = {"step": history[-1]["step"]} if history else {}
        entries += [*history, *([last | summary] if summary else [])]
    return [{name: value for name, value in entry.items() if not name.startswith("_")} for entry in entries]


def _place() -> Path:
    """W&B's own folder of this process."""
    return Path.cwd() / os.environ.get("WANDB_DIR", "") / "wandb"


def _files(folder: Path) -> list[Path]:
    """W&B's own file of every run below a folder; links are not followed, such as that to the latest run."""
    return sorted(
        Path(place, file)
        for place, _, files in os.walk(folder)
        for file in files
        if file.startswith("run-") and file.endswith(".wandb")
    )


def _move(run: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    target, number = place / run.name, 1
    while target.exists():  # a script may give all of its runs one id
        number += 1
        target = place / f"{run.name}-{number}"
    shutil.move(run, target)
