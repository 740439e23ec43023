"""What the harness adds to a user's own function: replicates of an empty function, beside as many empty Ray tasks.

    python -m benchmarks.empty_replicates [--replicates 5000] [--executor ray]

Everything counts, from the study's file to its report: reading, planning, the start of Ray, the first replicate alone, tables, figures.
The time of Ray's own tasks includes neither the import nor the start of Ray. Bound: twice that time plus 20 s.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.overhead import ray_tasks
from harness.run import run
from harness.study.load import load
from models.custom.custom import allow
from results.store.tables import committed, open_store

STUDY = """
name: empty
question: What does a replicate cost that does nothing?
experiment: {{name: "{module}:nothing"}}
replicates: {replicates}
wandb: off
"""
BOUND_S = 20.0


def nothing(seed, settings):
    """The least that a replicate may return."""
    return {"seed": seed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=5000)
    parser.add_argument("--executor", default="ray", help="ray, local or auto")
    options = parser.parse_args()
    module = "benchmarks.empty_replicates"
    allow(module)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "empty.yaml")
        path.write_text(STUDY.format(module=module, replicates=options.replicates))
        began = time.perf_counter()
        status = run(load(str(path), [f"store={Path(folder, 'runs')}", f"executor={options.executor}"]))
        replicates_s = time.perf_counter() - began
        rows = committed(open_store(Path(folder, "runs"), "empty")).num_rows
    if status or rows != options.replicates:
        raise RuntimeError(f"{rows} of {options.replicates} replicates are committed, exit status {status}")
    tasks_s = _tasks(options.replicates)
    bound = 2 * tasks_s + BOUND_S
    print(f"{options.replicates} replicates of an empty function, executor={options.executor}: {replicates_s:.1f} s")
    print(f"{options.replicates} empty Ray tasks: {tasks_s:.1f} s; twice that and {BOUND_S:.0f} s: {bound:.1f} s")
    print("within the bound" if replicates_s <= bound else "over the bound")


def _tasks(count: int) -> float:
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return ray_tasks(count)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
