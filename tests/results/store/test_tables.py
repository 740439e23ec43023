"""What a reader of a store sees: all of a committed pack or nothing, and one pack per replicate."""

import errno
import json
import logging
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.cli.arguments import stores_of
from results.errors import StoreError
from results.rows.probe_values import add
from results.store import merge
from results.store import tables as store
from results.store.manifest import NEWEST, digest, newest_manifest, write_manifest
from results.store.parquet import densest
from results.store.schema import SCHEMAS
from results.store.tables import commit, committed, log_path, open_store, read
from results.store.verify import verify
from tests.results.store.sample_rows import STARTED, commit_pack, failure, in_order, manifest, number, pack_tables

TABLES = [table for table in SCHEMAS if table != "failures"]


def expected(packs: dict[str, list[str]], table: str) -> list[str]:
    """By hand, without the store: every key's rows from the smallest pack that holds it."""
    best = {key: min(pack for pack, keys in packs.items() if key in keys) for keys in packs.values() for key in keys}
    rows = [row for pack, keys in packs.items() for row in pack_tables(pack, keys)[table].to_pylist()]
    return sorted(repr(row) for row in rows if best[row["key"]] == row["pack"])


def everything(at: store.Store) -> dict[str, list[str]]:
    return {table: in_order(read(at, table)) for table in SCHEMAS}


