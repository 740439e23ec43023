"""Small packs for tests."""

import json

import models
import tasks
from harness.planning.pack import Pack, Replicate, ScoredSet
from harness.planning.plan import pack_id
from harness.study.config import Condition, EvaluationSet
from harness.study.identity import canonical, key
from harness.study.training_options import Train
from results.store.schema import IDENTITY_COLUMNS

SETS = (
    EvaluationSet("sparse", {"p_ignore": 0.95}, 60),
    EvaluationSet("online", {"p_ignore": 0.95}, 20, every=4),
    EvaluationSet("dense", {"p_ignore": 0.1}, 30),
)


def condition(model="transformer", length=16, name="c", model_fields=None, task=None, **train) -> Condition:
    fields = (
        model_fields
        if model_fields is not None
        else ({"layers": 2, "width": 16, "heads": 2} if model == "transformer" else {"width": 16})
    )
    return Condition(
        name,
        tasks.build("flipflop", length=length, **(task or {})),
        models.configure(model, **fields),
        Train(**({"steps": 10, "batch": 4, "lr": 1e-3, "warmup": 2} | train)),
    )


def pack(conditions, seeds, sets=SETS, curve_every=5) -> Pack:
    """One replicate for every (condition, init seed, data seed)."""
    if isinstance(conditions, Condition):
        conditions = [conditions] * len(seeds)
    seeds = [seed if isinstance(seed, tuple) else (seed, seed) for seed in seeds]

    def scored(task) -> tuple[ScoredSet, ...]:
        return tuple(ScoredSet(s.name, s.task(task), s.sequences, s.every, s.hash(task, 0)) for s in sets)

    replicates = tuple(
        Replicate(key(one.config(), 0, init, data), one, init, data, scored(one.task))
        for one, (init, data) in zip(conditions, seeds, strict=True)
    )
    name = pack_id([replicate.key for replicate in replicates], len(sets), {})
    return Pack(name, canonical(conditions[0].config()), replicates, curve_every, {})


def comparable(tables) -> dict[str, list[str]]:
    """The tables that a training returned, ready to compare: `replicates` without where and when, the others without pack, sorted."""
    out = {}
    for name, table in tables.items():
        rows = table.select(IDENTITY_COLUMNS) if name == "replicates" else table.drop_columns(["pack"])
        out[name] = sorted(json.dumps(row, sort_keys=True) for row in rows.to_pylist())
    return out
