"""What came of a study: its report, claims and comparisons."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from launch.cli.arguments import each_study, one_study, open_study, store_study, stores_of, study_names
from results.terminal import say

LATEX = click.option(
    "--latex",
    is_flag=True,
    help="Print the tables as LaTeX, which needs the package booktabs, and the other lines as comments.",
)


@click.command()
@store_study
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="Folder of the report. Several reports go into DIRECTORY/STUDY, those of several stores into DIRECTORY/STORE/STUDY. "
    "Default: beside the tables.",
)
@click.option(
    "--key", metavar="KEY", help="Write only the page of this replicate. The first digits are enough if no other key has them."
)
def report(store: str, study: str | None, out: str | None, key: str | None) -> None:
    """Write the report of a study again, from its tables. Without STUDY: of every study in the store."""
    if key is not None:
        from results.report.replicate_page import write_replicate_page

        say(write_replicate_page(open_study(store, one_study(store, study)), key, out))
        return
    from results.progress.status import left_out
    from results.report.report import write_report

    stores = stores_of(store, study)
    named = [(part, name) for part in stores for name in study_names(part, study)]

    def write(part: str, name: str) -> None:
        where = [part.rpartition("/")[2]] if len(stores) > 1 else []  # studies of two stores may share a name
        below = out if out is None or len(named) == 1 else str(Path(out, *where, name))
        opened = open_study(part, name)
        say(write_report(opened, below))
        if more := left_out(opened):
            say(more)

    each_study(named, write)


@click.command()
@store_study
@click.option("--markdown", is_flag=True, help="Print a Markdown page with all claims, including those without a study.")
def claims(store: str, study: str | None, markdown: bool) -> None:
    """Test the claims of papers on the results in a store. Exit status 1 if a claim is not reproduced; always 0 with --markdown."""
    named = [(part, name) for part in stores_of(store, study) for name in study_names(part, study)]
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
@click.option(
    "--baseline",
    metavar="NAME",
    help="Condition to compare with. Default: the first; with stages, the first that shares one with another condition.",
)
@click.option(
    "--across",
    metavar="SETTING",
    help="Pool the comparison over all values of this setting, such as the task. Only for experiments.",
)
@LATEX
def compare(store: str, study: str | None, baseline: str | None, across: str | None, latex: bool) -> None:
    """Compare each condition of a study with a baseline."""
    from results.report.contrasts import show_contrasts

    named = [(part, name) for part in stores_of(store, study) for name in study_names(part, study)]

    def show(part: str, name: str) -> None:
        with _printing(part, name, (part, name) != named[0], latex) as tell:
            show_contrasts(open_study(part, name), baseline, tell, across)

    each_study(named, show, apart=True)


@contextmanager
def _printing(store: str, study: str, apart: bool, latex: bool) -> Iterator[Callable[[str], None]]:
    """What prints the lines of a study; then what its intervals take as fixed, and how many replicates were left out.

    apart: after a blank line. latex: as LaTeX.
    """
    from results.progress.adaptive_status import TAKEN_AS_FIXED
    from results.progress.status import left_out
    from results.rows.latex import Tabular
    from results.store.manifest import manifest_of

    plain = _after_a_blank_line(apart)
    tell = Tabular(plain) if latex else plain
    yield tell
    opened = open_study(store, study)
    adaptive = TAKEN_AS_FIXED if manifest_of(opened).get("adaptive") else ""
    for more in filter(None, (adaptive, left_out(opened))):
        tell("")
        tell(more)
    if isinstance(tell, Tabular):
        tell.close()


def _after_a_blank_line(wanted: bool) -> Callable[[str], None]:
    """`say`, which first ends the table before: without an empty line, Markdown takes what follows for a row of it."""
    first = [wanted]

    def say_apart(line: str) -> None:
        if first.pop() if first else False:
            say("")
        say(line)

    return say_apart


@click.command()
@store_study
@LATEX
def spread(store: str, study: str | None, latex: bool) -> None:
    """Split the variance of error rates by its source.

    One part lies between replicates, the other within each evaluation.
    """
    from results.report.spread import show_spread

    named = [(part, name) for part in stores_of(store, study) for name in study_names(part, study)]

    def show(part: str, name: str) -> None:
        with _printing(part, name, (part, name) != named[0], latex) as tell:
            show_spread(open_study(part, name), tell)

    each_study(named, show, apart=True)
