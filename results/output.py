"""The one way to write a report's file: into the folder of the report, and nowhere else."""

import os
from dataclasses import dataclass
from pathlib import Path

from results.filesystem import join, refuse_links_out, write_local
from results.store import Store


@dataclass(frozen=True)
class OutputFolder:
    """A local folder that pages, figures and tables are written to. `root`: the folder that no link on the way may leave."""

    folder: Path
    root: Path

    def write(self, name: str, data: bytes) -> Path:
        """Write the file `name`, such as figures/loss.svg, whole or not at all; returns its path.

        Raises ValueError where the name leads out of the folder, PermissionError where a symbolic link does.
        """
        target = join(str(self.folder.absolute()), name)
        refuse_links_out(str(self.root.absolute()), target)
        write_local(target, data)
        return self.folder / name


def output_folder(out: str | os.PathLike[str]) -> OutputFolder:
    """A folder that the person named. It may be a link itself; what lies below it may not lead out of it."""
    return OutputFolder(Path(out), Path(out))


def report_folder(store: Store, out: str | os.PathLike[str] | None = None) -> OutputFolder:
    """The folder of a study's pages: `out`, else `<store>/<study>/report`, else `./report-<study>` where the store is not local."""
    if out is not None:
        return output_folder(out)
    if store.is_local:
        return OutputFolder(Path(store.path("report")), Path(store.root))
    return output_folder(f"report-{store.study}")
