"""A study on Weights & Biases: exactly one run, made from the rows that are in Parquet and made again at any time.

The only module that imports `wandb`. Nothing is logged while training; offline (the default everywhere) nothing is sent.
"""

import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.manifest import newest_manifest
from results.statistics import quantile
from results.store import Store, committed, read
from results.summary import METRIC, QUANTILES, raw_rows, replicates_of, summarise

MODES = ("off", "offline", "online")
MOST_ROWS = 10_000  # of the table of replicates: what W&B shows of one table
_LEFT_OUT = ("replicates", "packs", "store")  # the first two are long, and a store's URI can hold credentials


def publish(store: Store, mode: str, directory: str | os.PathLike[str] | None = None) -> str | None:
    """One W&B run of a study; returns its folder (offline) or address (online), None when off.

    The run's name is the study; its id follows from the study and its newest manifest, so publishing again replaces it (online:
    resumes it). Offline runs lie in `directory`/wandb, by default the study's folder in a local store, or the current one. The
    study's earlier offline runs there are removed. W&B's own process writes the file's end, at the latest when this process exits.
    Raises ValueError for an unknown mode, a study without a manifest and where W&B refuses.
    """
    if mode not in MODES:
        raise ValueError(f"wandb={mode!r} is no way to publish: use one of {', '.join(MODES)}")
    if mode == "off":
        return None
    newest = newest_manifest(store)
    if newest is None:
        raise ValueError(f"{store.path('manifests')} has no manifest, so there is no study to publish: run it first")
    manifest_hash, manifest = newest
    finished = committed(store)
    evaluations = read(store, "evaluations", winning=finished)
    known = replicates_of(manifest, finished, evaluations, read(store, "failures"))
    summary, replicates = summarise(manifest, known), raw_rows(manifest, known)
    bands = online_bands(manifest, evaluations)
    config = {name: value for name, value in manifest.items() if name not in _LEFT_OUT}
    config |= {"manifest": manifest_hash, "replicates_planned": replicates.num_rows}
    if replicates.num_rows > MOST_ROWS:
        config["replicates_note"] = f"the table shows the first {MOST_ROWS} of {replicates.num_rows} replicates"

    folder = Path(directory if directory is not None else store.path() if store.is_local else os.getcwd())
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "wandb").is_symlink():  # runs are removed below
        raise ValueError(f"{folder / 'wandb'} is a symbolic link: remove it")
    _remove_offline_runs(folder / "wandb", store.study)
    return _write_run(mode, folder, store.study, f"{store.study}-{manifest_hash[:16]}", config, bands, summary, replicates)


def online_bands(manifest: dict[str, Any], evaluations: pa.Table) -> list[dict[str, Any]]:
    """Error quantiles over replicates by condition, set and step, for the sets that are scored on the way; sorted by step.

    A replicate that had diverged by then counts as infinity. `replicates` is how many have a number or had diverged.
    """
    names = pa.array([name for name, value in manifest["sets"].items() if value.get("every") is not None], pa.string())
    condition_of = {key: manifest["conditions"][index] for key, index, *_ in manifest["replicates"]}
    chosen = (pc.field("metric") == METRIC) & (pc.field("weights") == "raw") & pc.field("set").isin(names)
    pooled = (
        evaluations.filter(chosen)
        .group_by(["key", "stage", "set", "set_hash", "step"])
        .aggregate([("errors", "sum"), ("count", "sum")])
    )
    errors: dict[tuple[int, str, int, str], list[float]] = {}
    for row in pooled.to_pylist():
        condition = condition_of.get(row["key"])
        if condition is None or condition["sets"].get(row["set"], {}).get("hash") != row["set_hash"] or row["count_sum"] == 0:
            continue
        error = math.inf if row["errors_sum"] is None else row["errors_sum"] / row["count_sum"]
        errors.setdefault((row["step"], condition["name"], row["stage"], row["set"]), []).append(error)
    return [
        {"step": step, "condition": condition, "stage": stage, "set": name, "replicates": len(values)}
        | {"diverged": int(np.isinf(values).sum())}
        | {f"error_{label}": quantile(values, q) for label, q in QUANTILES.items()}
        for (step, condition, stage, name), values in sorted(errors.items())
    ]


def _write_run(
    mode: str,
    folder: Path,
    study: str,
    run_id: str,
    config: dict[str, Any],
    bands: list[dict[str, Any]],
    summary: pa.Table,
    replicates: pa.Table,
) -> str:
    if mode == "offline":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # read on import; nothing may leave the machine
    import wandb

    settings = wandb.Settings(
        mode="offline" if mode == "offline" else "online",
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
    project = os.environ.get("WANDB_PROJECT", "manyseeds")
    try:
        # create_new: a run that the caller has open stays as it is
        with wandb.init(
            project=project,
            name=study,
            id=run_id,
            dir=folder,
            config=config,
            resume="allow" if mode == "online" else None,
            reinit="create_new",
            settings=settings,
        ) as run:
            run.define_metric("step")
            run.define_metric("*", step_metric="step")
            for step in sorted({band["step"] for band in bands}):
                run.log({"step": step} | _curves([band for band in bands if band["step"] == step]))
            run.log({"summary": _table(wandb, summary), "replicates": _table(wandb, replicates.slice(0, MOST_ROWS))})
            return str(run.url if mode == "online" else Path(run.dir).parent)
    except wandb.errors.Error as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"W&B refused the run ({reason}); the results are in the store: log in with `wandb login`, or pass wandb=offline"
        ) from error


def _curves(bands: list[dict[str, Any]]) -> dict[str, float]:
    """Values to plot. Infinity can't be drawn: such a quantile is a gap in its line, and `diverged` says why."""
    values = {}
    for band in bands:
        stage = f"/stage {band['stage']}" if band["stage"] else ""
        for name in ("replicates", "diverged", *(f"error_{label}" for label in QUANTILES)):
            if math.isfinite(band[name]):
                values[f"{band['condition']}{stage}/{band['set']}/{name}"] = band[name]
    return values


def _table(wandb: Any, rows: pa.Table) -> Any:
    return wandb.Table(columns=rows.schema.names, data=[list(row.values()) for row in rows.to_pylist()])


def _remove_offline_runs(folder: Path, study: str) -> None:
    for run in folder.glob("offline-run-*"):
        if re.fullmatch(rf"offline-run-\d+_\d+-{re.escape(study)}-[0-9a-f]{{1,16}}", run.name):
            shutil.rmtree(run)
