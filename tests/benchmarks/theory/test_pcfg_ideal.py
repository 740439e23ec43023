"""The ideal observer of masked strings, against an observer that counts, and the numbers that claims print."""

import numpy as np
import pytest
import torch

from benchmarks.theory.pcfg_ideal import CASES, ideal, strings
from harness.draw import Draw
from results.claims.distillation.ideal import IDEAL
from tasks.distillation.pcfg import PCFG


def test_the_strings_are_those_that_the_task_draws():
    known = strings("cfg3b", 13)
    assert len(known) == 512  # 2 rules of each of the 1 + 2 + … symbols
    assert sum(known.values()) == pytest.approx(1)
    tokens = PCFG("cfg3b", root=13, length=19).sample(Draw(torch.tensor([3])), 4000).targets[0].numpy()
    drawn = [tuple(int(token) for token in row[1:] if token < 3) for row in tokens]
    assert set(drawn) <= known.keys()
    lengths = np.array([len(each) for each in drawn]).mean()
    assert lengths == pytest.approx(sum(len(text) * chance for text, chance in known.items()), abs=0.1)


@pytest.mark.slow
def test_the_numbers_beside_claims_are_the_ideal_ones():
    assert IDEAL.keys() == {case[:3] for case in CASES}
    for (name, root, length), printed in IDEAL.items():
        assert ideal(PCFG(name, root=root, length=length), 3000 if root == 13 else 1000) == pytest.approx(printed, abs=0.004)


def test_nothing_is_told_where_all_is_hidden():
    """Every position shows the mask, its token or a random one: better than a guess, and far from sure."""
    assert 0.4 < ideal(PCFG("cfg3b", root=13, length=19, mask_rate=1.0), 300) < 0.9
