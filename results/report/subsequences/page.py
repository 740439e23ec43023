"""The report's own figures for studies on subsequences, for claims S1 to S4 and S6 (after Sun et al. 2025).

Depth is drawn for studies on whether a piece of tokens has been read, which is the table of an automaton; all others are of the task
associations. Accuracy is drawn where the number of pairs varies, the rest where `manyseeds probe` has added rows of `associations` or
`alignment`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from results.claims.evidence import Evidence, gather
from results.claims.subsequences.alignment import PROBE, column, pearson_r
from results.claims.subsequences.depth import layers_needed, length_of
from results.claims.subsequences.gradients import rank
from results.claims.subsequences.growth import LEARNED, Steps, arrays, learned_between
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, drawn_lines, heat_maps, lines
from results.rows.probe_values import by_key, by_step
from results.rows.summary import Replicate, of_replicates
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, has_settings_of, is_of
from results.store.tables import Store, read

SOLVED = 0.99  # of the answers, as claim S1 has it


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows for; [] for a study of another task. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, "automaton", "associations"):
        return []
    evidence = gather(manifest, replicates)
    if is_of(manifest, "automaton"):
        return _depth(evidence)
    probes = read(store, "probes", winning=finished)
    rows = by_step(probes, "associations")
    learned = {
        condition.name: [
            {step: arrays(items) for step, items in sorted(steps.items())}
            for steps in of_replicates(condition.replicates, rows)
        ]
        for condition in evidence.conditions
    }
    learned = {name: by_step for name, by_step in learned.items() if by_step}
    return [*_held(evidence), *_times(learned), *_order(learned), *_aligned(evidence, probes)]


def _depth(evidence: Evidence) -> list[Drawn]:
    """Heat maps by length and number of layers: the share of replicates that solve it, and the median accuracy."""
    if not evidence.definitions:
        return []
    name = next(iter(evidence.definitions))
    cells = {
        (length, condition.settings["model.layers"]): values
        for condition in evidence.conditions
        if (length := length_of(condition.settings)) is not None
        and condition.settings["model.name"] == "transformer"
        and (values := condition.accuracies(name)).size
    }
    lengths, layers = (sorted(set(axis)) for axis in zip(*cells, strict=True)) if cells else ((), ())
    if len(layers) < 2:
        return []
    accuracies = [[cells.get((length, depth), np.empty(0)) for depth in layers] for length in lengths]
    tables: dict[str, list[list[float | None]]] = {
        f"Replicates with {SOLVED:.0%} right": [
            [float((values >= SOLVED).mean()) if values.size else None for values in row] for row in accuracies
        ],
        "Median accuracy": [[float(np.median(values)) if values.size else None for values in row] for row in accuracies],
    }
    caption = (
        f"In per cent, of “{name}”, all positions scored. A row is the length η of the piece; 1 + ⌈log2 η⌉ layers are enough for weights "
        f"written by hand: {', '.join(f'{1 + layers_needed(length)} for {length}' for length in lengths)}."
    )
    figure = heat_maps(tables, [f"η = {length}" for length in lengths], [str(depth) for depth in layers], "layers")
    return [("subsequence-depth", "Layers that see a subsequence", caption, figure)]


def _held(evidence: Evidence) -> list[Drawn]:
    """Accuracy against the number of pairs, one line per width, one panel per inner width."""
    if len({condition.settings["task.pairs"] for condition in evidence.conditions}) < 2 or not evidence.definitions:
        return []
    name = next(iter(evidence.definitions))
    rows: dict[tuple[int, int], list[tuple[float, Floats]]] = {}
    for condition in evidence.conditions:
        options = condition.settings
        if options["model.name"] != "transformer":
            continue
        width, inner = options["model.width"], options["model.feed_forward"]
        rows.setdefault((inner or 4 * width, width), []).append((options["task.pairs"], condition.accuracies(name)))
    panels: Panels = {}
    for (inner, width), points in sorted(rows.items()):
        add_line(panels, f"inner width {inner}", f"width {width}", points)
    caption = (
        f"Share of the strings of “{name}” that are answered right, against how many pairs have an answer of their own. {BANDS}"
    )
    return drawn_lines("pairs-held", "Accuracy by number of pairs", caption, panels, "pairs", log=True)


def _times(learned: Mapping[str, Sequence[Steps]]) -> list[Drawn]:
    """The first kept step at which the gap of a pair is small, against its frequency, both on log axes."""
    panels: Panels = {}
    for name, replicates in learned.items():
        frequencies = next(iter(replicates[0].values()))["frequency"]
        if np.ptp(frequencies) == 0:
            continue
        # a pair that is not learned has no step: its place is the last kept one, which the caption says
        highs = [np.minimum(learned_between(steps)[1], max(steps)) for steps in replicates]
        points = [(frequency, np.array([high[pair] for high in highs])) for pair, frequency in enumerate(frequencies)]
        add_line(panels, name, "pairs", points)
    if not panels:
        return []
    caption = (
        f"First kept step with a gap |mean p̂(own answer) - P(own answer)| below {LEARNED:g}, of every pair; one that never has it lies at "
        f"the last step. {BANDS} Broken: steps in inverse proportion to the frequency, through the middle."
    )
    figure = lines(panels, "frequency of the pair", log=True, value="step")
    for panel, by in zip(figure.axes, panels.values(), strict=False):
        (bands,) = by.values()
        middle = np.exp(np.log(bands.x).mean()), np.exp(np.log(np.maximum(bands.middle, 1)).mean())
        panel.plot(bands.x, middle[1] * middle[0] / bands.x, ls="--", lw=1, color="0.5")
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    return [("pairs-learned", "Steps until a pair is learned", caption, figure)]


def _order(learned: Mapping[str, Sequence[Steps]]) -> list[Drawn]:
    """Spearman's correlation over pairs of the gradient, against the step."""
    panels: Panels = {}
    for name, replicates in learned.items():
        steps = sorted(set.intersection(*(set(by_step) for by_step in replicates)) - {0})  # the axis is logarithmic
        kinds = {
            "frequency × gap": lambda pairs: rank(pairs, pairs["frequency"] * pairs["gap"]),
            "frequency alone": lambda pairs: rank(pairs, pairs["frequency"]),
        }
        for title, correlation in kinds.items():
            points = [(step, np.array([correlation(by_step[step]) for by_step in replicates])) for step in steps]
            add_line(panels, name, title, points)
    caption = f"Spearman's correlation over the pairs of the gradient with its frequency times its gap, and with its frequency. {BANDS}"
    value = "correlation with the gradient"
    return drawn_lines("gradient-order", "What orders the gradients", caption, panels, "step", log=True, value=value)


