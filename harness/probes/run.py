"""`manyseeds probe`: run a probe on every replicate whose weights are kept, and add its rows to the store.

What there is to run: `registry.py`.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from harness.exchange.replicate import find, trained_model
from harness.executing.progress import with_progress
from harness.machine.device import tune_allocator
from harness.machine.global_generators import seeded
from harness.probes import registry
from harness.probes.checked_rows import checked_rows
from harness.probes.probe import PairProbe, Probe, Rows
from harness.probes.strings import SEED
from harness.study.config import Condition, condition_of
from harness.study.identity import describe, typed
from harness.training import weights as artifacts
from models.transformer.transformer import Decoder
from results.errors import StudyError
from results.plain_values import Row
from results.rows.plural import counted
from results.rows.probe_values import add, compared, probed
from results.store.manifest import as_planned
from results.store.tables import Store, committed
from tasks.task import Task


def run(
    stores: Sequence[Store],
    probe: str,
    count: int | None,
    figures: str | None,
    say: Callable[[str], None],
    options: Sequence[str] = (),
) -> None:
    """Add the rows of a probe to each study; a replicate that has them is left as it is. `figures`: a folder to draw them into.

    count: strings, None for the probe's own number. options: NAME=VALUE, the probe's settings; where they differ from the
    defaults, rows have them in the probe's name, such as nonterminals-heads-4.
    Raises ValueError where no replicate has kept weights, or none is of a kind that the probe is for.
    """
    chosen_probe = registry.probe(probe)
    settings = _settings(probe, options)
    if count is not None and chosen_probe.strings is None:
        raise StudyError(f"--strings {count}: the {probe} probe has strings of its own: leave it out")
    asked, count = count, (chosen_probe.strings or 0) if count is None else count
    if asked is not None and asked < 1:
        raise StudyError(f"--strings {asked} must be at least 1")
    if figures is not None and chosen_probe.figures is None:
        raise StudyError(f"--figures {figures}: the {probe} probe has no figures: leave it out")
    suited = _suited(stores, probe)
    tune_allocator()  # without it the monomials of a wide perceptron take three times as long
    for store in stores:
        if rows := [row for owner, row in suited if owner is store]:
            _add_rows(store, rows, probe, count, settings, say, asked is not None)
        if figures is not None and chosen_probe.figures is not None:
            paths = chosen_probe.figures(store, Path(figures) / store.study)
            for path in paths:
                say(f"  {path}")
            if not paths:
                say(f"  nothing to draw: the {probe} probe has no figures of these replicates")


def _suited(stores: Sequence[Store], probe: str) -> list[tuple[Store, Row]]:
    """The finished replicates with kept weights that a probe is for, each with its store. StudyError where there are none."""
    studies = ", ".join(store.study for store in stores)
    ended = [(store, row) for store in stores for row in as_planned(store, committed(store)).to_pylist()]
    trained = [(store, row) for store, row in ended if "experiment" not in json.loads(row["config"])]
    if ended and not trained:
        raise StudyError(f"probes look into trained models, and {studies} has experiments alone")
    chosen = [(store, row) for store, row in trained if artifacts.stages_of(store, row["key"])]
    if not chosen:
        raise StudyError(
            f"no replicate of {studies} has kept weights: run a study with keep: all or keep: tail(n), "
            f"or manyseeds rerun {stores[0].shell_word} KEY --keep weights"
        )
    suited = [(store, row) for store, row in chosen if row["status"] == "finished" and suits(probe, condition_of(row))]
    if not suited:
        kind = registry.probe(probe).kind
        raise StudyError(f"the {probe} probe is for {kind}, and none of the {len(chosen)} replicates with weights is one")
    return suited


def _add_rows(
    store: Store, rows: list[Row], probe: str, count: int, settings: Any, say: Callable[[str], None], counted_by_user: bool
) -> None:
    """Add the probe's rows to one study, and say of how many replicates. counted_by_user: the number of strings was asked for."""
    paired = isinstance(registry.probe(probe), PairProbe)
    lacking, fresh = (_compare if paired else _probe)(store, rows, probe, count, settings, say)
    had, empty = len(rows) - lacking, lacking - fresh
    if paired and max(Counter((row["config"], row["stage"]) for row in rows).values()) == 1:
        say(f"{store.study}: {probe} compares replicates of one condition, and no condition has two with kept weights")
        return
    without = f", {empty} gave no rows" if empty else ""
    say(f"{store.study}: {probe} of {counted(fresh, 'replicate')} added, {had} had it{without}")
    if had and counted_by_user and not paired:
        say(
            f"  rows that were there keep their strings: to make them with {count}, move the probe's files out of probes/ first"
        )


def suits(probe: str, condition: Condition) -> bool:
    """Whether a probe is for the replicates of a condition."""
    return registry.probe(probe).suits(condition.model, condition.task)


