"""A live run tells how a study stands while it trains, is filled at its end, and can neither slow nor stop the study."""

import json
import os
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from harness.run import run
from harness.study.load import from_tree
from results.dashboards import live_feed
from results.dashboards.live_feed import LiveFeed
from results.dashboards.live_process import CommittedRows, Views, answers, teller
from results.errors import StudyError
from results.store import tables
from results.store.tables import commit, committed, open_store, read
from tests.harness.killed import without_report
from tests.harness.tiny import STUDY
from tests.results.dashboards.offline_file import read_records
from tests.results.synthetic import manifest, write
from tests.results.synthetic import tables as synthetic_tables

PLAN = manifest(12)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders that W&B's client writes into beside its runs."""
    folder = tmp_path_factory.mktemp("wandb")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONFIG", "CACHE", "DATA"):
            patch.setenv(f"WANDB_{name}_DIR", str(folder / name))
        yield


@pytest.fixture(scope="module")
def lived(places, tmp_path_factory):
    """A study of which two looks were shown and then the end: its store, what was said, its offline file and TensorBoard's."""
    root = tmp_path_factory.mktemp("live")
    store = open_store(root / "runs", "synthetic")
    write(store, PLAN, ended=4)
    about = {"store": str(root / "runs"), "study": "synthetic", "mode": "offline", "runs": "study"}
    views = Views(about | {"tensorboard": str(root / "tensorboard")}, lambda line: None)
    views.show({"committed": 8, "planned": 24, "running": 4, "replicates_per_minute": 2.5})
    first = middles(store)
    for pack, rows in synthetic_tables(PLAN).items():  # more is committed, in packs of other names
        renamed = {name: _in_pack(table, f"aa-{pack}") for name, table in rows.items() if name != "failures"}
        commit(store, f"aa-{pack}", renamed)
    (Path(store.path("report"))).mkdir()
    Path(store.path("report", "index.html")).write_text("<p>the report</p>")
    views.show({"committed": 24, "planned": 24, "running": 0})
    said = views.end()
    (folder,) = Path(store.path("wandb")).glob("offline-run-*")
    return store, first, said, folder, read_records(folder), root / "tensorboard" / "synthetic"


def _in_pack(table, pack):
    place = table.schema.get_field_index("pack")
    return table.set_column(place, table.schema.field("pack"), [[pack] * table.num_rows])


def middles(store):
    """Median and largest finite error of each condition and set over the committed replicates, from Parquet alone."""
    last = {(row["key"], row["pack"]): row for row in committed(store).to_pylist()}
    found = {}
    for row in read(store, "evaluations").to_pylist():
        replicate = last[row["key"], row["pack"]]
        if row["step"] == replicate["steps"] and (row["metric"], row["weights"]) == ("read", "raw"):
            rate = np.inf if row["errors"] is None else row["errors"] / row["count"]
            found.setdefault(f"{replicate['condition']}/{row['set']}", []).append(rate)
    return found


def history(records):
    items = [record.history.item for record in records if record.WhichOneof("record_type") == "history"]
    return [{each.key or ".".join(each.nested_key): json.loads(each.value_json) for each in line} for line in items]


def test_each_look_tells_the_counts_and_the_quantiles_over_what_is_committed(lived):
    store, first, _, _, records, _ = lived
    looks = [line for line in history(records) if "live/committed" in line]
    assert [(line["live/committed"], line["live/running"]) for line in looks] == [(8, 4), (24, 0)]
    assert looks[0]["live/replicates_per_minute"] == 2.5
    for line, expected in zip(looks, (first, middles(store)), strict=True):
        assert len(expected) == 6
        for name, rates in expected.items():
            assert line[f"live/{name}/median"] == pytest.approx(np.median(rates))
            assert line[f"live/{name}/zero_share"] == pytest.approx(np.mean(np.array(rates) == 0))
            assert line.get(f"live/{name}/max", np.inf) == max(rates)  # absent where it is infinite
    assert [len(first["lstm/sparse"]), len(middles(store)["lstm/sparse"])] == [4, 12]


