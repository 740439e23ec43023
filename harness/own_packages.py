"""Our packages have plain names (`models`, `tasks`, `results`), which a person's own folder may have too. Ours come first.

A module that only the other folder has is still found: `models.mine` is `models/mine.py` of the current folder where ours has no `mine`.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("harness", "launch", "models", "results", "tasks")


def put_first() -> None:
    """Search this project's folder before all others. ImportError where another package of such a name is loaded already."""
    if sys.path[:1] != [str(ROOT)]:
        sys.path.insert(0, str(ROOT))
    if _Beside not in sys.meta_path:
        sys.meta_path.append(_Beside)  # type: ignore[arg-type]
    for name in NAMES:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and (other := _other(name, spec)):
            raise ImportError(
                f"{other} hides the package {name!r} of manyseeds: rename it, or start Python elsewhere", name=name
            )


def refuse_hidden_from_workers(folder: str) -> None:
    """StudyError where `folder`, which Ray's workers search first, has a package `harness` of its own: none of them would start."""
    from results.errors import StudyError  # not before ours come first

    spec = PathFinder.find_spec("harness", [folder, str(ROOT)])
    if spec is not None and (other := _other("harness", spec)):
        raise StudyError(
            f"{other} hides the package 'harness' of manyseeds from Ray's workers, which search the current folder first: "
            "rename it, start in another folder, or pass executor=local"
        )


def _other(name: str, spec: ModuleSpec) -> Path | None:
    """The folder of the package of `spec`; None if it is ours."""
    places = list(spec.submodule_search_locations or []) or [spec.origin or ""]
    place = Path(places[0]).resolve()
    return None if place == ROOT / name else place


class _Beside:
    """A finder for the modules of a person's own package that has the name of one of ours. Python asks it after ours."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """ImportError where the two packages share modules: imports between the person's own would find ours instead."""
        *parents, _ = name.split(".")
        if not parents or parents[0] not in NAMES:
            return None
        ours = ROOT.joinpath(*parents)
        for entry in dict.fromkeys(sys.path):
            folder = Path(entry or ".").resolve().joinpath(*parents)
            if folder == ours or not folder.is_dir():
                continue
            spec = PathFinder.find_spec(name, [str(folder)])
            if spec is not None:
                shared = sorted(_modules(folder) & _modules(ours))
                if shared:
                    raise ImportError(
                        f"{folder} is hidden by the package {'.'.join(parents)!r} of manyseeds, and both have {', '.join(shared)}: "
                        f"give {folder.name} another name, such as my_{folder.name}",
                        name=name,
                    )
                return spec
        return None


def _modules(folder: Path) -> set[str]:
    """The modules and packages in a folder, by name."""
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()} - {"__init__"}
