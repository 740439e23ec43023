"""Merging stores: the same numbers in any order, and a refusal where one replicate and pack has two."""

from pathlib import Path

import pyarrow as pa
import pytest
from safetensors.numpy import save

from results import store
from results.errors import StudyError
from results.merge import merge
from results.schema import SCHEMAS
from results.store import commit, open_store, read
from tests.results.sample_rows import commit_pack, pack_tables


def changed(tables: dict[str, pa.Table], by: int) -> dict[str, pa.Table]:
    """The same pack, trained with other numbers."""
    rows = [row | {"value": row["value"] + by} for row in tables["curves"].to_pylist()]
    return tables | {"curves": pa.Table.from_pylist(rows, SCHEMAS["curves"])}


def test_other_numbers_of_one_replicate_and_pack_are_refused_with_its_key_before_anything_is_written(tmp_path):
    one, two, three = (open_store(tmp_path / name, "study") for name in "abc")
    tables = pack_tables("fd-0", ["a", "b"])
    commit(one, "fd-0", tables)
    commit_pack(two, "fe-7", ["c"])
    commit(three, "fd-0", changed(tables, 1))
    for into, others in ((one, [two, three]), (three, [two, one])):
        before = sorted(Path(into.root).rglob("*"))
        with pytest.raises(
            StudyError, match=r"other numbers .*: a \(stage 0, pack fd-0\), b \(stage 0, pack fd-0\); .*--keep-one"
        ):
            merge(into, others)
        assert sorted(Path(into.root).rglob("*")) == before


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
    from results.seal import BLANK, seal

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
    with pytest.raises(StudyError, match="are other weights of the same replicate and pack"):
        merge(one, [two])
