"""Markdown tables, as commands print them."""

from collections.abc import Iterable, Sequence


def table_lines(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table, from its head on."""
    return [_line(columns), f"|{'---|' * len(columns)}", *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
