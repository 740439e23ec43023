"""Studies: what there is, a new one, its settings and cost, and running it."""

import sys
from pathlib import Path

import click

from harness.planning.gpus import GPUS
from launch.cli.arguments import ALLOW, NEW_CODE, OVERRIDES, STUDY_FILE, load_study, study_path
from results.errors import StudyError
from results.terminal import say


@click.command()
@click.argument("family", required=False)
def studies(family: str | None) -> None:
    """List the studies that come with manyseeds.

    Each line has replicates, estimated times and the question; FAMILY shows one family. The first time is for the study as
    written, the second for `scale=laptop`.
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
    """Write a small study file with comments, to change and run. Default of FILE: study.yaml."""
    from launch.new_study import write_new_study

    write_new_study(Path(file), say)


@click.command()
@STUDY_FILE
@OVERRIDES
@click.option("--changed", is_flag=True, help="Leave out settings that have their default value.")
@ALLOW
def show(study: str, overrides: tuple[str, ...], changed: bool) -> None:
    """Print every setting of a study and where it comes from.

    A setting comes from a default, the study, its scale, the command line or a condition.
    """
    from harness.planning.origins import show as lines

    for line in lines(study_path(study), overrides, changed):
        say(line)


@click.command()
@STUDY_FILE
@OVERRIDES
@click.option("--diff", is_flag=True, help="Say what the store already holds of each condition; measure and write nothing.")
@click.option(
    "--write", type=click.Path(dir_okay=False), help="Also write the resolved manifest, for `python -m harness.local`."
)
@click.option("--fresh", is_flag=True, help="Measure again, even if an earlier command has measured it.")
@click.option(
    "--on",
    type=click.Choice(list(GPUS)),
    metavar="GPU",
    help=f"Estimate the cost on a GPU that this machine lacks, from a model of it: {', '.join(GPUS)}.",
)
@click.option("--gpus", type=click.IntRange(1), help="Number of GPUs, with --on. Default: 1.")
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
    """Say how many replicates, packs, hours and bytes a study takes."""
    from launch.planning import show_diff, show_plan

    if gpus and not on:
        raise StudyError("--gpus counts the GPUs of a model: name their kind with --on, for instance --on h200 --gpus 8")
    if diff and (left_out := [option for option, given in (("--write", write), ("--fresh", fresh), ("--on", on)) if given]):
        raise StudyError(f"--diff measures and writes nothing: leave out {left_out[0]}, or --diff")
    loaded = load_study(study, overrides, new_code)
    if diff:
        show_diff(loaded, say)
    else:
        show_plan(loaded, write, say, fresh, on, gpus or 1)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE|[FAMILY/]NAME|FAMILY/all… [KEY=VALUE]…")
@click.option(
    "--seconds", type=float, required=True, help="Seconds that one replicate takes, of the condition with the most replicates."
)
@ALLOW
def estimate(words: tuple[str, ...], seconds: float) -> None:
    """Estimate the hours of several studies without measuring.

    You state the time of a replicate. Replicates that studies share are counted once. FAMILY/all stands for all studies of a
    family at the settings of the paper.
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
    """Run the missing replicates of a study, then write its report. After an interruption, the same command goes on."""
    from harness.run import run as run_study

    sys.exit(run_study(load_study(study, overrides, new_code), say))


@click.command()
@STUDY_FILE
@OVERRIDES
@NEW_CODE
@ALLOW
def retry(study: str, overrides: tuple[str, ...], new_code: bool) -> None:
    """Run the missing and the failed replicates of a study."""
    from harness.run import run as run_study

    sys.exit(run_study(load_study(study, overrides, new_code), say, retry=True))
