"""Stores and replicates: unite, check, compact, train again, score again; and the shell's completion."""

import sys

import click
from click.shell_completion import get_completion_class

from launch.cli.arguments import ALLOW, each_study, open_study, store_study, store_study_key, study_names, unknown_study
from results.errors import StudyError
from results.terminal import say


@click.command()
@click.argument("into")
@click.argument("others", nargs=-1, required=True, metavar="STORE…")
@click.option("--study", help="Merge only this study. Default: every study of the other stores.")
@click.option(
    "--keep-one",
    is_flag=True,
    help="If stores hold different numbers for one replicate and pack, keep one copy instead of refusing.",
)
def merge(into: str, others: tuple[str, ...], study: str | None, keep_one: bool) -> None:
    """Copy replicates of other stores into the store INTO.

    Copies what INTO lacks. Refuses if a STORE holds no study, or if two stores hold different numbers for one replicate and pack.
    """
    from results.progress.status import left_out
    from results.store.filesystem import public
    from results.store.merge import merge as merge_stores
    from results.store.tables import refuse_folder_of_study

    refuse_folder_of_study(into)
    held = {other: study_names(other, None) for other in others}  # refuses a mistyped store before anything is copied
    names = sorted({name for there in held.values() for name in there})
    if study and study not in names:
        raise unknown_study(study, names, " or ".join(map(public, others)))
    for name in [study] if study else names:
        sources = [open_study(other, name) for other, there in held.items() if name in there]
        merged = open_study(into, name)
        say(f"{name}: {merge_stores(merged, sources, keep_one)}")
        if more := left_out(merged):
            say(more)


@click.command()
@store_study
def verify(store: str, study: str | None) -> None:
    """Check every file of a store against its digest. Exit status 1 if one is damaged."""
    from results.store.verify import show_verify

    sys.exit(show_verify([open_study(store, name) for name in study_names(store, study)], say))


@click.command()
@store_study
def compact(store: str, study: str | None) -> None:
    """Join the many small files of a store into one per table.

    Readers see the same rows. Manifests are compressed with gzip; an older one is first rewritten in today's shorter form. Do not use
    it while a study writes into the store.
    """
    from harness.planning.manifest import shorten
    from results.store.manifest import compress
    from results.store.merge import compact as compact_store

    def show(part: str, name: str) -> None:
        opened = open_study(part, name)
        before, after = compact_store(opened)
        shorten(opened)
        compress(opened)
        say(f"{name}: {before} files are now {after}")

    each_study([(store, name) for name in study_names(store, study)], show)


@click.command()
@store_study_key()
@click.option("--keep", type=click.Choice(["weights"]), help="Also keep the trained weights, for export and evaluate.")
@click.option("--device", default="auto", help="auto (default), cpu, cuda or cuda:N.")
@ALLOW
def rerun(store: str, study: str | None, key: str, keep: str | None, device: str) -> None:
    """Train one committed replicate again and compare its rows. Exit status 1 if they differ.

    The first digits of KEY are enough.
    """
    from harness.replicates.rerun import rerun as rerun_replicate

    result = rerun_replicate([open_study(store, name) for name in study_names(store, study)], key, bool(keep), device, say)
    say(result.message, err=not result.agrees)
    sys.exit(0 if result.agrees else 1)


@click.command()
@store_study_key("KEY|all")
@click.option(
    "--set",
    "definition",
    required=True,
    metavar="'FIELD=VALUE … sequences=N [seed=S]'",
    help="Definition of the set: task fields, number of strings, seed (0).",
)
@click.option("--name", help="Name of the set. Default: its fields.")
@click.option("--device", default="auto", help="auto (default), cpu, cuda or cuda:N.")
@click.option("--write", is_flag=True, help="Also write <store>/<study>/rescored/<name>.parquet.")
@ALLOW
def evaluate(store: str, study: str | None, key: str, definition: str, name: str | None, device: str, write: bool) -> None:
    """Score kept weights on a new evaluation set.

    The first digits of KEY are enough; `all` stands for every replicate with kept weights.
    """
    from harness.replicates.rescore import show

    if "=" in key:  # the shell has split the fields of --set into words
        raise StudyError(f"{key!r} is not a key: put the fields of --set into quotes, as in --set '{definition} {key}'")
    show([open_study(store, each) for each in study_names(store, study)], key, definition, name, device, write, say)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, studies and keys in your shell.

    \b
    bash:  manyseeds completion bash > ~/.manyseeds.bash && echo 'source ~/.manyseeds.bash' >> ~/.bashrc
    zsh:   manyseeds completion zsh > ~/.manyseeds.zsh && echo 'source ~/.manyseeds.zsh' >> ~/.zshrc
    fish:  manyseeds completion fish > ~/.config/fish/completions/manyseeds.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise TypeError(f"click has no completion for {shell}")
    context = click.get_current_context().find_root()
    for line in script(context.command, {}, "manyseeds", "_MANYSEEDS_COMPLETE").source().splitlines():
        say(line)
