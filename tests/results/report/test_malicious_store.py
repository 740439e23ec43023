"""A store that someone else made: whatever its names, files and sizes, it is refused in one sentence or does no harm."""

import io
import json
import os
import pickle
import re
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.claims.show import show_claims
from results.dashboards.publish import publish
from results.progress.status import show_status
from results.report.report import write_report
from results.store import manifest, parquet
from results.store import tables as store
from results.store.merge import compact, merge
from results.store.schema import SCHEMAS
from results.store.tables import check_name, commit, open_store, read
from tests.pickle_bomb import Bomb
from tests.results.synthetic import digest, failure, tables, write
from tests.results.synthetic import manifest as plan

EVIL = ("../../evil", "..", "/tmp/evil", "a/../../evil", "a\0b", "x" * 300, "", ".hidden", "a/b")
HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def said(act):
    """What a refusal says, or nothing."""
    try:
        act()
    except ValueError as error:
        return str(error)
    return ""


def claims(at):
    """A store that states no claim, or lacks what they need, is refused in one sentence."""
    sentence = said(lambda: show_claims([at], lambda line: None))
    assert "\n" not in sentence


def evil_store(folder, pack="fd-1", key="a" * 32, condition="transformer", failed=None):
    """A store whose rows, in a compacted file that no pack's name is checked against, hold these names."""
    at = open_store(folder, "synthetic")
    made = plan(seeds=1, names=("transformer",))
    for table, rows in next(iter(tables(made).values())).items():
        columns = {"pack": pack, "key": key} | ({"condition": condition} if table == "replicates" else {})
        for column, value in columns.items():
            place = rows.schema.get_field_index(column)
            rows = rows.set_column(place, rows.schema.field(column), pa.array([value] * rows.num_rows, pa.string()))
        store.write_bytes(at, f"{table}/compacted-0.parquet", parquet.serialise(rows))
    made["replicates"][0][0] = key
    store.write_bytes(at, "manifests/00.yaml", json.dumps(made).encode())
    if failed is not None:
        rows = pa.Table.from_pylist([failure(key) | {"pack": failed}], SCHEMAS["failures"])
        store.write_bytes(at, "failures/compacted-0.parquet", parquet.serialise(rows))
    return at


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("column", ["pack", "key", "failed"])
def test_names_in_rows_never_lead_a_merge_or_compaction_out_of_the_store(tmp_path, column, name):
    at = evil_store(tmp_path / "deep/theirs", **{column: name})
    into = open_store(tmp_path / "deep/ours", "synthetic")
    with pytest.raises(ValueError, match=r"can't (be the )?name .*") as caught:
        merge(into, [at])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    compact(at)
    show_status(at, lambda line: None)
    claims(at)
    if name == EVIL[0]:  # drawing takes seconds
        write_report(at)
    outside = [each for each in tree(tmp_path) if not each.startswith(("deep/theirs/synthetic", "deep/ours/synthetic"))]
    assert outside == ["deep", *(["deep/ours"] if (tmp_path / "deep/ours").exists() else []), "deep/theirs"]


@pytest.mark.parametrize("name", EVIL)
def test_paths_below_a_store_are_refused_where_they_leave_it(tmp_path, name):
    at = open_store(tmp_path / "store", "synthetic")
    with pytest.raises(ValueError, match="can't be the name of a pack"):
        commit(at, name, {})
    with pytest.raises(ValueError, match="can't be the name of a key"):
        check_name(name, "a key")
    with pytest.raises(ValueError, match="can't name a folder"):
        open_store(tmp_path, name)
    if name not in (".hidden", "a/b"):
        for use in (at.path, at.shared):
            with pytest.raises(ValueError, match="can't name a file of a store"):
                use("artifacts", name)
    assert tree(tmp_path) == []


