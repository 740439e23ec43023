"""A study as its store has it now: its newest manifest, and the rows that count.

study = read_study(store, manifest_of(store))
worst = max(replicate.error("sparse") for replicate in study.replicates)
"""

from dataclasses import dataclass

import pyarrow as pa

from results.rows.summary import Replicate, replicates_of
from results.store.manifest import Manifest, reported
from results.store.tables import Store, committed, read


@dataclass(frozen=True)
class StudyRows:
    """The rows of a study.

    committed: the winning rows of `replicates`. evaluations: their rows that are reported. replicates: every planned replicate.
    """

    committed: pa.Table
    evaluations: pa.Table
    replicates: list[Replicate]


def read_study(store: Store, manifest: Manifest) -> StudyRows:
    """Read a study's replicates and evaluations, without curves, profiles and probes."""
    winning = committed(store)
    evaluations = read(store, "evaluations", filter=reported(manifest), winning=winning)
    return StudyRows(winning, evaluations, replicates_of(manifest, winning, evaluations, read(store, "failures")))