def _aligned(evidence: Evidence, probes: pa.Table) -> list[Drawn]:
    """S_rep of the traced pairs against the generator's own probability of their answers."""
    by = by_key(probes.filter(pc.field("probe") == PROBE))
    panels: Panels = {}
    correlations = []
    for condition in evidence.conditions:
        rows = of_replicates(condition.replicates, by)
        columns = [(column(values, "exact"), column(values, "srep")) for values in rows]
        most = max((len(values) for pair in columns for values in pair), default=0)
        whole = [pair for pair in columns if len(pair[0]) == len(pair[1]) == most > 0]  # pairs of the others are not known
        if not whole:
            continue
        exact, said = np.array(whole).transpose(1, 0, 2)  # each [replicates, pairs]
        if all(np.ptp(own) > 0 for own in exact):
            correlations.append(
                f"{np.median([pearson_r(*pair) for pair in zip(said, exact, strict=True)]):.2f} for {condition.name}"
            )
        middle = np.median(exact, 0)
        add_line(panels, condition.name, "pairs", zip(middle, said.T, strict=True))
    if not panels:
        return []
    caption = (
        "Mean probability of a pair's own answer in fresh strings that hold the traced tokens, against the probability that the generator "
        f"gives it there (the median over replicates, whose traced tokens may differ). {BANDS} Broken: equality."
    )
    if correlations:
        caption += (
            f" Pearson's correlation over pairs, median of seeds: {', '.join(correlations)}; 0.72 in figure 6 of Sun et al."
        )
    figure = lines(panels, "P(answer | the traced tokens stand in the string)", value="S_rep")
    _diagonal(figure)
    return [("alignment", "Traced pairs and the corpus", caption, figure)]


def _diagonal(figure: Figure) -> None:
    for panel in figure.axes:
        if panel.axison:
            limits = panel.get_xlim()
            panel.plot(limits, limits, ls="--", lw=1, color="0.5")
            panel.set_xlim(limits)
