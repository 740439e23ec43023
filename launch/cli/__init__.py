"""The console script `manyseeds`, and the way of the scripts beside this folder into it. One file per section of its help."""

import difflib
import os
import sys
from collections.abc import Callable

import click

from launch.cli import explain, maintain, read, run, share, watch
from launch.cli.arguments import ALLOW, OVERRIDES
from launch.cli.family_commands import EXPLAIN
from launch.families import find_family, find_study
from results.errors import tell
from results.terminal import say, warnings_said
from results.version import VERSION

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Run": (run.studies, run.init, run.show, run.plan, run.estimate, run.run, run.retry),
    "Watch": (watch.status, watch.watch, watch.failures),
    "Read": (read.report, read.claims, read.compare, read.spread),
    "Explain": (explain.probe, *EXPLAIN),
    "Share": (share.import_, share.publish, share.dashboard, share.export),
    "Maintain": (maintain.merge, maintain.verify, maintain.compact, maintain.rerun, maintain.evaluate, maintain.completion),
}


class _Sections(click.Group):
    """A group whose help lists its commands by section."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(command.name or "", command.get_short_help_str(90)) for command in commands])


@click.group(cls=_Sections, commands=[command for commands in SECTIONS.values() for command in commands])
@click.version_option(VERSION)
def cli() -> None:
    """Replicate studies: thousands of seeds, the whole distribution, its tail."""


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
        epilog=f"studies: {', '.join(path.stem for path in find_family(name))}",
    )
    @OVERRIDES
    @ALLOW
    def start(overrides: tuple[str, ...]) -> None:
        from harness.run import run as run_study
        from harness.study.load import load

        named = [word.partition("=")[2] for word in overrides if word.startswith("study=")]
        settings = [word for word in overrides if not word.startswith("study=")]
        path = find_study(name, named[-1] if named else default)
        sys.exit(run_study(load(path, settings), say))

    _guard(lambda: start.main(sys.argv[1:], prog_name=f"python {sys.argv[0]}", standalone_mode=False))


def _mention_settings(error: click.NoSuchOption) -> None:
    """Say how a setting of a study is written, where an unknown option of a command that takes some resembles none of its own."""
    alike = difflib.get_close_matches(error.option_name, error.possibilities or [], cutoff=0.8)
    if error.ctx and not alike and any(parameter.name == "overrides" for parameter in error.ctx.command.params):
        say(f"If it is a setting of the study, write it without dashes: {error.option_name.lstrip('-')}=…", err=True)


def _guard(start: Callable[[], object]) -> None:
    if os.name == "nt":  # leases, commands and folders need what only POSIX has
        say("error: manyseeds runs on Linux and macOS: use WSL on Windows", err=True)
        sys.exit(2)
    try:
        with warnings_said():
            start()
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.NoSuchOption):
            _mention_settings(error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        if isinstance(error.__cause__, EOFError):  # click takes one for the end of a dialogue
            sys.exit(tell(error.__cause__))
        say("stopped at once: the same command goes on from the last checkpoints", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output, such as `head`, has gone; what is still buffered has no reader either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        sys.exit(tell(error))
