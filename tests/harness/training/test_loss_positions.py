"""The positions that a loss needs are the scored ones first, in order, whatever the block."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.training.loss_positions import first_block, needed, slices, two_blocks
from tasks.batch import Batch


@settings(max_examples=40, deadline=None)
@given(scored=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4), count=st.integers(1, 3))
def test_scored_positions_come_first_and_in_order(scored, count):
    weights = torch.tensor([scored], dtype=torch.float32)
    inputs = torch.arange(5).expand(1, len(scored), 5)
    found = needed(Batch(inputs, inputs, weights, {}), count)
    for row, order, given_weights in zip(scored, found.order[0].tolist(), found.weights[0].tolist(), strict=True):
        wanted = [place for place in range(5) if row[place]] + [place for place in range(5) if not row[place]]
        assert order == wanted[: len(order)]
        assert given_weights == [float(row[place]) for place in order]
    assert found.order.shape[-1] >= max(map(sum, scored))


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=4), count=st.integers(1, 4))
def test_a_second_block_that_repeats_the_first_has_the_shape_of_strings_that_fill_it(counts, count):
    """The second graph is captured for that shape; a step in another one would be launched kernel by kernel."""
    weights = torch.tensor([[[float(place < number) for place in range(5)] for number in counts]])
    inputs = torch.arange(5).expand(1, len(counts), 5)
    (wanted,) = slices(needed(Batch(inputs, inputs, weights, {}), count), 1)
    if len(wanted.blocks) == 2:
        again = two_blocks(first_block(wanted, count), 5)
        assert [block.shape for block in again.blocks] == [block.shape for block in wanted.blocks]
        for one, other in ((again.order, wanted.order), (again.targets, wanted.targets), (again.weights, wanted.weights)):
            assert one.shape == other.shape
        assert torch.equal(again.order[..., :count], wanted.order[..., :count])
