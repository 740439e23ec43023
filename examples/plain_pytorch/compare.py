"""Are the errors of the two studies distributed alike? Two one-sided tests at a margin that was fixed before they ran.

python compare.py runs          # reads the store, writes errors.csv
python compare.py errors.csv    # the same table from the committed rows
"""

import sys
from statistics import median

import pandas

import results
from results.statistics.equivalence import compare

MARGIN = 0.2  # from an even chance that a seed of one errs more than a seed of the other


def rows_of(store, study):
    """study, model, set, seed and share of wrong reads, from a store."""
    seeds = results.load(store, study, "replicates").to_pandas()[["key", "condition", "init_seed"]]
    rows = results.load(store, study, "evaluations").to_pandas().merge(seeds, on="key")
    rows = rows[rows.metric.isin(["read", "errors"])].assign(study=study)
    rows["errors"] = (rows.value if study == "plain" else rows.errors / rows["count"]).round(7)
    named = rows.rename(columns={"condition": "model", "init_seed": "seed"})
    return named[["study", "model", "set", "seed", "errors"]].sort_values(["model", "set", "seed"])


def main(source):
    if source.endswith(".csv"):
        rows = pandas.read_csv(source)
    else:
        rows = pandas.concat([rows_of(source, study) for study in ("plain", "here")])
        rows.to_csv("errors.csv", index=False)
    print("| model | set | seeds | median, plain | median, here | P(here errs more) | 90 % interval | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    for model in ("transformer", "lstm"):
        for name in ("training_law", "sparse"):
            own = rows[(rows.model == model) & (rows.set == name)]
            plain, here = (own.errors[own.study == study].to_list() for study in ("plain", "here"))
            found = compare(plain, here, MARGIN)
            print(
                f"| {model} | {name} | {len(plain)}, {len(here)} | {median(plain):.4f} | {median(here):.4f} "
                f"| {found.superiority:.3f} | {found.interval.low:.3f} to {found.interval.high:.3f} | {found.verdict} |"
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs")
