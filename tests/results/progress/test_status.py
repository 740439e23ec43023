"""Snapshots, the status and the list of failures, from stores written by hand; and compaction under readers."""

import datetime
import json
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.progress.failures import show_failures
from results.progress.snapshot import COLUMNS, Packs, in_flight, snapshot, take
from results.progress.status import of_planned, show_status
from results.progress.watch import lines
from results.rows.probe_values import add
from results.store import tables as stores
from results.store.manifest import manifest_of, write_manifest
from results.store.merge import compact
from results.store.schema import SCHEMAS
from results.store.tables import commit, committed, log_path, open_store, read, winners, write_bytes
from results.terminal import say
from tests.results.store.sample_rows import commit_pack, failure, in_order, manifest, pack_tables

NOW = datetime.datetime(2026, 11, 1, 15, tzinfo=datetime.UTC)


def plan(conditions, packs):
    """A manifest with packs of these keys."""
    made = manifest(conditions)
    places = {row[0]: index for index, row in enumerate(made["replicates"])}
    listed = [
        {"id": name, "stage": 0, "replicates": [places[k] for k in keys], "signature": "s"} for name, keys in packs.items()
    ]
    return made | {"packs": listed}


def rows(*packs):
    """`COLUMNS` of packs given as (id, keys, condition, host, minutes ago that it ended, seconds a replicate)."""
    parts = []
    for name, keys, condition, host, ago, seconds in packs:
        table = pack_tables(name, keys, condition)["replicates"].select(COLUMNS)
        ended = NOW - datetime.timedelta(minutes=ago)
        fixed = {"ended": ended, "started": ended - datetime.timedelta(seconds=60 * len(keys)), "host": host}
        fixed |= {"train_s": float(seconds), "evaluate_s": 0.0}
        for column, value in fixed.items():
            field = table.schema.field(column)
            filled = pa.repeat(pa.scalar(value, field.type), table.num_rows)
            table = table.set_column(table.schema.get_field_index(column), field, filled)
        parts.append(table)
    return pa.concat_tables(parts)


def test_packs_conditions_and_nodes_are_counted():
    made = plan(
        {"one": ["a", "b", "c", "e"], "two": ["f", "g", "h", "i"]},
        {"p1": ["a", "b"], "p2": ["c", "e"], "p3": ["f"], "p4": ["g"], "p5": ["h", "i"]},
    )
    done = rows(("p1", ["a", "b"], "one", "left", 10, 60), ("p5-half", ["h"], "two", "right", 100, 60))
    found = snapshot("quick", made, done, {"g", "a"}, {"p2", "p1"}, NOW)
    # p1 is committed with its checkpoint still there; of p5 one replicate is to come
    assert found.packs == Packs(committed=2, in_flight=1, waiting=2, failed=1)
    assert (found.committed, found.planned, found.failed) == (3, 8, 1)
    assert [(c.name, c.committed, c.planned, c.failed) for c in found.conditions] == [("one", 2, 4, 0), ("two", 1, 4, 1)]
    assert [(n.name, n.committed, n.recent) for n in found.nodes] == [("left", 2, 2), ("right", 1, 0)]
    assert found.last == NOW - datetime.timedelta(minutes=10)


def test_rows_that_an_earlier_plan_left_are_not_counted_for_this_one():
    done = rows(
        ("p1", ["a", "b"], "one", "left", 10, 60),
        ("p0", ["x", "y"], "one", "left", 20, 60),
        ("q", ["z"], "old", "left", 30, 60),
    )
    found = snapshot("quick", plan({"one": ["a", "b", "c"]}, {}), done, set(), set(), NOW)
    assert [(c.name, c.committed, c.planned) for c in found.conditions] == [("one", 2, 3), ("old", 1, 0)]
    assert [of_planned(condition) for condition in found.conditions] == ["2 of 3", "1, and none planned"]
    assert "  condition old: 1, and none planned" in lines(found)
    assert (found.committed, found.planned, found.unplanned) == (2, 3, 3)
    assert lines(found)[0].endswith(
        "quick: 2 of 3 replicates committed; 3 other replicates in the store are not of this plan, and left out of reports"
    )
    assert "other" not in lines(snapshot("quick", plan({"one": ["a", "b", "x", "y", "z"]}, {}), done, set(), set(), NOW))[0]
    assert snapshot("quick", None, done, set(), set(), NOW).unplanned == 0


def test_a_condition_that_was_renamed_keeps_its_rows():
    """A replicate depends on its settings and seeds, and not on a name; rows of the plan count under the plan's name."""
    done = rows(("p1", ["a", "b"], "alpha", "left", 10, 60), ("q", ["z"], "old", "left", 30, 600))
    found = snapshot("quick", plan({"beta": ["a", "b", "c"]}, {}), done, set(), set(), NOW)
    assert [(c.name, c.committed, c.planned) for c in found.conditions] == [("beta", 2, 3), ("old", 1, 0)]
    assert (found.ends - NOW).total_seconds() == pytest.approx(60 * 180 / 720)  # what is left takes what beta's rows took


