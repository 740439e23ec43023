"""The console script `manyseeds`, and the way of the scripts beside this file into it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from results.errors import STATUS_MENDABLE, StoreError, StudyError, tell_of_defect
from results.terminal import say
from results.version import VERSION

_PROBES = (
    "alignment",
    "associations",
    "attention",
    "boundaries",
    "concentration",
    "dilution",
    "drift",
    "heads",
    "monomials",
    "ngrams",
    "nonterminals",
    "support_attention",
)
_OVERRIDES = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")


def _allow(context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        from models.custom.custom import allow

        allow(*modules)


_ALLOW = click.option(
    "--allow-import",
    multiple=True,
    metavar="MODULE",
    callback=_allow,
    expose_value=False,
    help="Let the study name models and tasks of this module, which is imported and so runs; may be repeated.",
)


@click.group()
@click.version_option(VERSION)
def cli() -> None:
    """Replicate studies: thousands of seeds, the whole distribution, its tail."""


@cli.command()
@click.argument("study", metavar="FILE|FAMILY/NAME")
@_OVERRIDES
@click.option("--diff", is_flag=True, help="What of each condition the store already holds; measures and writes nothing.")
@click.option(
    "--write", type=click.Path(dir_okay=False), help="Also write the resolved manifest, for `python -m harness.local`."
)
@click.option("--fresh", is_flag=True, help="Measure again what an earlier command has measured.")
@_ALLOW
def plan(study: str, overrides: tuple[str, ...], diff: bool, write: str | None, fresh: bool) -> None:
    """Say how many replicates, packs, hours and bytes a study will be."""
    from launch.planning import show_diff, show_plan

    loaded = _load(study, overrides)
    if diff:
        show_diff(loaded, say)
    else:
        show_plan(loaded, write, say, fresh)


@cli.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE|FAMILY/NAME|FAMILY/all… [KEY=VALUE]…")
@click.option("--seconds", type=float, required=True, help="Of a replicate of the condition with the most replicates.")
@_ALLOW
def estimate(words: tuple[str, ...], seconds: float) -> None:
    """Count the replicates of several studies, shared ones once, and their hours at a stated rate. Measures nothing.

    FAMILY/all: its studies at the paper's own settings.
    """
    from launch.planning import campaign, show_estimate

    overrides = tuple(word for word in words if "=" in word)
    chosen = [
        campaign(name.removesuffix("/all"), overrides)
        if name.endswith("/all") and not Path(name).exists()
        else [_load(name, overrides)]
        for name in words
        if "=" not in name
    ]
    if not chosen:
        raise StudyError(f"{' '.join(words)} names no study: give a file, FAMILY/NAME or FAMILY/all")
    show_estimate([study for studies in chosen for study in studies], seconds, say)


@cli.command()
@click.argument("study", metavar="FILE|FAMILY/NAME")
@_OVERRIDES
@_ALLOW
def run(study: str, overrides: tuple[str, ...]) -> None:
    """Run what is missing of a study, then write its report."""
    from harness.run import run as run_study

    sys.exit(run_study(_load(study, overrides), say))


@cli.command()
@click.argument("study", metavar="FILE|FAMILY/NAME")
@_OVERRIDES
@_ALLOW
def retry(study: str, overrides: tuple[str, ...]) -> None:
    """Run a study, its failed replicates included."""
    from harness.run import run as run_study

    sys.exit(run_study(_load(study, overrides), say, retry=True))


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
def status(store: str, study: str | None) -> None:
    """How far the studies of a store are, from the store alone."""
    from results.progress.status import show_status

    for name in _studies(store, study):
        show_status(_open(store, name), say)


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
@click.option("--every", default=5.0, show_default=True, metavar="SECONDS", help="Between two looks at the store.")
@click.option("--once", is_flag=True, help="Print one look and end.")
def watch(store: str, study: str | None, every: float, once: bool) -> None:
    """Show packs by state, condition and node, the rate, failures and the end time, live, from the store alone."""
    from results.progress.watch import watch as watch_stores

    watch_stores([_open(store, name) for name in _studies(store, study)], every, once, say)


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
@click.option("--full", is_flag=True, help="With the tracebacks.")
def failures(store: str, study: str | None, full: bool) -> None:
    """List what failed: where, at which step, of what, and where its log lies."""
    from results.progress.failures import show_failures

    for name in _studies(store, study):
        show_failures(_open(store, name), full, say)


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
def compact(store: str, study: str | None) -> None:
    """Rewrite the many small files of a store as one a table; what is read stays the same. Not while a study writes into it."""
    from results.store.merge import compact as compact_store

    for name in _studies(store, study):
        before, after = compact_store(_open(store, name))
        say(f"{name}: {before} files are now {after}")


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the report; by default beside the tables.")
@click.option("--key", metavar="KEY", help="Write the page of this one replicate: its key, or a beginning that no other has.")
def report(store: str, study: str | None, out: str | None, key: str | None) -> None:
    """Make the report of a study again, from its tables."""
    if key is not None:
        from results.report.replicate_page import write_replicate_page

        if study is None:
            raise StudyError("--key is of one study's replicate: write manyseeds report STORE STUDY --key KEY")
        say(write_replicate_page(_open(store, study), key, out))
        return
    from results.report.report import write_report

    for name in _studies(store, study):
        say(write_report(_open(store, name), out))


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
@click.option("--mode", type=click.Choice(["offline", "online"]), default="offline", show_default=True)
@click.option("--runs", type=click.Choice(["study", "condition", "replicate"]), default="study", show_default=True)
@click.option("--out", type=click.Path(file_okay=False), help="Folder for W&B's files; by default beside the tables.")
def publish(store: str, study: str | None, mode: str, runs: str, out: str | None) -> None:
    """Make the W&B runs of a study again, from its tables: its own, and with --runs one a condition or replicate more."""
    from results.dashboards.publish import publish as publish_study

    for name in _studies(store, study):
        say(publish_study(_open(store, name), mode, out, runs, say))


@cli.command()
@click.argument("store")
@click.argument("study")
@click.option("--entity", help="Of W&B, a team or user; by default that of the login.")
@click.option("--out", type=click.Path(file_okay=False), help="Write both layouts there as JSON, and send nothing.")
def dashboard(store: str, study: str, entity: str | None, out: str | None) -> None:
    """Create or update a W&B workspace and a W&B report of a study, laid out by code."""
    from results.dashboards.dashboard import show_dashboard

    for name in _studies(store, study):
        show_dashboard(_open(store, name), entity, out, say)


@cli.command()
@click.argument("store")
@click.option("--study", help="Only this study; by default every study of the store.")
def claims(store: str, study: str | None) -> None:
    """Hold a store against the paper's claims; exit status 1 where one is not reproduced."""
    from results.claims.show import show_claims

    sys.exit(show_claims([_open(store, name) for name in _studies(store, study)], say))


