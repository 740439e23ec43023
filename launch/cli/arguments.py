"""Arguments that several commands take, always in the order STORE STUDY KEY; what they stand for, and how the shell completes them."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from results.errors import DamagedFile, StoreError, StudyError, nearest
from results.terminal import say

_Command = TypeVar("_Command", bound=Callable[..., object] | click.Command)
_STUDY, _STORE = "named study", "named store"  # what the older --study and --store said, in the context's `meta`


def _studies_that_come(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from launch.families import STUDIES

    paths = sorted(STUDIES.glob("*/*.yaml"))
    names = sorted({path.stem for path in paths} | {f"{path.parent.name}/{path.stem}" for path in paths})
    items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return [*items, CompletionItem(incomplete, type="file")]


def _stores(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def _studies_in(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from results.store.tables import studies

    with contextlib.suppress(StudyError, StoreError):  # a command says what is wrong, not a press of the Tab key
        return [CompletionItem(name) for name in studies(context.params["store"]) if name.startswith(incomplete)]
    return []


def _keys_in(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from results.store.tables import read

    items: list[CompletionItem] = []
    with contextlib.suppress(StudyError, StoreError):
        for name in study_names(context.params["store"], context.params.get("study")):
            rows = read(open_study(context.params["store"], name), "replicates", ["key", "condition"])
            pairs = zip(rows["key"].to_pylist(), rows["condition"].to_pylist(), strict=True)
            items += [CompletionItem(key, help=condition) for key, condition in pairs if key.startswith(incomplete)]
    return items


def _studies_and_keys_in(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _studies_in(context, parameter, incomplete) + _keys_in(context, parameter, incomplete)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta[name] = value

    return keep


def _older(option: str, name: str) -> Callable[[_Command], _Command]:
    """An option of earlier versions that is still understood: what it names is an argument now."""
    return click.option(option, f"older_{option[2:]}", is_eager=True, hidden=True, expose_value=False, callback=_remember(name))


def _study(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return context.meta.get(_STUDY) if value is None else value


def _last_is_the_key(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The last word given, whether or not a study stands before it."""
    if context.resilient_parsing:
        return value
    params, meta = context.params, context.meta
    words = [word for word in (meta.get(_STORE), params.get("store"), params.get("study"), value) if word is not None]
    if len(words) < 2:
        raise click.MissingParameter(ctx=context, param=parameter)
    if len(words) > 3:
        raise click.UsageError(f"Got unexpected extra argument ({words[3]})", context)
    params["store"], params["study"] = words[0], words[1] if len(words) == 3 else meta.get(_STUDY)
    return words[-1]


OVERRIDES = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")
STUDY_FILE = click.argument("study", metavar="FILE|[FAMILY/]NAME", shell_complete=_studies_that_come)
STORE = click.argument("store", shell_complete=_stores)


def store_study(command: _Command) -> _Command:
    """STORE [STUDY]."""
    study = click.argument("study", required=False, shell_complete=_studies_in, callback=_study)
    return STORE(study(_older("--study", _STUDY)(command)))


def store_study_key(metavar: str = "KEY", older_store: bool = False) -> Callable[[_Command], _Command]:
    """STORE [STUDY] KEY. older_store: whether `--store STORE` is understood too."""

    def decorate(command: _Command) -> _Command:
        key = click.argument("key", required=False, metavar=metavar, shell_complete=_keys_in, callback=_last_is_the_key)
        study = click.argument("study", required=False, shell_complete=_studies_and_keys_in)
        command = _older("--store", _STORE)(command) if older_store else command
        return STORE(study(key(_older("--study", _STUDY)(command))))

    return decorate


