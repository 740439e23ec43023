"""Conditions and sets of flip-flop studies by what they are: the baseline, and sparse, dense and in-distribution strings."""

from collections.abc import Callable, Mapping

from results.claims.claim import NOT_RUN, settle
from results.claims.evidence import Condition, Evidence, differing
from results.claims.requirements import LEARNERS, gate, learners, own_sets
from results.plain_values import Options

PAPER = 0.8  # p_ignore of the distribution that the paper trains on
PLAIN = {
    "task.name": "flipflop",
    "task.mode": "deterministic",
    "model.name": "transformer",
    "model.positions": "learned",
    "model.activation": "gelu",
    "model.norm": "pre",
    "model.causal": True,
    "model.shift": 0,
    "model.embedding_dropout": 0,
    "model.attention_dropout": 0,
    "model.residual_dropout": 0,
    "model.feed_forward_dropout": 0,
    "train.optimizer": "adamw",
    "train.pool": 0,
    "train.sharpen.weight": 0,
    "train.clip": 0,
    "train.ema": 0,
}


def training_p_ignore(evidence: Evidence) -> float:
    """The one p_ignore that most replicates are trained on; of several, the one nearest to the paper's 0.8; 0.8 for none."""
    votes: dict[float, int] = {}
    for condition in evidence.conditions:
        p = condition.settings.get("task.p_ignore")
        if isinstance(p, int | float):
            votes[float(p)] = votes.get(float(p), 0) + len(condition.replicates)
    return min(votes, key=lambda p: (-votes[p], abs(p - PAPER), p), default=PAPER)


def p_ignore_of_sets(evidence: Evidence) -> dict[str, float]:
    """p_ignore by name of every set that is scored at the end and differs from the training in p_ignore at most."""
    return laws(evidence.definitions, training_p_ignore(evidence))


def laws(definitions: Mapping[str, Options], trained: float) -> dict[str, float]:
    """p_ignore by name of the sets that differ from the training, on p_ignore = `trained`, in p_ignore at most."""
    p_ignore = {
        name: changed.get("p_ignore", trained) for name, changed in definitions.items() if changed.keys() <= {"p_ignore"}
    }
    return {name: float(p) for name, p in p_ignore.items() if isinstance(p, int | float)}


def sparse_set(evidence: Evidence) -> str:
    """The set with most ignored instructions."""
    trained = training_p_ignore(evidence)
    return _set(evidence, lambda p: p > trained, lambda p: -p, f"sparse: p_ignore above {trained:g}")


def dense_set(evidence: Evidence) -> str:
    """The set with fewest ignored instructions."""
    trained = training_p_ignore(evidence)
    return _set(evidence, lambda p: p < trained, lambda p: p, f"dense: p_ignore below {trained:g}")


def in_distribution(evidence: Evidence) -> str:
    """The set of the training distribution."""
    trained = training_p_ignore(evidence)
    return _set(evidence, lambda p: p == trained, lambda p: p, "of the training distribution")


def laws_of(condition: Condition) -> list[float]:
    """Each p_ignore that a condition is trained on; of a mixture, several."""
    trained = condition.settings["task.p_ignore"]
    return list(trained) if isinstance(trained, list | tuple) else [trained]


def sets_of_laws(evidence: Evidence, condition: Condition) -> list[str]:
    """The largest set of each p_ignore that a condition is trained on; [] where one of them has none.

    Only sets that name their p_ignore: they are the same for every condition, a mixture too.
    """
    fixed = {name: law for name, law in p_ignore_of_sets(evidence).items() if "p_ignore" in evidence.definitions[name]}
    by_law = [[name for name, law in fixed.items() if law == wanted] for wanted in laws_of(condition)]
    return [max(names, key=lambda name: evidence.sequences[name]) for names in by_law] if all(by_law) else []


def training_sets(evidence: Evidence, condition: Condition) -> list[str]:
    """The sets of a condition's training distribution: those of the whole of it, and of a mixture one for each of its parts."""
    return list(dict.fromkeys([*own_sets(evidence, condition), *sets_of_laws(evidence, condition)]))


def _set(evidence: Evidence, fits: Callable[[float], bool], order: Callable[[float], float], what: str) -> str:
    names = {name: order(p) for name, p in p_ignore_of_sets(evidence).items() if fits(p)}
    if not names:
        settle(NOT_RUN, f"no set that is scored at the end is {what}")
    return min(names, key=lambda name: (names[name], -evidence.sequences[name]))


def plain_transformers(evidence: Evidence) -> list[Condition]:
    """The conditions that are the paper's transformer but for its size and its training's steps, rate and batch."""
    plain = PLAIN | {"task.p_ignore": training_p_ignore(evidence)}
    return [condition for condition in evidence.conditions if all(condition.settings.get(k, v) == v for k, v in plain.items())]


def baseline(evidence: Evidence) -> Condition:
    """The plain transformer that the others differ least from; of several, with fewest steps, then with most replicates."""
    plain_conditions = plain_transformers(evidence)
    if not plain_conditions:
        settle(NOT_RUN, f"no condition is the plain transformer trained on p_ignore = {training_p_ignore(evidence):g}")

    def order(condition: Condition) -> tuple[int, int, int]:
        differences = sum(len(differing(condition, other)) for other in evidence.conditions)
        return differences, condition.settings["train.steps"], -len(condition.replicates)

    return min(plain_conditions, key=order)


def same_data(condition: Condition, base: Condition) -> bool:
    """Whether a condition is a model of the baseline's kind that is trained on the baseline's data."""
    different = [name for name in differing(condition, base) if name.startswith("task.") and name != "task.mode"]
    return condition.settings["model.name"] == base.settings["model.name"] and not different


def has_learned(evidence: Evidence, condition: Condition) -> bool:
    """Whether enough of a condition's replicates have learned its training distribution."""
    count, total = learners(condition, training_sets(evidence, condition))
    return bool(total) and count >= LEARNERS * total


def trained_as_long(evidence: Evidence, base: Condition, steps: int) -> Condition | None:
    """The baseline with at least so many steps: itself, or the one with fewest that differs from it in them alone."""
    conditions = [
        condition for condition in (base, *evidence.beside(base, ["train.steps"])) if condition.settings["train.steps"] >= steps
    ]
    return min(conditions, key=lambda condition: condition.settings["train.steps"], default=None)


def gate_in_distribution(evidence: Evidence, base: Condition, share: float) -> None:
    """Settle a claim unless `share` of the replicates have no error on the training distribution."""
    errors = base.errors(in_distribution(evidence))
    what = f"replicates of {base.name} have no error on the training distribution"
    gate(int((errors == 0).sum()), len(errors), share, what)
