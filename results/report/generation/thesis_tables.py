"""Tables 3.1, 3.2, 3.3, 3.5 and 3.16 of Li's thesis (CMU-ML-25-120) beside the same numbers of trained generators.

A generator's value is the mean over its verifiers.
"""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from results.claims.generation.backtracking import HEADLINE, QUOTAS, STRIDES, matching
from results.report.family import Drawn
from results.report.plots.curves import faint
from results.report.plots.lines_and_maps import heat_maps
from results.report.plots.palette import INK, colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import tell
from results.statistics.intervals import Floats

PROMPTS = 10_000
# errors in 10,000 completions and their standard error (table 3.3; the third of table 3.16), by what our items are called
ERRORS: Mapping[str, tuple[str, float, float]] = {
    "fresh top=0.9 plain wrong": ("nucleus 0.9, alone", 240.0, 5.177),
    f"fresh top=0.9 thesis {HEADLINE} verifier={{n}} wrong": ("nucleus 0.9, backtracking", 179.4, 1.020),
    f"fresh top=0.9 sampled {HEADLINE} verifier={{n}} wrong": ("nucleus 0.9, sampled", 245.8, 8.658),
    "fresh top=1 plain wrong": ("no nucleus, alone", 461.8, 8.304),
    f"fresh top=1 thesis {HEADLINE} verifier={{n}} wrong": ("no nucleus, backtracking", 200.0, 3.225),
}
# distinct completions of ten of a prompt, mean and standard deviation over 100 prompts (table 3.5)
DISTINCT: Mapping[str, tuple[str, float, float]] = {
    "diverse top=0.9 plain distinct": ("nucleus 0.9, alone", 5.47, 3.06),
    "diverse top=1 plain distinct": ("no nucleus, alone", 5.84, 3.29),
    f"diverse top=1 thesis {HEADLINE} verifier={{n}} distinct": ("no nucleus, backtracking", 5.52, 3.28),
}
ONE_CUT = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}  # table 3.1: the share that ends well, by the length of the only cut
QUOTA_AND_STRIDE = ((0.421, 0.500, 0.604), (0.457, 0.634, 0.762), (0.518, 0.762, 0.921))  # table 3.2: one row per quota

Values = Mapping[str, float]  # of a generator, by item


def drawings(generators: Sequence[Values]) -> list[Drawn]:
    """Errors on fresh prompts, and shares of error prompts that end well; without those that no generator was probed for."""
    drawn: list[Drawn] = []
    errors = {form: PROMPTS * of_generators(generators, form) for form in ERRORS}
    if all(values.size for values in errors.values()):
        caption = (
            "Errors in 10,000 completions of fresh prompts, on a logarithmic axis. A faint point is a generator, a bold one their "
            f"median. The thesis has one generator; its bar is a standard error. Backtracking: with a trained verifier, {HEADLINE}. "
            "Sampled: the same, but the tokens after a cut are sampled, not the most probable ones."
        )
        drawn.append(("errors-beside", "Tables 3.3 and 3.16 of the thesis, and here", caption, _beside(errors, ERRORS)))
    distinct = {form: of_generators(generators, form) for form in DISTINCT}
    if all(values.size for values in distinct.values()):
        caption = (
            "Distinct completions of ten of one prompt, the mean over prompts. A faint point is a generator, a bold one their median. The "
            "thesis has one generator; its bar is the standard deviation over 100 prompts."
        )
        drawn.append(("distinct-beside", "Table 3.5 of the thesis, and here", caption, _beside(distinct, DISTINCT)))
    cells = [
        [_median(generators, f"error thesis Q={quota} B={stride} verifier={{n}} right") for stride in STRIDES]
        for quota in QUOTAS
    ]
    cuts = [_median(generators, f"error once B={cut} right") for cut in ONE_CUT]
    here, there = f"Here, median of {len(generators)}", "Thesis, table"
    if all(cell is not None for row in cells for cell in row):
        caption = "Per cent of the prompts that led to an error which end well with a verifier, by its quota Q and stride B."
        tables: dict[str, Sequence[Sequence[float | None]]] = {here: cells, f"{there} 3.2": QUOTA_AND_STRIDE}
        figure = heat_maps(tables, [f"Q = {quota}" for quota in QUOTAS], [str(stride) for stride in STRIDES], "stride B")
        drawn.append(("quota-and-stride", "Table 3.2 of the thesis, and here", caption, figure))
    if all(cut is not None for cut in cuts):
        caption = "Per cent of the prompts that led to an error which end well after one cut of so many tokens."
        tables = {here: [cuts], f"{there} 3.1": [list(ONE_CUT.values())]}
        figure = heat_maps(tables, ["one cut"], [str(cut) for cut in ONE_CUT], "tokens cut")
        drawn.append(("one-cut", "Table 3.1 of the thesis, and here", caption, figure))
    return drawn


def of_generators(generators: Sequence[Values], form: str) -> Floats:
    """The value of each generator that has items of this form."""
    return np.array([np.mean(own) for values in generators if (own := matching(values, form))], dtype=np.float64)


def _median(generators: Sequence[Values], form: str) -> float | None:
    values = of_generators(generators, form)
    return float(np.median(values)) if values.size else None


def _beside(here: Mapping[str, Floats], thesis: Mapping[str, tuple[str, float, float]]) -> Figure:
    """A place on the x axis a sampler: generators here on the left, the thesis on the right; errors are on a logarithmic axis."""
    label = "errors in 10,000" if thesis is ERRORS else "distinct of ten"
    with titled_panels([""], 7.4, 3.8, y=label, above=0.3) as (figure, (panel,)):
        for place, (form, (_, theirs, deviation)) in enumerate(thesis.items()):
            own, left, right = here[form], place - 0.14, place + 0.14
            (points,) = panel.plot([left] * own.size, own, "o", ms=4, color=colour_of(0), alpha=max(0.35, faint(own.size)))
            (median,) = panel.plot([left], [np.median(own)], marker_of(0), ms=9, color=colour_of(0), mec=INK)
            panel.plot([right, right], [theirs - deviation, theirs + deviation], color=INK, lw=1.4)
            (there,) = panel.plot([right], [theirs], marker_of(1), ms=8, color=colour_of(1), mec=INK)
            tell(points, "here")
            tell(median, "here")
            tell(there, "thesis")
        if thesis is ERRORS:
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
            panel.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        else:
            panel.set_ylim(0, 10)
        names = [name for name, *_ in thesis.values()]
        panel.set_xticks(range(len(names)), names, rotation=20, ha="right", rotation_mode="anchor")
        panel.tick_params(axis="x", length=0)
        panel.grid(axis="y")
        legend(figure, {"here, median of generators": median, "thesis": there})
    return figure
