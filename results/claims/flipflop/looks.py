"""The rise of errors on sparse strings from one look during training to a later one (Liu's thesis, figures 3.24 and 3.27)."""

import math
from dataclasses import dataclass

import pyarrow.compute as pc

from results.claims.claim import NOT_RUN, settle
from results.claims.evidence import Evidence
from results.claims.flipflop.read_sets import laws, training_p_ignore
from results.claims.requirements import LEARNED
from results.statistics.intervals import clopper_pearson


@dataclass(frozen=True)
class Rise:
    """The largest rise during one training.

    factor: how many times more strings fail at the later look, at least, by the exact 95 % intervals of both. All fields are 0 where there
    is no rise.
    """

    factor: float
    low_step: int = 0
    high_step: int = 0
    wrong: tuple[int, int] = (0, 0)
    strings: int = 0

    def __str__(self) -> str:
        if not self.factor:
            return "none"
        low, high = self.wrong
        return (
            f"from {low} of {self.strings} strings with an error at step {self.low_step:,} to {high} at step {self.high_step:,} "
            f"(at least {self.factor:.3g} times)"
        )


@dataclass(frozen=True)
class Look:
    step: int
    rate: float
    wrong: int
    strings: int


def sparse_and_own_looks(evidence: Evidence) -> tuple[str, str]:
    """The sparsest set scored during training, and the one of the baseline's own training distribution."""
    trained = training_p_ignore(evidence)
    watched = laws(evidence.online, trained)
    sparse = [name for name, law in watched.items() if law > trained]
    own = [name for name, law in watched.items() if law == trained]
    if not sparse or not own:
        settle(NOT_RUN, f"no set that is scored during training is {'of the training distribution' if sparse else 'sparse'}")
    return max(sparse, key=lambda name: watched[name]), own[0]


def rebound(evidence: Evidence, key: str, sparse: str, own: str) -> Rise | None:
    """The largest rise between two looks, at which and between which at most 1 % of the reads of the training distribution are wrong.

    None without looks.
    """
    rates = {look.step: look.rate for look in _looks(evidence, key, own)}
    looks = {look.step: look for look in _looks(evidence, key, sparse)}
    if not looks:
        return None
    best, most = None, Rise(0.0)
    for step in sorted(rates.keys() | looks.keys()):
        rate, look = rates.get(step), looks.get(step)
        if rate is not None and rate > LEARNED:
            best = None  # a rise that begins before the training distribution was lost is no surprise
        elif rate is not None and look is not None:
            if best is not None:
                factor = clopper_pearson(look.wrong, look.strings).low / clopper_pearson(best.wrong, best.strings).high
                if factor > most.factor:
                    most = Rise(factor, best.step, look.step, (best.wrong, look.wrong), look.strings)
            if best is None or look.wrong < best.wrong:
                best = look
    return most


def _looks(evidence: Evidence, key: str, name: str) -> list[Look]:
    """Looks at one replicate's only stage, by step; a look that did not count the wrong strings is left out."""
    if evidence.evaluations is None:
        return []
    rows = evidence.evaluations.filter((pc.field("key") == key) & (pc.field("set") == name) & (pc.field("weights") == "raw"))
    looks = [
        Look(
            row["step"],
            row["errors"] / row["count"] if row["errors"] is not None else math.inf,
            row["sequences_wrong"],
            row["sequences"],
        )
        for row in rows.to_pylist()
        if row["count"] != 0 and row["sequences_wrong"] is not None
    ]
    return sorted(looks, key=lambda look: look.step)