def test_a_committed_pack_is_read_back_in_every_table(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a", "b"])
    for table in TABLES:
        assert in_order(read(at, table)) == expected({"fd-1": ["a", "b"]}, table)
        assert read(at, table).schema == SCHEMAS[table]
    assert committed(at).num_rows == 2
    assert store.studies(tmp_path) == ["study"]


def test_an_empty_store_has_empty_tables_of_the_right_schema(tmp_path):
    at = open_store(tmp_path / "nowhere", "study")
    assert {table: read(at, table) for table in SCHEMAS} == {table: schema.empty_table() for table, schema in SCHEMAS.items()}
    assert store.studies(tmp_path / "nowhere") == []
    assert store.list_names(at, "manifests") == []


PACKS = st.dictionaries(
    st.sampled_from(["fc-0", "fd-0", "fd-1", "fe-7", "ff-a"]),
    st.lists(st.sampled_from("abcdef"), min_size=1, unique=True),
    min_size=1,
)


@settings(max_examples=25, deadline=None)
@given(PACKS, st.sets(st.sampled_from([0, 1, 2, 3])))
def test_the_smallest_pack_wins_whatever_the_order_and_however_often_compacted(packs, compact_after):
    with tempfile.TemporaryDirectory() as folder:
        at = open_store(folder, "study")
        so_far = {}
        for index, (pack, keys) in enumerate(packs.items()):
            commit_pack(at, pack, keys)
            so_far[pack] = keys
            if index in compact_after:
                merge.compact(at)
            for table in TABLES:
                assert in_order(read(at, table)) == expected(so_far, table)


@settings(max_examples=15, deadline=None)
@given(PACKS, PACKS, st.booleans(), st.booleans())
def test_merged_stores_read_as_the_union(mine, theirs, compact_mine, compact_theirs):
    with tempfile.TemporaryDirectory() as folder:
        # one pack id means one list of keys, as it is a hash of them
        theirs = {pack: mine.get(pack, keys) for pack, keys in theirs.items()}
        into, other = open_store(f"{folder}/a", "study"), open_store(f"{folder}/b", "study")
        for at, packs, compacted in ((into, mine, compact_mine), (other, theirs, compact_theirs)):
            for pack, keys in packs.items():
                commit_pack(at, pack, keys)
            if compacted:
                merge.compact(at)
        merge.merge(into, [other])
        for table in TABLES:
            assert in_order(read(into, table)) == expected(mine | theirs, table)
        assert merge.merge(into, [other]).replicates == 0


def test_two_failures_of_one_attempt_are_both_kept_with_their_logs(tmp_path):
    """Two machines tried the same pack; a failure that is there already is not counted as another one."""
    into, other = open_store(tmp_path / "a", "study"), open_store(tmp_path / "b", "study")
    for place, (at, attempts) in enumerate([(into, [1]), (other, [1, 2])]):
        for attempt in attempts:
            rows = failure("fd-9", attempt)
            then = rows["at"][0].as_py() + timedelta(hours=place, minutes=attempt)
            rows = rows.set_column(rows.schema.get_field_index("at"), "at", pa.array([then], rows.schema.field("at").type))
            commit(at, f"fd-9-{attempt}", {"failures": rows})
            store.write_bytes(at, log_path("fd-9", attempt), f"machine {place}, attempt {attempt}".encode())
    for found in (2, 0):
        assert merge.merge(into, [other]).failures == found
        rows = sorted(read(into, "failures").to_pylist(), key=lambda row: row["attempt"])
        assert [(row["attempt"], row["at"].hour - STARTED.hour) for row in rows] == [(1, 0), (2, 1), (3, 1)]
        logs = [store.read_bytes(into, log_path("fd-9", row["attempt"])).decode() for row in rows]
        assert logs == ["machine 0, attempt 1", "machine 1, attempt 1", "machine 1, attempt 2"]


def test_merging_takes_failures_manifests_and_weights_along_and_counts_them(tmp_path):
    into, other = open_store(tmp_path / "a", "study"), open_store(tmp_path / "b", "study")
    commit_pack(into, "fd-1", ["a"])
    commit_pack(other, "fd-2", ["a", "b"])
    commit(other, "fd-9-1", {"failures": failure("fd-9", 1)})
    plan = json.dumps(manifest({"transformer": ["a", "b"]})).encode()
    store.write_bytes(other, "manifests/0011.yaml", plan)
    store.write_file(other, other.shared("artifacts", "a", "0", "200.safetensors"), b"weights")
    assert merge.merge(into, [other]) == merge.Merged(packs=1, replicates=2, superseded=1, failures=1, manifests=1, artifacts=1)
    assert read(into, "failures").to_pylist() == failure("fd-9", 1).to_pylist()
    assert store.read_bytes(into, "manifests/0011.yaml") == plan
    assert (tmp_path / "a/artifacts/a/0/200.safetensors").read_bytes() == b"weights"
    assert read(into, "replicates", ["key", "pack"]).to_pylist() == [
        {"key": "a", "pack": "fd-1"},
        {"key": "b", "pack": "fd-2"},
    ]


def test_of_merged_plans_the_one_of_most_replicates_holds(tmp_path):
    stores = [open_store(tmp_path / name, "study") for name in "abc"]
    for at, name, keys in zip(stores, ["01", "02", "03"], [["a"], ["a", "b", "c"], ["a", "b"]], strict=True):
        store.write_bytes(at, f"manifests/{name}.yaml", json.dumps(manifest({"transformer": keys})).encode())
        os.utime(at.path(f"manifests/{name}.yaml"), (1000 * int(name), 1000 * int(name)))
    into, *others = stores
    assert merge.merge(into, others).manifests == 2
    assert newest_manifest(into) == ("02", manifest({"transformer": ["a", "b", "c"]}))


def test_a_copied_store_knows_its_newest_manifest_whatever_the_times_of_its_files(tmp_path):
    at = open_store(tmp_path, "study")
    plans = [manifest({"transformer": keys}) for keys in (["a", "b"], ["a"])]
    for plan in plans:
        write_manifest(at, json.dumps(plan).encode())
    name = digest(json.dumps(plans[1]).encode())
    os.utime(at.path(f"manifests/{name}.yaml"), (0, 0))  # as a copy or a clone leaves them
    assert newest_manifest(at) == (name, plans[1])
    store.write_bytes(at, NEWEST, b"03")
    with pytest.raises(ValueError, match="newest_manifest names 03, which is not in"):
        newest_manifest(at)
    for content in (b"../01", b"", b"0" * 1000):
        store.write_bytes(at, NEWEST, content)
        with pytest.raises(ValueError, match="newest_manifest names no manifest; delete it"):
            newest_manifest(at)


@pytest.mark.parametrize("content", [b"{}", b"study: quick", b"[]", b"\xff\xfe"])
def test_a_file_that_is_no_manifest_is_named(tmp_path, content):
    at = open_store(tmp_path, "study")
    assert newest_manifest(at) is None
    store.write_bytes(at, "manifests/0011.yaml", content)
    with pytest.raises(ValueError, match=r"manifests/0011\.yaml is no manifest"):
        newest_manifest(at)


def test_stores_that_scored_different_sets_under_one_name_are_not_merged(tmp_path):
    into, other = open_store(tmp_path / "a", "study"), open_store(tmp_path / "b", "study")
    commit_pack(into, "fe-1", ["a"], sets={"sparse": "one"})
    commit_pack(other, "fe-2", ["b"], sets={"sparse": "two"})
    with pytest.raises(ValueError, match=r"'sparse' .* one in .* two in"):
        merge.merge(into, [other])
    assert store.list_names(into, "replicates") == ["fe-1.parquet"]


def test_compaction_leaves_one_file_a_table_and_no_uncommitted_row(tmp_path):
    at = open_store(tmp_path, "study")
    for pack, keys in {"fd-1": ["a"], "fd-2": ["b", "a"], "fd-3": ["c"]}.items():
        commit_pack(at, pack, keys)
    commit(at, "fd-4", {"curves": pack_tables("fd-4", ["d"])["curves"]})  # a pack that is being committed now
    add(at, "fd-4", "drift", [{"key": "d", "stage": 0, "step": 200, "value": 1.0}])
    for pack, keys in {"fd-1": ["a"], "fd-2": ["b", "a"]}.items():
        for probe in ("drift", "heads"):
            add(at, pack, probe, [{"key": key, "stage": 0, "step": 200, "value": number(pack, key, probe)} for key in keys])
    commit(at, "fd-9-1", {"failures": failure("fd-9", 1)})
    before = everything(at)
    merge.compact(at)
    assert everything(at) == before
    for table in SCHEMAS:
        names = store.list_names(at, table)
        assert [name.split("-")[0] for name in names if not name.startswith("fd-4.")] == ["compacted"], table
    assert "fd-4.parquet" in store.list_names(at, "curves")
    assert "fd-4.drift.parquet" in store.list_names(at, "probes")
    files = {table: store.list_names(at, table) for table in SCHEMAS}
    merge.compact(at)
    assert {table: store.list_names(at, table) for table in SCHEMAS} == files


def test_compaction_puts_numbers_that_resemble_each_other_side_by_side(tmp_path):
    random, keys = np.random.default_rng(0), ["a", "b", "c", "e"]
    rows = [  # a schedule is the same in every replicate
        {"key": key, "stage": 0, "pack": "fd-1", "step": step, "metric": metric, "value": value}
        for key in keys
        for step in range(500)
        for metric, value in (("loss", random.random()), ("lr", 1e-3 * (1 - step / 500)))
    ]
    written = pack_tables("fd-1", keys) | {"curves": pa.Table.from_pylist(rows, SCHEMAS["curves"])}
    at = open_store(tmp_path, "study")
    commit(at, "fd-1", written)
    merge.compact(at)
    (name,) = store.list_names(at, "curves")
    path = tmp_path / "study" / "curves" / name
    assert path.stat().st_size < len(densest([written["curves"]]))
    metrics = pa.parquet.read_table(path)["metric"].to_pylist()
    assert sum(one != other for one, other in pairwise(metrics)) == 1
    assert in_order(read(at, "curves")) == in_order(written["curves"])


def test_what_a_probe_adds_after_a_compaction_takes_the_place_of_the_same_steps_alone(tmp_path):
    at, other = open_store(tmp_path / "a", "study"), open_store(tmp_path / "b", "study")

    def values():
        rows = read(at, "probes", ["key", "step", "value"], filter=pc.field("probe") == "drift").to_pylist()
        return sorted((row["key"], row["step"], row["value"]) for row in rows)

    def of_step(step, **values):
        return [{"key": key, "stage": 0, "step": step, "value": value} for key, value in values.items()]

    commit_pack(at, "fd-1", ["a"])
    for each in (at, other):
        commit_pack(each, "fd-2", ["a", "b", "c"])
        add(each, "fd-2", "drift", of_step(100, a=1.0, b=1.0, c=1.0))
        add(each, "fd-2", "drift", of_step(200, b=2.0, c=2.0))
    merge.compact(at)
    add(at, "fd-2", "drift", [*of_step(200, b=3.0), *of_step(200, b=4.0), *of_step(300, c=5.0)])
    wanted = [("b", 100, 1.0), ("b", 200, 3.0), ("b", 200, 4.0), ("c", 100, 1.0), ("c", 200, 2.0), ("c", 300, 5.0)]
    assert values() == wanted
    add(other, "fd-2", "drift", [*of_step(200, b=3.0), *of_step(200, b=4.0), *of_step(300, c=5.0)])
    # the pack as a whole comes back, with a replicate that the compaction left out, as another pack has it too
    assert merge.merge(at, [other]).replicates == 1
    assert values() == wanted
    for _ in range(2):
        merge.compact(at)
        assert values() == wanted
        assert len(store.list_names(at, "probes")) == 1


@pytest.mark.parametrize("survived", range(0, 24, 3))
def test_a_crash_during_compaction_is_invisible_and_the_next_one_finishes(tmp_path, monkeypatch, survived):
    at = open_store(tmp_path, "study")
    for pack, keys in {"fd-1": ["a"], "fd-2": ["b", "a"], "fd-3": ["c"]}.items():
        commit_pack(at, pack, keys)
    add(at, "fd-2", "drift", [{"key": "b", "stage": 0, "step": 200, "value": 1.0}])
    before = everything(at)
    done = []

    def dies(action):
        def acts(*arguments):
            if len(done) == survived:
                raise KeyboardInterrupt
            done.append(action(*arguments))

        return acts

    with monkeypatch.context() as patch:
        patch.setattr(merge, "write_bytes", dies(merge.write_bytes))
        patch.setattr(merge, "delete", dies(merge.delete))
        if survived < 21:  # five tables are written and 3 × 5 + 1 files deleted
            with pytest.raises(KeyboardInterrupt):
                merge.compact(at)
        else:
            merge.compact(at)
    assert everything(at) == before
    only = read(at, "curves", ["value"], filter=pc.field("key") == "b")
    assert only.num_rows == 2
    commit_pack(at, "fd-2", ["b", "a"])  # a worker that does its work again
    assert everything(at) == before
    merge.compact(at)
    assert everything(at) == before
    assert len(store.list_names(at, "curves")) == 1


def test_rows_without_their_replicates_row_do_not_exist(tmp_path, monkeypatch):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    before = everything(at)
    write = store.write_bytes

    def dies_at_the_commit(to, path, data):
        if path.startswith("replicates/"):
            raise KeyboardInterrupt
        write(to, path, data)

    monkeypatch.setattr(store, "write_bytes", dies_at_the_commit)
    with pytest.raises(KeyboardInterrupt):
        commit_pack(at, "fd-1", ["a", "b"])
    assert "fd-1.parquet" in store.list_names(at, "evaluations")
    assert everything(at) == before
    monkeypatch.undo()
    commit_pack(at, "fd-1", ["a", "b"])
    assert in_order(read(at, "evaluations")) == expected({"fe-1": ["a"], "fd-1": ["a", "b"]}, "evaluations")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_half_visible_and_says_so_in_one_sentence(tmp_path, monkeypatch, call):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    before, files = everything(at), sorted(tmp_path.rglob("*"))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match=r"fe-1\.parquet .*\(No space left on device\)") as caught:
            commit_pack(at, "fe-1", ["a", "b"])
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == files
    assert everything(at) == before


