"""`manyseeds probe`: run a probe on every replicate whose weights are kept, and add its rows to the store."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from harness.configuration import Condition, from_dict
from harness.exchange.replicate import find
from harness.exchange.weights import single
from harness.probes.attention import Rows, attention, pattern
from harness.probes.dilution import dilution
from harness.probes.drift import drift
from harness.train import outputs_of
from models.transformer import Decoder, Transformer
from results.attention_figures import write_figures
from results.filesystem import names
from results.probes import add, probed
from results.store import Store, committed
from tasks.flipflop import FlipFlop
from tasks.simulation import Simulation

# each gives rows of probes by name; the pattern is one of the attention probe's
PROBES: dict[str, Callable[[Decoder, Any, int], dict[str, Rows]]] = {
    "attention": lambda model, task, count: (
        {"attention": attention(model, task, count)} | ({"pattern": pattern(model)} if isinstance(task, Simulation) else {})
    ),
    "dilution": lambda model, task, count: {"dilution": dilution(model, task, count)},
    "drift": lambda model, task, count: {"drift": drift(model, task)},
}
STRINGS = 64


def run(stores: Sequence[Store], probe: str, count: int, figures: str | None, say: Callable[[str], None]) -> None:
    """Add the rows of a probe to each study; a replicate that has them is left as it is. `figures`: a folder to draw them into.

    Raises ValueError where no replicate has kept weights, or none is of a kind that the probe is for.
    """
    if count < 1:
        raise ValueError(f"--strings {count} must be at least 1")
    chosen = [(store, row) for store in stores for row in committed(store).to_pylist() if _has_weights(store, row["key"])]
    if not chosen:
        raise ValueError(
            f"no replicate of {', '.join(store.study for store in stores)} has kept weights: run a study with keep: all or keep: tail(n), "
            "or manyseeds rerun STORE KEY --keep weights"
        )
    suited = [(store, row) for store, row in chosen if row["status"] != "diverged" and suits(probe, _condition(row))]
    if not suited:
        raise ValueError(
            f"the {probe} probe is for {_KINDS[probe]}, and none of the {len(chosen)} replicates with weights is one"
        )
    for store in stores:
        mine = [row for each, row in suited if each is store]
        if mine:
            fresh = _probe(store, mine, probe, count)
            say(f"{store.study}: {probe} of {fresh} replicates added, {len(mine) - fresh} had it")
        if figures is not None:
            for path in write_figures(store, Path(figures) / store.study):
                say(f"  {path}")


_KINDS = {
    "attention": "transformers of flipflop and flipflop_simulation that have not diverged",
    "dilution": "such transformers without rotary and alibi positions",
    "drift": "transformers of flipflop_simulation with 1 layer, 1 head and positions: linear",
}


def suits(probe: str, condition: Condition) -> bool:
    """Whether a probe is for the replicates of a condition."""
    model, task = condition.model, condition.task
    if not isinstance(model, Transformer) or not isinstance(task, FlipFlop | Simulation):
        return False
    if probe == "dilution":
        return model.positions not in ("rotary", "alibi")
    return probe != "drift" or (
        isinstance(task, Simulation) and (model.layers, model.heads, model.positions) == (1, 1, "linear")
    )


def _probe(store: Store, rows: list[dict[str, Any]], probe: str, count: int) -> int:
    """Probe the replicates that lack it; how many. Rows are added a replicate at a time."""
    held, fresh = probed(store, probe), 0
    for row in rows:
        kept = find(store, row["key"])
        if kept.stage != row["stage"] or (row["key"], kept.stage, kept.step) in held:
            continue
        condition = _condition(row)
        task = condition.task
        sizes = task.vocabulary, task.length
        model = cast(Decoder, single(condition.model, *sizes, kept.tensors, row["init_seed"], outputs=outputs_of(task)))
        about = {"key": row["key"], "stage": kept.stage, "step": kept.step}
        found = PROBES[probe](model, task, count)
        for name in sorted(found, key=lambda name: name == probe):  # its own last: what has those is not run again
            add(store, row["pack"], name, [about | each for each in found[name]])
        fresh += 1
    return fresh


def _condition(row: dict[str, Any]) -> Condition:
    return from_dict({"name": row["condition"], "config": json.loads(row["config"])})


def _has_weights(store: Store, key: str) -> bool:
    folder = f"{store.root}/artifacts/{key}"
    return any(
        name.endswith(".safetensors")
        for stage in names(store.filesystem, folder)
        for name in names(store.filesystem, f"{folder}/{stage}")
    )
