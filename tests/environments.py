"""Virtual environments for tests, made in a second: they link the packages of this environment, with or without this project."""

import os
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "launch", "models", "results", "tasks")


def make_environment(folder: Path, installed: bool = False) -> Path:
    """The python of a virtual environment in `folder` that has every package of this one but `manyseeds`.

    installed: with this project too, as `pip install -e .` installs it.
    """
    binaries, site = folder / "bin", folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    binaries.mkdir(parents=True)
    site.mkdir(parents=True)
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    python = binaries / "python"
    python.symlink_to(base)
    for place in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for entry in Path(place).iterdir():
            if not _is_ours(entry) and not (site / entry.name).is_symlink():
                (site / entry.name).symlink_to(entry)
    _script(binaries / "ray", python, "from ray.scripts.scripts import main")
    if installed:
        from setuptools.command.editable_wheel import _finder_template

        finder = "__editable___manyseeds_finder"
        (site / f"{finder}.py").write_text(_finder_template("manyseeds", {name: str(ROOT / name) for name in PACKAGES}, {}))
        (site / "__editable__.manyseeds.pth").write_text(f"import {finder}; {finder}.install()")
        _script(binaries / "manyseeds", python, "from launch.cli import main")
    return python


def environment_of(python: Path, **more: str) -> dict[str, str]:
    """Variables of a shell in which the environment of `python` is active; nothing of this process's Ray or of its module path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONPATH"))}
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    return kept | {"PATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "WANDB_MODE": "offline"} | more


def _is_ours(entry: Path) -> bool:
    """Whether an entry of site-packages belongs to an installation of this project."""
    if entry.suffix == ".pth":
        return "manyseeds" in entry.name or str(ROOT) in entry.read_text()
    return "manyseeds" in entry.name or entry.name in PACKAGES or entry.name == "__pycache__"


def _script(path: Path, python: Path, line: str) -> None:
    path.write_text(f"#!{python}\nimport sys\n\n{line}\n\nsys.exit(main())\n")
    path.chmod(0o755)


def without(packages, module):
    """Code for `python -c` that runs the main function of a module of ours where these packages can't be imported."""
    return f"{_block(packages)}\nimport sys\nfrom {module} import main\nsys.exit(main(sys.argv[1:]))\n"


def environment_without(folder: Path, packages) -> dict[str, str]:
    """Variables that hide these packages from a process and from all that it starts. `folder` gets the module that hides them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_block(packages))
    return os.environ | {"PYTHONPATH": str(folder)}


def _block(packages) -> str:
    """Code that hides these packages: importing one fails, and looking for one finds nothing."""
    return f"""
import importlib.machinery
ABSENT, find_spec = {sorted(packages)}, importlib.machinery.PathFinder.find_spec
def spec_of_others(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in ABSENT else find_spec(name, path, target)
importlib.machinery.PathFinder.find_spec = classmethod(spec_of_others)
"""
