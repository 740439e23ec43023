"""What came of a study: its report, claims and comparisons."""

import sys
from pathlib import Path

import click

from launch.cli.arguments import one_study, open_study, store_study, stores_of, study_names
from results.terminal import say


@click.command()
@store_study
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the report; by default beside the tables.")
@click.option("--key", metavar="KEY", help="Write the page of this one replicate: its key, or a beginning that no other has.")
def report(store: str, study: str | None, out: str | None, key: str | None) -> None:
    """Make the report of a study again, from its tables."""
    if key is not None:
        from results.report.replicate_page import write_replicate_page

        say(write_replicate_page(open_study(store, one_study(store, study)), key, out))
        return
    from results.report.report import write_report

    stores = stores_of(store) if study is None else [store]
    named = [(part, name) for part in stores for name in study_names(part, study)]
    for part, name in named:
        below = out if out is None or len(named) == 1 else str(Path(out) / name)  # a folder a study
        say(write_report(open_study(part, name), below))


@click.command()
@store_study
@click.option("--markdown", is_flag=True, help="Print a page with a table of all claims, those without a study included.")
def claims(store: str, study: str | None, markdown: bool) -> None:
    """Hold a store against the paper's claims; exit status 1 where one is not reproduced (with --markdown always 0)."""
    stores = [part for part in stores_of(store) if study is None or study in study_names(part, None)] or [store]
    named = [(part, name) for part in stores for name in study_names(part, study)]
    if markdown:
        from results.claims.scoreboard_page import markdown as page

        root = f"{store.rstrip('/')}/"
        text = page({f"{part}/{name}".removeprefix(root): open_study(part, name) for part, name in named})
        for line in text.splitlines():
            say(line)
        return
    from results.claims.show import show_claims

    sys.exit(show_claims([open_study(part, name) for part, name in named], say))


@click.command()
@store_study
@click.option("--baseline", metavar="NAME", help="The condition to compare with; by default the study's first.")
@click.option("--across", metavar="SETTING", help="Compare over all values of this setting, such as the task (experiments).")
def compare(store: str, study: str | None, baseline: str | None, across: str | None) -> None:
    """Compare every condition of a study with a baseline, on each reported set."""
    from results.report.contrasts import show_contrasts

    for name in study_names(store, study):
        show_contrasts(open_study(store, name), baseline, say, across)


@click.command()
@store_study
def spread(store: str, study: str | None) -> None:
    """Split the spread of error rates into that between replicates and that within an evaluation."""
    from results.report.spread import show_spread

    for name in study_names(store, study):
        show_spread(open_study(store, name), say)
