"""The chained study on two Ray nodes of one slot each: `python -m tests.harness.training.chained_ray FOLDER`

The last line of its output says how many stages of chains ran on another node than the stage before, as [moved, all].
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

from ray.cluster_utils import Cluster

import harness.executing.cluster
from harness.run import run
from harness.study.load import load
from tests.harness.chained import write_study

node_of: dict[str, str] = {}
parent_of: dict[str, str] = {}


class Noted(harness.executing.cluster._Run):
    """Notes where each replicate was trained. No pack ends before all workers have started: one alone would train everything."""

    def _settle(self, reference) -> None:
        while not all(run.worker.node for run in self.running.values()):
            time.sleep(0.1)
            self._started(time.monotonic())
        running = self.running[reference]
        for each in running.pack.replicates:
            node_of[each.key] = running.worker.node
            if each.parent is not None:
                parent_of[each.key] = each.parent
        super()._settle(reference)


if __name__ == "__main__":
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 10**8})
    nodes.add_node(num_cpus=1, object_store_memory=10**8)
    os.environ["RAY_ADDRESS"] = nodes.address
    harness.executing.cluster._Run = Noted  # type: ignore[misc]
    folder = Path(sys.argv[1])
    status = run(load(write_study(folder), [f"store={folder / 'store'}", "executor=ray", "pack.size=1"]))
    nodes.shutdown()
    moved = sum(node_of[key] != node_of[parent] for key, parent in parent_of.items())
    print(json.dumps([moved, len(parent_of)]))
    sys.exit(status)
