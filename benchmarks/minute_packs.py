"""What the harness costs beside real packs: the time of a slot that is neither training nor evaluation.

python -m benchmarks.minute_packs [--replicates 8] [--steps 6000] [--out benchmarks/results/cpu]
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.tables import conditions, number, show
from harness.run import run
from harness.study.load import load
from launch.families import find_study
from results.markdown_table import markdown_table
from results.plain_values import Row
from results.store.tables import committed, open_store

COLUMNS = ["pack", "host", "started", "ended", "train_s", "evaluate_s"]


def pauses(rows: Iterable[Mapping[str, Any]], slots: int) -> list[Row]:
    """For packs of one replicate, in the order in which they started: `work_s`, the seconds of steps and evaluations, and `else_s`, the
    other seconds until the same slot began its next pack: building the model, checkpoints, the commit, the driver. The last pack of
    each slot is left out.

    Raises ValueError where more packs ran at once than there are slots.
    """
    ordered = sorted(rows, key=lambda row: row["started"])
    free: list[Mapping[str, Any]] = []
    gaps = []
    for row in ordered:
        before = [pack for pack in free if pack["ended"] <= row["started"]]
        if before:
            last = min(before, key=lambda pack: pack["ended"])
            free.remove(last)
            work = last["train_s"] + last["evaluate_s"]
            gaps.append(
                {"pack": last["pack"], "work_s": work, "else_s": (row["started"] - last["started"]).total_seconds() - work}
            )
        elif len(free) == slots:
            raise ValueError(f"more than {slots} packs ran at once")
        free.append(row)
    return gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6000, help="of a training of the quick study's transformer")
    parser.add_argument("--out", help="folder for minute_packs.md and minute_packs.parquet; nothing is written without it")
    chosen = parser.parse_args()
    header = conditions("cpu", "fp32")
    with tempfile.TemporaryDirectory() as folder:
        words = [
            f"replicates={chosen.replicates}",
            f"conditions.transformer.train.steps={chosen.steps}",
            "only=[transformer]",
            "pack.size=1",
        ]
        study = load(find_study("fflm", "quick"), [f"store={folder}", "executor=ray", "device=cpu", "wandb=off", *words])
        if run(study):
            sys.exit("the study did not end")
        rows = committed(open_store(folder, study.name)).select(COLUMNS).to_pylist()
    gaps = pauses(rows, slots=2)
    work, other = (sum(gap[name] for gap in gaps) for name in ("work_s", "else_s"))
    table = markdown_table(
        ("pack", "steps and evaluations, s", "all else until the slot's next pack, s", "share"),
        [
            [gap["pack"], number(gap["work_s"]), number(gap["else_s"]), f"{100 * gap['else_s'] / gap['work_s']:.2f} %"]
            for gap in gaps
        ],
    )
    share = 100 * other / (work + other)
    held = "held" if share < 1 else "missed"
    text = "\n\n".join(
        [
            "# Overhead beside real packs",
            f"`python -m benchmarks.minute_packs --replicates {chosen.replicates} --steps {chosen.steps}`. {header}",
            table,
            f"Together {share:.2f} % of the slots' time (bound 1 %: {held}), checkpoints included.",
        ]
    )
    show(chosen.out, "minute_packs", text, gaps)


if __name__ == "__main__":
    main()
