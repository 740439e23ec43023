"""The flat optimiser against torch.optim, one instance a replicate."""

import pytest
import torch

import models
from harness.configuration import Train
from harness.draw import Draw
from harness.optimizer import AdamW, FlatParameters, learning_rate


def test_every_replicate_equals_torch_with_its_own_hyper_parameters():
    betas, decay, lr = [(0.9, 0.999), (0.85, 0.95)], [0.1, 0.0], torch.tensor([3e-4, 1e-2], dtype=torch.float64)
    pack = models.build("lstm", Draw(torch.tensor([0, 1]), "init"), vocabulary=5, length=8, width=7)
    flat = FlatParameters(pack)
    ours = AdamW(flat, betas, decay)
    theirs = []
    for slot in range(2):
        copies = [parameter[slot].detach().clone().requires_grad_() for parameter in flat.parameters]
        theirs.append((copies, torch.optim.AdamW(copies, lr=lr[slot].item(), betas=betas[slot], weight_decay=decay[slot])))
    generator = torch.Generator().manual_seed(0)
    for step in range(1, 101):
        gradients = [torch.randn(parameter.shape, generator=generator) for parameter in flat.parameters]
        torch._foreach_copy_(flat._gradients, gradients)
        ours.step(step, lr)
        for slot, (copies, optimizer) in enumerate(theirs):
            for copy, gradient in zip(copies, gradients, strict=True):
                copy.grad = gradient[slot].clone()
            optimizer.step()
    for slot, (copies, _) in enumerate(theirs):
        for copy, parameter in zip(copies, flat.parameters, strict=True):
            torch.testing.assert_close(parameter[slot], copy, rtol=2e-5, atol=2e-6)


def test_parameters_live_in_one_aligned_buffer():
    pack = models.build("lstm", Draw(torch.tensor([0, 1]), "init"), vocabulary=5, length=8, width=7)
    before = [parameter.detach().clone() for parameter in pack.parameters()]
    flat = FlatParameters(pack)
    assert flat.count == sum(parameter[0].numel() for parameter in before)
    for parameter, value in zip(pack.parameters(), before, strict=True):
        assert torch.equal(parameter, value)
        assert parameter[1].data_ptr() % 64 == 0
    flat.values.zero_()
    assert all(parameter.abs().sum() == 0 for parameter in pack.parameters())


def test_the_schedule_is_the_papers():
    """50 linear warm-up steps, then linear decay with lr 0 at the hypothetical step 10,001 (card, section 2)."""
    train = Train()
    assert learning_rate(train, 1) == pytest.approx(3e-4 / 50)
    assert learning_rate(train, 50) == pytest.approx(3e-4)
    assert learning_rate(train, 10_001) == 0
    assert learning_rate(train, 10_000) == pytest.approx(3e-4 / 9951)
    falls = [learning_rate(train, step) - learning_rate(train, step + 1) for step in (60, 5000, 9999)]
    assert falls == pytest.approx([3e-4 / 9951] * 3)


def test_a_constant_schedule_only_warms_up():
    train = Train(schedule="constant", warmup=0, lr=0.5)
    assert {learning_rate(train, step) for step in (1, 500, 10_000)} == {0.5}
