"""Why models err: probes of kept weights. What one family asks beside them is in its own folder."""

import click

from harness.probes.registry import PROBES
from launch.cli.arguments import ALLOW, open_study, store_study, study_names
from results.terminal import say


@click.command()
@store_study
@click.option("--probe", "name", required=True, type=click.Choice(sorted(PROBES)))
@click.option("--strings", type=int, help="Of its task that each model is shown; by default 64, or the paper's number.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A setting of the probe, such as heads=4.")
@click.option(
    "--figures", type=click.Path(file_okay=False), help="Also draw the probe's figures into this folder, where it has any."
)
@ALLOW
def probe(store: str, study: str | None, name: str, strings: int | None, options: tuple[str, ...], figures: str | None) -> None:
    """Measure every replicate whose weights are kept, and add the rows to the store."""
    from harness.probes.run import run as run_probe

    run_probe([open_study(store, each) for each in study_names(store, study)], name, strings, figures, say, options)
