"""Are two conditions the same? An equivalence against a margin that was fixed beforehand; otherwise *not shown*.

    python -m results.statistics.equivalence STORE STUDY fp32 bf16 --sets sparse dense --margin 0.15

The quantity is the probability that a replicate of the second condition errs more than one of the first, ties halved: 1/2 where the
distributions are the same, whatever their tails. A diverged replicate errs most.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from results.errors import StoreError, StudyError, nearest
from results.markdown_table import table_lines
from results.rows.measures import measures_of
from results.rows.plural import distinct
from results.rows.shared_seeds import share_seeds
from results.rows.study_rows import read_study
from results.rows.summary import Replicate, set_names
from results.statistics.intervals import Interval
from results.statistics.unpaired import superiority
from results.store.manifest import manifest_of
from results.store.tables import open_store
from results.terminal import say


@dataclass(frozen=True)
class Comparison:
    """`superiority`: P(second > first) + P(equal)/2 with its interval; verdict: equivalent | different | not shown."""

    first: int
    second: int
    superiority: float
    interval: Interval
    margin: float
    verdict: str


def compare(first: ArrayLike, second: ArrayLike, margin: float) -> Comparison:
    """Two one-sided tests at 5 % each (Schuirmann 1987): equivalent where the 90 % interval lies within 1/2 ± margin.

    different: the 95 % interval excludes 1/2. Both can hold: a difference that is shown to be small counts as equivalent.
    """
    if not 0 < margin < 0.5:
        raise StudyError(f"margin = {margin} must be between 0 and 0.5: it is a distance from an even chance")
    estimate, narrow = superiority(first, second, 0.90)
    _, wide = superiority(first, second, 0.95)
    if 0.5 - margin < narrow.low and narrow.high < 0.5 + margin:
        verdict = "equivalent"
    else:
        verdict = "different" if wide.low > 0.5 or wide.high < 0.5 else "not shown"
    return Comparison(len(np.asarray(first)), len(np.asarray(second)), estimate, narrow, margin, verdict)


def _errors(replicates: Sequence[Replicate], condition: str, name: str) -> list[float]:
    """Final error rates of a condition on a set. ValueError where the condition is unknown or a replicate has no number."""
    members = [replicate for replicate in replicates if replicate.condition == condition]
    if not members:
        names = dict.fromkeys(replicate.condition for replicate in replicates)
        raise StudyError(f"there is no condition {condition!r}; conditions: {'; '.join(names)}")
    stages = sorted({replicate.stage for replicate in members})
    if len(stages) > 1:
        raise StudyError(
            f"{condition} has the stages {', '.join(map(str, stages))}, and a seed in each is no replicate of its own: "
            "`manyseeds compare` tells stages apart"
        )
    if share_seeds([replicate.seeds for replicate in members]):
        raise StudyError(f"replicates of {condition} share seeds and are no independent sample: run it with paired seeds")
    errors = [replicate.error(name) for replicate in members]
    if missing := errors.count(None):
        endings = {replicate.ending(name) for replicate in members if replicate.error(name) is None}
        if endings == {"no_transition"}:
            why = ", since their teacher never met the rule of its stage: the others are no fair sample"
        elif endings == {"failed"}:
            why = ", since they failed: train them with manyseeds retry first, as the others are no fair sample"
        else:
            why = ": finish the study first, since those that end early are no fair sample"
        raise StudyError(f"{missing} of {len(members)} replicates of {condition} have no number on {name}{why}")
    return [error for error in errors if error is not None]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m results.statistics.equivalence", description="Are two conditions of a study the same?"
    )
    parser.add_argument("store")
    parser.add_argument("study")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--margin", type=float, required=True, help="fixed before the study was looked at")
    options = parser.parse_args(arguments)
    try:
        if options.first == options.second:
            raise StudyError(f"{options.first} is given twice: give two conditions")
        store = open_store(options.store, options.study)
        manifest = manifest_of(store)
        study = read_study(store, manifest)
        replicates, rows = study.replicates, []
        measured = [measure.label for measure in measures_of(manifest, study.evaluations)]
        known, chance_of = measured or set_names(manifest), "P(second is worse)" if measured else "P(second errs more)"
        for name in options.sets:
            if name not in known:
                raise StudyError(f"there is no set {name!r}; sets: {', '.join(known)}{nearest(name, known)}")
            first, second = (_errors(replicates, condition, name) for condition in (options.first, options.second))
            compared = compare(first, second, options.margin)
            marks = 0, 0.5 - compared.margin, 0.5, 0.5 + compared.margin, 1  # that it decides by, or that say never or always
            numbers = compared.superiority, compared.interval.low, compared.interval.high
            chance, low, high = (distinct(number, 3, "f", *marks) for number in numbers)
            counts, interval = f"{compared.first}, {compared.second}", f"{low} – {high}"
            rows.append((name, counts, chance, interval, f"0.5 ± {compared.margin:g}", compared.verdict))
        for line in table_lines(("set", "replicates", chance_of, "90 % interval", "margin", "verdict"), rows):
            say(line)
    except (StudyError, StoreError) as error:
        say(f"error: {error}", err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