def test_failures_of_a_condition_that_is_no_longer_planned_do_not_count():
    made = plan({"one": ["a", "b", "c", "e"]}, {"p1": ["a", "b"], "p2": ["c", "e"]})
    done = rows(("p1", ["a", "b"], "one", "left", 10, 60))
    found = snapshot("quick", made, done, {"x", "y"}, set(), NOW)
    assert (found.failed, found.packs) == (0, Packs(committed=1, in_flight=0, waiting=1, failed=0))
    assert "nothing is left to do" not in " ".join(lines(found))
    assert snapshot("quick", None, done, {"x"}, set(), NOW).failed == 1  # without a plan all are listed


def test_the_end_weighs_what_is_missing_by_what_its_condition_takes():
    made = plan({"fast": ["a", "b", "c"], "slow": ["e", "f"]}, {})
    done = rows(("p1", ["a"], "fast", "x", 5, 60), ("p2", ["e"], "slow", "x", 30, 600))
    found = snapshot("quick", made, done, set(), set(), NOW)
    # the first of them began 31 minutes ago, and one of them was under way in two: 660 seconds of work in 120; left are 2 x 60 + 600
    assert found.recent == 2
    assert found.per_minute == pytest.approx(2 / 31)
    assert (found.ends - NOW).total_seconds() == pytest.approx(720 * 120 / 660)
    later = snapshot("quick", made, done, set(), set(), NOW + datetime.timedelta(hours=2))
    assert (later.recent, later.per_minute, later.ends) == (0, 0, None)


def test_the_end_leaves_out_the_time_in_which_nothing_ran():
    """Packs of two slots that overlap, a stop of half an hour, and one pack after it."""
    made = plan({"one": ["a", "b", "c", "e", "f"]}, {})
    before = (("p1", ["a"], "one", "x", 36, 60), ("p2", ["b"], "one", "y", 36.5, 60))
    found = snapshot("quick", made, rows(*before, ("p3", ["c"], "one", "x", 5, 60)), set(), set(), NOW)
    # 180 seconds of work in 90 + 60; two replicates of 60 are left
    assert (found.ends - NOW).total_seconds() == pytest.approx(120 * 150 / 180)


def test_a_study_without_a_plan_or_a_row_has_a_snapshot():
    empty = rows(("p1", ["a"], "one", "x", 5, 60)).slice(0, 0)
    assert snapshot("quick", None, empty, set(), set(), NOW).planned == 0
    found = snapshot("quick", plan({"one": ["a"]}, {"p1": ["a"]}), empty, set(), set(), NOW)
    assert (found.packs, found.last, found.ends) == (Packs(0, 0, 1, 0), None, None)


@pytest.mark.parametrize(
    "packs", [[{"id": "p"}], [{"id": "p", "replicates": [7]}], [{"id": "p", "replicates": [-1]}], 3, ["p"]]
)
def test_a_plan_with_impossible_packs_is_refused_in_a_sentence(packs):
    made = manifest({"one": ["a"]}) | {"packs": packs}
    with pytest.raises(ValueError, match="lists packs that no plan has"):
        snapshot("quick", made, rows(("p1", ["a"], "one", "x", 5, 60)), set(), set(), NOW)


def test_a_lease_counts_until_it_expires_and_a_checkpoint_until_it_is_gone(tmp_path):
    at = open_store(tmp_path, "quick")
    write_bytes(at, "leases/p1.json", b"{}")
    write_bytes(at, "leases/p2.json", b"{}")
    write_bytes(at, "checkpoints/p3/10.safetensors", b"")
    import os
    import time

    os.utime(tmp_path / "quick" / "leases" / "p2.json", (time.time() - 1000,) * 2)
    assert in_flight(at) == {"p1", "p3"}


def test_the_status_says_it_in_words(tmp_path):
    at = open_store(tmp_path / "my runs", "quick")
    made = plan({"transformer": ["a", "b", "d"]}, {"p1": ["a", "d"], "p2": ["b"]})
    write_manifest(at, json.dumps(made).encode())
    commit_pack(at, "p1", ["a", "d"])
    commit(at, "p2-1", {"failures": failure("p2", 1).set_column(2, SCHEMAS["failures"].field("keys"), [[["b"]]])})
    write_bytes(at, "leases/p9.json", b"{}")
    said = []
    show_status(at, said.append)
    text = "\n".join(said)
    assert "quick: 2 of 3 replicates committed, 1 failed" in text
    assert "  1 pack has a checkpoint or a lease: running" in text
    assert "transformer: 2 of 3, 1 diverged" in text
    assert take(at, manifest_of(at)).packs == Packs(1, 1, 0, 1)
    assert f"  why they failed: manyseeds failures '{tmp_path}/my runs' quick" in said


