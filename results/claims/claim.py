"""A claim of a paper, and the verdicts that a study's rows can give on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from results.claims.evidence import Evidence
from results.errors import StudyError
from results.plain_values import Value

REPRODUCED = "reproduced"
SCALED = "reproduced (scaled)"  # at another size than the paper's; the reductions are printed beside it
NOT_REPRODUCED = "not reproduced"
NOT_REPRODUCED_SCALED = "not reproduced (scaled)"
PRECONDITION = "precondition not met"
TOO_FEW = "too few replicates"
NOT_RUN = "not run"
VERDICTS = (REPRODUCED, SCALED, NOT_REPRODUCED, NOT_REPRODUCED_SCALED, PRECONDITION, TOO_FEW, NOT_RUN)


@dataclass(frozen=True)
class Terms:
    """The terms of one claim in a study's section `claims`.

    value: the paper's number, or our criterion where it gives none; the claim's `quantity` says what it measures. of: the number of
    replicates behind the value, where it is a share. replicates: how many the claim waits for, at least its own `needs`. gate: the share
    of replicates that must pass the claim's precondition, such as no error on the training distribution.
    """

    value: float
    of: int | None = None
    replicates: int | None = None
    gate: float = 0.5


@dataclass(frozen=True)
class Finding:
    """The outcome of a test: one of VERDICTS, what was measured, and why that is the verdict."""

    verdict: str
    measured: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper with its test.

    judge: is given the rows, the study's terms and the replicates that each condition must have; it finds conditions and sets by what they
    are, never by name. needs: replicates of each condition below which nothing is decided. power: what that many replicates show with a
    chance of 80 %. study: the one that decides the claim, as FAMILY/NAME; "" where no study does. of_experiments: whether the rows are
    values of experiments, and not errors of trained models. of_factor: whether the value is a factor of at least 1, which is divided by.
    of_share: whether it is a share, an accuracy, a correlation, or a difference of two, from -1 to 1. study_reduced: whether that study is
    smaller than the paper's, so that none is at the paper's own size. command: what makes the rows where no study does, such as
    "manyseeds language-model". paper_value: the number that the paper gives for `value`; None where it gives none, so that the value is
    a threshold of ours.
    """

    id: str
    sentence: str
    source: str
    quantity: str
    needs: int
    power: str
    judge: Callable[[Evidence, Terms, int], Finding]
    study: str = ""
    of_experiments: bool = False
    of_factor: bool = False
    of_share: bool = False
    study_reduced: bool = False
    paper_value: float | None = None
    command: str = ""


def by_id(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Claims by their ids, in the given order. Raises ValueError where two share one."""
    listed = list(claims)
    ids = [claim.id for claim in listed]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"two claims are called {', '.join(repeated)}: give each an id of its own")
    return dict(zip(ids, listed, strict=True))


@dataclass(frozen=True)
class Verdict:
    """A line of the scoreboard."""

    claim: Claim
    terms: Terms
    finding: Finding

    @property
    def verdict(self) -> str:
        return self.finding.verdict

    @property
    def refuted(self) -> bool:
        """Not reproduced, at the paper's size or at another."""
        return self.verdict in (NOT_REPRODUCED, NOT_REPRODUCED_SCALED)


class Settled(Exception):
    """Raised inside `judge` where a verdict is clear before the test: nothing to test, a gate that fails, too few replicates."""

    def __init__(self, finding: Finding):
        super().__init__(finding.reason)
        self.finding = finding


def settle(verdict: str, reason: str, measured: str = "") -> NoReturn:
    raise Settled(Finding(verdict, measured, reason))


def decide(holds: bool, fails: bool, measured: str, reason: str) -> Finding:
    """The verdict of a test with three outcomes; where it both supports and refutes a claim, it counts as refuted."""
    if fails:
        return Finding(NOT_REPRODUCED, measured, reason)
    if holds:
        return Finding(REPRODUCED, measured, reason)
    return Finding(TOO_FEW, measured, f"undecided: {reason}")


class Part(NamedTuple):
    """One of several tests of a claim: whether it supports the claim, whether it refutes it, and what was measured."""

    holds: bool
    fails: bool
    measured: str


def decide_all(parts: Sequence[Part], before: str, reason: str, after: str = "") -> Finding:
    """The verdict where all parts must hold and any one can refute the claim. before, after: text around what they measured.

    Parts that refute the claim are told first, then those that are undecided, so that a shortened text keeps what decides.
    """
    told = sorted(parts, key=lambda part: (not part.fails, part.holds))
    measured = f"{before}{'; '.join(part.measured for part in told)}{after}"
    return decide(bool(parts) and all(part.holds for part in parts), any(part.fails for part in parts), measured, reason)


def terms_of(claim: Claim, node: Value) -> Terms:
    """Parse a mapping such as {value: 0.24, of: 25}. Raises ValueError, in one sentence, where something is wrong."""
    where = f"claims.{claim.id}"
    if not isinstance(node, Mapping) or "value" not in node:
        raise StudyError(f"{where} = {node!r} must be a mapping with the paper's value, such as {{value: 1.0}}")
    for name in ("value", "gate"):
        if name in node and type(node[name]) not in (int, float):
            raise StudyError(f"{where}.{name} = {node[name]!r} must be a number")
    if claim.of_factor and not node["value"] >= 1:
        raise StudyError(f"{where}.value = {node['value']} must be a factor of at least 1: it is the {claim.quantity}")
    for name in ("of", "replicates"):
        if name in node and (type(node[name]) is not int or node[name] < 1):
            raise StudyError(f"{where}.{name} = {node[name]!r} must be a whole number of at least 1")
    if "of" in node and not 0 <= node["value"] <= 1:
        raise StudyError(f"{where}.value = {node['value']} must be a share from 0 to 1 where `of` is given")
    if claim.of_share and not abs(node["value"]) <= 1:
        raise StudyError(f"{where}.value = {node['value']} must be at most 1, and not in percent: it is the {claim.quantity}")
    if not 0 <= node.get("gate", 0) <= 1:
        raise StudyError(f"{where}.gate = {node['gate']} must be a share from 0 to 1")
    if node.get("replicates", claim.needs) < claim.needs:
        raise StudyError(
            f"{where}.replicates = {node['replicates']} must be at least {claim.needs}: below that the claim has too little power"
        )
    return Terms(float(node["value"]), node.get("of"), node.get("replicates"), float(node.get("gate", Terms.gate)))


TERMS = ("value", "of", "replicates", "gate")
