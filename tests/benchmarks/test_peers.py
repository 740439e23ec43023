"""What is compared computes the same: losses of a few training steps on copied weights and the same strings."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from benchmarks import plain, vmapped, xtransformers
from benchmarks.cases import Case, pack
from harness.training.pack_state import Training
from models.lstm import LSTM
from models.mlp import MLP
from models.transformer.transformer import Transformer
from tasks.distillation.parity import SparseParity
from tasks.flipflop.flipflop import FlipFlop

CPU = torch.device("cpu")
CASES = {
    "transformer": Case("transformer", Transformer(2, 16, 2), FlipFlop(length=24), 3),
    "lstm": Case("lstm", LSTM(16), FlipFlop(length=16), 3),
    "lstm of two layers": Case("lstm2", LSTM(16, layers=2), FlipFlop(length=16), 3),
    "mlp": Case("mlp", MLP(24), SparseParity(20, 3), 8),
}
STEPS = 3


def _packed(case, needed, size=2):
    training = Training(pack(case, size, needed), CPU)
    losses = []
    for step in range(1, STEPS + 1):
        training.advance()
        losses.append(training.recent[step].clone())
    return torch.stack(losses)


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_plain_and_packed_train_alike(name, needed):
    case, packed = CASES[name], _packed(CASES[name], needed)
    for slot in range(2):
        advance = plain.start(case, needed, CPU, "fp32", seed=slot)
        losses = torch.stack([advance() for _ in range(STEPS)])
        torch.testing.assert_close(losses, packed[:, slot], rtol=2e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # what the benchmark measures
@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_vmap_and_packed_train_alike(name, needed):
    case = CASES[name]
    advance = vmapped.start(case, 2, needed, CPU, "fp32")
    losses = torch.stack([advance() for _ in range(STEPS)])
    torch.testing.assert_close(losses, _packed(case, needed), rtol=2e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of that library's dependencies
@pytest.mark.skipif(find_spec("x_transformers") is None, reason="x-transformers is not installed")
def test_x_transformers_starts_from_the_same_loss():
    """The first loss alone: its norms have no bias and its scale of positions is trained, so the weights part after one step."""
    case = replace(CASES["transformer"], model=replace(CASES["transformer"].model, head_bias=False))
    peer = xtransformers.make(case)
    xtransformers.load(peer, plain.packed_model(case, 0, 1, CPU), 0)
    first = plain.start(case, False, CPU, "fp32", model=peer)()
    torch.testing.assert_close(first, _packed(case, False)[0, 0], rtol=1e-4, atol=1e-5)


def test_x_transformers_says_why_it_has_no_row(monkeypatch):
    assert "no such model" in xtransformers.missing(CASES["lstm"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "not installed" in xtransformers.missing(CASES["transformer"])


def test_plain_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="only the options"):
        plain.make(Case("x", Transformer(1, 16, 2, positions="rotary"), FlipFlop(length=16)))


def test_parity_is_of_the_relevant_bits():
    from harness.draw import Draw

    batch = SparseParity(40, 5).sample(Draw(torch.tensor([1, 2]), "data", 1), 50)
    assert batch.inputs.shape == (2, 50, 40)
    assert torch.equal(batch.targets[..., -1], batch.inputs[..., :5].sum(-1) % 2)
    assert 0.4 < batch.inputs.float().mean() < 0.6
    assert batch.weights.sum() == 100
