"""What a report draws of one family of studies beside the figures of every study: a module each, which a new one is added to."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from results import automata_page, distillation_page, lego_page, pcfg_page, subsequences_page, tracing_page
from results.automata_trained import Drawn
from results.store import Store
from results.summary import Replicate

PAGES = (automata_page, lego_page, distillation_page, pcfg_page, subsequences_page, tracing_page)


def drawings(store: Store, manifest: dict[str, Any], known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Of all that have something to draw. `finished` are the committed rows of `replicates`."""
    return [drawn for page in PAGES for drawn in page.drawings(store, manifest, known, finished)]
