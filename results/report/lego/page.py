"""The report's own figures for studies on LEGO: accuracy, and concentration of attention, against length.

Accuracy is the paper's, the share of sentences of which all values are right; a diverged replicate's is 0. Attention is drawn where
`manyseeds probe --probe concentration` has added rows, as the mean of a layer's heads.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims.evidence import Condition, Evidence, gather
from results.claims.lego.sentences import Shares, items_by_length, sentences_wrong, sets_by_length
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, common_points, drawn_lines
from results.rows.probe_values import Name, by_key, parts
from results.rows.summary import Replicate, of_replicates
from results.store.manifest import Manifest, has_settings_of, reported
from results.store.tables import Store, read

DRAWN = 4  # times the training length, at which masses are drawn by answer: 20, as in figures 6 and 7 of the paper


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, "lego"):
        return []
    evidence = gather(manifest, replicates)
    probes = by_key(read(store, "probes", filter=pc.field("probe") == "concentration", winning=finished))
    shares = sentences_wrong(read(store, "evaluations", filter=reported(manifest), winning=finished))
    return _accuracy(evidence, shares) + _concentration(evidence, probes) + _masses(evidence, probes)


def _accuracy(evidence: Evidence, shares: Shares) -> list[Drawn]:
    panels: Panels = {}
    for condition in evidence.conditions:
        points = []
        for length, name in sets_by_length(evidence.definitions, condition.settings["task.length"]).items():
            values = [
                0.0 if replicate.status == "diverged" else 1 - shares[replicate.key, name]
                for replicate in condition.replicates
                if replicate.status == "diverged" or (name in replicate.scores and (replicate.key, name) in shares)
            ]
            points.append((length, np.array(values)))
        add_line(panels, _group(condition), condition.name, points)
    if not any(len(bands.x) > 1 for panel in panels.values() for bands in panel.values()):
        return []
    caption = f"Share of sentences of which every value is right. {BANDS} Dashed: the training length."
    title, label = "Accuracy by length of the sentences", "length of the sentences"
    return drawn_lines("accuracy-length", title, caption, panels, label, marked=evidence.training_lengths)


def _concentration(evidence: Evidence, probes: Mapping[str, Mapping[Name, float]]) -> list[Drawn]:
    """ε and the signed gap against length."""
    drawn: list[Drawn] = []
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
        for condition in evidence.conditions:
            for layer, line, probed in _probed(condition, probes):
                rows = [items_by_length(values, item, layer) for values in probed]
                add_line(panels, _group(condition), line, common_points(rows))
        caption = f"{what}, by equations 19 and 20 of the paper, mean of a layer's heads. {BANDS} Dashed: the training length."
        labels = {"label": "length of the sentences", "value": label}
        drawn += drawn_lines(f"concentration-{item}", title, caption, panels, marked=evidence.training_lengths, **labels)
    return drawn


def _masses(evidence: Evidence, probes: Mapping[str, Mapping[Name, float]]) -> list[Drawn]:
    """The two masses by answer on longer sentences: figures 6 and 7."""
    panels: Panels = {}
    for name, title in (("predicate", "to the predicate"), ("itself", "to the last answer")):
        for condition in evidence.conditions:
            length = DRAWN * condition.settings["task.length"]
            for layer, line, probed in _probed(condition, probes):
                rows = [_by_answer(values, length, name, layer) for values in probed]
                add_line(panels, f"{_group(condition)}, {title}, L = {length}", line, common_points(rows))
    caption = f"Mean attention of a layer's heads when the answer is given, as in figures 6 and 7 of the paper. {BANDS}"
    return drawn_lines("concentration-answers", "Attention by answer", caption, panels, "answer", value="attention")


def _probed(
    condition: Condition, probes: Mapping[str, Mapping[Name, float]]
) -> list[tuple[int, str, list[Mapping[Name, float]]]]:
    """Layer, name of its line and the rows of the replicates of a condition that were probed."""
    probed = of_replicates(condition.replicates, probes)
    layers = sorted({layer for values in probed for _, layer, _, _ in values if layer is not None})
    return [(layer, f"{condition.name}, layer {layer + 1}" if len(layers) > 1 else condition.name, probed) for layer in layers]


def _by_answer(values: Mapping[Name, float], length: int, name: str, layer: int) -> dict[int, float]:
    return {
        int(gaps[0]): value
        for (_, at, head, item), value in values.items()
        if at == layer and head is None and (gaps := parts(item, f"L={length} l={{n}} {name}"))
    }


def _group(condition: Condition) -> str:
    """The group's name; a table of a user's own is called table."""
    return str(condition.settings.get("task.group", "table"))
