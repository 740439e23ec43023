"""Studies for others: W&B and other libraries' weights."""

import re
from pathlib import Path

import click

from launch.cli.arguments import ALLOW, open_study, store_study, store_study_key, study_names
from results.terminal import say


@click.command()
@store_study
@click.option("--mode", type=click.Choice(["offline", "online"]), default="offline", show_default=True)
@click.option("--runs", type=click.Choice(["study", "condition", "replicate"]), default="study", show_default=True)
@click.option("--out", type=click.Path(file_okay=False), help="Folder for W&B's files; by default beside the tables.")
def publish(store: str, study: str | None, mode: str, runs: str, out: str | None) -> None:
    """Make the W&B runs of a study again, from its tables: its own, and with --runs one a condition or replicate more."""
    from results.dashboards.publish import publish as publish_study
    from results.dashboards.publish import sync_line

    for name in study_names(store, study):
        where = publish_study(open_study(store, name), mode, out, runs, say)
        for line in (where, *sync_line(mode, where)):
            say(line)


@click.command()
@store_study
@click.option("--entity", help="Of W&B, a team or user; by default that of the login.")
@click.option("--out", type=click.Path(file_okay=False), help="Write both layouts there as JSON, and send nothing.")
def dashboard(store: str, study: str | None, entity: str | None, out: str | None) -> None:
    """Create or update a W&B workspace and a W&B report of a study, laid out by code."""
    from results.dashboards.dashboard import show_dashboard

    for name in study_names(store, study):
        show_dashboard(open_study(store, name), entity, out, say)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", required=True, metavar="COLUMN", help="The column of seeds.")
@click.option(
    "--config", default="", metavar="COLUMN,…", help="The columns of settings: runs that differ in them are conditions."
)
@click.option("--metric", "metrics", multiple=True, required=True, metavar="COLUMN[=higher|lower]", help="A column of numbers.")
@click.option("--higher-is-better/--lower-is-better", "higher", default=None, help="Of metrics that do not say it themselves.")
@click.option("--step", default="", metavar="COLUMN", help="The column of steps, where a run has several rows.")
@click.option("--ignore", default="", metavar="COLUMN,…", help="Columns that differ between runs and do not matter.")
@click.option("--store", default="runs", show_default=True, help="Path or URI of the store.")
@click.option("--name", help="Of the study; by default that of the file.")
@click.option("--question", default="", help="The title of the report.")
def import_(
    file: Path,
    seed: str,
    config: str,
    metrics: tuple[str, ...],
    higher: bool | None,
    step: str,
    ignore: str,
    store: str,
    name: str | None,
    question: str,
) -> None:
    """Make a study of runs that are finished elsewhere.

    FILE: CSV, TSV, Parquet or JSON lines with a row a run, or a folder of W&B's offline runs or TensorBoard's event files.
    """
    from harness.exchange.finished_runs import Columns, import_runs
    from results.report.report import write_report

    default = "" if higher is None else "higher" if higher else "lower"
    named = {}
    for metric in metrics:
        column, _, better = metric.rpartition("=") if metric.endswith(("=higher", "=lower")) else (metric, "", default)
        named[column] = better
    columns = Columns(seed, _listed(config), named, step, _listed(ignore))
    study = open_study(store, name or re.sub(r"[^A-Za-z0-9._-]+", "-", file.resolve().stem).strip("-._") or "runs")
    import_runs(study, file, columns, question, say)
    say(f"report: {write_report(study)}")


def _listed(columns: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in columns.split(",") if name.strip())


@click.command()
@store_study_key(older_store=True)
@click.option("--step", type=int, help="After how many steps; by default the last that was kept.")
@click.option("--format", "form", required=True, type=click.Choice(["gpt2", "bert", "safetensors"]))
@click.option("--out", required=True, type=click.Path(file_okay=False), help="A new or empty folder.")
@ALLOW
def export(store: str, study: str | None, key: str, step: int | None, form: str, out: str) -> None:
    """Write the kept weights of one replicate for other tools; KEY may be its first digits."""
    from harness.exchange import export as export_replicate

    kept, folder = export_replicate([open_study(store, name) for name in study_names(store, study)], key, form, out, step)
    say(f"{folder}: {kept.key} after {kept.step} steps as {form}")
