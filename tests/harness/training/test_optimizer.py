"""The flat optimisers against torch.optim, one instance per replicate."""

import pytest
import torch

import models
from harness.draw import Draw
from harness.study.training_options import Train
from harness.training.optimizer import Average, FlatParameters, Optimizer
from harness.training.schedule import Scalars, learning_rate
from tests.harness.training.float64 import float32
from tests.rounding import assert_same

TRAINS = {
    "adamw": (
        Train(steps=100, lr=3e-4, betas=(0.9, 0.999), weight_decay=0.1),
        Train(steps=100, lr=1e-2, betas=(0.85, 0.95), weight_decay=0.0, eps=1e-6, schedule="constant", warmup=0),
    ),
    "adam": (
        Train(steps=100, optimizer="adam", lr=3e-4, weight_decay=0.1),
        Train(steps=100, optimizer="adam", lr=1e-2, betas=(0.85, 0.95), weight_decay=0.0, schedule="cosine", final_lr=0.1),
    ),
    "sgd": (
        Train(steps=100, optimizer="sgd", lr=3e-2, weight_decay=0.1),
        Train(steps=100, optimizer="sgd", lr=1e-2, weight_decay=0.0, momentum=0.9, schedule="constant"),
    ),
}


def pack(replicates=2):
    return models.build("lstm", Draw(torch.arange(replicates), "init"), vocabulary=5, length=8, width=7)


def peer(train: Train, copies: list[torch.Tensor]) -> torch.optim.Optimizer:
    if train.optimizer == "sgd":
        return torch.optim.SGD(copies, lr=train.lr, momentum=train.momentum, weight_decay=train.weight_decay)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[train.optimizer]
    return kind(copies, lr=train.lr, betas=train.betas, eps=train.eps, weight_decay=train.weight_decay)


@pytest.mark.parametrize("name", TRAINS)
@pytest.mark.parametrize("clip", [0.0, 2.0])
def test_every_replicate_equals_torch_with_its_own_hyper_parameters(name, clip):
    trains = [Train(**(vars(train) | {"clip": clip * (slot + 1)})) for slot, train in enumerate(TRAINS[name])]
    model = pack().double()
    flat = FlatParameters(model)
    ours, scalars = Optimizer(flat, trains), Scalars(trains, torch.device("cpu"))
    parameters = list(model.parameters())
    copies = [[parameter[slot].detach().clone().requires_grad_() for parameter in parameters] for slot in range(2)]
    theirs = [peer(train, mine) for train, mine in zip(trains, copies, strict=True)]
    generator = torch.Generator().manual_seed(0)
    for step in range(1, 101):
        for slot, (train, mine, optimizer) in enumerate(zip(trains, copies, theirs, strict=True)):
            for parameter, copy in zip(parameters, mine, strict=True):
                copy.grad = torch.randn(copy.shape, generator=generator, dtype=torch.float64)
                parameter.grad[slot].copy_(copy.grad)
            if clip:
                torch.nn.utils.clip_grad_norm_(mine, train.clip)
            optimizer.param_groups[0]["lr"] = float32(learning_rate(train, step))
            optimizer.step()
        ours.step(scalars.at(step))
    for slot, mine in enumerate(copies):
        for copy, parameter in zip(mine, parameters, strict=True):
            assert_same(parameter[slot].detach(), copy.detach())


@pytest.mark.parametrize("name", TRAINS)
@pytest.mark.parametrize("mixed", [False, True])
def test_neighbours_change_no_bit(name, mixed):
    """A replicate's updates alone, in a pack of equal ones and in one of two kinds."""
    one, other = TRAINS[name]
    values = []
    for trains in ([one], [one, one, one], [other, one, one] if mixed else [one] * 5):
        slot = min(1, len(trains) - 1)
        flat = FlatParameters(pack(3 if len(trains) == 1 else len(trains)))
        flat.values, flat.gradient = (buffer[: len(trains)].clone() for buffer in (flat.values, flat.gradient))
        flat.values[slot] = torch.linspace(-1, 1, flat.values.shape[1])
        ours, scalars = Optimizer(flat, trains), Scalars(trains, torch.device("cpu"))
        for step in range(1, 21):
            flat.gradient.normal_(generator=torch.Generator().manual_seed(step + 1000 * len(trains)))
            flat.gradient[slot] = torch.randn(flat.values.shape[1], generator=torch.Generator().manual_seed(step))
            ours.step(scalars.at(step))
        values.append(flat.values[slot].clone())
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_clipping_looks_at_one_replicate_alone(size):
    train = Train(clip=1e-3)
    gradient = torch.randn(size, *FlatParameters(pack(1)).gradient.shape[1:], generator=torch.Generator().manual_seed(0))
    together, alone = [], []
    for members, found in ((range(size), together), *(((slot,), alone) for slot in range(size))):
        flat = FlatParameters(pack(len(members)))
        flat.gradient.copy_(gradient[list(members)])
        Optimizer(flat, [train] * len(members)).step(Scalars([train] * len(members), torch.device("cpu")).at(1))
        found.append(flat.gradient.clone() if len(members) == size and found is together else flat.gradient[0].clone())
    assert torch.equal(together[0], torch.stack(alone) if size > 1 else alone[0][None])


def test_the_average_equals_torchs():
    """torch.optim.swa_utils, begun from the initial weights."""
    model, trains = pack().double(), [Train(ema=0.9), Train(ema=0.5)]
    flat = FlatParameters(model)
    average = Average(flat, trains)
    peers = []
    for slot, train in enumerate(trains):
        single = torch.nn.ParameterList([parameter[slot].detach().clone() for parameter in model.parameters()])
        rule = torch.optim.swa_utils.get_ema_multi_avg_fn(train.ema)
        peers.append(torch.optim.swa_utils.AveragedModel(single, multi_avg_fn=rule))
        peers[-1].update_parameters(single)
    for step in range(20):
        flat.values.add_(torch.randn(flat.values.shape, generator=torch.Generator().manual_seed(step), dtype=torch.float64))
        average.update()
        for slot, other in enumerate(peers):
            other.update_parameters(torch.nn.ParameterList([parameter[slot].detach() for parameter in model.parameters()]))
    before = flat.values.clone()
    with average.swapped():
        for slot, other in enumerate(peers):
            for mine, theirs in zip(model.parameters(), other.module, strict=True):
                assert_same(mine[slot].detach(), theirs.detach())
    assert torch.equal(flat.values, before)


def test_parameters_and_gradients_live_in_aligned_buffers():
    model = pack()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    flat = FlatParameters(model)
    assert flat.count == sum(parameter[0].numel() for parameter in before)
    for parameter, value in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, value)
        assert parameter[1].data_ptr() % 64 == parameter.grad[1].data_ptr() % 64 == 0
    tokens = torch.zeros(2, 3, 8, dtype=torch.int64)
    for _ in range(2):  # a second backward pass does not add to the first
        flat.differentiate(model(tokens).square().sum())
    theirs = torch.autograd.grad(model(tokens).square().sum(), list(model.parameters()))
    for parameter, gradient in zip(model.parameters(), theirs, strict=True):
        assert torch.equal(parameter.grad, gradient)
        assert parameter.grad.untyped_storage().data_ptr() == flat.gradient.untyped_storage().data_ptr()
    flat.values.zero_()
    assert all(parameter.abs().sum() == 0 for parameter in model.parameters())
