"""How far studies are, and what failed."""

import click

from launch.cli.arguments import each_study, open_study, store_study, study_names
from results.terminal import say


@click.command()
@store_study
def status(store: str, study: str | None) -> None:
    """Say how far each study in a store is. Reads only the store."""
    from results.progress.status import show_status

    named = [(store, name) for name in study_names(store, study)]
    each_study(named, lambda part, name: show_status(open_study(part, name), say))


@click.command()
@store_study
@click.option("--every", default=5.0, show_default=True, metavar="SECONDS", help="Time between two readings of the store.")
@click.option("--once", is_flag=True, help="Print the current state once and exit.")
def watch(store: str, study: str | None, every: float, once: bool) -> None:
    """Show a running study live.

    It shows packs by state, condition and node, the rate, failures and the end time. It reads only the store.
    """
    from results.progress.watch import check_interval
    from results.progress.watch import watch as watch_stores

    check_interval(every)
    named = [(store, name) for name in study_names(store, study)]
    if once:
        each_study(named, lambda part, name: watch_stores([open_study(part, name)], every, once, say))
    else:
        watch_stores([open_study(*each) for each in named], every, once, say)


@click.command()
@store_study
@click.option("--full", is_flag=True, help="Print whole tracebacks.")
def failures(store: str, study: str | None, full: bool) -> None:
    """List failed packs: host, step, reason, log file."""
    from results.progress.failures import show_failures

    named = [(store, name) for name in study_names(store, study)]
    each_study(named, lambda part, name: show_failures(open_study(part, name), full, say))
