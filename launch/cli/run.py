"""Studies: what there is, a new one, its settings and cost, and running it."""

import sys
from pathlib import Path

import click

from launch.cli.arguments import ALLOW, NEW_CODE, OVERRIDES, STUDY_FILE, load_study, study_path
from results.errors import StudyError
from results.terminal import say


@click.command()
@click.argument("family", required=False)
def studies(family: str | None) -> None:
    """List the studies that come with manyseeds, or those of one family: replicates, about how long each takes here, its question.

    The second time is that of `scale=laptop`.
    """
    from launch.families import find_family, named_studies
    from launch.study_costs import table

    paths = named_studies()
    if family:
        chosen = find_family(family)
        paths = {name: path for name, path in paths.items() if path in chosen}
    for line in table(paths):
        say(line)


@click.command()
@click.argument("file", default="study.yaml", type=click.Path(dir_okay=False))
def init(file: str) -> None:
    """Write a small study file with every part explained, to change and run. FILE is study.yaml by default."""
    from launch.new_study import write_new_study

    write_new_study(Path(file), say)


@click.command()
@STUDY_FILE
@OVERRIDES
@click.option("--changed", is_flag=True, help="Leave out what has its default value.")
@ALLOW
def show(study: str, overrides: tuple[str, ...], changed: bool) -> None:
    """Print every setting of a study and who set it: default, study, scale, command line or condition."""
    from harness.planning.origins import show as lines

    for line in lines(study_path(study), overrides, changed):
        say(line)


@click.command()
@STUDY_FILE
@OVERRIDES
@click.option("--diff", is_flag=True, help="What of each condition the store already holds; measures and writes nothing.")
@click.option(
    "--write", type=click.Path(dir_okay=False), help="Also write the resolved manifest, for `python -m harness.local`."
)
@click.option("--fresh", is_flag=True, help="Measure again what an earlier command has measured.")
@click.option("--on", type=click.Choice(["h200"]), help="Model the cost on a GPU that is not here; nothing is measured on it.")
@click.option("--gpus", type=click.IntRange(1), help="With --on: how many of them (1).")
@NEW_CODE
@ALLOW
def plan(
    study: str,
    overrides: tuple[str, ...],
    diff: bool,
    write: str | None,
    fresh: bool,
    on: str | None,
    gpus: int | None,
    new_code: bool,
) -> None:
    """Say how many replicates, packs, hours and bytes a study will be."""
    from launch.planning import show_diff, show_plan

    if gpus and not on:
        raise StudyError("--gpus counts the GPUs of a model: name their kind with --on, for instance --on h200 --gpus 8")
    loaded = load_study(study, overrides, new_code)
    if diff:
        show_diff(loaded, say)
    else:
        show_plan(loaded, write, say, fresh, on, gpus or 1)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE|[FAMILY/]NAME|FAMILY/all… [KEY=VALUE]…")
@click.option("--seconds", type=float, required=True, help="Of a replicate of the condition with the most replicates.")
@ALLOW
def estimate(words: tuple[str, ...], seconds: float) -> None:
    """Count the replicates of several studies, shared ones once, and their hours at a stated rate. Measures nothing.

    FAMILY/all: its studies at the paper's own settings.
    """
    from launch.planning import campaign, show_estimate

    overrides = tuple(word for word in words if "=" in word)
    chosen = [
        campaign(name.removesuffix("/all"), overrides)
        if name.endswith("/all") and not Path(name).exists()
        else [load_study(name, overrides)]
        for name in words
        if "=" not in name
    ]
    if not chosen:
        raise StudyError(f"{' '.join(words)} names no study: give a file, FAMILY/NAME or FAMILY/all")
    show_estimate([study for studies in chosen for study in studies], seconds, say)


@click.command()
@STUDY_FILE
@OVERRIDES
@NEW_CODE
@ALLOW
def run(study: str, overrides: tuple[str, ...], new_code: bool) -> None:
    """Run what is missing of a study, then write its report."""
    from harness.run import run as run_study

    sys.exit(run_study(load_study(study, overrides, new_code), say))


@click.command()
@STUDY_FILE
@OVERRIDES
@NEW_CODE
@ALLOW
def retry(study: str, overrides: tuple[str, ...], new_code: bool) -> None:
    """Run a study, its failed replicates included."""
    from harness.run import run as run_study

    sys.exit(run_study(load_study(study, overrides, new_code), say, retry=True))
