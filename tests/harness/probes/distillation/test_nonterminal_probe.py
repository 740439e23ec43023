"""The probe of non-terminals: its formula position by position, vectors that say the symbol, and vectors that say nothing."""

import pytest
import torch

from harness.probes.distillation.nonterminals import NonTerminalReader, NonTerminals, nonterminals
from tasks.distillation.pcfg import PCFG

SMALL = {"heads": 2, "width": 8, "epochs": 2, "batch": 16, "validation": 48, "lr": 0.05}


def by_item(rows):
    return {row["item"]: row["value"] for row in rows}


def test_the_probe_is_definition_26():
    probe = NonTerminalReader(NonTerminals(heads=2, width=4), 3, 5, 2)
    with torch.no_grad():
        probe.positions.mul_(3)
    vectors = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    inside = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    found = probe(vectors, inside)
    weight, bias = probe.maps.weight[0].view(3, 2, 6), probe.maps.bias[0].view(2, 6)
    for string, length in enumerate((5, 3)):
        for i in range(length):
            wanted = torch.zeros(6)
            for r in range(2):
                places = probe.positions[0, r, :length]
                scores = (places @ places[i]).softmax(0)
                wanted = wanted + sum(scores[k] * (vectors[string, k] @ weight[:, r] + bias[r]) for k in range(length))
            torch.testing.assert_close(found[string, i], wanted, rtol=1e-5, atol=1e-5)


class Recording(PCFG):
    """Keeps the trees that were drawn last, for a model that is told them."""

    last = None

    def trees(self, draw, batch, ancestors=True):
        Recording.last = super().trees(draw, batch, ancestors)
        return Recording.last


class Told:
    """Vectors of width 3: the symbol of level 3 over each token, one-hot, or zeros."""

    def __init__(self, knows):
        self.knows, self.config = knows, type("Config", (), {"width": 3})

    def states(self, tokens):
        symbol = Recording.last.ancestors[..., 2].long() - 10  # 10, 11, 12; 0 beyond the end
        told = torch.nn.functional.one_hot(symbol.clamp(min=0), 3) * (symbol >= 0)[..., None] * float(self.knows)
        return torch.nn.functional.pad(told, (0, 0, 1, 0))


@pytest.mark.parametrize("positions", ["every", "boundary"])
def test_vectors_that_say_the_symbol_are_read_and_others_give_the_commonest(positions):
    task, settings = Recording(root=13, length=28), NonTerminals(positions=positions, **SMALL)
    knows, blank = (by_item(nonterminals(Told(told), task, 320, settings)) for told in (True, False))
    # 10-12 is level 4 from the root, 7-9 level 5
    assert {item.split()[0] for item in knows} == {"level=4", "level=5"}
    assert knows["level=4 boundary"] > 0.95
    assert knows["level=4 every"] > (0.95 if positions == "every" else 0.8)
    assert abs(blank["level=4 boundary"] - blank["level=4 largest"]) < 0.25
    assert blank["level=4 boundary"] < 0.7


def test_what_cannot_be_probed_is_refused():
    with pytest.raises(ValueError, match=r"task.root = 7 has no non-terminals below it"):
        nonterminals(Told(True), PCFG(root=7, length=8), 4, NonTerminals())
    with pytest.raises(ValueError, match="positions = 'ends'"):
        NonTerminals(positions="ends")
    with pytest.raises(ValueError, match="heads = 0"):
        NonTerminals(heads=0)
    with pytest.raises(ValueError, match="lr = 0"):
        NonTerminals(lr=0)
