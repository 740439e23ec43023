"""The numbers on BT1 of docs/studies/generation are those of its rows, and its verdicts those of the scoreboard."""

import re
from pathlib import Path

import numpy as np
import pytest

from results.claims import scoreboard
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


def test_what_refusing_at_random_makes_of_the_errors():
    generators = by_key(read(open_store("docs/studies/generation", "trained-generators"), "probes")).values()

    def wrong(form):
        return np.array(
            [
                np.mean([value for (*_, item), value in values.items() if re.fullmatch(form, item)], dtype=np.float64)
                for values in generators
            ]
        )

    sampled = wrong(r"fresh top=0\.9 sampled Q=4 B=4 verifier=\d+ wrong") / wrong(r"fresh top=0\.9 plain wrong")
    assert f"It still makes {np.median(sampled):.2f} times as many as the generator alone" in PAGE
    at_random, beside = [], []
    for top in (r"0\.9", "1"):
        alone = wrong(f"fresh top={top} plain wrong")
        trained, random = (wrong(rf"fresh top={top} thesis Q=4 B=4 {kind}=\d+ wrong") for kind in ("verifier", "random"))
        assert (trained < random).sum() == len(alone) == 48
        at_random.append(f"{np.median(random / alone):.2f}")
        beside.append(f"{np.median(trained / random):.2f}")
    assert f"makes {at_random[0]} and {at_random[1]} times as many errors as the generator alone." in PAGE
    assert (
        f"make fewer than it in all 48 generators, {beside[0]} and {beside[1]} times as many (medians; seen afterwards)."
        in PAGE
    )


@pytest.mark.parametrize("study", ["vgb-error-growth", "vgb-long-run", "trained-generators"])
def test_the_page_has_each_verdict_in_the_words_of_the_scoreboard(study):
    for each in scoreboard(open_store("docs/studies/generation", study)):
        assert re.search(rf"\*\*{each.claim.id}\*\*, (that|the same) [^:]+: \*{re.escape(each.verdict)}\*", PAGE), each.claim.id
