"""Packs of models on LEGO."""

from harness.planning.pack import Pack, Replicate
from harness.study.config import Condition, build
from harness.study.training_options import Train

TRAIN = {"batch": 6, "optimizer": "adam", "lr": 3e-3, "weight_decay": 0.0, "warmup": 0, "schedule": "constant"}


def lego_pack(model, tasks, seeds, steps=6, **train):
    replicates = []
    for seed, task in zip(seeds, tasks, strict=True):
        condition = Condition(
            "c",
            build("task", {"name": "lego", "variables": 9} | task),
            build("model", model),
            Train(steps=steps, **TRAIN | train),
        )
        replicates.append(Replicate(str(seed), condition, seed, seed, ()))
    return Pack("pack", "signature", tuple(replicates), 10, {})