def _allow(context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        from models.custom.custom import allow

        allow(*modules)


def _allow_commands(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        from harness.study.experiment import ALLOW_COMMANDS
        from models.custom.custom import allow

        allow(ALLOW_COMMANDS)


def ALLOW(command: _Command) -> _Command:
    """--allow-import and --allow-command."""
    modules = click.option(
        "--allow-import",
        multiple=True,
        metavar="MODULE",
        callback=_allow,
        expose_value=False,
        help="Let the study use functions, models and tasks of this module, which is then imported. May be repeated.",
    )
    commands = click.option(
        "--allow-command",
        is_flag=True,
        callback=_allow_commands,
        expose_value=False,
        help="Let the study run the commands that its experiments name.",
    )
    return modules(commands(command))


NEW_CODE = click.option(
    "--new-code",
    is_flag=True,
    help="Run committed replicates again if your own code has changed since. Without it, such a study is refused.",
)


def study_path(study: str) -> Path:
    """The file of FILE, FAMILY/NAME or NAME."""
    from launch.families import find_study, named

    if study.endswith((".yaml", ".yml")) or study.count("/") > 1 or Path(study).is_file():
        return Path(study)
    return find_study(*study.split("/")) if "/" in study else named(study)


def load_study(study: str, overrides: tuple[str, ...], new_code: bool = False):
    from dataclasses import replace

    from harness.study.load import load

    return replace(load(study_path(study), overrides), new_code=new_code)


def open_study(uri: str, study: str):
    from results.store.tables import open_store

    return open_store(uri, study)


def study_names(uri: str, study: str | None) -> list[str]:
    from results.store.filesystem import public
    from results.store.tables import no_study, studies

    names = studies(uri)
    if not names:
        raise no_study(uri)
    if study and study not in names:
        raise unknown_study(study, names, public(uri))
    return [study] if study else names


def unknown_study(study: str, names: Sequence[str], where: str) -> StudyError:
    """The error where no store at `where` has a study of this name. A study file is told the name that its study is stored under."""
    stored = _stored_name(study)
    meant = f"; the study of {study} is stored as {stored}" if stored in names else nearest(study, names)
    return StudyError(f"there is no study {study!r} in {where}; studies: {', '.join(names)}{meant}")


def _stored_name(study: str) -> object:
    """The name that a study file of the project, or at this path, gives to its study; None where there is no such file."""
    from harness.study.tree import read_file

    try:
        return read_file(study_path(study)).get("name")
    except StudyError:
        return None


def each_study(named: Sequence[tuple[str, str]], show: Callable[[str, str], None], apart: bool = False) -> None:
    """show(store, study) for each. What can't be shown is said, and the others are; raises the error where there is nothing else.

    apart: whether an empty line comes before it, as Markdown wants after a table.
    Ends with exit status 1 where a store holds what no study wrote.
    """
    refused: list[StudyError | DamagedFile] = []
    for part, name in named:
        try:
            show(part, name)
        except (StudyError, DamagedFile) as error:
            refused.append(error)
            if len(refused) == len(named):
                raise
            if apart and (part, name) != named[0]:
                say("")
            say(str(error) if str(error).startswith(f"{name} ") else f"{name}: {error}")
    if any(isinstance(error, DamagedFile) for error in refused):
        sys.exit(1)


def one_study(uri: str, study: str | None) -> str:
    """The study that is named, or the only one of the store."""
    names = study_names(uri, study)
    if len(names) > 1:
        from results.store.filesystem import public

        raise StudyError(f"{public(uri)} has several studies: name one of {', '.join(names)}")
    return names[0]


def stores_of(uri: str, study: str | None) -> list[str]:
    """The store at `uri`, or the stores that are folders of it, such as those of docs/studies; of these only the ones with `study`.

    StudyError where there is none.
    """
    from results.store.filesystem import below, folders, public, resolve
    from results.store.tables import no_study, studies

    if studies(uri):
        return [uri]
    filesystem, root = resolve(uri)
    stores = [below(uri, name) for name in folders(filesystem, root)]
    holding = [store for store in stores if studies(store)]
    if not holding:
        raise no_study(uri)
    chosen = [store for store in holding if study is None or study in studies(store)]
    if study is not None and not chosen:
        names = sorted({name for store in holding for name in studies(store)})
        raise unknown_study(study, names, f"the stores of {public(uri)}")
    return chosen