def _settings(probe: str, options: Sequence[str]) -> Any:
    """The settings of a probe, from words NAME=VALUE."""
    kind = registry.probe(probe).settings
    if options and not fields(kind):
        raise StudyError(f"--option {options[0]}: nothing can be set of the {probe} probe")
    given = {}
    for option in options:
        name, equals, word = option.partition("=")
        if not name or not equals:
            raise StudyError(f"--option {option} must be NAME=VALUE, such as {fields(kind)[0].name}=4")
        if name in given:
            raise StudyError(f"--option {name} is given twice: keep one")
        try:
            given[name] = json.loads(word)
        except ValueError:
            given[name] = word  # what is no number, true or false
    return typed(kind, given, probe)


def _named(probe: str, settings: Any) -> str:
    """The probe's name in rows, with its non-default settings."""
    return "-".join([probe, *(f"{name}-{value}" for name, value in sorted(describe(settings).items()))])


def _probe(store: Store, rows: list[Row], probe: str, count: int, settings: Any, say: Callable[[str], None]) -> tuple[int, int]:
    """Probe the replicates that lack rows at some step, and add the rows one replicate at a time.

    Returns how many replicates lacked rows, and how many of these gave some.
    """
    chosen, own = registry.probe(probe), _named(probe, settings)
    assert isinstance(chosen, Probe)
    done = probed(store, own)
    lacking: list[tuple[Row, list[int]]] = []
    for row in rows:
        if find(store, row["key"]).stage == row["stage"]:
            steps = artifacts.steps_of(store, row["key"], row["stage"])[0 if chosen.every_step else -1 :]
            if missing := [step for step in steps if (row["key"], row["stage"], step) not in done]:
                lacking.append((row, missing))
    fresh = 0
    for row, missing in with_progress(lacking, say):
        rows_of_name: dict[str, Rows] = {}
        for step in missing:
            about = {"key": row["key"], "stage": row["stage"], "step": step}
            model, task = _model(store, row, step)
            rows_by_name = _seeded(chosen.beside, model, task) | {own: _seeded(chosen.run, model, task, count, settings)}
            for name, rows_of_step in rows_by_name.items():
                rows_of_name.setdefault(name, []).extend(about | row for row in checked_rows(name, rows_of_step))
        for name in sorted(rows_of_name, key=lambda name: name == own):  # its own last: what has those is not run again
            add(store, row["pack"], name, rows_of_name[name])
        fresh += bool(rows_of_name[own])
    return len(lacking), fresh


def _compare(
    store: Store, rows: list[Row], probe: str, count: int, settings: Any, say: Callable[[str], None]
) -> tuple[int, int]:
    """Compare each replicate with all of its condition that come before it, by seeds.

    Returns how many replicates lacked rows, and how many of these gave some. All of a replicate's rows are written at once, so that a
    replicate that came late is compared with those that were there before.
    """
    chosen, own = registry.probe(probe), _named(probe, settings)
    assert isinstance(chosen, PairProbe)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["init_seed"], row["data_seed"], row["key"])):
        if find(store, row["key"]).stage == row["stage"]:
            groups.setdefault((row["config"], row["stage"]), []).append(row)
    done, asked, fresh = compared(store, own), 0, 0
    for group in groups.values():
        steps = [artifacts.steps_of(store, row["key"], row["stage"])[-1] for row in group]
        keys = [row["key"] for row in group]
        lacking = [
            number
            for number, (row, step) in enumerate(zip(group, steps, strict=True))
            if number and done.get((row["key"], row["stage"], step), set()) != set(keys[:number])
        ]
        shown = [
            _seeded(chosen.see, *_model(store, row, step), count, settings)
            for row, step in zip(group[: max(lacking, default=-1) + 1], steps, strict=False)
        ]
        for number in with_progress(lacking, say):
            row = group[number]
            about = {"key": row["key"], "stage": row["stage"], "step": steps[number]}
            compared_rows = [
                about | row_of_pair | {"other_key": keys[other]}
                for other in range(number)
                for row_of_pair in checked_rows(own, _seeded(chosen.compare, shown[other], shown[number]))
            ]
            add(store, row["pack"], own, compared_rows)
            fresh += bool(compared_rows)
        asked += len(lacking)
    return asked, fresh


def _seeded(measure: Callable[..., Any], *arguments: Any) -> Any:
    """What a probe's function returns. What it draws from global generators is the same for each replicate, whatever came before."""
    with seeded(SEED):
        return measure(*arguments)


def _model(store: Store, row: Row, step: int) -> tuple[Decoder, Task]:
    """A replicate with its weights of a step, as a pack with R = 1, and its task."""
    condition = condition_of(row)
    model = trained_model(condition, find(store, row["key"], step).tensors, row["init_seed"])
    return cast(Decoder, model), condition.task
