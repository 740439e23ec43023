"""Random draws, for tests that compare ways to make them."""

import torch
from hypothesis import strategies as st

from harness.draw import STREAMS, Draw

sites = st.integers(0, 2**16 - 1)
rates = st.lists(st.floats(0, 1, exclude_max=True, width=16), min_size=4, max_size=4).map(torch.tensor)


@st.composite
def sources(draw):
    """Draws of any seeds (up to four), steps, first rows and picked rows, and a shape."""
    size, rows = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    seeds = torch.tensor(draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=size, max_size=size)))
    steps = st.integers(0, 2**32 - 1)
    step = draw(st.one_of(steps, st.lists(steps, min_size=size, max_size=size).map(torch.tensor)))
    source = Draw(seeds, draw(st.sampled_from(sorted(STREAMS))), step, draw(st.integers(0, 2**34)))
    if draw(st.booleans()):
        picked = st.lists(st.integers(0, 2**34), min_size=rows, max_size=rows)
        source = source.pick(torch.tensor(draw(st.lists(picked, min_size=size, max_size=size))))
    return source, (rows, *draw(st.lists(st.integers(1, 150), max_size=2)))
