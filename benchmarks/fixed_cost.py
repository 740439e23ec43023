"""What a run costs beyond its replicates: 40 of a second each, from the command that a user types to the report.

    python -m benchmarks.fixed_cost [--kinds function script training] [--seconds 1]

A function and a script only sleep, so everything beyond their 40 seconds is ours, including the start of each process of the script. For
a training, the seconds in its rows are subtracted. With `--seconds 0` only the fixed cost remains. Its processor time, over all processes,
is what a quiet core would take, even if other work delays the clock. Bound: 8 s.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.compute as pc

from results.store.tables import committed, open_store

ROOT = Path(__file__).parents[1]
REPLICATES, BOUND_S = 40, 8.0
CODE = """
import sys, time

def measure(seed, settings):
    time.sleep(settings["seconds"])
    return {"score": seed}

if __name__ == "__main__":
    time.sleep(float(sys.argv[1]))
    print('{"score": %s}' % sys.argv[2], file=open(sys.argv[3], "w"))
"""
HEAD = "name: fixed\nquestion: What does a run cost?\nwandb: off\n"
STUDIES = {
    "function": HEAD + "experiment: {{name: 'sleeps:measure', seconds: {seconds}}}\nreplicates: 40\n",
    "script": HEAD
    + """
experiment:
  command: [python, -S, sleeps.py, "{{seconds}}", "{{seed}}", "{{folder}}/m.json"]
  metrics: "{{folder}}/m.json"
  sources: [sleeps.py]
  seconds: {seconds}
replicates: 40
""",
    "training": HEAD
    + """
task: {{name: flipflop, length: 32, p_ignore: 0.8}}
model: {{name: lstm, width: 32}}
train: {{steps: {steps}, batch: 16, lr: 1e-3}}
evaluate: {{sets: {{sparse: {{p_ignore: 0.98, sequences: 200}}}}}}
replicates: 40
pack: {{size: 1}}
""",
}
ALLOWED = {"function": ["--allow-import", "sleeps"], "script": ["--allow-command"], "training": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--seconds", type=float, default=1.0, help="of a replicate; a training takes 100 steps a second")
    options = parser.parse_args()
    print(f"{'kind':<10}{'wall s':>8}{'replicates s':>14}{'rest s':>8}{'processor s':>13}")
    over = False
    for kind in options.kinds:
        wall, work, processor = _run(kind, options.seconds)
        over |= wall - work > BOUND_S
        print(f"{kind:<10}{wall:>8.1f}{work:>14.1f}{wall - work:>8.1f}{processor:>13.1f}", flush=True)
    print("over the bound" if over else f"all within {BOUND_S:.0f} s")


def _run(kind: str, seconds: float) -> tuple[float, float, float]:
    """Seconds of one command: on the clock, in its replicates, and of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "study.yaml").write_text(STUDIES[kind].format(seconds=seconds, steps=max(1, round(100 * seconds))))
        Path(folder, "sleeps.py").write_text(CODE)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-m", "launch", "run", "study.yaml", *ALLOWED[kind]]
        before, began = _processor_s(), time.perf_counter()
        subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - began
        rows = committed(open_store(Path(folder, "runs"), "fixed"))
    if rows.num_rows != REPLICATES:
        raise RuntimeError(f"{rows.num_rows} of {REPLICATES} replicates are committed")
    trained = pc.sum(rows["train_s"]).as_py() + pc.sum(rows["evaluate_s"]).as_py()
    return wall, trained if kind == "training" else REPLICATES * seconds, _processor_s() - before


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
