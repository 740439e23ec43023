"""Studies for others: W&B and other libraries' weights."""

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

    for name in study_names(store, study):
        say(publish_study(open_study(store, name), mode, out, runs, say))


@click.command()
@store_study
@click.option("--entity", help="Of W&B, a team or user; by default that of the login.")
@click.option("--out", type=click.Path(file_okay=False), help="Write both layouts there as JSON, and send nothing.")
def dashboard(store: str, study: str | None, entity: str | None, out: str | None) -> None:
    """Create or update a W&B workspace and a W&B report of a study, laid out by code."""
    from results.dashboards.dashboard import show_dashboard

    for name in study_names(store, study):
        show_dashboard(open_study(store, name), entity, out, say)


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
