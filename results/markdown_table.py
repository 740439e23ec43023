"""Markdown tables, as commands print them."""

from collections.abc import Iterable, Sequence


def table_lines(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table, from its head on; None is a dash."""
    return [_line(columns), f"|{'---|' * len(columns)}", *map(_line, rows)]


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """The table as one text, without a line break at its end."""
    return "\n".join(table_lines(columns, rows))


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value: object) -> str:
    """A value with its bars escaped, since they would end the cell."""
    return "–" if value is None else str(value).replace("|", "\\|")
