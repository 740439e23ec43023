"""Training options of conditions that share a pack, and a training that keeps its losses."""

import torch

from harness.machine.device import resolve
from harness.study.training_options import Monitor, Sharpen
from harness.training.pack_state import Training

CPU = resolve("cpu")

SMALL = {"layers": 2, "width": 16, "heads": 2}
MONITOR = Monitor(sequences=6, every=2)
# pairs of conditions that share a pack
PAIRS = {
    "adam": ({"optimizer": "adam", "lr": 1e-2}, {"optimizer": "adam", "lr": 1e-3, "betas": (0.8, 0.9), "eps": 1e-6}),
    "sgd": ({"optimizer": "sgd", "lr": 0.1}, {"optimizer": "sgd", "lr": 0.3, "momentum": 0.9}),
    "clip": ({"clip": 0.01}, {"clip": 1.0, "schedule": "cosine", "final_lr": 0.1}),
    "decay": ({"decay_steps": 40}, {"decay_steps": 0, "lr": 1e-2}),
    "ema": ({"ema": 0.9}, {"ema": 0.5, "lr": 1e-2}),
    "plateau": (
        {"schedule": "plateau", "monitor": MONITOR, "patience": 0, "factor": 0.5, "lr": 3.0},
        {"schedule": "linear", "monitor": MONITOR},
    ),
    "sharpen": (
        {"sharpen": Sharpen(weight=0.5, schedule="constant")},
        {"sharpen": Sharpen(weight=0.1, schedule="oscillating", period=6)},
    ),
    "pool": ({"pool": 10}, {"pool": 10, "lr": 1e-2}),
    "dropout": (
        {"model_fields": SMALL | {"embedding_dropout": 0.1, "attention_dropout": 0.2, "feed_forward_dropout": 0.5}},
        {"model_fields": SMALL | {"embedding_dropout": 0.5, "attention_dropout": 0.1, "feed_forward_dropout": 0.3}},
    ),
    "shift": (
        {"model_fields": SMALL | {"shift": 20, "positions": "sinusoidal"}},
        {"model_fields": SMALL | {"shift": 20, "positions": "sinusoidal"}, "lr": 1e-2},
    ),
    "lstm_dropout": (
        {"model": "lstm", "model_fields": {"width": 16, "layers": 2, "dropout": 0.3}},
        {"model": "lstm", "model_fields": {"width": 16, "layers": 2, "dropout": 0.6}},
    ),
    "last": ({"positions": "last"}, {"positions": "last", "weight_decay": 0.0}),
}


def losses_of_steps(one, steps=10):
    state = Training(one, CPU)
    losses = []
    for _ in range(steps):
        state.advance()
        losses.append(state.recent[state.step % 100].clone())
        assert state.record()
    return torch.stack(losses), state
