"""Studies for others: W&B and other libraries' weights."""

import re
from pathlib import Path

import click

from launch.cli.arguments import ALLOW, open_study, store_study, store_study_key, study_names
from results.errors import StudyError
from results.terminal import say


@click.command()
@store_study
@click.option(
    "--mode",
    type=click.Choice(["offline", "online"]),
    default="offline",
    show_default=True,
    help="Write files only, or send them.",
)
@click.option(
    "--runs",
    type=click.Choice(["study", "condition", "replicate"]),
    default="study",
    show_default=True,
    help="Add a run for each condition or replicate to that of the study.",
)
@click.option("--out", type=click.Path(file_okay=False), help="Folder for W&B's files. Default: beside the tables.")
def publish(store: str, study: str | None, mode: str, runs: str, out: str | None) -> None:
    """Write the W&B run of a study again, from its tables."""
    from results.dashboards.publish import publish as publish_study
    from results.dashboards.publish import sync_line

    for name in study_names(store, study):
        where = publish_study(open_study(store, name), mode, out, runs, say)
        for line in (where, *sync_line(mode, where, name, runs)):
            say(line)


@click.command()
@store_study
@click.option("--entity", help="Team or user of W&B. Default: that of your login.")
@click.option("--out", type=click.Path(file_okay=False), help="Write both layouts into this folder as JSON, and send nothing.")
def dashboard(store: str, study: str | None, entity: str | None, out: str | None) -> None:
    """Create or update a W&B workspace and a W&B report for a study."""
    from results.dashboards.dashboard import show_dashboard

    for name in study_names(store, study):
        show_dashboard(open_study(store, name), entity, out, say)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", required=True, metavar="COLUMN", help="Column of seeds.")
@click.option(
    "--config",
    multiple=True,
    metavar="COLUMN,…",
    help="Columns of settings. Runs with different values are different conditions.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    required=True,
    metavar="COLUMN[=higher|lower]",
    help="Column of results, and which values are better. May be repeated.",
)
@click.option(
    "--higher-is-better/--lower-is-better",
    "higher",
    default=None,
    help="Which values are better, for metrics whose --metric does not say it.",
)
@click.option("--step", default="", metavar="COLUMN", help="Column of steps, if a run has several rows.")
@click.option("--ignore", multiple=True, metavar="COLUMN,…", help="Columns that may differ within a condition.")
@click.option("--store", default="runs", show_default=True, help="Path or URI of the store.")
@click.option("--name", help="Name of the study. Default: that of the file.")
@click.option("--question", default="", help="Question of the study: the title of the report.")
def import_(
    file: Path,
    seed: str,
    config: tuple[str, ...],
    metrics: tuple[str, ...],
    higher: bool | None,
    step: str,
    ignore: tuple[str, ...],
    store: str,
    name: str | None,
    question: str,
) -> None:
    """Import runs of another tool as a study, and write its report.

    FILE is a CSV, TSV, Parquet or JSON Lines file with one row per run, or a folder with W&B's offline runs or TensorBoard's event files.
    """
    from harness.exchange.finished_runs import Columns, import_runs
    from results.report.report import write_report
    from results.store.tables import refuse_folder_of_study

    refuse_folder_of_study(store)
    default = "" if higher is None else "higher" if higher else "lower"
    named = {}
    for metric in metrics:
        column, _, better = metric.rpartition("=") if metric.endswith(("=higher", "=lower")) else (metric, "", default)
        if column in named:
            raise StudyError(f"--metric names {column} twice: name it once, as {column}=higher or {column}=lower")
        named[column] = better
    columns = Columns(seed, _listed(config), named, step, _listed(ignore))
    study = open_study(store, name or re.sub(r"[^A-Za-z0-9._-]+", "-", file.resolve().stem).strip("-._") or "runs")
    import_runs(study, file, columns, question, say)
    say(f"report: {write_report(study)}")


def _listed(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names in lists with commas; an option that is repeated adds to them."""
    return tuple(name.strip() for name in ",".join(columns).split(",") if name.strip())


@click.command()
@store_study_key(older_store=True)
@click.option("--step", type=int, help="Step of the weights. Default: the last one kept.")
@click.option(
    "--format", "form", required=True, type=click.Choice(["gpt2", "bert", "safetensors"]), help="Format of the files."
)
@click.option("--out", required=True, type=click.Path(file_okay=False), help="New or empty folder for the files.")
@ALLOW
def export(store: str, study: str | None, key: str, step: int | None, form: str, out: str) -> None:
    """Write the kept weights of a replicate for another tool. The first digits of KEY are enough."""
    from harness.exchange import export as export_replicate

    kept, folder = export_replicate([open_study(store, name) for name in study_names(store, study)], key, form, out, step)
    broken = "" if kept.is_finite() else "; it diverged: not all of these weights are finite"
    say(f"{folder}: {kept.key} after {kept.step} steps as {form}{broken}")
