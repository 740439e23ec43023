"""One replicate by a command: a process with a folder and a log of its own, ended with all that it started; then its metrics are read.

The folder holds links to the study's `sources`, and to the local Python files that they import, under the paths they have in the current
one, and nothing else, so what the command needs is what the key has hashed. It is removed afterwards.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.experiments import supervisor
from harness.experiments.entries import Entry, entries_of
from harness.experiments.metrics_file import results_in
from harness.experiments.own_wandb_runs import hand_over_settings, keep_own_runs
from harness.machine.logs import keep
from harness.planning.pack import Pack, Replicate
from harness.study.experiment import Experiment
from harness.study.foreign_code import imported_files
from results.plain_values import Tree

MOST_LOG = 2**18  # bytes of what a command prints that are kept
TAIL = 400  # characters of the last line of the log that a failure quotes
_POLL_S = 0.1
_MISSING = re.compile(r"No such file or directory: '([^'/][^']*)'")  # of Python's FileNotFoundError, relative to the folder
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "SYSTEMROOT"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_SILENT"),
)
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class ScriptFailed(RuntimeError):
    """A command did not end as it should. kind: of `failures`, such as raised or hung."""

    def __init__(self, message: str, kind: str = "raised"):
        super().__init__(message)
        self.kind = kind


def run_script(pack: Pack, replicate: Replicate, stop_where_asked: Callable[[], None]) -> tuple[list[Entry], list[str]]:
    """The entries of one replicate, and the ids of the W&B runs that the script made. ScriptFailed with the reason and the end of the log;
    whatever `stop_where_asked` raises ends the command first."""
    experiment = replicate.condition.experiment
    if experiment is None:
        raise ValueError(f"{replicate.key} trains: it has no command")
    with tempfile.TemporaryDirectory(prefix="manyseeds-", ignore_cleanup_errors=True) as root:
        folder, log = Path(root) / "run", Path(root) / "log"
        folder.mkdir()
        _link(experiment, Path.cwd(), folder)
        hand_over_settings(folder)
        account = _supervised(experiment, replicate, folder, log, stop_where_asked)
        printed = log.read_bytes().decode(errors="replace")
        keep(printed)
        try:
            _refuse(account, experiment, printed)
            path = folder / experiment.metrics.removeprefix("{folder}/")
            entries = list(entries_of(results_in(path, experiment.metrics, experiment.step, pack.metrics), pack.metrics))
        finally:
            wandb_runs = keep_own_runs(folder)
        return entries, wandb_runs


def environment_of(experiment: Experiment, replicate: Replicate, folder: Path) -> dict[str, str]:
    """What a command sees: the allowed variables of this process, one thread, and names for a W&B run of its own."""
    passed = {name: os.environ[name] for name in (*_PASSED, *experiment.environment) if name in os.environ}
    given = {"MANYSEEDS_SEED": str(replicate.init_seed), "MANYSEEDS_FOLDER": str(folder), "PYTHONUNBUFFERED": "1"}
    name = f"{replicate.condition.name}, seed {replicate.init_seed}"
    named = {"WANDB_RUN_GROUP": replicate.condition.name, "WANDB_NAME": name} | passed
    return named | dict.fromkeys(_THREADS, "1") | given | {"WANDB_DIR": str(folder)}


def _link(experiment: Experiment, here: Path, folder: Path) -> None:
    # folders before what is inside them
    for source in sorted((*experiment.sources, *imported_files(experiment.sources)), key=lambda each: len(Path(each).parts)):
        place = folder / source
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.symlink_to(here / source)


def _supervised(
    experiment: Experiment, replicate: Replicate, folder: Path, log: Path, stop_where_asked: Callable[[], None]
) -> Tree:
    """What the supervisor says of the command. Its standard input stays open as long as this process lives and wants the result."""
    words = experiment.command_for(replicate.init_seed, str(folder))
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    command = [
        sys.executable,
        "-I",
        "-S",
        supervisor.__file__,
        str(log),
        str(MOST_LOG),
        str(experiment.time_limit or 0),
        *words,
    ]
    environment = environment_of(experiment, replicate, folder)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while not select.select([process.stdout], [], [], _POLL_S)[0]:  # until its account comes, or it ends
            stop_where_asked()
    finally:
        process.stdin.close()
        exit_status = process.wait()
    with process.stdout:
        output = process.stdout.read()
    try:
        account: Tree = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise ScriptFailed(f"what watches the command was ended itself (status {exit_status})", "died") from None
    return account


def _refuse(account: Tree, experiment: Experiment, printed: str) -> None:
    """ScriptFailed unless the command ended with status 0."""
    lines = printed.strip().splitlines()
    last = f"; the last it printed: {lines[-1].strip()[-TAIL:]}" if lines else "; it printed nothing"
    status = account["status"]
    if account["reason"] == "missing":
        raise ScriptFailed(account["text"])
    if account["reason"] == "limit":
        raise ScriptFailed(
            f"the command took more than experiment.time_limit = {experiment.time_limit:g} s and was ended{last}", "hung"
        )
    if account["reason"] == "stopped":
        raise ScriptFailed("the command was ended because its driver was")
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        memory = ", as when a machine runs out of memory" if name == "SIGKILL" else ""
        raise ScriptFailed(f"the command was ended by the signal {name}{memory}{last}", "died")
    if status:
        missing = [name for name in _MISSING.findall(printed[-MOST_LOG:]) if name and (Path.cwd() / name).exists()]
        hint = f"; {missing[-1]} is in the study's folder: add it to experiment.sources" if missing else ""
        raise ScriptFailed(f"the command ended with exit status {status}{hint}{last}")
