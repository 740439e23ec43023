"""Where the store of an attempt lies, and how it is taken away: a folder behind a link."""

import os
from pathlib import Path

from benchmarks.chaos.study import NAME
from results.store import open_store


class Folder:
    """A local folder. `uri` is a link to it; while it is away, the link leads below a file, so that reads and writes fail."""

    def __init__(self, folder: Path, seed: int):
        self.uri, self.real = str(folder / "store"), str(folder / "real")
        self._gone = folder / "gone"
        os.makedirs(self.real)
        self._gone.write_text("what was mounted here is not\n")
        self.back()

    def away(self) -> None:
        self._link(self._gone / "nothing")

    def back(self) -> None:
        self._link(Path(self.real))

    def faults(self) -> dict[str, int]:
        """Injected ones by kind."""
        return {}

    def close(self) -> None:
        self.back()

    def _link(self, target: Path) -> None:
        new = Path(f"{self.uri}.new")
        new.symlink_to(target)
        os.replace(new, self.uri)  # one rename: the store is whole or gone


PLACES = {"folder": Folder}


def files(uri: str, folder: str) -> list[str]:
    """Paths of all files below a folder of the study, sorted."""
    import pyarrow.fs

    store = open_store(uri, NAME)
    found = store.filesystem.get_file_info(pyarrow.fs.FileSelector(store.path(folder), allow_not_found=True, recursive=True))
    return sorted(info.path for info in found if info.is_file)
