"""Whether all nodes of a cluster see the driver's store, with answers made here in place of Ray's."""

import subprocess
import sys

import pytest
from ray.exceptions import NodeDiedError

from harness.executing import store_on_nodes
from harness.executing.store_on_nodes import check_seen
from results.errors import StudyError
from results.store.tables import open_store

NODES = [{"NodeID": name, "NodeManagerHostname": f"host-{name}", "Alive": name != "gone"} for name in ("a", "b", "gone", "c")]


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path, "study")


@pytest.fixture
def asked(store, monkeypatch):
    """Which nodes were asked and answered, in order; `answers` has what each says."""
    events, answers = [], {"a": True, "b": True, "c": True}

    def ask(node, uri, study, name):
        assert store_on_nodes._sees(uri, study, name)  # the file is there while they are asked
        events.append(("asked", node))
        return node

    def get(node):
        events.append(("answered", node))
        if isinstance(answers[node], Exception):
            raise answers[node]
        return answers[node]

    monkeypatch.setattr(store_on_nodes, "_ask", ask)
    monkeypatch.setattr(store_on_nodes.ray, "nodes", lambda: NODES)
    monkeypatch.setattr(store_on_nodes.ray, "get", get)
    return events, answers


def test_all_nodes_are_asked_at_once_and_one_that_is_being_lost_does_not_count(store, asked, tmp_path):
    events, answers = asked
    answers["b"] = NodeDiedError("it is gone")
    check_seen(store, str(tmp_path))
    assert events == [(what, node) for what in ("asked", "answered") for node in "abc"]
    assert not list(tmp_path.glob("study/.seen-*"))


def test_a_node_that_does_not_see_the_folder_is_named(store, asked, tmp_path):
    asked[1]["c"] = False
    with pytest.raises(StudyError, match=f"the store {tmp_path} is a folder that node host-c does not share with this one"):
        check_seen(store, str(tmp_path))
    assert not list(tmp_path.glob("study/.seen-*"))


def test_the_processes_that_every_driver_starts_beside_its_slots_load_no_torch():
    """It is most of what the start of a process takes: the board's, and on each node that of the question."""
    code = "import sys, harness.executing.board, harness.executing.store_on_nodes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
