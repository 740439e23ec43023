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


@functools.cache
def code_state() -> tuple[str | None, bool | None]:
    """(commit, whether files differ from it) of the checkout this module is in; (None, None) outside one."""
    root = Path(__file__).parent.parent.parent
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit, bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def columns(device: str, numerics: str) -> Tree:
    """Columns of `replicates` that say on which machine and with which code a row was made."""
    commit, dirty = code_state()
    code = {"versions": json.dumps(versions(), sort_keys=True), "git": commit, "dirty": dirty}
    return {"host": socket.gethostname(), "device": device, "numerics": numerics} | code


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout.strip()