@cli.command()
@click.argument("store")
@click.argument("study")
@click.option("--baseline", metavar="NAME", help="The condition to compare with; by default the study's first.")
def compare(store: str, study: str, baseline: str | None) -> None:
    """Compare every condition of a study with a baseline, on each reported set."""
    from results.report.contrasts import show_contrasts

    for name in _studies(store, study):
        show_contrasts(_open(store, name), baseline, say)


@cli.command()
@click.argument("store")
@click.argument("study")
def spread(store: str, study: str) -> None:
    """Split the spread of error rates into that between replicates and that within an evaluation."""
    from results.report.spread import show_spread

    for name in _studies(store, study):
        show_spread(_open(store, name), say)


@cli.command()
@click.argument("into")
@click.argument("others", nargs=-1, required=True, metavar="STORE…")
@click.option("--study", help="Only this study; by default every study of the other stores.")
@click.option("--keep-one", is_flag=True, help="Where stores hold other numbers of one replicate and pack, keep one copy.")
def merge(into: str, others: tuple[str, ...], study: str | None, keep_one: bool) -> None:
    """Unite stores: copy into INTO what it lacks of the others. Refuses replicates that should be equal and are not."""
    from results.store.filesystem import public
    from results.store.merge import merge as merge_stores
    from results.store.tables import studies

    names = [study] if study else sorted({name for other in others for name in studies(other)})
    if not names:
        raise StudyError(f"there is no study in {' or '.join(map(public, others))}")
    for name in names:
        sources = [_open(other, name) for other in others if name in studies(other)]
        say(f"{name}: {merge_stores(_open(into, name), sources, keep_one)}")


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
def verify(store: str, study: str | None) -> None:
    """Check every file of a store against its digest; exit status 1 where one is damaged."""
    from results.store.verify import show_verify

    sys.exit(show_verify([_open(store, name) for name in _studies(store, study)], say))


