"""Functions of a person's own that the tests run as experiments."""

import random
import sys

import numpy as np
import torch

kill_at: set[int] = set()  # seeds at which the process is gone
raise_at: set[int] = set()


class Gone(BaseException):
    """The process is killed."""


def measure(seed, settings):
    """A number that follows from the seed, one from a global generator, and whether the seed is even."""
    if seed in kill_at:
        raise Gone
    if seed in raise_at:
        raise RuntimeError(f"seed {seed} is unlucky")
    noise = np.random.default_rng(seed).standard_normal()
    return {"score": settings["shift"] + noise, "drawn": random.random(), "even": seed % 2 == 0}


def stepwise(seed, settings):
    """Values by step on two sets."""
    for step in (10, 20):
        yield {"step": step, "loss": 1 / (seed + step), "set": "train"}
        yield {"step": step, "set": "test", "count": 50, "accuracy": step / 50}


def packed(draw, settings):
    """One number a seed, of all seeds at once."""
    return {"mean": draw.uniform((64,)).mean(1)}


def breaks(seed, settings):
    """Not a number for seed 1."""
    return {"score": float("nan") if seed == 1 else torch.tensor(float(seed))}


def other_kind(seed, settings):
    return {"score": seed == 0 if seed < 2 else 0.5}


def text(seed, settings):
    return {"score": "high"}


def nothing(seed, settings):
    return None


def no_seed(x, settings):
    return {"score": 1}


def leaves(seed, settings):
    """Ends its process for seed 1, as a script that became a function may."""
    if seed == 1:
        sys.exit(3)
    return {"score": 1.0}
