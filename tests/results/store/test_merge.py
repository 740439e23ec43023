"""Merging stores: the same numbers in any order, and a refusal where one replicate and pack has two."""

import itertools
import json
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from results.errors import StoreError, StudyError
from results.rows.probe_values import add
from results.store import tables as store
from results.store.manifest import write_manifest
from results.store.merge import Merged, compact, merge
from results.store.schema import IDENTITY_COLUMNS, SCHEMAS
from results.store.tables import Store, commit, delete, open_store, read
from tests.results.store.sample_rows import commit_pack, in_order, manifest, pack_tables

PACKS = ["fc-0", "fd-0", "fd-1", "fe-7"]
# {pack: (keys, by how much its numbers differ from those of the same pack elsewhere, steps of its probe)}
CONTENT = st.dictionaries(st.sampled_from(PACKS), st.tuples(st.integers(0, 2), st.sets(st.sampled_from([10, 20]))), min_size=1)
STORES = st.tuples(CONTENT, CONTENT, CONTENT)
KEYS = {"fc-0": ["a", "d"], "fd-0": ["a", "b"], "fd-1": ["c"], "fe-7": ["b", "c", "e"]}


def changed(tables: dict[str, pa.Table], by: int) -> dict[str, pa.Table]:
    """The same pack, trained with other numbers."""
    rows = [row | {"value": row["value"] + by} for row in tables["curves"].to_pylist()]
    return tables | {"curves": pa.Table.from_pylist(rows, SCHEMAS["curves"])}


def made(folder: str, name: str, content: dict) -> Store:
    at = open_store(f"{folder}/{name}", "study")
    for pack, (by, steps) in content.items():
        tables = pack_tables(pack, KEYS[pack])
        commit(at, pack, changed({t: rows for t, rows in tables.items() if t != "probes"}, by))
        for step in steps:
            add(at, pack, "margin", [{"key": key, "stage": 0, "step": step, "value": step + by} for key in KEYS[pack]])
        for key in KEYS[pack]:
            about = {"key": key, "config": "{}", "seeds": "{}", "pack": pack}
            path = at.shared("artifacts", key, "0", "200.safetensors")
            if not Path(path).exists() or pack < weights_of(path):
                store.write_file(at, path, save({}, about))
    return at


def weights_of(path: str) -> str:
    text = Path(path).read_text(errors="replace")
    return next(pack for pack in PACKS if pack in text)


def numbers(at: Store) -> dict[str, object]:
    found: dict[str, object] = {}
    for table in SCHEMAS:
        rows = read(at, table)
        found[table] = in_order(rows.select([*IDENTITY_COLUMNS, "pack"]) if table == "replicates" else rows)
    paths = sorted(Path(at.root, "artifacts").rglob("*.safetensors"))
    return found | {str(path.relative_to(at.root)): weights_of(str(path)) for path in paths}


@settings(max_examples=5, deadline=None)
@given(STORES, st.booleans())
def test_merging_is_commutative_associative_and_idempotent(contents, compacted):
    with patch.object(os, "fsync", lambda descriptor: None):  # hundreds of small files
        _check_all_orders(contents, compacted)


def _check_all_orders(contents, compacted):
    results = []
    for order in ((0, 1, 2), (2, 1, 0)):
        with tempfile.TemporaryDirectory() as folder:
            stores = [made(folder, str(index), content) for index, content in enumerate(contents)]
            if compacted:
                compact(stores[1])
            first, second, third = (stores[index] for index in order)
            merge(first, [second], keep_one=True)
            merge(first, [third], keep_one=True)
            results.append(numbers(first))
            again = merge(first, [second, third], keep_one=True)
            assert (again.packs, again.artifacts) == (0, 0)
            assert numbers(first) == results[-1]
    with tempfile.TemporaryDirectory() as folder:  # a + (b + c)
        first, second, third = (made(folder, str(index), content) for index, content in enumerate(contents))
        merge(second, [third], keep_one=True)
        merge(first, [second], keep_one=True)
        results.append(numbers(first))
    assert all(one == other for one, other in itertools.pairwise(results))


