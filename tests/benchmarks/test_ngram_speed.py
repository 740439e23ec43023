"""The three ways of the benchmark train the same model, and its table has a line each."""

import torch

from benchmarks import ngram_speed


def test_vmap_and_the_pack_are_the_plain_loss():
    weights = ngram_speed.initial(2)
    tokens, law = ngram_speed.strings(torch.Generator().manual_seed(0))
    assert tokens.shape == (ngram_speed.B, ngram_speed.T)
    torch.testing.assert_close(law.sum(-1), torch.ones(ngram_speed.B))
    made = ngram_speed.models.build("simple_disentangled", ngram_speed.Draw(torch.arange(2), "init"), vocabulary=5, length=32)
    said = made(tokens.expand(2, -1, -1), (torch.full((2, ngram_speed.B, 1), 31),))[:, :, 0].log_softmax(-1)
    for slot in (0, 1):
        own = {name: each[slot] for name, each in weights.items()}
        torch.testing.assert_close(ngram_speed.loss(own, tokens, law), -(law * said[slot]).sum(-1).mean())


def test_the_table_has_the_ratios_of_every_way():
    found = ngram_speed.measure(size=2, rounds=1, steps=1)
    lines = ngram_speed.table(found).splitlines()
    assert len(lines) == 2 + 3
    assert lines[2].startswith("| plain PyTorch")
    assert "1.00×" in lines[2]
    assert all(rate > 0 for rates in found.values() for rate in rates)
