"""What a report draws of one family of studies beside the figures of every study: a module each, which a new one is added to."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from results.report.automata import page as automata_page
from results.report.automata.trained import Drawn
from results.report.distillation import page as distillation_page
from results.report.distillation import pcfg_page
from results.report.lego import page as lego_page
from results.report.subsequences import page as subsequences_page
from results.report.subsequences import tracing_page
from results.rows.summary import Replicate
from results.store.tables import Store

PAGES = (automata_page, lego_page, distillation_page, pcfg_page, subsequences_page, tracing_page)


def drawings(store: Store, manifest: dict[str, Any], known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Of all that have something to draw. `finished` are the committed rows of `replicates`."""
    return [drawn for page in PAGES for drawn in page.drawings(store, manifest, known, finished)]
