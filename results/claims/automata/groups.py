"""Functions that the claims on automata share: conditions by automaton and arm, sets by what they change, accuracies of replicates."""

import math
import re
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from results.claims.claim import NOT_RUN, settle
from results.claims.compare import median_accuracy
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import by_place, gate
from results.statistics.intervals import quantile

MEMORY = re.compile(r"(Dyck|Grid)")
NON_ABELIAN = re.compile(r"(D\d+|Q8|A\d+|S\d+.*)$")
CYCLIC = re.compile(r"C\d+$")
LETTERS: dict[str, Callable[..., int]] = {  # tokens that may be read in one state, by the numbers in the name
    r"C(\d+)": lambda n: n,
    r"C(\d+)\^(\d+)": pow,
    r"A(\d+)": lambda n: n - 2,
    r"S\d+": lambda: 8,
    r"S\d+_(\d+)": lambda generators: generators,
    r"Q8": lambda: 4,
    r"Dyck_\d+_(\d+)": lambda types: types + 1,  # every type opens, and one closes
    r"D\d+|Grid\d+|abab": lambda: 2,
}
RANKS = "10 replicates of each: a direction, where 85 % of pairs have it"  # what claims on directions can show
UNSEEN = 0.01  # least expected share of words that training must leave unseen
NON_SOLVABLE = re.compile(r"[AS]([5-9]|\d\d)")
PLAIN = {  # the thesis' transformer
    "model.name": "transformer",
    "model.positions": "sinusoidal",
    "model.shift": 0,
    "task.scratchpad": False,
    "task.p_reveal": 1,
    "model.embedding_dropout": 0,
    "model.attention_dropout": 0,
    "model.residual_dropout": 0,
    "model.feed_forward_dropout": 0,
}


def arms(evidence: Evidence, **changes: object) -> list[Condition]:
    """The conditions on automata with the options of `PLAIN` except for these changes, with __ for a dot; None allows any value."""
    wanted = PLAIN | {name.replace("__", "."): value for name, value in changes.items()}
    if wanted["model.name"] != "transformer":
        wanted = {name: value for name, value in wanted.items() if not name.startswith("model.") or name == "model.name"}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    return evidence.with_settings(wanted | {"task.name": "automaton"})


def one_by_automaton(conditions: Iterable[Condition], what: str) -> dict[str, Condition]:
    """Conditions by automaton. Settles a claim where there is none, or where one automaton has several: nothing says which is meant."""
    return by_place(conditions, automaton, f"are both {what} on one automaton") or settle(NOT_RUN, f"no condition is {what}")


def automaton(condition: Condition) -> str:
    """The name of a condition's automaton; a table of a user's own is called table."""
    return str(condition.settings.get("task.automaton", "table"))


def gate_right(conditions: Iterable[Condition], name: str, accuracy: float, share: float) -> None:
    """Settle a claim unless enough replicates are right on their training distribution: else they say nothing about other words."""
    for condition in conditions:
        errors = condition.wrong(name)
        right = int((errors <= 1 - accuracy).sum())
        gate(right, len(errors), share, f"replicates of {condition.name} have {accuracy:g} of {name} right")


def letters(condition: Condition) -> int:
    """How many tokens may be read in one state of a condition's automaton, at most."""
    if table := condition.settings.get("task.automaton.table"):
        return len(table[0])
    matches = ((re.fullmatch(name, automaton(condition)), count) for name, count in LETTERS.items())
    return next(count(*map(int, match.groups())) for match, count in matches if match)


def require_unseen(conditions: Iterable[Condition]) -> None:
    """Settle a claim about other words where training has covered nearly all words of its own length, which may be learned by heart.

    Words are taken to be uniform.
    """
    for condition in conditions:
        length, strings = (
            condition.settings["task.length"],
            condition.settings["train.steps"] * condition.settings["train.batch"],
        )
        words = letters(condition) ** length
        if math.exp(-strings / words) < UNSEEN:
            settle(
                NOT_RUN,
                f"{condition.name} is trained on {strings:,} strings, and at most {words:,} words of {length} tokens exist: it "
                "has seen nearly all, so it need not have learned a rule. Train on longer words",
            )


def sets_along(evidence: Evidence, option: str) -> dict[float, str]:
    """Sets that change this option of the task and no other, by its value, in order. Settles a claim on fewer than two."""
    names = {float(changed[option]): name for name, changed in evidence.definitions.items() if set(changed) == {option}}
    if len(names) < 2:
        settle(NOT_RUN, f"{len(names)} sets that are scored at the end change {option} alone; the claim needs two")
    return dict(sorted(names.items()))


def reach(each: Iterable[ArrayLike], accuracy: float) -> tuple[bool, bool]:
    """Whether the medians of all these error rates are shown to reach an accuracy, and whether one is shown to miss it.

    All must hold for a claim, so each is tested at 5 %; any one refutes it, so that is tested at 5 % over all of them together.
    """
    listed = list(each)
    return (
        all(median_accuracy(errors).low >= accuracy for errors in listed),
        any(median_accuracy(errors, 1 - 0.05 / len(listed)).high < accuracy for errors in listed),
    )


def miss(each: Iterable[ArrayLike], accuracy: float) -> tuple[bool, bool]:
    """As `reach`: whether all are shown to miss the accuracy, and whether one is shown to reach it."""
    listed = list(each)
    return (
        all(median_accuracy(errors).high < accuracy for errors in listed),
        any(median_accuracy(errors, 1 - 0.05 / len(listed)).low >= accuracy for errors in listed),
    )


def best(condition: Condition, name: str) -> float:
    """Accuracy of the best replicate."""
    return float(condition.accuracies(name).max())


def describe(condition: Condition, name: str) -> str:
    """The best and the median accuracy as text, always both."""
    return f"{condition.name}: {best_and_median(condition.wrong(name))}"


def best_and_median(errors: ArrayLike) -> str:
    return f"best {1 - np.min(errors):.3f}, median {1 - quantile(errors, 0.5):.3f}"
