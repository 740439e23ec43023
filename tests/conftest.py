"""Nothing reaches for the network, and every process runs one thread: two of two threads each are many times slower on two cores."""

import os

import pytest

os.environ |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}

CLUSTERS = {
    "test_chaos",
    "test_cluster",
    "test_cluster_kinds",
    "test_faults_ray",
    "test_host_memory",
    "test_metrics",
    "test_stages",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """With `-n 2 --dist loadgroup` a file stays in one process, for its fixtures, and so do all files that start Ray: one at a time."""
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("clusters" if name in CLUSTERS else item.path.as_posix()))
