"""The colours and markers of figures. A page has each colour as --c1, --c2, … in a light and a dark version (head.html)."""

from typing import Any

Style = dict[str, Any]  # keywords of a drawing call

# Okabe and Ito's six, then six that differ from them and from each other on white and on black
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#332288", "#8C564B", "#AA4499", "#8A8A1F", "#D6455B", "#5F6B76"),
)
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, PAPER = "#1f2328", "#ffffff"  # stand-ins in the files; pages replace them by their own


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker_of(index: int) -> str:
    """The marker of condition number `index`; 72 conditions have different pairs of colour and marker."""
    return MARKERS[(index + index // len(COLOURS)) % len(MARKERS)]
