"""The global generators of Python, numpy and torch. Libraries and users' code draw from them; our own code draws from `harness.draw`."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from results.plain_values import Options, Tree


def generators() -> Tree:
    """The state of the global generators."""
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def set_generators(state: Options) -> None:
    """Go on drawing where `generators` was called."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])


def seed_everything(seed: int) -> None:
    """Seed the global generators: code that forgets its seed draws the same in any pack."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators inside the block, and put them back afterwards."""
    before = generators()
    seed_everything(seed)
    try:
        yield
    finally:
        set_generators(before)
