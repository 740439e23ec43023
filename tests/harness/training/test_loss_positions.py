"""The positions that a loss needs are the scored ones first, in order, whatever the block."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.training.loss_positions import first_block, needed, slices, two_blocks
from harness.training.losses import mean_losses
from harness.training.training_strings import Strings
from tasks.batch import Batch
from tasks.text.masking import mean_weights


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


def test_a_block_that_only_others_fill_changes_no_loss():
    """Not another replicate's, nor that of another step drawn with this one; weights 1/n are rounded in sums, which 0 and 1 are not."""
    chance = torch.Generator().manual_seed(0)
    steps, batch, tokens, count = 8, 16, 20, 8
    scored = torch.rand(steps, batch, tokens, generator=chance) < 0.3
    scored &= scored.cumsum(-1) <= count
    full = torch.ones(batch, tokens, dtype=torch.bool)
    logits = torch.randn(batch, count, 5, generator=chance)
    targets = torch.zeros(1, batch, tokens, dtype=torch.int64)

    def losses(rows, replicates):
        """The losses of each step, [steps, R]; rows bool [steps · R, B, T]."""
        whole = Batch(targets.expand(rows.shape), targets.expand(rows.shape), mean_weights(rows), {})
        parts = slices(needed(whole, count), len(rows) // replicates)
        answers = (torch.cat([logits, torch.zeros(batch, part.weights.shape[-1] - count, 5)], 1) for part in parts)
        parts_with_answers = zip(parts, answers, strict=True)
        return torch.stack(
            [
                mean_losses(said.expand(replicates, *said.shape), Strings(part.weights, part))
                for part, said in parts_with_answers
            ]
        )

    alone = torch.cat([losses(one[None], 1) for one in scored])[:, 0]
    beside = losses(torch.stack([scored, full.expand(scored.shape)], 1).flatten(0, 1), 2)
    assert torch.equal(beside[:, 0], alone)
    drawn_together = losses(torch.cat([scored, full[None]]), 1)
    assert torch.equal(drawn_together[:-1, 0], alone)