@pytest.mark.filterwarnings("ignore:Glyph 0", "ignore:constrained_layout not applied")  # such a figure can't be pretty
@pytest.mark.parametrize(
    "name", ["../../evil", HTML, *(pytest.param(each, marks=pytest.mark.slow) for each in ("a\0b", "x" * 300))]
)
def test_names_of_conditions_and_sets_are_text_to_every_reader(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = open_store(tmp_path / "store", "synthetic")
    made = plan(seeds=3)
    made["conditions"][0]["name"] = name
    made["sets"][f"{name}#"] = made["sets"].pop("sparse")
    for condition in made["conditions"]:
        condition["sets"][f"{name}#"] = condition["sets"].pop("sparse")
    made |= {"question": name, "reductions": [name], "overrides": [name], "git": name}
    for key in ("versions", "source", "numerics"):
        made[key] = {**made[key], name: name}
    store.write_bytes(at, "manifests/00.yaml", json.dumps(made).encode())
    original = plan(seeds=3)
    for pack, rows in tables(original).items():
        for table, column, old, new in (
            ("replicates", "condition", "transformer", name),
            ("evaluations", "set", "sparse", f"{name}#"),
        ):
            values = [new if value == old else value for value in rows[table][column].to_pylist()]
            place = rows[table].schema.get_field_index(column)
            rows[table] = rows[table].set_column(place, rows[table].schema.field(column), pa.array(values, pa.string()))
        commit(at, pack, rows)
    broken = failure(digest("gone"), exception=name) | {"traceback": name, "kind": "raised"}
    commit(at, "fd-9-1", {"failures": pa.Table.from_pylist([broken], SCHEMAS["failures"])})
    show_status(at, lambda line: None)
    claims(at)
    page = write_report(at).read_text()
    assert all(marker not in page for marker in ("<script>alert", "<img src=x"))
    drawn = "".join(path.read_text() for path in (tmp_path / "store/synthetic/report/figures").glob("*.svg"))
    assert all(marker not in drawn for marker in ("<script>alert", "<img src=x"))
    compact(at)
    assert {each.split("/")[0] for each in tree(tmp_path)} == {"store"}
    assert {each.split("/")[1] for each in tree(tmp_path / "store") if "/" in each} <= {"manifests", "report", *SCHEMAS}


def test_links_that_lead_out_of_a_store_are_not_written_or_deleted_through(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine")
    at = open_store(tmp_path / "store", "synthetic")
    write(at, plan(seeds=2))
    folder = tmp_path / "store/synthetic"
    for name in ("checkpoints", "probes", "report", "wandb", "rescored"):
        (folder / name).symlink_to(outside)
    for act in (
        lambda: store.write_bytes(at, "checkpoints/1.safetensors", b"x"),
        lambda: store.delete(at, "checkpoints/precious.txt"),
        lambda: store.write_bytes(at, "rescored/own.parquet", b"x"),
    ):
        with pytest.raises(OSError, match=r"symbolic link .*out of the store"):
            act()
    with pytest.raises(ValueError, match="is a symbolic link"):
        publish(at, "offline")
    with pytest.raises(OSError, match=r"symbolic link .*out of the store"):
        write_report(at)
    store.delete(at, "probes")
    assert not (folder / "probes").is_symlink()
    assert tree(outside) == ["precious.txt"]


def test_a_store_reached_through_a_link_works(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    at = open_store(tmp_path / "runs", "synthetic")
    write(at, plan(seeds=2))
    compact(at)
    assert write_report(at).exists()


def test_a_merge_copies_no_file_that_a_link_points_to(tmp_path):
    (tmp_path / "secret").write_text("password")
    at, into = evil_store(tmp_path / "theirs"), open_store(tmp_path / "ours", "synthetic")
    folder = tmp_path / f"theirs/artifacts/{'a' * 32}/0"
    folder.mkdir(parents=True)
    (folder / "1.safetensors").symlink_to(tmp_path / "secret")
    (folder / "2.safetensors").write_bytes(b"weights")
    (tmp_path / "theirs/synthetic/manifests/1.yaml").symlink_to(tmp_path / "secret")
    failed = failure(digest("gone"))
    commit(at, "failed-1", {"failures": pa.Table.from_pylist([failed], SCHEMAS["failures"])})
    log = tmp_path / "theirs/synthetic" / store.log_path(failed["pack"], failed["attempt"])
    log.parent.mkdir()
    log.symlink_to(tmp_path / "secret")
    os.utime(tmp_path / "secret", (0, 0))
    assert merge(into, [at]).artifacts == 1
    assert "password" not in "".join(
        path.read_text(errors="replace") for path in (tmp_path / "ours").rglob("*") if path.is_file()
    )


def test_a_pickle_in_place_of_any_file_runs_nothing(tmp_path):
    trap = tmp_path / "trap"
    bomb = pickle.dumps(Bomb(trap))
    at = open_store(tmp_path / "store", "synthetic")
    write(at, plan(seeds=2))
    for path in (*(f"{table}/fd-1.parquet" for table in SCHEMAS), "manifests/ff.yaml"):
        store.write_bytes(at, path, bomb)
        for act in (show_status, lambda at, say: claims(at), lambda at, say: write_report(at)):
            sentence = said(lambda act=act: act(at, lambda line: None))
            assert "\n" not in sentence
            assert not sentence or path.split("/")[0] in sentence
        store.delete(at, path)
    assert not trap.exists()
    pickle.loads(bomb).close()
    assert trap.exists()  # the bomb is one


def sized(at, table, metadata):
    rows = next(iter(tables(plan(seeds=1)).values()))[table].replace_schema_metadata(metadata)
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    store.write_bytes(at, f"{table}/fd-1.parquet", sink.getvalue())


def test_metadata_beyond_the_limit_is_refused_before_they_are_parsed(tmp_path):
    at = open_store(tmp_path, "synthetic")
    sized(at, "curves", {"comment": "x" * (parquet.MOST_FOOTER + 1)})
    before = pa.total_allocated_bytes()
    with pytest.raises(ValueError, match=r"curves/fd-1.parquet .*metadata.* 16777216") as caught:
        read(at, "curves")
    assert "\n" not in str(caught.value)
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_schema_of_a_million_columns_and_rows_that_no_file_can_hold_are_refused(tmp_path):
    at = open_store(tmp_path, "synthetic")
    sink = io.BytesIO()
    pq.write_table(pa.table({f"column{i}": [1] for i in range(5000)}), sink)
    store.write_bytes(at, "replicates/fd-1.parquet", sink.getvalue())
    with pytest.raises(ValueError, match=r"no column 'key' .*'column0'") as caught:
        read(at, "replicates")
    assert len(str(caught.value)) < 500
    store.delete(at, "replicates/fd-1.parquet")
    rows, count = next(iter(tables(plan(seeds=1)).values()))["curves"], 3_000_000
    same = {
        f.name: pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), rows[f.name].slice(0, 1).combine_chunks())
        for f in rows.schema
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(same).cast(rows.schema), sink, compression="zstd", max_rows_per_page=count, data_page_size=2**30)
    assert len(sink.getvalue()) * parquet.MOST_ROWS < count
    store.write_bytes(at, "curves/fd-2.parquet", sink.getvalue())
    with pytest.raises(ValueError, match="claims 3000000 rows in"):
        read(at, "curves")


def test_a_manifest_beyond_the_limit_is_refused_before_it_is_read(tmp_path):
    at = open_store(tmp_path, "synthetic")
    write(at, plan(seeds=1))
    path = tmp_path / "synthetic/manifests/big.yaml"
    with path.open("wb") as stream:
        stream.truncate(manifest.MOST_BYTES + 1)  # sparse: takes no space
    for act in (lambda: show_status(at, lambda line: None), lambda: write_report(at)):
        with pytest.raises(ValueError, match=r"big.yaml .*268435457 .* 268435456"):
            act()


WRONG = (
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"null",
    b'{"study": "x", "sets": [], "conditions": {}, "replicates": 3}',
    b'{"study": "x", "sets": {}, "conditions": [], "replicates": [["k", 7, 0, 0]]}',
    b'{"study": "x", "sets": {}, "conditions": [{"name": {}}], "replicates": []}',
    b'{"study": "x", "sets": {"a": 1}, "conditions": [], "replicates": []}',
    b"1" * 10_000,
    b"\xff\xfe",
    b'{"study": "' + b"x" * 10**8 + b'"}',
)


@pytest.mark.parametrize("content", WRONG, ids=range(len(WRONG)))
def test_a_manifest_of_another_shape_is_one_sentence_to_every_reader(tmp_path, content):
    at = open_store(tmp_path, "synthetic")
    write(at, plan(seeds=1))
    store.write_bytes(at, "manifests/zz.yaml", content)
    os.utime(tmp_path / "synthetic/manifests/zz.yaml", (2**31, 2**31))
    for act in (
        lambda: show_status(at, lambda line: None),
        lambda: write_report(at),
        lambda: show_claims([at], lambda line: None),
    ):
        with pytest.raises(ValueError, match=re.compile(r"manifests/zz.yaml is no manifest")) as caught:
            act()
        assert len(str(caught.value)) < 500
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_hundred_thousand_foreign_files_change_nothing_and_cost_seconds(tmp_path):
    at = open_store(tmp_path, "synthetic")
    write(at, plan(seeds=2))
    before = []
    show_status(at, before.append)
    for folder, suffix, count in (
        ("replicates", ".txt", 40_000),
        ("manifests", ".md", 20_000),
        ("failures", ".tmp", 10_000),
        ("..", "", 30_000),
    ):
        (tmp_path / "synthetic" / folder).mkdir(exist_ok=True)
        for index in range(count):
            os.mknod(tmp_path / "synthetic" / folder / f"foreign-{index}{suffix}")
    after = []
    began = time.process_time()
    assert store.studies(tmp_path) == ["synthetic"]
    show_status(at, after.append)
    write_report(at)
    spent = time.process_time() - began
    assert after == before
    assert spent < 20  # about 5 s, most of it the figures; a file read or opened each would take minutes on an object store