def test_the_run_ends_with_its_summary_tags_question_report_and_tables(lived):
    store, _, _, folder, records, _ = lived
    starts = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert starts[0].notes == PLAN["question"]
    assert list(starts[0].tags) == ["scale laptop", "fflm", "F2"]
    summary = {}
    for record in records:
        if record.WhichOneof("record_type") == "summary":
            summary |= {each.key: json.loads(each.value_json) for each in record.summary.update if each.key}
    for name, rates in middles(store).items():
        assert summary[f"{name}/median"] == pytest.approx(np.median(rates))
        assert summary[f"{name}/zero_share"] == pytest.approx(np.mean(np.array(rates) == 0))
        assert summary.get(f"{name}/max", np.inf) == max(rates)
    assert "transformer/sparse/max" not in summary  # one diverged
    assert not any("Infinity" in json.dumps(value) for name, value in summary.items() if name.count("/") == 2)
    (page,) = folder.glob("files/media/html/report_*.html")
    assert page.read_text() == "<p>the report</p>"
    artifacts = [record.artifact for record in records if record.WhichOneof("record_type") == "artifact"]
    (whole,) = [each for each in artifacts if each.type == "tables"]
    files = {each.path: each.local_path for each in whole.manifest.contents}
    assert sorted(files) == [f"{name}.parquet" for name in sorted(tables.SCHEMAS)]
    for name in ("replicates", "evaluations", "curves"):
        assert repr(pq.read_table(files[f"{name}.parquet"]).to_pylist()) == repr(read(store, name).to_pylist())
        assert Path(files[f"{name}.parquet"]).is_relative_to(folder)


def test_there_is_one_run_and_the_command_that_sends_it_is_said(lived):
    _, _, said, folder, records, _ = lived
    assert said[1:] == [f"W&B (offline): {folder}", f"  to send it: wandb sync {folder}"]
    assert [record for record in records if record.WhichOneof("record_type") == "exit"]


def test_tensorboard_gets_the_same_numbers(lived):
    from tensorboardX.proto.event_pb2 import Event

    store, first, said, _, _, folder = lived
    assert said[0] == f"TensorBoard: tensorboard --logdir {folder.parent}"
    (file,) = folder.iterdir()
    data, at, values = file.read_bytes(), 0, {}
    while at < len(data):  # records: length, checksum, event, checksum
        (length,) = struct.unpack("<Q", data[at : at + 8])
        for value in Event.FromString(data[at + 12 : at + 12 + length]).summary.value:
            values.setdefault(value.tag, []).append(value.simple_value)
        at += 16 + length
    assert values["committed"] == [8, 24]
    for name, rates in middles(store).items():
        now = np.median(rates)
        assert values[f"{name}/median"] == pytest.approx([np.median(first[name]), now, now])  # two looks and the end


def test_a_look_reads_the_files_of_new_packs_alone(tmp_path, monkeypatch):
    store = open_store(tmp_path, "synthetic")
    write(store, PLAN, ended=4)
    rows, opened, one, several = CommittedRows(store), [], tables.read_file, tables.read_local_files
    rows.summary(PLAN)
    packs = set(committed(store)["pack"].to_pylist())
    for pack, fresh in synthetic_tables(PLAN).items():
        commit(
            store, f"aa-{pack}", {name: _in_pack(table, f"aa-{pack}") for name, table in fresh.items() if name != "failures"}
        )
    monkeypatch.setattr(
        tables, "read_file", lambda filesystem, path, *more: opened.append(path) or one(filesystem, path, *more)
    )
    monkeypatch.setattr(tables, "read_local_files", lambda paths, *more: opened.extend(paths) or several(paths, *more))
    found = rows.summary(PLAN).to_pylist()
    assert {row["finished"] + row["diverged"] for row in found} == {12}
    assert opened
    assert not any(f"/{pack}.parquet" in path for path in opened for pack in packs)


def test_what_goes_wrong_is_said_and_the_next_look_is_answered(tmp_path):
    about = {"store": str(tmp_path), "study": "none", "mode": "off", "runs": "study", "tensorboard": ""}
    store, told = open_store(tmp_path, "none"), []
    tables.write_bytes(store, "manifests/0123456789abcdef.yaml", b"{}")
    lines = [about, {"state": {}}, {"state": {}}, {"end": True}]
    answers(iter(map(json.dumps, lines)), told.append)
    assert len(told) == 3
    assert all("done" in each and "0123456789abcdef.yaml" in each["trouble"][0] for each in told)