def test_other_numbers_of_one_replicate_and_pack_are_refused_with_its_key_before_anything_is_written(tmp_path):
    one, two, three = (open_store(tmp_path / name, "study") for name in "abc")
    tables = pack_tables("fd-0", ["a", "b"])
    commit(one, "fd-0", tables)
    commit_pack(two, "fe-7", ["c"])
    commit(three, "fd-0", changed(tables, 1))
    for into, others in ((one, [two, three]), (three, [two, one])):
        before = sorted(Path(into.root).rglob("*"))
        with pytest.raises(
            StudyError, match=r"different numbers .*: a \(stage 0, pack fd-0\), b \(stage 0, pack fd-0\); .*--keep-one"
        ):
            merge(into, others)
        assert sorted(Path(into.root).rglob("*")) == before
    new = open_store(tmp_path / "new", "study")
    with pytest.raises(StudyError, match=f"^{one.path()} and {three.path()} hold different numbers"):  # and not the new one
        merge(new, [two, one, three])


@pytest.mark.parametrize("keep_one", [False, True])
@pytest.mark.parametrize("pack", ["fd-0", "fe-7"])
def test_stores_that_call_one_set_by_two_names_are_not_merged(tmp_path, pack, keep_one):
    """Half of the rows were then missing under either name, and no study file could go on in the store."""
    one, two = (open_store(tmp_path / name, "study") for name in "ab")
    commit_pack(one, "fd-0", ["a", "b"], sets={"sparse": "hash-sparse", "dense": "hash-dense"})
    commit_pack(two, pack, ["a", "c"], sets={"sparse": "hash-sparse", "thick": "hash-dense"})
    before = sorted(Path(one.root).rglob("*"))
    with pytest.raises(StudyError, match=r"/a/study calls 'dense' is 'thick' in .*/b/study, for the same condition: run one"):
        merge(one, [two], keep_one)
    assert sorted(Path(one.root).rglob("*")) == before


@pytest.mark.parametrize("planned", [True, False])
def test_a_set_that_stores_define_differently_is_refused_with_the_settings_that_differ(tmp_path, planned):
    stores = [open_store(tmp_path / name, "study") for name in "ab"]
    for at, p_ignore in zip(stores, (0.1, 0.2), strict=True):
        commit_pack(at, "fd-0", ["a"], sets={"sparse": "hash-sparse", "dense": f"hash-{p_ignore}"})
        plan = manifest({"transformer": ["a"]})
        plan["sets"]["dense"] |= {"definition": {"p_ignore": p_ignore}, "sequences": 50 if p_ignore == 0.1 else 70}
        plan["conditions"][0]["sets"]["dense"] = {"hash": f"hash-{p_ignore}"}
        if planned:
            write_manifest(at, json.dumps(plan).encode())
    whose, one, other = (
        ("transformer", "p_ignore=0.1, sequences=50", "p_ignore=0.2, sequences=70")
        if planned
        else ("a condition", "the hash hash-0.1", "the hash hash-0.2")
    )
    with pytest.raises(StudyError) as raised:
        merge(stores[0], stores[1:])
    assert str(raised.value).startswith(
        f"the evaluation set 'dense' of {whose} of the study study has {one} in {stores[0].path()} and {other} in {stores[1].path()}: "
        "run one of the two studies again in a new store, with another name for that set"
    )


def test_rows_that_are_exchanged_for_those_of_another_store_are_told(tmp_path):
    """Of two copies one is kept whatever the order, so one of the two merges exchanges the replicate's rows."""
    told = []
    for order in ("ab", "ba"):
        one, two = (open_store(tmp_path / order / name, "study") for name in order)
        for at, more in zip((one, two) if order == "ab" else (two, one), (0, 1), strict=True):
            commit(at, "fd-0", changed(pack_tables("fd-0", ["a"]), more))
        before = numbers(one)
        told.append((str(merge(one, [two], keep_one=True)), numbers(one) != before))
    assert sorted(told) == [("exchanged the rows of 1 replicate for another store's", True), ("nothing to add", False)]


