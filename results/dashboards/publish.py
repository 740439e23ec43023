"""Publish a study on Weights & Biases: one run, or more if asked for, made from the Parquet rows and again at any time.

The only module that imports `wandb`. While a study trains, a separate process keeps its run open (`results.dashboards.live_process`).
Offline, the default everywhere, nothing is sent. `results.dashboards.dashboard_rows` makes the runs.
"""

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from results.dashboards.dashboard_rows import Run, rows_of, runs_of
from results.errors import StudyError, output_errors
from results.report.plots.figure_files import png
from results.store.filesystem import write_local
from results.store.tables import Store

MODES = ("off", "offline", "online")
PAUSE_S = 0.5  # time between the starts of two runs online: W&B limits the requests of a project
INIT_S = 60.0  # most time that W&B may take to answer when a run starts
_LIVE_LINES = 10**6  # W&B's own steps below this are lines of a live run: one line per minute for two years


class LiveRun:
    """The run of a study while it trains; `publish` then fills and closes it."""

    def __init__(self, mode: str, store: Store, run: Run, directory: str | os.PathLike[str] | None = None):
        """Open it. StudyError where W&B refuses; offline, the study's earlier offline runs are removed, as in `publish`."""
        folder = _folder(store, directory)
        if mode == "offline":
            _remove_offline_runs(folder, store.study)
        self.mode = mode
        with _refusals(mode):
            self.open_run = _start(mode, folder, run)
            self.open_run.define_metric("live/*", step_metric="live/minutes")

    def log(self, values: Mapping[str, float]) -> None:
        with _refusals(self.mode):
            self.open_run.log(dict(values))

    def close(self) -> None:
        with _refusals(self.mode):
            self.open_run.finish()


def publish(
    store: Store,
    mode: str,
    directory: str | os.PathLike[str] | None = None,
    runs: str = "study",
    say: Callable[[str], None] = lambda line: None,
    live: LiveRun | None = None,
    written: Callable[[], None] = lambda: None,
) -> str | None:
    """Publish the W&B runs of a study; returns the folder (offline) or address (online) of the study's own run, None when off.

    runs: study (exactly one), condition (one more for each condition) or replicate (one more for each replicate, refused above 1,000). Run
    ids follow from the study, its newest manifest and the keys, so publishing again replaces a run.
    Online the run is resumed. Nothing is sent where it says the same already; else tables and summary are replaced, and lines of history
    are never sent twice. Quantiles by step are a table until every planned replicate has ended, and history from then on.
    Offline runs lie in `directory`/wandb, by default in the study's folder of a local store, or in the current folder; earlier offline runs
    of the study are removed there, but online only once all is sent: W&B may refuse. W&B's own process writes the file's end, at the
    latest when this process exits, and sends again what was refused (429) or lost.
    live: the study's own run where it is open already; it is closed. written: called after each run.
    Raises ValueError for an unknown mode, a study without a manifest, too many runs and where W&B refuses.
    """
    if mode not in MODES:
        raise StudyError(f"wandb={mode!r} is no way to publish: use one of {', '.join(MODES)}")
    if mode == "off":
        return None
    rows = rows_of(store)
    planned = runs_of(store, runs, rows)
    first = next(planned)
    folder, own = _folder(store, directory), None if live is None else Path(live.open_run.dir).parent
    if mode == "offline":
        _remove_offline_runs(folder, store.study, own)
    keep_history = mode == "offline" or rows.complete
    if live is None:
        where, count, started = _write_run(mode, folder, first, keep_history), 1, time.monotonic()
    else:
        with _refusals(mode), live.open_run as open_run:
            where, count, started = _fill(mode, open_run, first, keep_history), 1, time.monotonic()
    written()
    for run in planned:
        if mode == "online":
            time.sleep(max(0.0, started + PAUSE_S - time.monotonic()))
        started = time.monotonic()
        _write_run(mode, folder, run, keep_history or run.kind == "replicate")
        count += 1
        written()
        if count % 100 == 0:
            say(f"W&B: {count} runs written")
    if mode == "online":
        _remove_offline_runs(folder, store.study, own)
    return where


def sync_line(mode: str, where: str | None, study: str, runs: str) -> list[str]:
    """The line to print that says how to send the offline runs of a study, its own at `where`; none for other modes."""
    if mode != "offline" or not where:
        return []
    if runs == "study":
        return [f"  to send it: wandb sync {shlex.quote(where)}"]
    return [f"  to send them: wandb sync {shlex.quote(str(Path(where).parent))}/offline-run-*-{study}-*"]


def _folder(store: Store, directory: str | os.PathLike[str] | None) -> Path:
    """Make the folder that W&B's own folder, `wandb`, is to lie in."""
    with output_errors("the current folder"):
        folder = Path(directory if directory is not None else store.path() if store.is_local else os.getcwd())
    with output_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if (folder / "wandb").is_symlink():  # runs are removed below
        raise StudyError(f"{folder / 'wandb'} is a symbolic link: remove it")
    if (folder / "wandb").is_file():
        raise StudyError(f"{folder / 'wandb'} is a file, and W&B writes into a folder of this name: remove it")
    return folder


