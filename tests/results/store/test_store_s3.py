"""Every function of the store while an S3 server spoils any of its requests: a right answer, or one sentence that says what failed."""

import _thread
import random
import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pytest

from results.store import filesystem, merge
from results.store.tables import commit, delete, list_names, open_store, read, read_bytes, write_bytes
from tests.results.store.faulty_s3 import KEY, KINDS, SECRET, SERVERS, Faulty, faulty, s3_server
from tests.results.store.sample_rows import commit_pack, in_order, pack_tables

OLD, NEW = b"old" * 1000, b"new" * 2000
MOST = 6  # cases of an operation: a request of it, and how it is spoiled
FEW = 3  # of a compaction, which makes many requests
ALWAYS = 10**6


@pytest.fixture(scope="module", params=SERVERS)
def server(request, tmp_path_factory):
    with s3_server(request.param, tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def bucket(server):
    with faulty(server, f"{uuid.uuid4().hex}/runs") as found:
        yield found


@pytest.fixture
def bucket_of_little_patience(server, monkeypatch):
    monkeypatch.setattr(filesystem, "SILENCE_S", 1.0)
    with faulty(server, f"{uuid.uuid4().hex}/runs") as found:
        yield found


@pytest.fixture
def once(monkeypatch):
    """The client makes each request once, so that every fault is seen here."""
    monkeypatch.setattr(filesystem, "RETRIES", 0)


@dataclass(frozen=True)
class Operation:
    """`before` prepares the store, `act` is what is spoiled, `look` is what others see of it (None: it changes nothing)."""

    before: Callable[[Faulty], Any]
    act: Callable[[Faulty], Any]
    look: Callable[[Faulty], Any] | None = None


def _some(at: Faulty) -> None:
    for name in "ab":
        write_bytes(at.real, f"curves/{name}", OLD)


def _packs(at: Faulty) -> None:
    commit_pack(at.real, "fd-1", ["a", "b"])
    commit_pack(at.real, "fd-2", ["b", "c"])


def files(at: Faulty) -> dict[str, int]:
    """Sizes of what is in a folder, by the server itself."""
    return {info.base_name: info.size for info in filesystem.listing(at.real.filesystem, at.real.path("curves"))}


def tables(at: Faulty) -> list[list[str]]:
    return [in_order(read(at.real, table)) for table in ("replicates", "evaluations", "curves")]


def _write(data: bytes) -> Callable[[Faulty], None]:
    return lambda at: write_bytes(at.store, "curves/a", data)


def _rows(step: int | None = None) -> Callable[[Faulty], list[str]]:
    return lambda at: in_order(read(at.store, "curves", filter=None if step is None else pc.field("step") > step))


OPERATIONS = {
    "write": Operation(lambda at: None, _write(NEW), files),
    "overwrite": Operation(_some, _write(NEW), files),
    "write in parts": Operation(_some, _write(b"x" * 11_000_000), files),
    "write the most in one": Operation(_some, _write(b"x" * filesystem._IN_ONE), files),
    "read": Operation(_some, lambda at: read_bytes(at.store, "curves/a")),
    "list": Operation(_some, lambda at: list_names(at.store, "curves")),
    "list nothing": Operation(_some, lambda at: list_names(at.store, "probes")),
    "list studies": Operation(_packs, lambda at: filesystem.folders(at.store.filesystem, at.store.root)),
    "delete": Operation(_some, lambda at: delete(at.store, "curves/a"), files),
    "delete what is not there": Operation(_some, lambda at: delete(at.store, "curves/c"), files),
    "commit": Operation(_packs, lambda at: commit(at.store, "fc-0", pack_tables("fc-0", ["b"])), tables),
    "rows": Operation(_packs, _rows()),
    "filtered rows": Operation(_packs, _rows(100)),
    "compaction": Operation(_packs, lambda at: merge.compact(at.store), tables),
}


def _refused(error: OSError) -> None:
    """One sentence, with what it is about and without credentials."""
    said = filesystem.reason(error)
    assert "/runs/" in said
    assert KEY not in said
    assert SECRET not in said
    assert "\n" not in said


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_spoiled_request_gives_the_right_answer_or_one_sentence(server, once, name):
    operation = OPERATIONS[name]
    folder = name.replace(" ", "-")
    with faulty(server, f"{folder}/whole/runs") as at:
        operation.before(at)
        seen = [operation.look(at)] if operation.look else []
        at.script.start()
        answer = operation.act(at)
        requests = at.script.seen
        seen += [operation.look(at)] if operation.look else []
    cases = [(kind, number, more) for kind in KINDS for number in range(requests) for more in (0, ALWAYS)]
    refusals = 0
    for index, (kind, number, more) in enumerate(
        random.Random(name).sample(cases, FEW if name == "compaction" else min(len(cases), MOST))
    ):
        with faulty(server, f"{folder}/{index if operation.look else 'whole'}/runs") as at:
            if operation.look:
                operation.before(at)
            at.script.start(kind, number, more)
            try:
                assert operation.act(at) == answer
            except OSError as error:
                _refused(error)
                refusals += 1
            assert at.script.counts[kind]
            at.script.start()
            if operation.look:
                assert operation.look(at) in seen
                operation.act(at)  # again, as `patiently` does
                assert operation.look(at) == seen[-1]
    assert refusals


@pytest.mark.parametrize("kind", [*KINDS, "slow", "timeout"])
def test_a_single_fault_is_not_noticed(bucket_of_little_patience, kind):
    at = bucket_of_little_patience
    _some(at)
    if kind != "timeout":  # takes 6 s longer: curl's mean speed has to fall first
        at.script.start(kind, 0)
        write_bytes(at.store, "curves/a", NEW)
    for ask, answer in ((lambda: read_bytes(at.store, "curves/b"), OLD), (lambda: list_names(at.store, "curves"), ["a", "b"])):
        at.script.start(kind, 0)
        assert ask() == answer
        assert at.script.counts[kind]
    assert read_bytes(at.real, "curves/a") == (OLD if kind == "timeout" else NEW)


def test_a_server_that_is_gone_is_not_an_empty_store(once, bucket, server):
    """Also not where a gateway before it answers 404 to everything."""
    _packs(bucket)
    bucket.proxy.away = True
    for status in (500, 404):
        bucket.proxy.away_status = status
        for ask in (
            lambda: list_names(bucket.store, "curves"),
            lambda: read(bucket.store, "curves"),
            lambda: filesystem.folders(bucket.store.filesystem, bucket.store.root),
        ):
            with pytest.raises(OSError, match="When listing objects") as caught:
                ask()
            _refused(caught.value)
    bucket.proxy.close()
    with pytest.raises(OSError, match="When listing objects"):
        list_names(bucket.store, "curves")
    missing = open_store(
        f"s3://{KEY}:{SECRET}@missing/runs?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{server.port}", "s"
    )
    with pytest.raises(OSError, match="NO_SUCH_BUCKET"):
        list_names(missing, "replicates")


def test_an_unfinished_upload_is_no_file(bucket):
    """What a worker leaves that is killed in the middle of a large file."""
    fresh = filesystem._limited(bucket.store.filesystem, in_one=False)
    stream = fresh.open_output_stream(bucket.store.path("checkpoints", "fd-1", "100.safetensors"))
    stream.write(b"x" * 11_000_000)
    stream.flush()
    assert list_names(bucket.store, "checkpoints/fd-1") == []
    stream.close()
    assert list_names(bucket.store, "checkpoints/fd-1") == ["100.safetensors"]


def test_ctrl_c_within_an_upload_leaves_a_whole_file(bucket):
    real = bucket.real.filesystem
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored

    class Interrupted:
        type_name = "s3"

        def open_output_stream(self, target):
            stream = real.open_output_stream(target)
            _thread.interrupt_main()
            return stream

    _some(bucket)
    try:
        with pytest.raises(KeyboardInterrupt):
            filesystem.upload(Interrupted(), bucket.real.path("curves", "a"), NEW)
    finally:
        signal.signal(signal.SIGINT, before)
    assert read_bytes(bucket.real, "curves/a") == NEW
