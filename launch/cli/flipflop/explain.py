"""Why models of the flip-flop err: single errors, the events that they hang on, and language models asked the same in English."""

import click

from launch.cli.arguments import ALLOW, open_study, store_study_key, study_names
from results.errors import StudyError
from results.terminal import say


@click.command()
@store_study_key()
@click.option("--set", "set_name", metavar="NAME", help="Of the study's evaluation sets; by default that with the most errors.")
@click.option("--limit", default=1000, show_default=True, help="Of glitches, the first in the order of the strings.")
@click.option("--sisters", default=25, show_default=True, help="Other seeds of the condition that are asked the same.")
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the page; by default the study's report.")
def glitches(
    store: str, study: str | None, key: str, set_name: str | None, limit: int, sisters: int, device: str, out: str | None
) -> None:
    """List the flip-flop errors of one replicate with kept weights, and draw where its heads look. KEY may be its first digits.

    Wrong is metric read: the largest logit of all classes, as the study counts errors.
    """
    from harness.probes.flipflop.glitch_record import show

    show([open_study(store, each) for each in study_names(store, study)], key, set_name, limit, sisters, device, out, say)


@click.command()
@store_study_key("KEY|all")
@click.option(
    "--method", "methods", multiple=True, help="Beside the trace; may be repeated. By default all that the model allows."
)
@click.option("--glitches", default=5, show_default=True, help="Of each evaluation set, one a string.")
@click.option("--events", type=int, help="Of each method; by default as many as the search has most confidence in.")
@click.option(
    "--set", "sets", multiple=True, help="Of the study's evaluation sets; may be repeated. By default those scored at the end."
)
@click.option("--strings", default=4096, show_default=True, help="Perturbed strings that the cause of a glitch is searched in.")
@click.option("--replays", default=1024, show_default=True, help="Fresh strings of each family that it is judged by.")
@click.option("--seed", default=0, help="Of the strings.")
@click.option(
    "--corpora",
    default=1,
    show_default=True,
    help="From 2 on: how stable the events are on other strings; each costs one more search.",
)
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
@ALLOW
def trace(
    store: str,
    study: str | None,
    key: str,
    methods: tuple[str, ...],
    glitches: int,
    events: int | None,
    sets: tuple[str, ...],
    strings: int,
    replays: int,
    seed: int,
    corpora: int,
    device: str,
) -> None:
    """Search the events of a prompt that wrong reads of kept weights hang on. KEY may be its first digits; all: every replicate.

    Wrong is metric read_restricted: the largest logit of the symbols alone.
    """
    from harness.tracing.flipflop.run import Wanted, run
    from harness.tracing.flipflop.trace import Settings

    wanted = Wanted(methods, glitches, events, sets, replays, seed, corpora, Settings(strings=strings))
    run([open_study(store, each) for each in study_names(store, study)], key, wanted, device, say)


@click.command("language-model")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER…")
@click.option("--store", required=True, help="Path or URI of the store.")
@click.option("--study", default="language-models", help="Its name in the store.")
@click.option("--lengths", help="Of the strings, such as 16,32,64; default 16 to 512.")
@click.option("--strings", default=500, help="Of each length.")
@click.option("--seed", default=0, help="Of the strings.")
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
def language_model(
    folders: tuple[str, ...], store: str, study: str, lengths: str | None, strings: int, seed: int, device: str
) -> None:
    """Ask language models of local Hugging Face folders the flip-flop in English (claim R3)."""
    from harness.probes.flipflop.language_models import LENGTHS, run

    try:
        chosen = [int(word) for word in lengths.split(",")] if lengths else LENGTHS
    except ValueError as error:
        raise StudyError(f"--lengths {lengths} must be whole numbers with commas, such as 16,32,64") from error
    run(open_study(store, study), folders, chosen, strings, seed, device, say)