@cli.command()
@click.argument("key")
@click.option("--store", required=True, help="Path or URI of the store.")
@click.option("--study", help="Only this study; by default every study of the store.")
@click.option("--step", type=int, help="After how many steps; by default the last that was kept.")
@click.option("--format", "form", required=True, type=click.Choice(["gpt2", "bert", "safetensors"]))
@click.option("--out", required=True, type=click.Path(file_okay=False), help="A new or empty folder.")
@_ALLOW
def export(key: str, store: str, study: str | None, step: int | None, form: str, out: str) -> None:
    """Write the kept weights of one replicate for other tools; KEY may be its first digits."""
    from harness.exchange import export as export_replicate

    kept, folder = export_replicate([_open(store, name) for name in _studies(store, study)], key, form, out, step)
    say(f"{folder}: {kept.key} after {kept.step} steps as {form}")


@cli.command()
@click.argument("store")
@click.argument("key")
@click.option("--study", help="Only this study; by default every study of the store.")
@click.option("--keep", type=click.Choice(["weights"]), help="Also keep what it learned, for export and evaluate.")
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
@_ALLOW
def rerun(store: str, key: str, study: str | None, keep: str | None, device: str) -> None:
    """Train one committed replicate again and verify its rows; exit status 1 where they differ. KEY may be its first digits."""
    from harness.replicates.rerun import rerun as rerun_replicate

    found = rerun_replicate([_open(store, name) for name in _studies(store, study)], key, bool(keep), device, say)
    say(found.message, err=not found.agrees)
    sys.exit(0 if found.agrees else 1)


@cli.command()
@click.argument("store")
@click.argument("key", metavar="KEY|all")
@click.option(
    "--set", "definition", required=True, metavar="'FIELD=VALUE … sequences=N [seed=S]'", help="The strings to score."
)
@click.option("--name", help="Of the set; by default its fields.")
@click.option("--study", help="Only this study; by default every study of the store.")
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
@click.option("--write", is_flag=True, help="Also write <store>/<study>/rescored/<name>.parquet.")
@_ALLOW
def evaluate(store: str, key: str, definition: str, name: str | None, study: str | None, device: str, write: bool) -> None:
    """Score kept weights on a new evaluation set. KEY may be its first digits; all: every replicate with weights."""
    from harness.replicates.rescore import show

    show([_open(store, each) for each in _studies(store, study)], key, definition, name, device, write, say)


@cli.command()
@click.argument("store")
@click.argument("key")
@click.option("--set", "set_name", metavar="NAME", help="Of the study's evaluation sets; by default that with the most errors.")
@click.option("--limit", default=1000, show_default=True, help="Of glitches, the first in the order of the strings.")
@click.option("--sisters", default=25, show_default=True, help="Other seeds of the condition that are asked the same.")
@click.option("--study", help="Only this study; by default every study of the store.")
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:N.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the page; by default the study's report.")
def glitches(
    store: str, key: str, set_name: str | None, limit: int, sisters: int, study: str | None, device: str, out: str | None
) -> None:
    """List the flip-flop errors of one replicate with kept weights, and draw where its heads look. KEY may be its first digits.

    Wrong is metric read: the largest logit of all classes, as the study counts errors.
    """
    from harness.probes.flipflop.glitch_record import show

    show([_open(store, each) for each in _studies(store, study)], key, set_name, limit, sisters, device, out, say)


