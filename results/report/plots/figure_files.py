"""Matplotlib figures as SVG and PNG files. A figure is laid out once, and equal figures give equal bytes."""

import io
import re

import matplotlib as mpl
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from results.names import slug
from results.report.plots.palette import COLOURS, INK, PAPER
from results.report.plots.panels import MANY_PANELS, STYLE

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what no XML document may hold
_DRAWN = re.compile(r"<(?:path|use|text)\b[^>]*>")  # matplotlib escapes the "<" of a text
_PLACES = re.compile(r'(?<=\s)[dxy]="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_SAME_STYLE = re.compile(r' *<use [^>]* style="([^"]*)"/>\n(?: *<use [^>]* style="\1"/>\n)+')
_INDENT = re.compile(r"\n +(?=<)")
_LINES = re.compile(r"(?<=[ML] )[-.\d]+ [-.\d]+(?: \nL [-.\d]+ [-.\d]+)+")
_NUMBERED = re.compile(r'(?<=<g) id="[A-Za-z0-9.]+_\d+"')  # names that matplotlib counts up, and nothing refers to
_EMPTY = re.compile(r" *<g\b[^>]*/>\n")
_GROUP = re.compile(r" *<(?:g\b([^>]*)|/g)>\n")
_UNTURNED = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
_OWN_STYLE = re.compile(r' style="[^"]*"(?=/>\n)')


def svg(figure: Figure) -> str:
    """A standalone SVG document without dates: equal figures give equal bytes."""
    sink = io.StringIO()
    with mpl.rc_context(STYLE):
        _lay_out(figure)
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": "manyseeds"})
    return smaller(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", sink.getvalue()))


def smaller(document: str) -> str:
    """Make an SVG document smaller: hundredths of a point, no group that says nothing, one style for successive markers, shorter paths.

    After M and L, further points of a path are lines without a letter of their own (SVG 2, 9.3.3).
    """
    flat = without_bare_groups(_NUMBERED.sub("", _UNTURNED.sub("", hundredths(document))))
    grouped = _SAME_STYLE.sub(lambda run: f'<g style="{run[1]}">\n{_OWN_STYLE.sub("", run[0])}</g>\n', flat)
    return _INDENT.sub(
        "\n", _DRAWN.sub(lambda element: _LINES.sub(lambda line: line[0].replace(" \nL ", "\n"), element[0]), grouped)
    )


def without_bare_groups(document: str) -> str:
    """Take away empty groups, and the tags of groups without attributes, which change nothing of what they hold."""
    kept: list[bool] = []  # of the groups that are open

    def tag(group: re.Match[str]) -> str:
        if group[1] is not None:  # it begins
            kept.append(bool(group[1]))
            return group[0] if group[1] else ""
        return group[0] if kept.pop() else ""

    return _GROUP.sub(tag, _EMPTY.sub("", document))


def hundredths(document: str) -> str:
    """Round the places of paths, markers and texts to hundredths of a point; matplotlib writes millionths."""

    def places(attribute: re.Match[str]) -> str:
        return _LONG.sub(lambda number: f"{round(float(number[0]), 2) + 0.0:.10g}", attribute[0])

    return _DRAWN.sub(lambda element: _PLACES.sub(places, element[0]), document)


def png(figure: Figure) -> bytes:
    sink = io.BytesIO()
    with mpl.rc_context(STYLE):
        _lay_out(figure)
        quickly = {"compress_level": 3}  # half the time of the default for a few percent of the bytes
        FigureCanvasAgg(figure).print_figure(sink, format="png", dpi=160, metadata={"Software": None}, pil_kwargs=quickly)
    return sink.getvalue()


def _lay_out(figure: Figure) -> None:
    """Place the panels once, since with a layout engine each save would lay the figure out again and draw it twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            if not axis.get_label_text():
                axis.set_label_coords(0, 0)  # no place is looked for
        inner = _inner_panels(figure)
        for panel in inner:
            panel.set_in_layout(False)
        engine.execute(figure)
        figure.set_layout_engine(None)
        for panel, (above, beside) in inner.items():
            across, down = above.get_position(original=True), beside.get_position(original=True)
            panel.set_position((across.x0, down.y0, across.width, down.height))
            panel.set_in_layout(True)


def _inner_panels(figure: Figure) -> dict[Axes, tuple[Axes, Axes]]:
    """The panels of a large grid with one vertical axis that need no room for axes, each with the first panel of its column and row."""
    if len(figure.axes) <= MANY_PANELS:
        return {}
    first = figure.axes[0]
    grid = {}
    for panel in figure.axes:
        spec = panel.get_subplotspec()
        if spec is None or not panel.get_shared_y_axes().joined(panel, first):
            return {}
        grid[spec.rowspan.start, spec.colspan.start] = panel
    return {panel: (grid[0, column], grid[row, 0]) for (row, column), panel in grid.items() if row and column}


def inline_svg(document: str, prefix: str, title: str) -> str:
    """Make an `<svg>` element for a page: with unique ids, transparent, in the page's colours `--paper` and `--c1` … `--c6`.

    title: escaped already. prefix: of the ids, any text. The width that the figure was drawn for is in `--natural`.
    """
    prefix, element = slug(prefix), document[document.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{prefix}-', element)
    element = re.sub(r'((?:xlink:)?href=")#', rf"\1#{prefix}-", element)
    element = element.replace("url(#", f"url(#{prefix}-")
    element = element.replace(INK, "currentColor").replace(PAPER, "var(--paper)")
    for i, colour in enumerate(COLOURS, 1):
        element = element.replace(colour.lower(), f"var(--c{i})")
    width = re.search(r'\bwidth="([\d.]+pt)"', element)
    natural = f' style="--natural: {width[1]}"' if width else ""
    return element.replace("<svg ", f'<svg role="img" aria-label="{title}"{natural} ', 1)
