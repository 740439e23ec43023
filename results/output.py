"""The only way to write a report's file: into the folder of the report, and nowhere else."""

import os
from dataclasses import dataclass
from pathlib import Path

from results.errors import StudyError, output_errors
from results.store.filesystem import join, public, refuse_links_out, write_local
from results.store.tables import Store, write_bytes


@dataclass(frozen=True)
class OutputFolder:
    """A local folder that pages, figures and tables are written to. `root`: the folder that no link on the way may leave.

    in_store: whether it is a store's own, and not one that the person named.
    """

    folder: Path
    root: Path
    in_store: bool = False

    def write(self, name: str, data: bytes) -> Path:
        """Write the file `name`, such as figures/loss.svg, whole or not at all; returns its path.

        Raises DamagedFile where the name or a symbolic link leads out of the folder, StoreError or StudyError where it can't be written.
        """
        target = join(str(self.folder.absolute()), name)
        refuse_links_out(str(self.root.absolute()), target)
        with output_errors(target, self.in_store):
            write_local(target, data)
        return self.folder / name


def output_folder(out: str | os.PathLike[str]) -> OutputFolder:
    """A folder that the person named. It may be a link itself; what lies below it may not lead out of it.

    StudyError where it is a URI.
    """
    if "://" in os.fspath(out):
        raise StudyError(f"--out {public(os.fspath(out))} must be a local folder: pages are not written to a store")
    return OutputFolder(Path(out), Path(out))


def report_folder(store: Store, out: str | os.PathLike[str] | None = None) -> OutputFolder:
    """The folder of a study's pages: `out`, else `<store>/<study>/report`, else `./report-<study>` where the store is not local."""
    if out is not None:
        return output_folder(out)
    if store.is_local:
        return OutputFolder(Path(store.path("report")), Path(store.root), in_store=True)
    return output_folder(f"report-{store.study}")


def copy_to_store(store: Store, folder: Path) -> str:
    """Copy a study's report from a local folder to where it is in a store that is one, `report/`; returns the address of its page.

    Raises StoreError where the store can't be written. The page is the last file, as it links to the others.
    """
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files, key=lambda name: (name == "index.html", name)):
        write_bytes(store, f"report/{name}", files[name].read_bytes())
    return f"{store.address}/{store.study}/report/index.html"
