"""The members of the transformer family that its invariants are tested on, and their noise."""

import torch

import models
from harness.draw import Draw
from models.noise import Noise

LENGTH, BATCH, VOCABULARY = 11, 3, 5
BERT = {"causal": False, "norm": "post", "embedding_norm": True, "head": "transform", "bias": True, "tied": True}
DROPOUT = {"embedding_dropout": 0.2, "attention_dropout": 0.3, "residual_dropout": 0.1, "feed_forward_dropout": 0.4}

FAMILY: dict[str, dict] = {
    "default": {},
    "sinusoidal": {"positions": "sinusoidal", "shift": 7},
    "linear": {"positions": "linear", "shift": 7},
    "rotary": {"positions": "rotary"},
    "rotary, shifted": {"positions": "rotary", "shift": 7},
    "alibi": {"positions": "alibi"},
    "no positions": {"positions": "none", "tied": True, "head_bias": False},
    "learned, shifted": {"shift": 7},
    "geglu": {"activation": "geglu"},
    "glu": {"activation": "glu", "feed_forward": 48},
    "swiglu": {"activation": "swiglu", "feed_forward_dropout": 0.4},
    "no feed-forward": {"feed_forward": 0, "final_norm": False},
    "post": {"norm": "post", "bias": True},
    "branch": {"norm": "branch", "residual_dropout": 0.2},
    "feed-forward norm": {"norm": "feed_forward", "feed_forward": 32},
    "no norm": {"norm": "none", "bias": True},
    "no residual": {"residual": False},
    "average": {"join": "average"},
    "gpt2": {"initial": "gpt2", "bias": True, "tied": True, "head_bias": False},
    "bert": BERT,
    "encoder, alibi": {"causal": False, "positions": "alibi", "attention_dropout": 0.3},
    "dropout": DROPOUT,
    "dropout everywhere else": BERT | DROPOUT | {"positions": "rotary", "join": "average", "activation": "relu", "shift": 7},
    "odd sizes": {"width": 15, "heads": 3, "attention_dropout": 0.3},
    "odd sizes, tied": {"width": 20, "heads": 2, "tied": True, "bias": True},
    "odd sizes, rotary": {"width": 36, "heads": 6, "positions": "rotary", "shift": 7, "norm": "branch"},
    "odd sizes, alibi": {"width": 10, "heads": 1, "positions": "alibi", "causal": False, "activation": "swiglu"},
}


def seeds(replicates):
    return torch.arange(replicates) * 5 + 3


def family(name, slots, **changes):
    """The pack of these replicates, int64 [R], of a member of the family; no parameter has a special value such as 0 or 1."""
    fields = {"layers": 2, "width": 32, "heads": 4} | FAMILY[name] | changes
    model = models.configure("transformer", **fields).make(Draw(slots, "init"), VOCABULARY, LENGTH)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter += (Draw(slots, "init", number).uniform(parameter.shape[1:]) - 0.5) * 0.2
    return model


def noise(model, slots, step=9):
    """The noise of a training step, with another rate a replicate."""
    rates = {}
    for option in model.config.vectors:
        rate = getattr(model.config, option)
        rates[option] = rate * (1 + (slots % 3) / 10) if rate else torch.zeros(len(slots))
    return Noise(Draw(slots, "dropout", step), Draw(slots + 100, "shift", step), rates)


def tokens(slots, batch=BATCH, length=LENGTH):
    return Draw(slots, "data", 2).integers(VOCABULARY, (batch, length))


def blocks(slots, count, batch=BATCH, length=LENGTH):
    """Two blocks of needed positions, int64 [R, B, K] each."""
    return tuple(Draw(slots, "data", step).integers(length, (batch, count)) for step in (3, 4))
