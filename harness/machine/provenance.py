"""What ran: versions and the state of the code, recorded in rows and manifests."""

import functools
import importlib.metadata
import json
import platform
import socket
import subprocess
from pathlib import Path

from results.plain_values import Tree
from results.version import VERSION

_PACKAGES = ("torch", "ray", "pyarrow", "numpy")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what a result may depend on; a package that is not installed is left out."""
    numbers = {"python": platform.python_version(), "manyseeds": VERSION}
    for package in _PACKAGES:
        try:
            numbers[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return numbers


def code_state() -> tuple[str | None, bool | None]:
    """(commit, whether files differ from it) of the checkout that tracks this module.

    (None, None) outside one, and in an environment that is installed inside another project's checkout.
    """
    return checkout_state(Path(__file__).parent, Path(__file__).name)


@functools.cache
def checkout_state(folder: Path, tracked: str | None = None) -> tuple[str | None, bool | None]:
    """(commit, whether its files differ from it) of the git checkout that a folder is in; (None, None) outside one.

    tracked: a file of the folder that the checkout must track.
    """
    try:
        if tracked is not None:
            _git(folder, "ls-files", "--error-unmatch", tracked)
        return _git(folder, "rev-parse", "HEAD"), bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def columns(device: str, numerics: str) -> Tree:
    """Columns of `replicates` that say on which machine and with which code a row was made."""
    commit, dirty = code_state()
    code = {"versions": json.dumps(versions(), sort_keys=True), "git": commit, "dirty": dirty}
    return {"host": socket.gethostname(), "device": device, "numerics": numerics} | code


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout.strip()
