"""The report's figure of the steps that transformers need to find a parity's support, by number of heads (Liu's thesis, figure 4.13)."""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from results.claims.claim import Settled
from results.claims.distillation.parity import looks_of, reached
from results.claims.distillation.transformers import axes
from results.claims.evidence import gather
from results.report.distillation.growth_page import Steps, by_size
from results.report.family import Drawn
from results.rows.summary import Replicate
from results.store.manifest import Manifest, has_settings_of, reported
from results.store.tables import Store, read

RIGHT = 0.75  # accuracy at which the support is found, as claim PD-R6 has it


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """The figure of a study of sparse parities whose transformers differ in their heads; [] for any other."""
    if not has_settings_of(manifest, "sparse_parity"):
        return []
    evidence = gather(manifest, replicates, evaluations=read(store, "evaluations", filter=reported(manifest), winning=finished))
    arms: dict[str, dict[int, list[float]]] = {}
    with suppress(Settled):  # no two transformers differ in their heads
        seen = looks_of(evidence)
        for axis in axes(evidence):
            arms[axis.fixed] = {
                heads: steps
                for heads, condition in axis.by_heads.items()
                if (steps := list(reached(seen, condition, RIGHT).values()))
            }
    shown: Steps = {fixed: by_heads for fixed, by_heads in arms.items() if len(by_heads) > 1}
    if not shown:
        return []
    caption = (
        f"Steps until {100 * RIGHT:g} % of the strings are right, by the number of heads, on the set that is scored most often. A name "
        "says what all models of its line share. Lines: medians over seeds; points: seeds, a little apart; above the line at the top: "
        "never within the training. The thesis draws curves of accuracy instead (figure 4.13)."
    )
    return [("steps-by-heads", "Steps by the number of heads", caption, by_size(shown, "attention heads", RIGHT))]
