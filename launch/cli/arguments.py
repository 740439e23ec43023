"""Arguments that several commands take, and what they stand for."""

from pathlib import Path

import click

from results.errors import StudyError

OVERRIDES = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")


def _allow(context: click.Context, parameter: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        from models.custom.custom import allow

        allow(*modules)


ALLOW = click.option(
    "--allow-import",
    multiple=True,
    metavar="MODULE",
    callback=_allow,
    expose_value=False,
    help="Let the study name models and tasks of this module, which is imported and so runs; may be repeated.",
)


def load_study(study: str, overrides: tuple[str, ...]):
    from harness.study.load import load
    from launch.families import find_study, named

    if study.endswith((".yaml", ".yml")) or study.count("/") > 1 or Path(study).exists():
        return load(study, overrides)
    return load(find_study(*study.split("/")) if "/" in study else named(study), overrides)


def open_study(uri: str, study: str):
    from results.store.tables import open_store

    return open_store(uri, study)


def study_names(uri: str, study: str | None) -> list[str]:
    from results.store.filesystem import public
    from results.store.tables import studies

    found = studies(uri)
    if not found:
        raise StudyError(f"there is no study in {public(uri)}")
    if study and study not in found:
        raise StudyError(f"there is no study {study!r} in {public(uri)}; studies: {', '.join(found)}")
    return [study] if study else found


def stores_of(uri: str) -> list[str]:
    """The store at `uri`, or the stores that are folders of it, such as those of docs/studies. StudyError where there is none."""
    from results.store.filesystem import folders, public, resolve
    from results.store.tables import studies

    if studies(uri):
        return [uri]
    filesystem, root = resolve(uri)
    stores = [f"{uri.rstrip('/')}/{name}" for name in folders(filesystem, root)]
    holding = [store for store in stores if studies(store)]
    if not holding:
        raise StudyError(f"there is no study in {public(uri)}")
    return holding
