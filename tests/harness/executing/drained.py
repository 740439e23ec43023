"""A study on two Ray nodes, one of which is drained once it has made a step: `python -m tests.harness.executing.drained STUDY STORE …`"""

import os
import sys
import time

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

import ray
from ray.cluster_utils import Cluster
from ray.core.generated import autoscaler_pb2

import harness.executing.cluster
from harness.run import run
from harness.study.load import load


class Drained(harness.executing.cluster._Run):
    """Sends the notice that an autoscaler sends before a preemption."""

    sent = False

    def _poll(self) -> None:
        super()._poll()
        stepped = {run.worker.node for run in self.running.values() if self.progress._running.get(run.pack.id)}
        if second.node_id in stepped and not self.sent:
            Drained.sent = True
            reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
            until = int((time.time() + 600) * 1000)
            print("drained:", ray._raylet.GcsClient(address=nodes.address).drain_node(second.node_id, reason, "test", until))


if __name__ == "__main__":
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 10**8})
    second = nodes.add_node(num_cpus=1, object_store_memory=10**8)
    os.environ["RAY_ADDRESS"] = nodes.address
    harness.executing.cluster._Run = Drained  # type: ignore[misc]
    status = run(load(sys.argv[1], [f"store={sys.argv[2]}", "executor=ray", *sys.argv[3:]]))
    nodes.shutdown()
    sys.exit(status)
