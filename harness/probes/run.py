"""`manyseeds probe`: run a probe on every replicate whose weights are kept, and add its rows to the store.

Most probes look at the last weights, `heads` and those of progressive distillation (`MEASURES`) at those of every step that was kept.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from harness import artifacts
from harness.configuration import Condition, from_dict
from harness.exchange.replicate import find
from harness.exchange.weights import single
from harness.identity import describe, typed
from harness.probes.attention import Rows, attention, pattern
from harness.probes.boundaries import boundaries
from harness.probes.concentration import concentrations
from harness.probes.dilution import dilution
from harness.probes.distillation import MEASURES
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


_STRINGS = 64  # of a probe that is none of `MEASURES`


def run(
    stores: Sequence[Store],
    probe: str,
    count: int | None,
    figures: str | None,
    say: Callable[[str], None],
    options: Sequence[str] = (),
) -> None:
    """Add the rows of a probe to each study; a replicate that has them is left as it is. `figures`: a folder to draw them into.

    count: strings, None for the probe's own number. options: NAME=VALUE, settings of one of `MEASURES`; where they differ from the
    defaults, rows have them in the probe's name, such as nonterminals-heads-4.
    Raises ValueError where no replicate has kept weights, or none is of a kind that the probe is for.
    """
    settings = _settings(probe, options)
    if count is None:
        count = MEASURES[probe].strings if probe in MEASURES else _STRINGS
    if count < 1:
        raise ValueError(f"--strings {count} must be at least 1")
    chosen = [(store, row) for store in stores for row in committed(store).to_pylist() if _has_weights(store, row["key"])]
    if not chosen:
        raise ValueError(
            f"no replicate of {', '.join(store.study for store in stores)} has kept weights: run a study with keep: all or keep: tail(n), "
            "or manyseeds rerun STORE KEY --keep weights"
        )
    suited = [(store, row) for store, row in chosen if row["status"] == "finished" and suits(probe, _condition(row))]
    if not suited:
        kind = MEASURES[probe].kind if probe in MEASURES else _KINDS[probe]
        raise ValueError(f"the {probe} probe is for {kind}, and none of the {len(chosen)} replicates with weights is one")
    for store in stores:
        mine = [row for each, row in suited if each is store]
        if mine:
            fresh = _probe(store, mine, probe, count, settings)
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
    if probe in MEASURES:
        return MEASURES[probe].suits(model, task)
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


def _settings(probe: str, options: Sequence[str]) -> Any:
    """What is set of a probe, None where nothing can be. ValueError in one sentence."""
    if probe not in MEASURES:
        if options:
            raise ValueError(f"--option {options[0]}: nothing can be set of the {probe} probe")
        return None
    given = {}
    for option in options:
        name, equals, word = option.partition("=")
        if not equals:
            raise ValueError(f"--option {option} must be NAME=VALUE, such as heads=4")
        try:
            given[name] = json.loads(word)
        except ValueError:
            given[name] = word  # what is no number, true or false
    return typed(MEASURES[probe].settings, given, probe)


def _named(probe: str, settings: Any) -> str:
    """The name in rows: with what is set otherwise than by default."""
    changed = {} if settings is None else describe(settings)
    return "-".join([probe, *(f"{name}-{value}" for name, value in sorted(changed.items()))])


def _probe(store: Store, rows: list[dict[str, Any]], probe: str, count: int, settings: Any) -> int:
    """Probe the replicates that lack it at a step; how many. Rows are added a replicate at a time."""
    own = _named(probe, settings)
    held, fresh = probed(store, own), 0
    for row in rows:
        stage = row["stage"]
        if find(store, row["key"]).stage != stage:
            continue
        steps = artifacts.steps_of(store, row["key"], stage)[0 if probe == "heads" or probe in MEASURES else -1 :]
        missing = [step for step in steps if (row["key"], stage, step) not in held]
        found: dict[str, Rows] = {}
        for step in missing:
            about = {"key": row["key"], "stage": stage, "step": step}
            for name, rows_of_step in _found(probe, own, *_model(store, row, step), count, settings).items():
                found.setdefault(name, []).extend(about | each for each in rows_of_step)
        for name in sorted(found, key=lambda name: name == own):  # its own last: what has those is not run again
            add(store, row["pack"], name, found[name])
        fresh += bool(missing)
    return fresh


def _found(probe: str, own: str, model: Decoder, task: Any, count: int, settings: Any) -> dict[str, Rows]:
    """Rows of one replicate and step by the probe's name in the store."""
    return {own: MEASURES[probe].run(model, task, count, settings)} if probe in MEASURES else PROBES[probe](model, task, count)


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