def test_where_and_when_a_pack_was_trained_may_differ(tmp_path):
    one, two = (open_store(tmp_path / name, "study") for name in "ab")
    tables = pack_tables("fd-0", ["a", "d"])  # the loss of d is NaN
    commit(one, "fd-0", tables)
    rows = [row | {"host": "there", "train_s": 9.0} for row in reversed(tables["replicates"].to_pylist())]
    commit(two, "fd-0", tables | {"replicates": pa.Table.from_pylist(rows, SCHEMAS["replicates"])})
    assert merge(one, [two]).packs == 0


def test_what_an_interrupted_training_left_is_not_committed_by_a_merge(tmp_path):
    into, other = (open_store(tmp_path / name, "study") for name in "ab")
    tables = pack_tables("fd-0", ["a"])
    store.write_bytes(into, "curves/fd-0.parquet", b"")
    commit(into, "fd-0", {"curves": tables["curves"], "profiles": tables["profiles"]})  # no `replicates`: it was interrupted
    assert read(into, "curves").num_rows == 0
    commit(other, "fd-0", {name: tables[name] for name in ("replicates", "evaluations")})
    merge(into, [other])
    assert read(into, "evaluations").num_rows == tables["evaluations"].num_rows
    assert read(into, "curves").num_rows == read(into, "profiles").num_rows == 0


def test_other_weights_of_one_pack_are_refused_and_damaged_ones_replaced(tmp_path):
    from results.store.seal import BLANK, seal

    one, two = (open_store(tmp_path / name, "study") for name in "ab")
    for at in (one, two):
        commit_pack(at, "fd-0", ["a"])
    about = {"key": "a", "config": "{}", "seeds": "{}", "pack": "fd-0", "digest": BLANK}
    whole = seal(save({}, about))
    place = one.shared("artifacts", "a", "0", "200.safetensors")
    store.write_file(one, place, whole[:-1] + b"?")
    store.write_file(two, two.shared("artifacts", "a", "0", "200.safetensors"), whole)
    assert merge(one, [two]).artifacts == 1
    assert Path(place).read_bytes() == whole
    store.write_file(one, place, seal(save({}, about | {"config": '{"other": 1}'})))
    with pytest.raises(StudyError, match="hold different weights of the same replicate and pack"):
        merge(one, [two])


def test_what_was_added_is_said_in_words():
    added = Merged(packs=2, replicates=3, superseded=1, failures=0, manifests=1, artifacts=0)
    twice = "; 1 replicate in more than one pack, of which the smallest pack counts"
    assert str(added) == f"added 2 packs, 3 replicates, 1 manifest{twice}"
    assert str(Merged(0, 0, 0, 0, 0, 0)) == "nothing to add"


def test_a_compaction_that_stops_at_any_file_brings_back_no_older_row(tmp_path):
    """A probe that was made again is newer than the compacted one, which must go first."""
    for stops_at in itertools.count():
        at = open_store(str(tmp_path / str(stops_at)), "study")
        commit_pack(at, "fc-0", ["a"])
        values = [{"key": "a", "stage": 0, "step": 200, "layer": 0, "head": None, "item": "x", "value": 0.5}]
        add(at, "fc-0", "map", values)
        compact(at)
        add(at, "fc-0", "map", [values[0] | {"value": 0.9}])
        commit_pack(at, "fd-0", ["b"])
        left = itertools.count(stops_at, -1)

        def some(store, path, left=left):
            if next(left) == 0:
                raise StoreError("stopped")
            delete(store, path)

        with patch("results.store.merge.delete", some):
            try:
                compact(at)
                whole = True
            except StoreError:
                whole = False
        assert [row["value"] for row in read(at, "probes").to_pylist() if row["probe"] == "map"] == [0.9]
        if whole:
            break
    assert stops_at > 5