@contextmanager
def _refusals(mode: str) -> Iterator[None]:
    """Raise an error of W&B as a StudyError."""
    import wandb

    try:
        yield
    except wandb.errors.Error as error:
        reason = " ".join(str(error).split())
        mend = (
            "log in with `wandb login`, or write the run offline, with wandb=offline of `manyseeds run` or --mode offline of "
            "`manyseeds publish`"
        )
        if "project name" in reason:
            mend = f"change WANDB_PROJECT = {project()!r}, then publish them with `manyseeds publish`"
        elif mode == "offline":
            mend = "correct that, then publish them with `manyseeds publish`"
        raise StudyError(f"W&B refused the run ({reason}); the results are in the store: {mend}") from error


def _start(mode: str, folder: Path, run: Run) -> Any:
    """Open a W&B run. With create_new, a run that the caller has open stays as it is."""
    if mode == "offline":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read on import; nothing may leave the machine
    import wandb

    _leave_removed_folder(folder)
    settings = wandb.Settings(
        mode="offline" if mode == "offline" else "online",
        init_timeout=INIT_S,
        console="off",
        silent=True,
        save_code=False,
        disable_code=True,
        disable_git=True,
        disable_job_creation=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    return wandb.init(
        project=project(),
        name=run.name,
        id=run.id,
        group=run.group,
        job_type=run.kind,
        dir=folder,
        config=run.config,
        tags=run.tags,
        notes=run.notes,
        resume="allow" if mode == "online" else None,
        reinit="create_new",
        settings=settings,
    )


def _leave_removed_folder(folder: Path) -> None:
    """Go to `folder` if the current folder was removed since this process began: W&B asks for it at the start of a run."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(folder)


def _write_run(mode: str, folder: Path, run: Run, with_history: bool) -> str:
    with _refusals(mode), _start(mode, folder, run) as open_run:
        return _fill(mode, open_run, run, with_history)


def _fill(mode: str, open_run: Any, run: Run, with_history: bool) -> str:
    """Write everything that a run holds; returns where it is then."""
    import wandb

    content = _digest(run, with_history)
    if open_run.resumed and open_run.config.get("content") == content:  # all of it is there
        return str(open_run.url)
    open_run.define_metric("step")
    open_run.define_metric("*", step_metric="step")
    if with_history:
        sent = open_run.starting_step  # a run that is resumed has its lines
        for step, values in run.history:
            if _LIVE_LINES + step >= sent:
                open_run.log({"step": step} | values, step=_LIVE_LINES + step, commit=True)
    line: dict[str, Any] = {name: wandb.Table(columns=list(columns), data=data) for name, (columns, data) in run.tables.items()}
    line |= {name: _image(wandb, figure) for name, figure in run.figures.items()}
    if run.report is not None:
        line["report"] = wandb.Html(run.report, inject=False, data_is_not_path=True)
    if line:
        open_run.log(line)
    if run.parquet:
        artifact = wandb.Artifact(run.name, type="tables", description="The rows that count, one Parquet file per table")
        folder = Path(open_run.dir).parent / "tables"  # of the run, so that nothing is left elsewhere when it is removed
        for name, data in run.parquet.items():
            write_local(str(folder / f"{name}.parquet"), data)
            artifact.add_file(str(folder / f"{name}.parquet"), policy="immutable", skip_cache=True)
        open_run.log_artifact(artifact)
    if run.summary:
        open_run.summary.update(run.summary)
    open_run.config.update(
        run.config | {"content": content}, allow_val_change=True
    )  # last: whoever stops before sends it all again
    return str(open_run.url if mode == "online" else Path(open_run.dir).parent)


@contextmanager
def connect() -> Iterator[Any]:
    """W&B's public API, for what runs alone can't do, such as workspaces. Raises ValueError in one sentence where it fails."""
    import wandb

    try:
        yield wandb.Api()
    except (wandb.errors.Error, ConnectionError) as error:
        reason = " ".join(str(error).split())
        raise StudyError(f"W&B can't be asked ({reason}): log in with `wandb login`") from error


def project() -> str:
    """The W&B project that runs go to."""
    return os.environ.get("WANDB_PROJECT") or "manyseeds"


def _digest(run: Run, with_history: bool) -> str:
    """The hash of what a run says; figures follow from the tables and are left out."""
    files = {name: hashlib.sha256(data).hexdigest() for name, data in run.parquet.items()}
    said: list[Any] = [run.config, run.history if with_history else [], run.tables, sorted(run.figures), run.summary]
    said += [run.tags, run.notes, run.report, files]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _image(wandb: Any, figure: Any) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(png(figure))) as picture:
        picture.load()
        return wandb.Image(picture)


def _remove_offline_runs(folder: Path, study: str, but: Path | None = None) -> None:
    """Remove the offline runs of a study from `folder`/wandb, except `but`."""
    own = rf"{re.escape(study)}-([0-9a-f]{{1,16}}(-c\d+)?|[0-9a-z]{{1,16}}-s\d+)"
    for run in (folder / "wandb").glob("offline-run-*"):
        if re.fullmatch(rf"offline-run-\d+_\d+-{own}", run.name) and run.resolve() != (but and but.resolve()):
            shutil.rmtree(run)
