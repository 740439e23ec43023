"""Where the store of an attempt lies, and how it is taken away: a folder behind a link, or a bucket behind a faulty server."""

import os
from functools import partial
from pathlib import Path

from benchmarks.chaos.faults import Faults, Proxy
from benchmarks.chaos.servers import KEY, SECRET, Server, moto, rclone, rclone_there, takes_markers
from benchmarks.chaos.study import NAME
from results.store.filesystem import listing
from results.store.tables import open_store


class Folder:
    """A local folder. `uri` is a link to it; while it is away, the link leads below a file, so that reads and writes fail."""

    outage_factor = 1.0

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


class Bucket:
    """A bucket of an S3 server. `uri` leads through a proxy that answers some requests wrongly, late or never; `real` does not."""

    outage_factor = 10.0  # a client repeats each request for some seconds: the longest outages must be longer than that

    def __init__(self, start: Server, folder: Path, seed: int):
        port, self._stop = start(folder, f"chaos-{seed}")
        self._proxy = Proxy(port, Faults(seed), markers=takes_markers(start))
        place = f"s3://{KEY}:{SECRET}@chaos-{seed}/store?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:"
        self.real, self.uri = f"{place}{port}", f"{place}{self._proxy.port}"

    def away(self) -> None:
        self._proxy.away = True

    def back(self) -> None:
        self._proxy.away = False

    def faults(self) -> dict[str, int]:
        """Requests by what was done to them; `none` were left alone."""
        return dict(self._proxy.faults.counts)

    def close(self) -> None:
        self._proxy.close()
        self._stop()


PLACES = {"folder": Folder, "s3": partial(Bucket, moto), "s3-rclone": partial(Bucket, rclone)}


def check(place: str) -> None:
    """ValueError where a place needs what is not installed."""
    if place == "s3-rclone":
        rclone_there()


def files(uri: str, folder: str) -> list[str]:
    """Paths of all files below a folder of the study, sorted."""
    store = open_store(uri, NAME)
    return sorted(info.path for info in listing(store.filesystem, store.path(folder), recursive=True) if info.is_file)
