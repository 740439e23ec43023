"""The report's own figures for studies on automata: heat maps of depth, and accuracy along one option.

Accuracy is the thesis' token-level one, 1 - errors/count; a diverged replicate's is 0. Best and median of the seeds are both shown.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from results.claims.evidence import Evidence, gather
from results.grouping import grouped
from results.report.automata import thesis
from results.report.automata.positions_and_rates import arm_of, machine_of, positions, rates
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, drawn_lines, heat_maps, steps
from results.rows.summary import Replicate
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, has_settings_of
from results.store.tables import Store

ENOUGH = 0.99
AXES = {"length": "length of the words", "p_one": "probability of a 1", "ones": "number of 1s"}


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, "automaton"):
        return []
    evidence = gather(manifest, replicates)
    same = next((name for name, definition in evidence.definitions.items() if not definition), None)
    drawn: list[Drawn] = []
    if same is not None:
        drawn += _depths(evidence, same) + _shares(evidence, same)
    drawn += [figure for option in AXES for figure in _along(evidence, option)]
    return drawn + positions(store, evidence, finished) + rates(store, evidence, finished)


def _depths(evidence: Evidence, name: str) -> list[Drawn]:
    """Where two depths or more differ in nothing but that, the automaton and the length: heat maps; depth against length, if several."""
    cells: dict[tuple[str, int, int], Floats] = {}
    varied = ("task.automaton", "task.length", "model.layers")
    others = {tuple((k, str(v)) for k, v in condition.settings.items() if k not in varied) for condition in evidence.conditions}
    for condition in evidence.conditions:
        options, values = condition.settings, condition.accuracies(name)
        if values.size and "model.layers" in options:
            cells[machine_of(options), options["task.length"], options["model.layers"]] = values
    layers = sorted({depth for *_, depth in cells})
    lengths = sorted({length for _, length, _ in cells})
    machines = list(dict.fromkeys(machine for machine, *_ in cells))
    if len(others) != 1 or len(layers) < 2:
        return []
    drawn = [_accuracies(cells, machines, lengths, layers)]
    return [*drawn, _needed(cells, machines, lengths, layers)] if len(lengths) > 1 else drawn


def _accuracies(
    cells: Mapping[tuple[str, int, int], Floats], machines: list[str], lengths: list[int], layers: list[int]
) -> Drawn:
    """Best and median of seeds by automaton and depth: for each length, or for one length beside the thesis."""
    tables = {}
    for length in lengths:
        for title, statistic, in_thesis in (("best", np.max, thesis.BEST), ("median", np.median, thesis.MEDIAN)):
            measured = {(name, depth): float(statistic(values)) for (name, at, depth), values in cells.items() if at == length}
            here = f"Measured here, {title} of seeds" if len(lengths) == 1 else f"{length} tokens, {title} of seeds"
            tables[here] = [[measured.get((name, depth)) for depth in layers] for name in machines]
            if len(lengths) == 1:
                tables[f"Thesis, {title} of 20 (T = 100, width 512)"] = [
                    [_of_thesis(in_thesis, name, depth) for depth in layers] for name in machines
                ]
    sizes = sorted({values.size for values in cells.values()})
    seeds = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    at = f"at length {lengths[0]}" if len(lengths) == 1 else "by the length of the words"
    beside = (
        "Left: measured here; right: the same automata and depths in figures 3.15 and 3.16 of the thesis. A cell without a number was "
        "not run, or is illegible there."
        if len(lengths) == 1
        else "A cell without a number was not run."
    )
    figure = heat_maps(tables, machines, [str(depth) for depth in layers], "layers")
    return (
        "depth",
        "Accuracy by automaton and depth",
        f"Token accuracy in per cent {at}; {seeds} seeds a cell. {beside}",
        figure,
    )


def _of_thesis(table: Mapping[str, Sequence[float | None]], machine: str, depth: int) -> float | None:
    """The accuracy in a table of the thesis, 0 … 1; None where it has no such cell or the cell is illegible."""
    row = table.get(machine)
    value = row[depth - 1] if row is not None and depth in thesis.LAYERS else None
    return None if value is None else value / 100


def _needed(cells: Mapping[tuple[str, int, int], Floats], machines: list[str], lengths: list[int], layers: list[int]) -> Drawn:
    """The fewest layers that suffice, against the length of the words."""
    fewest: dict[str, dict[str, list[int | None]]] = {}
    for title, statistic in (("best seed", np.max), ("median seed", np.median)):
        for machine in machines:
            row: list[int | None] = []
            for length in lengths:
                at = [depth for depth in layers if (machine, length, depth) in cells]
                row.append(next((depth for depth in at if statistic(cells[machine, length, depth]) >= ENOUGH), None))
            fewest.setdefault(title, {})[machine] = row
    caption = (
        f"The fewest layers with which the best seed, or the median one, has {ENOUGH:.0%} of the states right. A point above the broken "
        f"line: none of {', '.join(map(str, layers))} suffices."
    )
    figure = steps(fewest, lengths, layers, "length of the words", "layers that suffice")
    return ("depth-needed", "Depth needed by length", caption, figure)


def _shares(evidence: Evidence, name: str) -> list[Drawn]:
    """Accuracy against the share of labels that training reveals."""
    shares = {condition.settings["task.p_reveal"] for condition in evidence.conditions}
    if len(shares) < 2:
        return []
    panels: Panels = {}
    rows = grouped(
        (
            (machine_of(condition.settings), str(condition.settings["model.name"])),
            (condition.settings["task.p_reveal"], condition.accuracies(name)),
        )
        for condition in evidence.conditions
    )
    for (machine, model), points in rows.items():
        add_line(panels, machine, model, points)
    caption = f"Token accuracy on “{name}”, every position scored. {BANDS}"
    label = "probability that a label is revealed"
    return drawn_lines("revealed", "Accuracy by the share of revealed labels", caption, panels, label, log=True)


def _along(evidence: Evidence, option: str) -> list[Drawn]:
    """Accuracy over the sets that change one option of the task alone."""
    along = {name: float(changed[option]) for name, changed in evidence.definitions.items() if set(changed) == {option}}
    if len(along) < 2:
        return []
    panels: Panels = {}
    for condition in evidence.conditions:
        points = [(x, condition.accuracies(name)) for name, x in along.items()]
        add_line(panels, machine_of(condition.settings), arm_of(condition), points)
    marked = evidence.training_lengths if option == "length" else []
    caption = f"Token accuracy over a whole set. {BANDS}" + (" Dashed: the training length." if marked else "")
    return drawn_lines(f"accuracy-{option}", f"Accuracy by {AXES[option]}", caption, panels, AXES[option], marked=marked)