def test_a_file_that_outgrows_the_allowed_size_is_removed(tmp_path):
    code = """if True:
        import resource, signal, sys
        from results.store import tables as store
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            store.write_bytes(store.open_store(sys.argv[1], "study"), "curves/fe-1.parquet", bytes(10000))
        except OSError as error:
            print(error)
    """
    found = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "curves/fe-1.parquet can't be written (File too large)" in found.stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_from_before_a_nullable_column_was_appended_reads_as_null(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    old = pack_tables("fe-1", ["a"])["evaluations"].drop_columns(["value"])
    pyarrow.parquet.write_table(old, at.path("evaluations", "fe-1.parquet"))
    commit_pack(at, "fe-2", ["b"])
    rows = read(at, "evaluations")
    assert rows["value"].null_count == rows.num_rows == 10


def test_columns_and_filter_give_what_reading_everything_gives(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a", "b"])
    commit_pack(at, "fd-1", ["b"])
    condition = (pc.field("set") == "sparse") & (pc.field("key") == "b")
    assert read(at, "evaluations", ["errors", "set"], condition) == read(at, "evaluations").filter(condition).select(
        ["errors", "set"]
    )
    with pytest.raises(ValueError, match="table 'curves' has no column 'valeu'"):
        read(at, "curves", ["valeu"])
    with pytest.raises(ValueError, match="there is no table 'curve'"):
        read(at, "curve")


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(tmp_path):
    at = open_store(tmp_path, "study")
    tables = pack_tables("fe-1", ["a"])
    for wrong, says in [
        (tables["curves"].drop_columns(["metric"]), "no column 'metric'"),
        (tables["curves"].set_column(2, "pack", pa.array(["fe-2"] * 2)), "packs other than fe-1"),
        (tables["curves"].set_column(0, "key", pa.nulls(2, pa.string())), "do not fit its schema"),
    ]:
        with pytest.raises(ValueError, match=says):
            commit(at, "fe-1", {"evaluations": tables["evaluations"], "curves": wrong})
    assert list(tmp_path.iterdir()) == []


def test_reading_results_needs_neither_torch_nor_ray_nor_wandb():
    names = "results.store.tables, results.store.merge, results.dashboards.publish"
    code = f"import sys, {names}; print(*{{'torch', 'ray', 'wandb'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.fixture
def bucket(monkeypatch):
    server_module = pytest.importorskip("moto.server", reason="the S3 tests need moto and Flask")
    boto3 = pytest.importorskip("boto3", reason="the S3 tests need boto3")
    for name, value in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    client.create_bucket(Bucket="bucket")
    yield f"?endpoint_override=http://{host}:{port}&scheme=http&region=us-east-1"
    server.stop()


def test_an_object_store_behaves_as_a_folder_does(bucket, tmp_path):
    uri = f"s3://bucket/some/runs{bucket}"
    at = open_store(uri, "study")
    assert store.studies(uri) == []
    at.check_writable()
    assert store.studies(uri) == []
    packs = {"fd-1": ["a"], "fd-2": ["b", "a"], "fd-3": ["c"]}
    for pack, keys in packs.items():
        commit_pack(at, pack, keys)
    commit(at, "fd-9-1", {"failures": failure("fd-9", 1)})
    store.write_bytes(at, "manifests/0011.yaml", json.dumps(manifest({"transformer": ["a"]})).encode())
    store.write_bytes(at, "checkpoints/fd-4/100.safetensors", b"state")
    assert store.studies(uri) == ["study"]
    assert stores_of(f"s3://bucket/some{bucket}", None) == [uri]
    assert store.list_names(at, "checkpoints/fd-4") == ["100.safetensors"]
    assert store.read_bytes(at, "checkpoints/fd-4/100.safetensors") == b"state"
    store.delete(at, "checkpoints/fd-4")
    store.delete(at, "checkpoints/fd-4")
    assert store.list_names(at, "checkpoints/fd-4") == []
    for table in TABLES:
        assert in_order(read(at, table)) == expected(packs, table)
    before = everything(at)
    merge.compact(at)
    assert everything(at) == before
    here = open_store(tmp_path, "study")
    merge.merge(here, [at])
    assert everything(here) == before
    assert (verify(at).unsealed, verify(at).damage) == (1, [])  # a manifest that is not named for its digest
    store.write_bytes(at, "curves/fd-7.parquet", b"PAR1")
    assert [what for what, _ in verify(at).damage] == [f"{at.path('curves/fd-7.parquet')} is damaged"]
    with pytest.raises(ValueError, match=r"bucket/some/runs/study/curves/fd-7\.parquet"):
        read(at, "curves")


def test_a_bucket_that_is_not_there_is_refused_in_one_sentence(bucket):
    with pytest.raises(StoreError, match="the store s3://missing/runs can't be written") as caught:
        open_store(f"s3://missing/runs{bucket}", "study").check_writable()
    assert "secret" not in str(caught.value)
