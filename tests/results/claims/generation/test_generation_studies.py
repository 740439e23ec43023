"""The numbers on BT1 of docs/studies/generation are those of its rows."""

from pathlib import Path

import numpy as np

from results.rows.probe_values import by_key
from results.store.tables import open_store, read

PAGE = " ".join(Path("docs/studies/generation/README.md").read_text(encoding="utf-8").split())


def test_the_gain_of_a_larger_quota_is_that_of_the_rows():
    generators = by_key(read(open_store("docs/studies/generation", "trained-generators"), "probes")).values()

    def ends_well(quota):
        start = f"error thesis Q={quota} B=4 verifier="
        shares = [
            np.mean([value for (*_, item), value in values.items() if item.startswith(start) and item.endswith(" right")])
            for values in generators
        ]
        assert len(shares) == 48
        return f"{100 * np.median(shares):.0f} %"

    assert (
        f"with a stride of 4, {ends_well(1)} of the error prompts end well with a quota of 1, and {ends_well(4)} with 4" in PAGE
    )
