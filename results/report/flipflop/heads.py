"""What the rows of the probe heads say, one line per replicate, or one line per step that was kept:

python -m results.report.flipflop.heads STORE STUDY --steps all
"""

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence

from results.errors import StoreError, StudyError
from results.markdown_table import table_lines
from results.plain_values import Row
from results.report.flipflop.heads_figures import Values, over_steps
from results.store.manifest import as_planned
from results.store.tables import committed, open_store, read
from results.terminal import say

NEAR = 0.5  # of the ideal pattern, on the probe's input: below it a head counts as near
COLUMNS = ("condition", "seeds", "step", "wrong", "elsewhere", "norm right", "near ideal", "distance", "norm")


def summary(values: Values) -> dict[str, str]:
    """Counts of one replicate at one step.

    wrong: of the rows of ⊥. elsewhere: rows, summed over the heads of the first layer, that are answered rightly though that head's largest
    weight is on no write of the right state; norm right: those of them whose largest norm is on one. near ideal: heads of all layers.
    distance: median over the pairs of heads of all layers. norm: of all parameters.
    """
    rows = values["heads", None, None, "rows"]
    first = {
        name: round(sum(value * rows for (_, layer, _, item), value in values.items() if layer == 0 and item == name))
        for name in ("elsewhere", "elsewhere_norm")
    }
    ideal = [value for (*_, item), value in values.items() if item == "ideal"]
    apart = [value for (*_, item), value in values.items() if str(item).startswith("distance ")]
    wrong = round(values.get(("heads", None, None, "wrong"), 0.0) * rows)
    return {
        "wrong": f"{wrong} of {rows:.0f}",
        "elsewhere": f"{first['elsewhere']}",
        "norm right": f"{first['elsewhere_norm']}",
        "near ideal": f"{sum(head < NEAR for head in ideal)} of {len(ideal)}",
        "distance": f"{statistics.median(apart):.2f}" if apart else "–",
        "norm": f"{values['heads', None, None, 'norm']:.1f}",
    }


def table(steps: Mapping[str, Mapping[int, Values]], replicates: list[Row], every: bool) -> list[dict[str, str]]:
    """Lines of COLUMNS, by condition, seeds and step; the last step alone unless `every`."""
    rows = []
    for row in sorted(replicates, key=lambda row: (row["condition"], row["init_seed"], row["data_seed"])):
        probed = sorted(steps.get(row["key"], {}))
        for step in probed if every else probed[-1:]:
            name = {"condition": row["condition"], "seeds": f"{row['init_seed']}, {row['data_seed']}", "step": str(step)}
            rows.append(name | summary(steps[row["key"]][step]))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table as Markdown; 0, or 2 where there is nothing to print."""
    parser = argparse.ArgumentParser(
        prog="python -m results.report.flipflop.heads", description="What do the heads of a study's replicates look at?"
    )
    parser.add_argument("store")
    parser.add_argument("study")
    parser.add_argument("--steps", choices=("last", "all"), default="last")
    options = parser.parse_args(arguments)
    try:
        store = open_store(options.store, options.study)
        lines = table(
            over_steps(read(store, "probes")), as_planned(store, committed(store)).to_pylist(), options.steps == "all"
        )
        if not lines:
            raise StudyError(
                f"study {options.study} has no rows of heads: manyseeds probe {store.shell_word} {options.study} --probe heads "
                "adds them"
            )
    except (StudyError, StoreError) as error:
        say(f"error: {error}", err=True)
        return 2
    for row in table_lines(COLUMNS, (map(line.__getitem__, COLUMNS) for line in lines)):
        say(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
