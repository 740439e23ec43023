"""Why models err: probes of kept weights. What one family asks beside them is in its own folder."""

import click

from harness.probes.registry import PROBES
from launch.cli.arguments import ALLOW, open_study, store_study, study_names
from results.terminal import say


@click.command()
@store_study
@click.option("--probe", "name", required=True, type=click.Choice(sorted(PROBES)), help="What to measure.")
@click.option(
    "--strings", type=int, help="Number of strings that each model is shown. Default: 64, or the number in the paper."
)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Setting of the probe, such as heads=4. May be repeated."
)
@click.option(
    "--figures", type=click.Path(file_okay=False), help="Also draw the figures of the probe, if it has any, into this folder."
)
@ALLOW
def probe(store: str, study: str | None, name: str, strings: int | None, options: tuple[str, ...], figures: str | None) -> None:
    """Measure replicates with kept weights, and store the rows."""
    from harness.probes.run import run as run_probe

    run_probe([open_study(store, each) for each in study_names(store, study)], name, strings, figures, say, options)
