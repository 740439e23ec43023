"""The interface of the parts that a family of studies adds to reports. General code reads them from here and names no family."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa
from matplotlib.figure import Figure

from results.claims.claim import Settled
from results.claims.evidence import Condition, Evidence, gather
from results.plain_values import Options
from results.report.citations import Reference
from results.rows.plural import plural
from results.rows.summary import Replicate, reported_sets
from results.store.manifest import ConditionFields, Manifest, scoring_of
from results.store.tables import Store

Drawn = tuple[str, str, str, Figure]  # name of its files, title, caption
Section = Callable[[Store, Manifest, Sequence[Replicate], pa.Table], list[Drawn]]
Answer = TypeVar("Answer")
Links = Mapping[str, Mapping[str, str]]  # heading → text → file beside the page
_NOUN = re.compile(r"an? (?P<noun>[\w-]+(?: [\w-]+){0,2}?)(?:,| \(| (?:where|whose|that|which|in which)\b)")


@dataclass(frozen=True)
class ReportFamily:
    """The parts that one family adds; all are optional.

    sections: figures beside those of every study, from the store, the manifest, its replicates and the committed rows of
    `replicates`; [] for a study of another family.
    key_figures: names of figures that answer the question of a study, best first; one stands on the first screen.
    paper_shows: what the paper shows, by (paper, card) of a study's `source`; it stands beside what was seen.
    axes: title and label of the figure of a profile axis.
    hidden_axes: by task, the profile axes that a section draws in its own way.
    errors: by task, what counts as an error; for manifests from before they had `scoring`.
    references: the works to cite for a study's `source.paper`.
    task_options: options of a task that the methods paragraph names even at their defaults.
    task_phrase: what the paragraph adds of the settings of a task, or None.
    replicate_links: writes the family's own pages of a replicate into a folder and returns links to them.
    baseline, trade_off: the condition that others are compared with, and the two sets whose errors are drawn against each other, x and
    y; both raise `Settled` where a study has none.
    """

    sections: tuple[Section, ...] = ()
    key_figures: tuple[str, ...] = ()
    paper_shows: Mapping[tuple[str, str], str] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    hidden_axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, tuple[Reference, ...]] = field(default_factory=dict)
    task_options: tuple[str, ...] = ()
    task_phrase: Callable[[Options], str | None] | None = None
    replicate_links: Callable[[Store, str, str | os.PathLike[str] | None], Links] | None = None
    baseline: Callable[[Evidence], Condition] | None = None
    trade_off: Callable[[Evidence], tuple[str, str]] | None = None


def first_answer(hooks: Iterable[Callable[[Evidence], Answer] | None], evidence: Evidence) -> Answer | None:
    """The answer of the first hook that does not raise `Settled`; None where all do."""
    for hook in hooks:
        with suppress(Settled):
            if hook is not None:
                return hook(evidence)
    return None


def compared_sets(manifest: Manifest, families: Iterable[ReportFamily]) -> tuple[str, str] | None:
    """The two sets whose errors are drawn against each other, x and y: those of a family, else the first two; None where there is one."""
    conditions = [{"settings": condition["config"]} | condition for condition in manifest["conditions"]]
    of_family = first_answer((family.trade_off for family in families), gather(manifest | {"conditions": conditions}, ()))
    return of_family or next(pairwise(reported_sets(manifest)), None)


def error_definition(conditions: Sequence[ConditionFields], families: Sequence[ReportFamily]) -> str:
    """Two sentences: what counts as an error in a study, and what its error rates are."""
    answers = scored_answers(conditions, families)
    return (
        f"An error is {'; or '.join(error_phrases(conditions, families))}. The error rate is the share of errors among all {answers} "
        "of a set, at the last step."
    )


def scored_answers(conditions: Sequence[ConditionFields], families: Iterable[ReportFamily]) -> str:
    """The noun for the answers that a study scores, such as "closing brackets"; "answers" where its tasks name none or several."""
    nouns = {
        matched["noun"] if (matched := _NOUN.match(phrase)) else "answer" for phrase in error_phrases(conditions, families)
    }
    return plural(nouns.pop() if len(nouns) == 1 else "answer")


def error_phrases(conditions: Sequence[ConditionFields], families: Iterable[ReportFamily]) -> list[str]:
    """What counts as an error in the conditions of a study, each noun phrase once."""
    errors = {task: error for family in families for task, error in family.errors.items()}

    def phrase(condition: ConditionFields) -> str:
        task = condition.get("settings", condition.get("config", {})).get("task", {}).get("name")
        return scoring_of(condition).error or errors.get(task, "a scored position where the most probable answer is wrong")

    return list(dict.fromkeys(map(phrase, conditions)))