def test_each_run_that_is_written_is_a_sign_of_life(tmp_path):
    """A hundred runs may take longer than the driver waits for a silent process."""
    store = open_store(tmp_path, "many")
    write(store, manifest(3))
    about = {"store": str(tmp_path), "study": "many", "mode": "offline", "runs": "replicate", "tensorboard": ""}
    told = []
    answers(iter(map(json.dumps, [about, {"end": True}])), told.append)
    assert told[:-1] == [{"alive": True}] * 7  # the study's own run, and those of three replicates of two conditions
    assert told[-1]["done"]
    assert "W&B (offline)" in told[-1]["lines"][0]


# --- where nothing that is written stays ---


@pytest.mark.parametrize(("runs", "more"), [("study", ""), ("condition", " --runs condition")])
def test_in_a_job_whose_store_is_not_local_the_command_is_said_in_the_place_of_the_folder(
    runs, more, places, tmp_path, monkeypatch
):
    """W&B's files then lie in the job's own folder, which Ray removes."""
    write(open_store(tmp_path / "runs", "synthetic"), PLAN, ended=4)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables.Store, "is_local", False)
    monkeypatch.setattr(tables.Store, "address", "s3://bucket/runs")
    about = {"store": str(tmp_path / "runs"), "study": "synthetic", "mode": "offline", "runs": runs, "tensorboard": ""}
    assert Views(about, lambda line: None).end()[0].startswith(f"W&B (offline): {tmp_path}")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    again = f"manyseeds publish s3://bucket/runs synthetic --mode online{more}"
    assert Views(about, lambda line: None).end() == [
        f"W&B (offline): `{again}` sends it from any machine; that of this job is not kept"
    ]


def test_the_end_of_a_study_needs_no_current_folder(places, tmp_path, monkeypatch):
    """As where the folder that the driver was started in is removed meanwhile."""
    store = open_store(tmp_path / "runs", "synthetic")
    write(store, PLAN, ended=4)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    about = {"store": store.root, "study": "synthetic", "mode": "offline", "runs": "study", "tensorboard": ""}
    told = []
    answers(iter(map(json.dumps, [about, {"end": True}])), told.append)
    monkeypatch.chdir(tmp_path)
    assert told[-1].get("trouble") is None
    assert list(Path(store.path("wandb")).glob("offline-run-*"))


def test_a_defect_of_the_view_says_what_writes_it_later(places, tmp_path, monkeypatch):
    store = open_store(tmp_path / "my runs", "synthetic")
    write(store, PLAN, ended=4)

    def broken(*arguments, **named):
        raise ArithmeticError("planted")

    monkeypatch.setattr("results.dashboards.live_process.publish", broken)
    about = {"store": store.root, "study": "synthetic", "mode": "offline", "runs": "study", "tensorboard": ""}
    told = []
    answers(iter(map(json.dumps, [about, {"end": True}])), told.append)
    trouble = told[-1]["trouble"]
    again = f"manyseeds publish '{store.root}' synthetic --mode offline"
    assert trouble[0] == f"the view of the study failed, and the study goes on: `{again}` writes it"
    assert trouble[-1] == "ArithmeticError: planted"


# --- a server that hangs ---


@pytest.fixture
def silent_server(monkeypatch, places):
    """W&B's address is a socket that accepts, reads nothing and never answers; the event is set once somebody has connected."""
    listener, connected, held = socket.create_server(("127.0.0.1", 0)), threading.Event(), []

    def accept():
        while True:
            try:
                held.append(listener.accept())
            except OSError:
                return
            connected.set()

    threading.Thread(target=accept, daemon=True).start()
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    yield connected
    listener.close()
    for each, _ in held:
        each.close()


