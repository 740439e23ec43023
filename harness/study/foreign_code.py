"""The digest of a person's own code: a module or a script, and the local files that it imports.

A key holds it, so that a replicate that was run with edited code is another replicate (docs/guides/experiments.md). Imports are read
from the text of the files and nothing is run; files of Python itself, of installed packages and of this project do not count.
"""

import ast
import hashlib
import importlib.util
import itertools
import sys
import sysconfig
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from harness.own_packages import NAMES, ROOT
from harness.study.identity import digest
from results.errors import StudyError

MOST_FILES = 10_000
_INSTALLED = ("site-packages", "dist-packages")
_SKIPPED = {"__pycache__", ".git", ".venv", "node_modules"}


@dataclass(frozen=True)
class ForeignCode:
    """The files of a person's own code.

    digest: of their names and contents; files: their names, relative to the folder that each was found in, sorted; folder: that of the
    module or script itself.
    """

    digest: str
    files: tuple[str, ...]
    folder: Path


# by modules and sources: the module objects that this process runs, and their code when it was first asked for
_imported: dict[tuple[str, ...], tuple[Any, ForeignCode]] = {}


def code_of_modules(modules: Collection[str], sources: Sequence[str] = (), running: bool = False) -> ForeignCode:
    """The code of modules that this process has imported, and of `sources`, files or folders in the current folder.

    StudyError where a file has changed since this process imported it: what would run is not what is there. running: the code that this
    process runs, whatever has become of the files.
    """
    names = sorted(modules)
    objects, place = tuple(sys.modules[module] for module in names), (*names, "", *sources)
    remembered = _imported.get(place)
    if running and remembered is not None and remembered[0] == objects:
        return remembered[1]
    files: dict[str, Path] = {}
    for module in names:
        files |= _files_of_module(module)
    code = _code(files | _declared(sources), Path(_path_of(names[0])).parent)
    if remembered is None or remembered[0] != objects or sources:
        _imported[place] = (objects, code)
    elif remembered[1].digest != code.digest:
        raise StudyError(f"files of {', '.join(names)} have changed since this process imported them: start Python anew")
    return code


def code_of_sources(sources: Sequence[str]) -> ForeignCode:
    """The code of `sources`, files or folders of the current folder, with the local files that Python files among them import."""
    return _code(_with_imports(sources), Path.cwd())


def imported_files(sources: Sequence[str]) -> list[str]:
    """Files in the current folder that Python files among `sources` import, by names relative to it, `sources` themselves left out."""
    here = Path.cwd()
    declared = set(_declared(sources).values())
    paths = [path for path in _with_imports(sources).values() if path not in declared and path.is_relative_to(here)]
    return sorted(path.relative_to(here).as_posix() for path in paths)


def _with_imports(sources: Sequence[str]) -> dict[str, Path]:
    declared = _declared(sources)
    files = dict(declared)
    for path in declared.values():
        if path.suffix == ".py":
            files |= _traced(path, path.parent, path.stem)
    return files


def _code(files: dict[str, Path], folder: Path) -> ForeignCode:
    names = sorted(files)
    return ForeignCode(digest([[name, _digest_of(files[name])] for name in names], 32), tuple(names), folder)


