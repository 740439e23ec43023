"""What a family of studies adds to reports: general code reads it from here, and names no family."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
from matplotlib.figure import Figure

from results.claims.claim import Settled
from results.claims.evidence import Condition, Evidence
from results.plain_values import Options
from results.report.citations import Reference
from results.rows.summary import Replicate
from results.store.manifest import Manifest
from results.store.tables import Store

Drawn = tuple[str, str, str, Figure]  # name of its files, title, caption
Section = Callable[[Store, Manifest, Sequence[Replicate], pa.Table], list[Drawn]]
Answer = TypeVar("Answer")
Links = Mapping[str, Mapping[str, str]]  # heading → text → file beside the page


@dataclass(frozen=True)
class ReportFamily:
    """The part of one family; what it leaves out, its reports do without.

    sections: figures beside those of every study, from the store, the manifest, its replicates and the committed rows of
    `replicates`; [] for a study of another family.
    key_figures: names of figures that answer the question of a study, best first; one stands on the first screen.
    paper_shows: what the paper shows, by (paper, card) of a study's `source`; it stands beside what was seen.
    axes: title and label of the figure of a profile axis.
    hidden_axes: by task, the profile axes that a section draws in its own way.
    errors: by task, what counts as an error; for manifests from before they had `scoring`.
    references: what to cite for a study's `source.paper`.
    task_options: options of a task that the methods paragraph names even at their defaults.
    task_phrase: what the paragraph adds of the settings of a task, or None.
    replicate_links: writes the family's own pages of a replicate into a folder and returns links to them.
    baseline, trade_off: the condition that others are compared with, and the two sets of the interactive figure, x and y; both
    raise `Settled` where a study has none.
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
