"""The number of cores that this process may use."""

import os
from pathlib import Path


def cores() -> int:
    """Cores that this process may use: those it may be scheduled on, at most what its control group (a container, a job) is given."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):  # no control group of version 2
        return count
    return count if quota == "max" else max(1, min(count, int(quota) // int(period)))
