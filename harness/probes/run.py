"""`manyseeds probe`: run a probe on every replicate whose weights are kept, and add its rows to the store.

Probes look at the last weights, `heads` at those of every step that was kept.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from harness import artifacts
from harness.configuration import Condition, from_dict
from harness.exchange.replicate import find
from harness.exchange.weights import single
from harness.probes.attention import Rows, attention, pattern
from harness.probes.boundaries import boundaries
from harness.probes.concentration import concentrations
from harness.probes.dilution import dilution
from harness.probes.drift import drift
from harness.probes.heads import heads
from harness.train import outputs_of
from models.clauses import Clauses
from models.lego_theory import LegoTheory
from models.lego_transformer import LegoTransformer
from models.transformer import Decoder, Transformer
from results.attention_figures import write_figures
from results.filesystem import names
from results.probes import add, probed
from results.store import Store, committed
from tasks.automata import Automaton
from tasks.flipflop import FlipFlop
from tasks.lego import Lego
from tasks.simulation import Simulation

# each gives rows of probes by name; the pattern is one of the attention probe's
PROBES: dict[str, Callable[[Decoder, Any, int], dict[str, Rows]]] = {
    "attention": lambda model, task, count: (
        {"attention": attention(model, task, count)} | ({"pattern": pattern(model)} if isinstance(task, Simulation) else {})
    ),
    "dilution": lambda model, task, count: {"dilution": dilution(model, task, count)},
    "drift": lambda model, task, count: {"drift": drift(model, task)},
    "heads": lambda model, task, count: {"heads": heads(model, task, count)},
    "concentration": lambda model, task, count: {"concentration": concentrations(model, task, count)},
    "boundaries": lambda model, task, count: {"boundaries": boundaries(model, task, count)},
}


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
    "heads": "transformers of flipflop_simulation that have not diverged",
    "concentration": "models of lego that have not diverged",
    "boundaries": "causal transformers of automaton on Grid<n>, without scratchpad, that have not diverged",
}


def suits(probe: str, condition: Condition) -> bool:
    """Whether a probe is for the replicates of a condition."""
    model, task = condition.model, condition.task
    if probe == "concentration":
        return isinstance(task, Lego) and isinstance(model, Clauses | LegoTransformer | LegoTheory)
    if probe == "boundaries":
        walks = isinstance(task, Automaton) and str(task.automaton).startswith("Grid") and not task.scratchpad
        return walks and isinstance(model, Transformer) and model.causal
    if not isinstance(model, Transformer) or not isinstance(task, FlipFlop | Simulation):
        return False
    if probe == "dilution":
        return model.positions not in ("rotary", "alibi")
    if probe in ("drift", "heads") and not isinstance(task, Simulation):
        return False
    return probe != "drift" or (model.layers, model.heads, model.positions) == (1, 1, "linear")


def _probe(store: Store, rows: list[dict[str, Any]], probe: str, count: int) -> int:
    """Probe the replicates that lack it at a step; how many. Rows are added a replicate at a time."""
    held, fresh = probed(store, probe), 0
    for row in rows:
        stage = row["stage"]
        if find(store, row["key"]).stage != stage:
            continue
        steps = artifacts.steps_of(store, row["key"], stage)[0 if probe == "heads" else -1 :]
        missing = [step for step in steps if (row["key"], stage, step) not in held]
        found: dict[str, Rows] = {}
        for step in missing:
            about = {"key": row["key"], "stage": stage, "step": step}
            for name, rows_of_step in PROBES[probe](*_model(store, row, step), count).items():
                found.setdefault(name, []).extend(about | each for each in rows_of_step)
        for name in sorted(found, key=lambda name: name == probe):  # its own last: what has those is not run again
            add(store, row["pack"], name, found[name])
        fresh += bool(missing)
    return fresh


def _model(store: Store, row: dict[str, Any], step: int) -> tuple[Decoder, Any]:
    """A replicate with its weights of a step, as a pack with R = 1, and its task."""
    condition = _condition(row)
    task = condition.task
    tensors = find(store, row["key"], step).tensors
    model = single(condition.model, task.vocabulary, task.length, tensors, row["init_seed"], outputs=outputs_of(task))
    return cast(Decoder, model), task


def _condition(row: dict[str, Any]) -> Condition:
    return from_dict({"name": row["condition"], "config": json.loads(row["config"])})


def _has_weights(store: Store, key: str) -> bool:
    folder = f"{store.root}/artifacts/{key}"
    return any(
        name.endswith(".safetensors")
        for stage in names(store.filesystem, folder)
        for name in names(store.filesystem, f"{folder}/{stage}")
    )