def test_one_failure_of_one_replicate_is_no_plural(tmp_path):
    at, said = open_store(tmp_path, "quick"), []
    commit(at, "p1-1", {"failures": failure("p1", 1)})
    show_failures(at, False, said.append)
    assert said[0] == "quick: 1 replicate failed, in 1 failure"


def test_a_failure_is_listed_with_where_its_log_and_traceback_lie(tmp_path, capsys):
    at = open_store(tmp_path, "quick")
    write_manifest(at, json.dumps(plan({"transformer": ["k", "b"]}, {})).encode())
    died = failure("p2", 3).to_pylist()[0] | {
        "keys": ["b"],
        "kind": "died",
        "step": 40,
        "exception": "died \x1b[31m three times",
    }
    died["traceback"] = "The actor died. pid: 4711 namespace: x ip: 10.0.0.7 \x1b]0;title"
    commit(at, "p1-1", {"failures": failure("p1", 1)})
    commit(at, "p2-3", {"failures": pa.Table.from_pylist([died], SCHEMAS["failures"])})
    write_bytes(at, log_path("p1", 1), b"host: node-7\nprocess: 1\n\nhello\n")
    commit_pack(at, "p9", ["k"])
    said = []
    show_failures(at, False, said.append)
    text = "\n".join(said)
    assert "quick: 2 replicates failed, 1 of them committed since, in 2 failures" in text
    assert "raised, host node-7" in text
    assert f"log: {at.path('logs', 'p1-1.log')}" in text
    assert "died after step 40, host 10.0.0.7" in text
    assert "worker-*-4711.out" in text
    assert "replicate b transformer, seeds" in text
    assert "title" not in text
    assert said[-1] == "tracebacks: the same command with --full"
    full = []
    show_failures(at, True, full.append)
    assert "\n".join(line for line in full if not line.startswith("    | ")) == "\n".join(said[:-1])
    assert [line.split(".")[0] for line in full if line.startswith("    | ")] == ["    | …", "    | The actor died"]
    show_failures(at, True, say)
    printed = capsys.readouterr().out
    assert "| The actor died." in printed
    assert "died \\x1b[31m three times" in printed
    assert "\x1b" not in printed


KEYS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.sampled_from(["p1", "p2", "p3", "p4"]), KEYS, min_size=1), st.booleans())
def test_rows_read_in_one_pass_are_those_of_the_winners(tmp_path_factory, packs, compacted):
    """The rule written out: of all rows those that a semi join with the winners keeps."""
    at = open_store(tmp_path_factory.mktemp("store"), "quick")
    for name, keys in packs.items():
        commit_pack(at, name, keys)
        if compacted and name == "p2":
            compact(at)
    every = pa.concat_tables([pack_tables(name, keys)["replicates"] for name, keys in packs.items()])
    smallest = {key: min(name for name, keys in packs.items() if key in keys) for keys in packs.values() for key in keys}
    wanted = [row for row in every.to_pylist() if smallest[row["key"]] == row["pack"]]
    assert in_order(committed(at)) == in_order(pa.Table.from_pylist(wanted, every.schema))
    assert in_order(read(at, "replicates", ["loss", "key"])) == in_order(committed(at).select(["loss", "key"]))
    finished = read(at, "replicates", filter=pc.field("status") == "finished")
    assert in_order(finished) == in_order(committed(at).filter(pc.equal(committed(at)["status"], "finished")))
    assert {(row["key"], row["pack"]) for row in winners(every).to_pylist()} == set(smallest.items())


def test_readers_see_the_same_rows_while_a_store_is_compacted_again_and_again(tmp_path):
    at = open_store(tmp_path, "quick")
    packs = {f"p{index}": [f"k{index}", f"k{index + 1}"] for index in range(10, 30)}
    for name, keys in packs.items():
        commit_pack(at, name, keys)
        add(at, name, "drift", [{"key": key, "stage": 0, "step": 200, "value": 1.0} for key in keys])
    tables = ("replicates", "evaluations", "curves", "probes")
    before = {table: in_order(read(at, table)) for table in tables}
    stop, looks, wrong = threading.Event(), [], []

    def look():
        while not stop.is_set():
            for table in tables:
                try:
                    same = in_order(read(open_store(tmp_path, "quick"), table)) == before[table]
                    looks.append(table)
                    if not same:
                        wrong.append(table)
                except Exception as error:  # a reader that stumbles has noticed
                    wrong.append(repr(error))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for _ in range(4):
            rewritten, into = compact(at)
            assert rewritten >= into == 5
            wait = len(looks) + 3
            while len(looks) < wait and not wrong:
                stop.wait(0.01)
            for name, keys in packs.items():  # small files again, beside the compacted ones
                commit_pack(at, name, keys)
                add(at, name, "drift", [{"key": key, "stage": 0, "step": 200, "value": 1.0} for key in keys])
    finally:
        stop.set()
        reader.join()
    assert wrong == []
    assert {table: in_order(read(at, table)) for table in tables} == before
    assert stores.table_files(at, "replicates")[0].startswith("compacted-")
