"""The README's finding and figure: how far apart seeds of one recipe end, from the rows of the campaign.

python -m results.report.flipflop.same_recipe docs/studies/flipflop fflm-campaign [--figure FILE.svg]
"""

import argparse
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import results
from results.errors import StoreError, StudyError
from results.report.plots.error_axis import error_axis, error_scale
from results.report.plots.figure_files import smaller
from results.report.plots.palette import COLOURS, Style
from results.report.plots.panels import titled_panels
from results.terminal import say

KNOWN, SPARSE = "in_distribution", "sparse"
Pairs = list[tuple[float, float]]  # of each replicate: its error rate on KNOWN and on SPARSE


def pairs_of(store: str, study: str, condition: str) -> Pairs:
    columns = ["condition", "init_seed", "set", "step", "errors", "count"]
    scored = results.load(store, study, "evaluations", columns=columns, set=[KNOWN, SPARSE], weights="raw").to_pylist()
    rows = [row for row in scored if row["condition"] == condition]
    last = max((row["step"] for row in rows), default=0)
    rates = {(row["init_seed"], row["set"]): row["errors"] / row["count"] for row in rows if row["step"] == last}
    seeds = sorted({seed for seed, _ in rates})
    if not seeds:
        raise StudyError(
            f"{study} in {store} has no replicate of the condition {condition}: choose a study with a baseline and an LSTM"
        )
    return [(rates[seed, KNOWN], rates[seed, SPARSE]) for seed in seeds]


def finding(transformers: Pairs, lstms: Pairs) -> str:
    perfect = [sparse for scored, sparse in transformers if scored == 0]
    unfailing = sum(not scored and not sparse for scored, sparse in lstms)
    return (
        f"{len(transformers)} transformers, same recipe, different seeds: {len(perfect)} make no error on their training "
        f"distribution. On strings with few writes, {perfect.count(0)} of these {len(perfect)} still make none, and the worst "
        f"misreads {max(perfect):.1%}. {unfailing} of {len(lstms)} LSTMs make no error on either."
    )


def drawing(transformers: Pairs, lstms: Pairs) -> Figure:
    """A line is a seed, from its error on the training distribution to that on sparse strings; zeros lie below the axis' break."""
    scale = error_scale(transformers, lstms)
    per_cent = [(place, f"{100 * 10**place:.6g} %") for place, _ in scale.ticks] + [(scale.zero, "0")] * scale.zeros
    titles = [f"{len(pairs)} {name}, same recipe" for pairs, name in ((transformers, "transformers"), (lstms, "LSTMs"))]
    with titled_panels(titles, 3.05, 3.4, y="reads that are wrong", shared="y") as (figure, panels):
        for panel, pairs, colour in zip(panels, (transformers, lstms), COLOURS, strict=False):
            for pair in pairs:
                perfect = pair[0] == 0
                look: Style = {"color": colour, "alpha": 0.8} if perfect else {"color": "#9aa0a6", "alpha": 0.45}
                panel.plot((0, 1), scale.place(pair), "o-", zorder=2 + perfect, **look)
            panel.set_xticks((0, 1), ("training\ndistribution", "strings with\nfew writes"))
            panel.set_xlim(-0.3, 1.3)
            error_axis(panel, scale, "y", counts=0)
            panel.set_yticks(*zip(*per_cent, strict=True))
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m results.report.flipflop.same_recipe", description=__doc__)
    parser.add_argument("store")
    parser.add_argument("study")
    parser.add_argument("--figure", help="where the figure is written")
    given = parser.parse_args(arguments)
    try:
        transformers, lstms = (pairs_of(given.store, given.study, name) for name in ("baseline", "lstm"))
    except (StudyError, StoreError) as error:
        sys.exit(f"error: {error}")
    say(finding(transformers, lstms))
    if given.figure:
        with mpl.rc_context({"svg.hashsalt": "manyseeds"}):
            drawing(transformers, lstms).savefig(
                given.figure, metadata={"Date": None} if given.figure.endswith(".svg") else None
            )
        if given.figure.endswith(".svg"):
            path = Path(given.figure)
            path.write_text(smaller(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