def test_a_folder_that_cannot_hold_event_files_is_refused_before_a_study_starts(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=r"tensorboard = .*file: .*file is no folder; name another"):
        LiveFeed(str(tmp_path), "quick", "off", tensorboard=str(tmp_path / "file"))
    with pytest.raises(StudyError, match=r"tensorboard = /proc/x: no folder can be made in /proc \(.*\); name another"):
        LiveFeed(str(tmp_path), "quick", "off", tensorboard="/proc/x")
    with pytest.raises(StudyError, match="must be a folder of this machine"):
        LiveFeed(str(tmp_path), "quick", "off", tensorboard="s3://bucket/events")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LiveFeed(str(tmp_path), "quick", "off", tensorboard="~/events")._about["tensorboard"] == str(tmp_path / "events")


def test_a_process_that_dies_without_wandb_names_no_command_of_wandb(tmp_path, monkeypatch):
    """`manyseeds publish --mode off`, which was advised, is no command."""
    said = []
    monkeypatch.setattr(live_feed, "_START", "raise SystemExit")
    with LiveFeed(str(tmp_path), "quick", "off", tensorboard=str(tmp_path / "events"), say=said.append) as feed:
        feed.finish()
    assert said == [
        "the process that writes TensorBoard's files has died: the results are in the store, and the same command writes "
        "the files again"
    ]


def test_a_driver_that_was_killed_leaves_no_traceback_behind(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(Views, "close", lambda self: closed.append(self))
    ours, drivers = os.pipe()
    os.close(ours)
    about = {"store": str(tmp_path), "study": "nothing", "mode": "off", "runs": "study", "tensorboard": ""}
    with os.fdopen(drivers, "w") as told:  # closing it would raise if an answer were still to be written
        answers(iter(map(json.dumps, [about, {"state": {"committed": 1}}, {"end": True}])), teller(told))
    assert len(closed) == 1


def test_a_server_that_never_answers_costs_no_time_and_is_given_up(silent_server, tmp_path, monkeypatch):
    monkeypatch.setattr(live_feed, "EVERY_S", 0.05)
    monkeypatch.setattr(live_feed, "PATIENCE_S", 0.5)
    write(open_store(tmp_path / "my runs", "synthetic"), PLAN, ended=4)
    monkeypatch.setenv("WANDB_SERVICE", "3-1-unix-/a/run/that/the/caller/has/open")  # not to be used: nobody would connect
    said = []
    with LiveFeed(str(tmp_path / "my runs"), "synthetic", "online", say=said.append) as feed:
        slowest, until = 0.0, time.monotonic() + 60
        while not silent_server.is_set():
            assert time.monotonic() < until
            began = time.thread_time()
            feed.offer({"committed": 8, "planned": 24})
            slowest = max(slowest, time.thread_time() - began)
            time.sleep(0.01)
        began = time.monotonic()
        feed.finish()
    assert time.monotonic() - began < 60  # half a second of patience on a busy machine; otherwise two minutes
    assert slowest < 0.01
    (line,) = said
    publish = f"manyseeds publish '{tmp_path}/my runs' synthetic --mode online sends them"
    assert line == f"W&B gave no sign for 0.5 s and is left alone: the results are in the store, and {publish}"
    assert feed._process.poll() is not None
    with pytest.raises(ProcessLookupError):
        os.killpg(feed._process.pid, 0)


def test_a_study_ends_as_ever_where_the_server_never_answers(silent_server, tmp_path, monkeypatch):
    monkeypatch.setattr(live_feed, "EVERY_S", 0.05)
    monkeypatch.setattr(live_feed, "PATIENCE_S", 0.5)
    without_report(monkeypatch)
    said = []
    words = ["wandb=online", f"store={tmp_path}", "replicates=1", "only=[lstm]", "train.steps=5"]
    assert run(from_tree(yaml.safe_load(STUDY), words), said.append) == 0
    assert committed(open_store(tmp_path, "tiny")).num_rows == 1
    assert [line for line in said if "W&B gave no sign" in line] == said[-1:]


def test_tensorboard_without_its_library_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(live_feed, "find_spec", lambda name: None)
    words = ["tensorboard=here", f"store={tmp_path}"]
    with pytest.raises(StudyError, match=r"^tensorboard needs tensorboardX: pip install 'manyseeds\[tensorboard\]'"):
        run(from_tree(yaml.safe_load(STUDY), words))
    assert not list(tmp_path.iterdir())
