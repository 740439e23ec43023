"""Learning rates against the papers' formulas and torch's schedulers."""

import itertools
import re

import pytest
import torch

from harness.study.training_options import Monitor, Sharpen, Train
from harness.training.schedule import Plateau, Scalars, learning_rate, penalty_weight
from results.errors import StudyError


def test_the_linear_schedule_is_the_papers():
    """50 linear warm-up steps, then linear decay with lr 0 at the hypothetical step 10,001 (card, section 2)."""
    train = Train()
    assert learning_rate(train, 1) == pytest.approx(3e-4 / 50)
    assert learning_rate(train, 50) == pytest.approx(3e-4)
    assert learning_rate(train, 10_001) == 0
    assert learning_rate(train, 10_000) == pytest.approx(3e-4 / 9951)
    falls = [learning_rate(train, step) - learning_rate(train, step + 1) for step in (60, 5000, 9999)]
    assert falls == pytest.approx([3e-4 / 9951] * 3)


@pytest.mark.parametrize("steps", [10, 49, 50])
def test_a_training_no_longer_than_its_warmup_only_warms_up(steps):
    train = Train(steps=steps, schedule="linear", warmup=50, lr=1.0)
    assert [learning_rate(train, step) for step in (1, steps)] == pytest.approx([1 / 50, steps / 50])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_decay_may_span_more_steps_than_the_training(schedule):
    """The rates are those of the first steps of the longer training."""
    short, long = (Train(steps=500, decay_steps=10_000, schedule=schedule), Train(steps=10_000, schedule=schedule))
    assert [learning_rate(short, step) for step in range(1, 501)] == [learning_rate(long, step) for step in range(1, 501)]
    assert learning_rate(short, 500) > 0.9 * short.lr > learning_rate(Train(steps=500, schedule=schedule), 500)


@pytest.mark.parametrize(
    ("decay_steps", "message"),
    [
        (499, "train.decay_steps = 499 must be at least train.steps = 500, or 0: the learning rate would reach its end before"),
        (-1, "train.decay_steps = -1 must be 0 or more"),
    ],
)
def test_a_decay_that_ends_before_the_training_is_refused(decay_steps, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        Train(steps=500, decay_steps=decay_steps)


def test_a_constant_schedule_only_warms_up():
    train = Train(schedule="constant", warmup=0, lr=0.5)
    assert {learning_rate(train, step) for step in (1, 500, 10_000)} == {0.5}


@pytest.mark.parametrize("final", [0.0, 0.1])
def test_the_cosine_is_torchs(final):
    train = Train(steps=99, schedule="cosine", warmup=0, lr=0.3, final_lr=final)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100, eta_min=0.3 * final)
    for step in range(1, 100):
        optimizer.step()
        theirs.step()
        assert learning_rate(train, step) == pytest.approx(optimizer.param_groups[0]["lr"])
    warm = Train(steps=99, schedule="cosine", warmup=10, lr=0.3)
    assert [learning_rate(warm, step) for step in (1, 5, 10)] == pytest.approx([0.03, 0.15, 0.3])
    assert learning_rate(warm, 55) == pytest.approx(0.15)


def test_the_plateau_is_torchs_for_every_replicate():
    monitor = Monitor(sequences=4, every=1)
    trains = [
        Train(schedule="plateau", monitor=monitor, patience=2, factor=0.5, lr=1.0),
        Train(schedule="plateau", monitor=monitor, patience=0, factor=0.1, lr=1.0),
        Train(schedule="constant", monitor=monitor, lr=1.0),
    ]
    ours = Plateau(trains)
    optimizers = [torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0) for _ in range(2)]
    theirs = [
        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=train.patience, factor=train.factor)
        for optimizer, train in zip(optimizers, trains, strict=False)
    ]
    noise = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    for look in range(60):
        losses = (1 / (1 + look) + 0.05 * noise[look]).tolist()
        scale = ours.look(losses)
        for slot, scheduler in enumerate(theirs):
            scheduler.step(losses[slot])
        assert scale[:2] == pytest.approx([optimizer.param_groups[0]["lr"] for optimizer in optimizers], rel=1e-9, abs=2e-8)
        assert scale[2] == 1.0
    assert scale[1] < 1e-5


def test_penalty_weights_follow_the_card():
    """Card F13: linear λ·clip((t - t0)/(S - t0), 0, 1), oscillating λ(1 - cos(2π(t - t0)/1000))/2 from t0 on."""
    linear = Sharpen(weight=3.0, schedule="linear", start=2000)
    assert [penalty_weight(linear, step, 10_000) for step in (1, 2000, 6000, 10_000)] == pytest.approx([0, 0, 1.5, 3])
    swing = Sharpen(weight=3.0, schedule="oscillating", start=2000)
    assert [penalty_weight(swing, step, 10_000) for step in (2000, 2250, 2500, 3000)] == pytest.approx([0, 1.5, 3, 0])
    assert penalty_weight(Sharpen(weight=3.0, schedule="constant"), 1, 10_000) == 3


def test_windows_and_packs_change_no_bit():
    trains = [
        Train(steps=600, lr=0.1),
        Train(steps=600, lr=0.2, schedule="cosine", betas=(0.5, 0.9), sharpen=Sharpen(weight=2.0)),
        Train(steps=600, lr=0.1),
    ]
    whole = Scalars(trains, torch.device("cpu"))
    for step, slot in itertools.product((1, 255, 256, 257, 600), range(3)):
        alone = Scalars([trains[slot]], torch.device("cpu"))
        assert torch.equal(whole.at(step)[:, slot], alone.at(step)[:, 0])
        lr = learning_rate(trains[slot], step)
        assert whole.at(step)[[Scalars.LR, Scalars.STEP], slot].tolist() == pytest.approx([lr, step], rel=1e-6)
    whole.rescale([1.0, 0.5, 1.0])
    assert whole.at(300)[Scalars.LR].tolist() == pytest.approx(
        [learning_rate(t, 300) * s for t, s in zip(trains, (1, 0.5, 1), strict=True)]
    )
    assert whole.lr(1, 300) == pytest.approx(0.5 * learning_rate(trains[1], 300))
