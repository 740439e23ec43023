"""`manyseeds glitches`: the glitches of one replicate whose weights are kept, as a file of the store and a page.

What is measured: `glitches.py`; the file: `results/report/flipflop/glitches.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

import harness.machine.device
from harness.exchange.replicate import find, trained_model
from harness.probes.flipflop.glitch_source import Source, source
from harness.probes.flipflop.glitches import KEPT, Glitches, answers, attended, glitches
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from results.plain_values import Row
from results.report.flipflop import glitches as files
from results.report.flipflop.glitch_page import lines, write_glitch_page
from results.report.flipflop.glitches import About
from results.store.tables import Store
from tasks.flipflop.flipflop import FlipFlop

LIMIT, SISTERS = 1000, 25


def record(
    stores: Sequence[Store],
    key: str,
    set_name: str | None = None,
    limit: int = LIMIT,
    sisters: int = SISTERS,
    device: str = "auto",
) -> tuple[Store, About]:
    """Find a replicate's glitches on one of its study's sets (default: that with the most errors), and write them to the store.

    key: 32 digits, or as many as tell it apart. limit: glitches, the first ones. sisters: how many other seeds of its condition are asked,
    in the order of their seeds. Both are at least those of an earlier file, so that a smaller call takes nothing from it. A file that is of
    the same set, weights, sisters and limit is left as it is. ValueError in one sentence.
    """
    if limit < 1 or sisters < 0:
        raise StudyError(f"--limit {limit} must be at least 1 and --sisters {sisters} at least 0")
    origin = source(stores, key, set_name)
    store = origin.store
    before = files.read(store, origin.row["key"], origin.scored.name)
    if before is not None:
        limit, sisters = max(limit, before[0].limit), max(sisters, len(before[0].sisters))
    about = _about(origin, limit, sisters)
    if before is not None and _same(before[0], about):
        return store, before[0]

    on = harness.machine.device.resolve(device)
    harness.machine.device.prepare(on)
    model = _model(origin, origin.row, None, on)
    errors = glitches(model, origin.scored, limit, on, origin.condition.train.precision)
    curves = [_answers(origin, origin.row, step, errors, on)[0] for step in origin.steps[:-1]] + [errors.margin]
    asked = [_answers(origin, row, None, errors, on) for row in origin.sisters[:sisters]]
    about = About(**(vars(about) | {"looked": errors.looked}))
    files.write(store, about, list(_rows(model, about, errors, curves, asked)))
    return store, about


def _about(origin: Source, limit: int, sisters: int) -> About:
    """What the file will say of itself; `looked` is filled in once the glitches are known."""
    model, task = origin.condition.model, origin.scored.task
    heads = (model.layers, model.heads) if isinstance(model, Transformer) else (0, 0)
    language = isinstance(task, FlipFlop)
    bits = [str(bit) for bit in range(task.symbols if isinstance(task, FlipFlop) else task.outputs)]
    return About(
        **{name: origin.row[name] for name in ("key", "stage", "condition", "init_seed", "data_seed")},
        study=origin.store.study,
        set=origin.scored.name,
        set_hash=origin.scored.hash,
        step=origin.steps[-1],
        limit=limit,
        looked=0,
        sequences=origin.scored.sequences,
        errors=origin.errors,
        reads=origin.reads,
        length=task.length,
        layers=heads[0],
        heads=heads[1],
        kept=min(KEPT, task.length) if heads[0] else 0,
        causal=model.causal if isinstance(model, Transformer) else True,
        unit="instructions" if language else "inputs",
        tokens=["w", "r", "i", *bits] if language else ["⊥", *(f"s{bit}" for bit in bits)],
        answers=["w", "r", "i", *bits] if language else bits,
        steps=origin.steps,
        sisters=[
            {"key": sister["key"], "init": sister["init_seed"], "data": sister["data_seed"]}
            for sister in origin.sisters[:sisters]
        ],
        sisters_known=len(origin.sisters),
    )


def _same(before: About, after: About) -> bool:
    return vars(before) | {"looked": 0} == vars(after)


def _rows(model: nn.Module, about: About, errors: Glitches, curves: list[Any], asked: list[Any]) -> Iterator[Row]:
    """Rows of results.report.flipflop.glitches.SCHEMA."""
    seen: Iterator[dict[str, Tensor]] = attended(cast(Decoder, model), errors) if about.layers else ({} for _ in errors.string)
    for n, heads in enumerate(seen):
        names = ("string", "position", "answer", "right", "margin", "write", "since_write", "since_event")
        row = {name: getattr(errors, name)[n].item() for name in names}
        prompt = errors.tokens[n, : row["position"] + 1] if about.causal else errors.tokens[n]
        row |= {"prompt": prompt.tolist(), "margins": [float(curve[n]) for curve in curves]}
        row |= {"sister_margins": [float(margin[n]) for margin, _ in asked]}
        row |= {"sister_wrong": [bool(wrong[n]) for _, wrong in asked]}
        yield row | {name: heads[name].flatten().tolist() if heads else [] for name in ("keys", "weights", "norms", "totals")}


def _answers(origin: Source, row: Row, step: int | None, errors: Glitches, on: torch.device) -> tuple[Tensor, Tensor]:
    return answers(_model(origin, row, step, on), origin.scored, errors, on, origin.condition.train.precision)


def _model(origin: Source, row: Row, step: int | None, on: torch.device) -> nn.Module:
    """A replicate of the condition with its weights of a step, the last one by default."""
    return trained_model(origin.condition, find(origin.store, row["key"], step).tensors, row["init_seed"]).to(on)


def show(
    stores: Sequence[Store],
    key: str,
    set_name: str | None,
    limit: int,
    sisters: int,
    device: str,
    out: str | None,
    say: Callable[[str], None],
) -> None:
    """Write the file and the page, and print one line for each of the first `limit` glitches, with as many sisters."""
    store, about = record(stores, key, set_name, limit, sisters, device)
    page = write_glitch_page(store, about.key, about.set, out)
    for line in lines(store, about.key, about.set, limit, sisters):
        say(line)
    say(str(page))