def _digest_of(path: Path) -> str:
    try:
        about = path.stat()
        return _content_digest(path, about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise StudyError(f"{path} can't be read, and its content belongs to what a replicate is: {error.strerror}") from error


@lru_cache(maxsize=MOST_FILES)
def _content_digest(path: Path, changed_ns: int, size: int) -> str:
    """SHA-256 of a file with line ends as on Unix, so that a checkout on Windows is the same code. changed_ns, size: for the cache."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def _path_of(module: str) -> str:
    path = getattr(sys.modules[module], "__file__", None)
    if path is None:
        raise StudyError(
            f"the module {module} has no file, so nothing tells when its code changes: name a module that is a file"
        )
    return str(path)


def _files_of_module(module: str) -> dict[str, Path]:
    """The file of an imported module, those of the packages it is in, and the local files that all of them import."""
    path = Path(_path_of(module)).resolve()
    parts = module.split(".")
    root = path.parents[len(parts) - (path.name != "__init__.py")]
    if not _is_local(path):  # of an installed package: its version is in the row
        return {path.relative_to(root).as_posix(): path}
    return _traced(path, root, module)


def _declared(sources: Iterable[str]) -> dict[str, Path]:
    """{name: path} of the files that `sources` names, those of its folders included."""
    here, by_name = Path.cwd(), dict[str, Path]()
    for source in sources:
        path = here / source
        if Path(source).is_absolute() or ".." in Path(source).parts:
            raise StudyError(f"experiment.sources: {source!r} must be a file or folder in the current one, {here}")
        if not source or not path.exists():
            raise StudyError(f"experiment.sources: there is no {source!r} in {here}: name files and folders from there")
        if not path.is_file() and not path.is_dir():
            raise StudyError(f"experiment.sources: {source!r} is neither a file nor a folder: name what the code needs")
        inside = (each for each in path.rglob("*") if each.is_file() and not _SKIPPED & set(each.parts))
        files = [path] if path.is_file() else sorted(itertools.islice(inside, MOST_FILES + 1))
        if len(files) > MOST_FILES:
            raise StudyError(f"experiment.sources: {source!r} holds more than {MOST_FILES:,} files: name fewer")
        by_name |= {each.relative_to(here).as_posix(): each for each in files}
    return by_name


def _is_local(path: Path) -> bool:
    """Whether a file belongs to neither Python, an installed package nor this project's own packages."""
    if set(path.parts) & set(_INSTALLED):
        return False
    if any(path.is_relative_to(folder) for folder in _python_folders()):
        return False
    if not _installed_elsewhere(tuple(sys.path)).isdisjoint((path, *path.parents)):
        return False
    return not any(path.is_relative_to(ROOT / name) for name in NAMES)


@cache
def _python_folders() -> tuple[Path, ...]:
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})


@lru_cache(maxsize=16)
def _installed_elsewhere(entries: tuple[str, ...]) -> frozenset[Path]:
    """Files and folders of packages that are installed outside Python's own folders, as by `pip install --target`. entries: sys.path."""
    return frozenset(
        Path(entry).resolve() / first
        for entry in entries
        if entry and not set(Path(entry).parts) & set(_INSTALLED)
        for record in Path(entry).glob("*.dist-info/RECORD")
        for line in record.read_text(errors="replace").splitlines()
        if (first := line.replace(",", "/").split("/")[0])  # none of an absolute path, or of an empty line
    )


def _traced(path: Path, root: Path, module: str) -> dict[str, Path]:
    """{name: path} of a module's file and of all local files that it leads to; names are relative to the folder of the search path."""
    places = [root, *(each for entry in sys.path if (each := Path(entry or ".").resolve()) != root)]
    files: dict[str, Path] = {}
    waiting = [(path, root, module)]
    while waiting:
        path, place, module = waiting.pop()
        name = path.relative_to(place).as_posix()
        if name in files:
            continue
        files[name] = path
        if len(files) > MOST_FILES:
            raise StudyError(f"{module} leads to more than {MOST_FILES:,} local files: move it into a folder of its own")
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for imported in _imports(str(path), path.stat().st_mtime_ns, package):
            waiting += _locate(imported, places)
    return files


def _locate(module: str, places: Sequence[Path]) -> list[tuple[Path, Path, str]]:
    """(file, search folder, name) of a module and of the packages above it, where they are local."""
    parts = module.split(".")
    for place in places:
        first = place / parts[0]
        if not (first.is_dir() or first.with_suffix(".py").is_file()):
            continue
        out = []
        for end in range(1, len(parts) + 1):
            stem = place.joinpath(*parts[:end])
            for file in (stem / "__init__.py", stem.with_suffix(".py")):
                if file.is_file() and _is_local(file.resolve()):
                    out.append((file, place, ".".join(parts[:end])))
                    break
        if out or first.with_suffix(".py").is_file() or (first / "__init__.py").is_file():
            return out
    return []


@lru_cache(maxsize=4096)
def _imports(path: str, changed_ns: int, package: str) -> tuple[str, ...]:
    """Dotted names that a Python file imports anywhere in it; () for invalid Python, which fails when it is imported."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                try:
                    base = importlib.util.resolve_name("." * node.level + base, package)
                except ImportError:
                    continue
            names += [base, *(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")]
    return tuple(dict.fromkeys(name for name in names if name))
