"""Interactive figures of a page, and the data on each replicate that they show: JSON that scripts/figures.js reads."""

from collections.abc import Sequence

from markupsafe import Markup, escape
from matplotlib.figure import Figure

from results.plain_values import Tree
from results.report.page_template import script_json
from results.report.plots import figure_files
from results.report.plots.plot_data import NotDrawable, plot_data
from results.rows.summary import Replicate, reported_sets
from results.store.manifest import Manifest

SHORT_KEY = 12  # digits of a key; its page is called replicate-<these>.html
MOST_SETS = 4  # most sets whose counts are shown for a replicate


def plot(figure: Figure) -> Markup | None:
    """The element into which scripts/figures.js draws a figure; None for a figure that it can't draw."""
    try:
        data = plot_data(figure)
    except NotDrawable:
        return None
    return Markup('<div class="plot"><script type="application/json">{}</script></div>').format(script_json(data))


def inline(document: str, name: str, title: str) -> Markup:
    """The figure as an SVG element, from its SVG document."""
    drawn = Markup(figure_files.inline_svg(document, name, str(escape(title))))
    return Markup('<div class="scroll" tabindex="0" role="region" aria-label="Figure: {}">{}</div>').format(title, drawn)


def replicates_data(manifest: Manifest, replicates: Sequence[Replicate], pages: Sequence[str]) -> Markup:
    """JSON of the study's replicates in their order, by column, and the pages of replicates that lie beside the report's."""
    names = list(dict.fromkeys(replicate.label for replicate in replicates))
    number = {name: place for place, name in enumerate(names)}
    sets = {name: _counts(replicates, name) for name in reported_sets(manifest)[:MOST_SETS]}
    columns = {
        "condition": [number[replicate.label] for replicate in replicates],
        "init": [replicate.init_seed for replicate in replicates],
        "data": [replicate.data_seed for replicate in replicates],
        "key": [replicate.key[:SHORT_KEY] for replicate in replicates],
        "unfinished": {
            str(place): replicate.status for place, replicate in enumerate(replicates) if replicate.status != "finished"
        },
    }
    return script_json({"study": manifest["study"], "conditions": names, **columns, "sets": sets, "pages": list(pages)})


def _counts(replicates: Sequence[Replicate], name: str) -> Tree:
    """Errors and reads by replicate; one number where all have as many reads."""
    scores = [replicate.scores.get(name) for replicate in replicates]
    reads = [None if score is None else score.reads for score in scores]
    distinct = {count for count in reads if count is not None}
    errors = [None if score is None else score.errors for score in scores]
    return {"errors": errors, "reads": distinct.pop() if len(distinct) == 1 else reads}
