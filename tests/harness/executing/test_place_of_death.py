"""Where a worker died, by what Ray 2.60 says of it."""

import pytest

from harness.executing.place_of_death import place_of

MONITOR = (
    "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 10.0.0.7, ID: 0a1b2c) was 23.1GB used / "
    "24.0GB limit (0.960000) To see more information about memory usage on this node, use `ray logs raylet.out -ip 10.0.0.7`"
)
DIED = "The actor died unexpectedly before finishing this task. class_name: Slot pid: 4711 namespace: x ip: 10.0.0.7 The actor is dead."


def _node(name, address, host):
    return {"NodeID": name, "NodeManagerAddress": address, "NodeManagerHostname": host, "Alive": True}


NODES = [_node("0a1b2c", "10.0.0.7", "gpu-7"), _node("ffff", "10.0.0.8", "gpu-8")]


@pytest.mark.parametrize(
    ("node", "text", "nodes", "place"),
    [
        ("", MONITOR, NODES, ("0a1b2c", "gpu-7")),
        ("", DIED, NODES, ("0a1b2c", "gpu-7")),
        (
            "",
            "an error raised in its creation task, ray::Slot.__init__() (pid=7, ip=10.0.0.8, actor_id=5)",
            NODES,
            ("ffff", "gpu-8"),
        ),
        ("ffff", DIED, NODES, ("ffff", "gpu-8")),  # what the worker said itself
        ("", DIED, [NODES[0], _node("dddd", "10.0.0.7", "gpu-7")], ("", "gpu-7")),
        ("", DIED, [], ("", "10.0.0.7")),
        ("", "The actor died unexpectedly before finishing this task.", NODES, ("", "")),
    ],
)
def test_rays_error_says_where_a_worker_was_that_had_not_said_it(node, text, nodes, place):
    assert place_of(node, text, nodes) == place
