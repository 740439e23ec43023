"""How often each claim's verdict is wrong on rows at the edge of what it says, at the campaign's sizes.

python -m benchmarks.claim_errors [--samples 1000] [--claims R1 R4] [--out benchmarks/results/cpu/claim_errors.md]

At an edge neither verdict is supported, so both "reproduced" and "not reproduced" count as errors, unless the claim is plainly true or
false there. The largest rate allowed for each follows from the confidence of the claim's own intervals. `claim_edges.py` has the edges.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.claim_edges import Edge, edges, fill
from results.claims import REGISTRY
from results.claims.claim import NOT_REPRODUCED, REPRODUCED, Settled
from results.markdown_table import markdown_table

SAMPLES = 1000
_HEAD = """Made by `python -m benchmarks.claim_errors`. ± is one standard error of the simulation. *P = 1/2*: a
replicate of one condition errs more than one of the other (times the claim's factor) as often as not. *clear*: far on the side
that supports the claim. –: the verdict is right there, or no level follows from the claim's intervals.
"""


@dataclass(frozen=True)
class Row:
    """Shares of `samples` draws; a level is None where the verdict is right at the edge, nan where none is stated."""

    claim: str
    setting: str
    reproduced: float
    refuted: float
    levels: tuple[float | None, float | None]
    samples: int

    @property
    def verdict(self) -> str:
        """Two standard errors above a level count as above it."""
        if all(level is None or math.isnan(level) for level in self.levels):
            return "no level stated"
        pairs = zip(("reproduced", "not reproduced"), (self.reproduced, self.refuted), self.levels, strict=True)
        above = [
            name
            for name, share, level in pairs
            if level is not None and not math.isnan(level) and share - 2 * _error(share, self.samples) > level
        ]
        return f"{' and '.join(above)} above its level" if above else "holds"


def judge(edge: Edge, random: np.random.Generator) -> str:
    """The verdict on one draw."""
    claim = REGISTRY[edge.claim]
    try:
        evidence = fill(edge.stage, edge.draw(random), random)
        return claim.judge(evidence, edge.terms, edge.terms.replicates or claim.needs).verdict
    except Settled as settled:
        return settled.finding.verdict


def measure(samples: int, claims: Sequence[str] = (), seed: int = 0) -> list[Row]:
    """One row per edge of these claims (of all claims if none is named), each from random numbers of its own."""
    rows = []
    for index, edge in enumerate(edges()):
        if claims and edge.claim not in claims:
            continue
        random = np.random.default_rng([seed, index])
        verdicts = [judge(edge, random) for _ in range(samples)]
        shares = verdicts.count(REPRODUCED) / samples, verdicts.count(NOT_REPRODUCED) / samples
        rows.append(Row(edge.claim, edge.setting, *shares, (edge.reproduced, edge.refuted), samples))
    return rows


def markdown(rows: Sequence[Row]) -> str:
    columns = ("claim", "at the edge", "reproduced", "at most", "not reproduced", "at most", "samples", "")
    return f"{_HEAD}\n{markdown_table(columns, map(_cells, rows))}\n"


def _cells(row: Row) -> list[object]:
    shares = [f"{share:.1%} ± {_error(share, row.samples):.1%}" for share in (row.reproduced, row.refuted)]
    most = [None if level is None or math.isnan(level) else f"{100 * level:g} %" for level in row.levels]
    return [row.claim, row.setting, shares[0], most[0], shares[1], most[1], row.samples, row.verdict]


def _error(share: float, samples: int) -> float:
    return math.sqrt(share * (1 - share) / samples)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claim_errors", description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"of each edge; {SAMPLES} unless given")
    parser.add_argument("--claims", nargs="*", default=[], help="of these claims alone")
    parser.add_argument("--out", type=Path, help="also write the table here")
    options = parser.parse_args(arguments)
    text = markdown(measure(options.samples, options.claims))
    print(text, end="")
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
