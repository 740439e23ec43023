"""Functions such as a user would write, which the tests run as experiments."""

import os
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


def changing(seed, settings):
    """A number that follows from what the settings hold, and a change of them."""
    settings["laws"]["seen"].append(seed)
    return {"score": len(settings["laws"]["seen"])}


def stepwise(seed, settings):
    """Values by step on two sets."""
    for step in (10, 20):
        yield {"step": step, "loss": 1 / (seed + step), "set": "train"}
        yield {"step": step, "set": "test", "count": 50, "accuracy": step / 50}


def summarised(seed, settings):
    """Values by step, then one without."""
    for step in (10, 20):
        yield {"step": step, "score": 1 / step}
    yield {"score": 3.0, "best": 0.5}


def summarised_pack(draw, settings):
    """As `summarised`, of all seeds at once."""
    for part in summarised(0, settings):
        yield {name: value if name == "step" else torch.full(draw.seeds.shape, value) for name, value in part.items()}


def mixed(seed, settings):
    """A flag first, and a number later."""
    yield {"score": True}
    yield {"score": 0.5}


def array_later(seed, settings):
    """A number first, and an array later."""
    yield {"score": 0.5}
    yield {"score": np.ones(3)}


def one_label(seed, settings):
    """A name that looks like another metric's with its set."""
    yield {"score (test)": 0.5}
    yield {"set": "test", "score": 1.0}


def moving(seed, settings):
    os.chdir(settings["where"])
    return {"score": float(seed)}


def moving_stepwise(seed, settings):
    for step in (1, 2):
        yield {"step": step, **moving(seed, settings)}


def flagged(seed, settings):
    """Whether the seed is even, under the name of a number of `measure`."""
    return {"score": seed % 2 == 0}


def numpy_places(seed, settings):
    return {"step": np.int64(5), "count": torch.tensor(7), "score": np.float32(0.25)}


def packed(draw, settings):
    """One number per seed, of all seeds at once."""
    return {"mean": draw.uniform((64,)).mean(1)}


def breaks(seed, settings):
    """Not a number for seed 1."""
    return {"score": float("nan") if seed == 1 else torch.tensor(float(seed))}


def other_kind(seed, settings):
    return {"score": seed == 0 if seed < 2 else 0.5}


def none(seed, settings):
    return {"score": None}


def nested(seed, settings):
    return {"score": {"train": 0.5}}


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


walked: list[tuple[int, int]] = []  # (seed, step) that a walk took
stop_at: set[tuple[int, int]] = set()  # at which the process is gone


class Walk:
    """A random walk of six steps by generators of its own and of the process, which is saved between two steps."""

    def __init__(self, seed):
        self.seed, self.at, self.place = seed, 0, np.zeros(2)
        self.own = np.random.default_rng(seed)

    def __iter__(self):
        while self.at < 6:
            if (self.seed, self.at) in stop_at:
                raise Gone
            walked.append((self.seed, self.at))
            shared = random.random() + np.random.random() + float(torch.rand(()))
            self.place = self.place + np.array([self.own.standard_normal(), shared])
            self.at += 1
            yield {"step": self.at, "x": self.place[0], "y": self.place[1], "place": self.place}

    def save(self):
        return {"at": self.at, "place": self.place, "own": self.own.bit_generator.state, "pair": (torch.tensor(1.5), None)}

    def load(self, state):
        assert state["pair"] == (torch.tensor(1.5), None)
        self.at, self.place = state["at"], state["place"]
        self.own.bit_generator.state = state["own"]


def walk(seed, settings):
    return Walk(seed)


class Walks:
    """Walks of all seeds at once."""

    def __init__(self, draw):
        self.draw, self.at, self.places = draw, 0, torch.zeros(len(draw.seeds), 2)

    def __iter__(self):
        while self.at < 4:
            if self.at in kill_at:
                raise Gone
            walked.append((0, self.at))
            self.places = self.places + self.draw.uniform((8,)).reshape(-1, 4, 2)[:, self.at]
            self.at += 1
            yield {"step": self.at, "x": self.places[:, 0], "place": self.places}

    def save(self):
        return {"at": self.at, "places": self.places}

    def load(self, state):
        self.at, self.places = state["at"], state["places"]


def walks(draw, settings):
    return Walks(draw)


def odd_state(seed, settings):
    walk = Walk(seed)
    walk.save = lambda: {"deep": [1, {2}]}
    return walk


def half_a_pair(seed, settings):
    walk = Walk(seed)
    walk.load = None
    return walk


def arrays_alone(seed, settings):
    return {"place": np.zeros(3)}


def texts(seed, settings):
    return {"score": 1, "names": np.array(["a"])}


def array_once(seed, settings):
    return {"score": 1, "place": np.zeros(3) if seed == 0 else 0.5}


def listed(seed, settings):
    return {"score": [1.0, 2.0]}


def unnamed(seed, settings):
    return {"": 1.0}


def lacking(seed, settings):
    return {"score": settings["shfit"]}


def by_keyword(seed, *, settings):
    return {"score": 1.0}
