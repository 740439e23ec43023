"""What a report of a study on LEGO draws beside the figures of every study: accuracy, and attention concentration, against length.

Accuracy is the paper's, the share of sentences of which all values are right; a diverged replicate's is 0. Attention is drawn where
`manyseeds probe --probe concentration` has added rows, as the mean of a layer's heads.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims.lego.sentences import items_by_length, sentences_wrong, sets_by_length
from results.report.family import Drawn
from results.report.lines_and_maps import BANDS, Bands, bands_of, common_points, lines
from results.rows.probe_values import Name, by_key
from results.rows.summary import Replicate
from results.rows.task_conditions import Members, Settings, conditions_of
from results.statistics.intervals import Floats
from results.store.manifest import reported
from results.store.tables import Store, read

DRAWN = 4  # times the training length, at which masses are drawn by answer: 20, as in figures 6 and 7 of the paper
Panels = dict[str, dict[str, Bands]]


def drawings(store: Store, manifest: dict[str, Any], known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    mine = conditions_of(manifest, known, "lego")
    if mine is None:
        return []
    settings, by, definitions = mine.settings, mine.members, mine.definitions
    probes = by_key(read(store, "probes", filter=pc.field("probe") == "concentration", winning=finished))
    return (
        _accuracy(store, settings, by, definitions, manifest, finished)
        + _concentration(settings, by, probes)
        + _masses(settings, by, probes)
    )


def _accuracy(
    store: Store,
    settings: Settings,
    by: Members,
    definitions: Mapping[str, Mapping[str, Any]],
    manifest: dict[str, Any],
    finished: pa.Table,
) -> list[Drawn]:
    shares = sentences_wrong(read(store, "evaluations", filter=reported(manifest), winning=finished))
    panels: Panels = {}
    for condition, options in settings.items():
        points = []
        for length, name in sets_by_length(definitions, options["task.length"]).items():
            values = [
                0.0 if each.status == "diverged" else 1 - shares[each.key, name]
                for each in by[condition]
                if each.status == "diverged" or (name in each.scores and (each.key, name) in shares)
            ]
            points.append((length, np.array(values)))
        _add(panels, options, condition, points)
    if not any(len(bands.x) > 1 for panel in panels.values() for bands in panel.values()):
        return []
    caption = f"Share of sentences of which every value is right. {BANDS} Dashed: the training length."
    figure = lines(panels, "length of the sentences", marked=_trained(settings))
    return [("accuracy-length", "Accuracy by length of the sentences", caption, figure)]


def _concentration(settings: Settings, by: Members, probes: Mapping[str, Mapping[Name, float]]) -> list[Drawn]:
    """ε and the signed gap against length."""
    found: list[Drawn] = []
    for item, title, label, what in (
        (
            "epsilon",
            "Attention concentration by length",
            "ε",
            "ε: mean attention elsewhere than on the two clauses that an answer needs",
        ),
        ("gap", "Attention gap by length", "gap", "Attention to the predicate less that to the last answer"),
    ):
        panels: Panels = {}
        for condition, options in settings.items():
            for layer, line, mine in _probed(condition, by, probes):
                rows = [items_by_length(values, item, layer) for values in mine]
                _add(panels, options, line, common_points(rows))
        if panels:
            caption = (
                f"{what}, by equations 19 and 20 of the paper, mean of a layer's heads. {BANDS} Dashed: the training length."
            )
            figure = lines(panels, "length of the sentences", marked=_trained(settings), value=label)
            found.append((f"concentration-{item}", title, caption, figure))
    return found


def _masses(settings: Settings, by: Members, probes: Mapping[str, Mapping[Name, float]]) -> list[Drawn]:
    """The two masses by answer on longer sentences: figures 6 and 7."""
    panels: Panels = {}
    for name, title in (("predicate", "to the predicate"), ("itself", "to the last answer")):
        for condition, options in settings.items():
            length = DRAWN * options["task.length"]
            for layer, line, mine in _probed(condition, by, probes):
                rows = [_by_answer(values, length, name, layer) for values in mine]
                _add(panels, options, line, common_points(rows), f"{_group(options)}, {title}, L = {length}")
    if not panels:
        return []
    caption = f"Mean attention of a layer's heads when the answer is given, as in figures 6 and 7 of the paper. {BANDS}"
    return [("concentration-answers", "Attention by answer", caption, lines(panels, "answer", value="attention"))]


def _probed(
    condition: str, by: Members, probes: Mapping[str, Mapping[Name, float]]
) -> list[tuple[int, str, list[Mapping[Name, float]]]]:
    """Layer, name of its line and the rows of the replicates of a condition that were probed."""
    mine = [probes[each.key] for each in by[condition] if each.key in probes]
    layers = sorted({layer for values in mine for _, layer, _, _ in values if layer is not None})
    return [(layer, f"{condition}, layer {layer + 1}" if len(layers) > 1 else condition, mine) for layer in layers]


def _by_answer(values: Mapping[Name, float], length: int, name: str, layer: int) -> dict[int, float]:
    pattern = re.compile(rf"L={length} l=(\d+) {name}$")
    found = {}
    for (_, at, head, item), value in values.items():
        match = pattern.match(str(item)) if at == layer and head is None else None
        if match:
            found[int(match[1])] = value
    return found


def _add(
    panels: Panels, options: Mapping[str, Any], line: str, points: Sequence[tuple[float, Floats]], panel: str | None = None
) -> None:
    bands = bands_of([(x, values) for x, values in points if values.size])
    if bands is not None:
        panels.setdefault(panel or _group(options), {})[line] = bands


def _group(options: Mapping[str, Any]) -> str:
    """The group's name; a table of a user's own is called table."""
    return str(options.get("task.group", "table"))


def _trained(settings: Settings) -> list[int]:
    return sorted({options["task.length"] for options in settings.values()})
