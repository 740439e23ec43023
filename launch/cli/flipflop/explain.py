"""Why models of the flip-flop err: single errors, the events that they hang on, and language models asked the same in English."""

import click

from launch.cli.arguments import ALLOW, open_study, store_study_key, study_names
from results.errors import StudyError
from results.terminal import say


@click.command()
@store_study_key()
@click.option("--set", "set_name", metavar="NAME", help="Evaluation set of the study. Default: the one with the most errors.")
@click.option("--limit", default=1000, show_default=True, help="Number of glitches to list; at least as many are stored.")
@click.option(
    "--sisters", default=25, show_default=True, help="Number of other seeds of the condition that answer the same reads."
)
@click.option("--device", default="auto", help="auto (default), cpu, cuda or cuda:N.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the page. Default: the report of the study.")
@ALLOW
def glitches(
    store: str, study: str | None, key: str, set_name: str | None, limit: int, sisters: int, device: str, out: str | None
) -> None:
    """List the flip-flop errors of a replicate, and draw its heads.

    Its weights must have been kept. The page shows where its heads look. The first digits of KEY are enough. A read is wrong
    if the largest of all logits is wrong (metric `read`), as the study counts errors.
    """
    from harness.probes.flipflop.glitch_record import show

    show([open_study(store, each) for each in study_names(store, study)], key, set_name, limit, sisters, device, out, say)


@click.command()
@store_study_key("KEY|all")
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Another method to run beside the trace. May be repeated. Default: all that the model allows.",
)
@click.option(
    "--glitches", default=5, show_default=True, help="Number of glitches from each evaluation set, at most one per string."
)
@click.option(
    "--events", type=int, help="Number of events that each method names. Default: as many as score best in the search."
)
@click.option(
    "--set", "sets", multiple=True, help="Evaluation set of the study. May be repeated. Default: those scored at the end."
)
@click.option(
    "--strings", default=4096, show_default=True, help="Number of perturbed strings to search for the cause of a glitch."
)
@click.option("--replays", default=1024, show_default=True, help="Number of fresh strings of each family that test the cause.")
@click.option("--seed", default=0, show_default=True, help="Seed of the strings.")
@click.option(
    "--corpora",
    default=1,
    show_default=True,
    help="Number of searches on different strings. From 2 on, prints how much their events agree.",
)
@click.option("--device", default="auto", help="auto (default), cpu, cuda or cuda:N.")
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
    """Search for the events that cause wrong reads.

    Takes replicates with kept weights. The first digits of KEY are enough; `all` stands for every replicate. A read is
    wrong if the largest logit of the data symbols is
    wrong (metric `read_restricted`).
    """
    from harness.tracing.flipflop.run import Wanted, run
    from harness.tracing.flipflop.trace import Settings

    wanted = Wanted(methods, glitches, events, sets, replays, seed, corpora, Settings(strings=strings))
    run([open_study(store, each) for each in study_names(store, study)], key, wanted, device, say)


@click.command("language-model")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER…")
@click.option("--store", required=True, help="Path or URI of the store.")
@click.option("--study", default="language-models", show_default=True, help="Name of the study in the store.")
@click.option("--lengths", help="Lengths of the strings, such as 16,32,64. Default: 16 to 512.")
@click.option("--strings", default=500, show_default=True, help="Number of strings of each length.")
@click.option("--seed", default=0, show_default=True, help="Seed of the strings.")
@click.option("--device", default="auto", help="auto (default), cpu, cuda or cuda:N.")
def language_model(
    folders: tuple[str, ...], store: str, study: str, lengths: str | None, strings: int, seed: int, device: str
) -> None:
    """Test language models on the flip-flop task, in English sentences.

    Claim R3 is about these answers. FOLDER is a local folder of a Hugging Face model. What is committed is not asked again."""
    from harness.probes.flipflop.language_models import LENGTHS, run
    from results.store.tables import refuse_folder_of_study

    refuse_folder_of_study(store)
    try:
        chosen = [int(word) for word in lengths.split(",")] if lengths else LENGTHS
    except ValueError as error:
        raise StudyError(f"--lengths {lengths} must be whole numbers with commas, such as 16,32,64") from error
    run(open_study(store, study), folders, chosen, strings, seed, device, say)