@cli.command("language-model")
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
    run(_open(store, study), folders, chosen, strings, seed, device, say)


@cli.command()
@click.argument("store")
@click.argument("study", required=False)
@click.option("--probe", "name", required=True, type=click.Choice(_PROBES))
@click.option("--strings", type=int, help="Of its task that each model is shown; by default 64, or the paper's number.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="A setting of the probe, such as heads=4.")
@click.option("--figures", type=click.Path(file_okay=False), help="Also draw the simulation's figures into this folder.")
@_ALLOW
def probe(store: str, study: str | None, name: str, strings: int | None, options: tuple[str, ...], figures: str | None) -> None:
    """Measure every replicate whose weights are kept, and add the rows to the store."""
    from harness.probes.run import run as run_probe

    run_probe([_open(store, each) for each in _studies(store, study)], name, strings, figures, say, options)


@cli.command()
@click.argument("store")
@click.argument("key", metavar="KEY|all")
@click.option("--study", help="Only this study; by default every study of the store.")
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
@_ALLOW
def trace(
    store: str,
    key: str,
    study: str | None,
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
    from harness.tracing.run import Wanted, run
    from harness.tracing.trace import Settings

    wanted = Wanted(methods, glitches, events, sets, replays, seed, corpora, Settings(strings=strings))
    run([_open(store, each) for each in _studies(store, study)], key, wanted, device, say)


def main(arguments: list[str] | None = None) -> None:
    """`manyseeds`. What the person can mend is one sentence on stderr and exit status 2; a defect of ours its traceback and 70."""
    _guard(lambda: cli.main(arguments, prog_name="manyseeds", standalone_mode=False))


def family(name: str, default: str) -> None:
    """`python launch/<script>.py [study=NAME] [KEY=VALUE]… [--allow-import MODULE]…`.

    Run a study of one family; `default` where none is named, whatever the machine has.
    """

    @click.command(
        context_settings={"help_option_names": ["-h", "--help"]},
        options_metavar="[study=NAME]",
        epilog=f"studies: launch/studies/{name}/*.yaml",
    )
    @_OVERRIDES
    @_ALLOW
    def start(overrides: tuple[str, ...]) -> None:
        from harness.run import run as run_study
        from harness.study.load import load
        from launch.families import find_study

        named = [word.partition("=")[2] for word in overrides if word.startswith("study=")]
        settings = [word for word in overrides if not word.startswith("study=")]
        path = find_study(name, named[-1] if named else default)
        sys.exit(run_study(load(path, settings), say))

    _guard(lambda: start.main(sys.argv[1:], prog_name=f"python {sys.argv[0]}", standalone_mode=False))


def _guard(start: Callable[[], object]) -> None:
    try:
        start()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (StudyError, StoreError) as error:
        if "MANYSEEDS_DEBUG" in os.environ:
            raise
        say(f"error: {error}", err=True)
        sys.exit(STATUS_MENDABLE)
    except (KeyboardInterrupt, click.Abort):
        say("stopped at once: the same command goes on from the last checkpoints", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output, such as `head`, has gone; what is still buffered has no reader either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception:
        sys.exit(tell_of_defect())


def _load(study: str, overrides: tuple[str, ...]):
    from harness.study.load import load
    from launch.families import find_study

    if not study.endswith((".yaml", ".yml")) and study.count("/") == 1 and not Path(study).exists():
        return load(find_study(*study.split("/")), overrides)
    return load(study, overrides)


def _open(uri: str, study: str):
    from results.store.tables import open_store

    return open_store(uri, study)


def _studies(uri: str, study: str | None) -> list[str]:
    from results.store.filesystem import public
    from results.store.tables import studies

    found = studies(uri)
    if not found:
        raise StudyError(f"there is no study in {public(uri)}")
    if study and study not in found:
        raise StudyError(f"there is no study {study!r} in {public(uri)}; studies: {', '.join(found)}")
    return [study] if study else found
