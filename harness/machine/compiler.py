"""Functions in C beside the torch code that they stand in for, compiled by the machine's own compiler."""

import ctypes
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

_FLAGS = (("-march=native",), ())  # some compilers do not know the first


def compiled(source: Path) -> tuple[ctypes.CDLL | None, str]:
    """The library of a source and its compiler's version, or None and why there is none, in words. Compiles at every call."""
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    said = ""
    with tempfile.TemporaryDirectory(prefix="manyseeds-") as folder:
        library = str(Path(folder) / f"{source.stem}.so")
        for flags in _FLAGS:
            command = [*compiler, "-O3", *flags, "-shared", "-fPIC", str(source), "-o", library, "-lm"]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode == 0:
                    loaded = ctypes.CDLL(library)  # the file may go once it is loaded
                    version = subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout
                    return loaded, _first_line(version)
            except FileNotFoundError:
                return None, f"there is no C compiler `{compiler[0]}` (install one, or set CC)"
            except OSError as error:
                return None, f"the C compiler `{shlex.join(compiler)}` or what it made can't be used: {error}"
            said = _first_line(done.stderr)
    return None, f"the C compiler `{shlex.join(compiler)}` failed: {said or 'it said nothing'}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
