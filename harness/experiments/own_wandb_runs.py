"""W&B runs that a script makes of its own, recognised by the files that W&B writes for every run, offline and online.

A script is given a folder of its own for them, so that they are known to be those of one replicate. Once it has ended they move to where
W&B's files are expected: WANDB_DIR of this process, or the current folder.
"""

import os
import shutil
from pathlib import Path

from results.errors import output_errors


def keep_own_runs(root: Path) -> list[str]:
    """Move the folders of all W&B runs below `root` to W&B's own folder, and return the ids of these runs. StudyError where that fails."""
    place = Path.cwd() / os.environ.get("WANDB_DIR", "") / "wandb"
    found = []
    for folder, _, files in sorted(os.walk(root)):
        for file in files:
            if file.startswith("run-") and file.endswith(".wandb"):
                with output_errors(place):
                    _move(Path(folder), place)
                found.append(file.removeprefix("run-").removesuffix(".wandb"))
    return found


def _move(run: Path, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    target, number = place / run.name, 1
    while target.exists():  # a script may give all of its runs one id
        number += 1
        target = place / f"{run.name}-{number}"
    shutil.move(run, target)
