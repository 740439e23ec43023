"""Scores of a pack whose model is compiled: only what comes hundreds of times is worth compiling for."""

import torch

from harness.draw import Draw
from harness.planning.pack import ScoredSet
from harness.training import evaluate
from harness.training.evaluate import score
from models.transformer.transformer import Transformer
from tasks.flipflop.flipflop import FlipFlop

CPU = torch.device("cpu")


def test_whole_batches_of_one_block_take_the_compiled_model_and_nothing_else_does(monkeypatch):
    monkeypatch.setitem(evaluate._TOKENS, "cpu", 64)  # four strings a batch
    monkeypatch.setattr(FlipFlop, "scored_positions", lambda task: 2)  # so that strings with many reads take several blocks
    many, few = FlipFlop(length=16, p_ignore=0.1), FlipFlop(length=16, p_ignore=0.9)
    model = Transformer(1, 8, 2).make(Draw(torch.tensor([0, 1]), "init"), few.vocabulary, few.tokens)
    seen = []

    def compiled(tokens, blocks, *rest):
        seen.append((tokens.shape[1], len(blocks)))
        return model(tokens, blocks, *rest)

    for task in (many, few):
        sets = [ScoredSet("set", task, 18, None, "0123456789abcdef0123456789abcdef")] * 2
        usual = score(model, sets, CPU, "fp32")
        taken = score(model, sets, CPU, "fp32", compiled=compiled)
        assert [(one.evaluation_rows(slot, False), slot) for one, slot in taken] == [
            (one.evaluation_rows(slot, False), slot) for one, slot in usual
        ]
    assert seen == [(4, 1)] * len(seen)
    assert len(seen) >= 4  # the whole batches of the set with few reads
