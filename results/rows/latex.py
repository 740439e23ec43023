"""Summaries, and tables that commands print, as LaTeX for a paper. They need the package `booktabs`."""

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from results.plain_values import Row
from results.rows.plural import distinct, significant
from results.rows.summary import QUANTILES
from results.rows.value_summary import returned
from results.store.manifest import label as stage_label
from results.terminal import printable

Cell = Callable[[Row], str]
_NAMES = dict(zip(QUANTILES, ("min", r"25\,\%", r"median [95\,\%]", r"75\,\%", "max"), strict=True))
_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "{": r"\textbraceleft{}",  # BibTeX counts the brace of \{ too, and would end a field at one that has no partner
    "}": r"\textbraceright{}",
    "<": r"\textless{}",  # LaTeX's default fonts have other signs in the place of these three
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": r"\lbrack{}",  # an option of \midrule or \\ where it begins a row
    **{character: "\\" + character for character in "&%$#_"},
}
_SYMBOLS = str.maketrans({"–": "--", "−": "$-$", "∞": r"$\infty$", "≤": r"$\le$", "×": r"$\times$"})
_POWER = re.compile(r"(?<![\w.=+-])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")  # such as 2.2e+03
_MINUS = re.compile(r"(?<![\w.=+${-])-(?=\d|\$\\infty)")  # of a number: LaTeX prints a hyphen for it
_BORDER = re.compile(r"(?<!\\)\|")  # of a cell of Markdown


def latex_escape(text: str) -> str:
    """Text as LaTeX prints it: every character with a meaning is taken literally, and control characters are escaped.

    >>> latex_escape("p_i = 98 %")
    'p\\_i = 98 \\%'
    """
    return "".join(_SIGNS.get(character, character) for character in printable(text))


class Tabular:
    """Takes the lines that a command prints and hands on LaTeX: tables of Markdown as `tabular`, any other line as a comment.

    `close` ends a table that is still open.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say, self._row = say, 0

    def __call__(self, line: str) -> None:
        if not line.startswith("|"):
            self.close()
            self._say(f"% {line}" if line else "")
            return
        cells = [cell.strip().replace("\\|", "|") for cell in _BORDER.split(line)[1:-1]]
        if self._row == 0:
            self._say(rf"\begin{{tabular}}{{ll{'r' * (len(cells) - 2)}}}")
            self._say(r"\toprule")
        texts = [latex_escape(cell).translate(_SYMBOLS) for cell in cells]
        if self._row > 1:  # the first two columns are names
            texts[2:] = map(_as_math, texts[2:])
        self._say(r"\midrule" if self._row == 1 else rf"{' & '.join(texts)} \\")
        self._row += 1

    def close(self) -> None:
        if self._row:
            self._say(r"\bottomrule")
            self._say(r"\end{tabular}")
        self._row = 0


def _as_math(text: str) -> str:
    """A cell of a command's table with its negative numbers and powers of ten as LaTeX sets them.

    >>> _as_math("-0.5 (p = 1.9e-06)")
    '$-$0.5 (p = $1.9\\\\times 10^{-6}$)'
    """
    powers = _POWER.sub(lambda number: rf"${number[1]}\times 10^{{{int(number[2])}}}$", text)
    return _MINUS.sub("$-$", powers)


def errors_table(summary: pa.Table) -> str:
    """Error rates: quantiles with the interval of the median, and how many replicates have no error, of every condition, stage and set.

    summary: from `results.rows.summary.summarise`.
    """
    columns: dict[str, Cell] = {
        "condition": lambda row: latex_escape(stage_label(row["condition"], row["stage"])),
        "set": lambda row: latex_escape(row["set"]),
        "$n$": lambda row: f"{row['zero_error_of']}/{row['planned']}",
        **_quantiles("error_"),
        "zero error [95\\,\\%]": lambda row: _share(row, "zero_error", "zero_error_of", "zero_error"),
    }
    about = "error rates on each evaluation set at the last step"
    return _table(about, columns, [[cell(row) for cell in columns.values()] for row in summary.to_pylist()])


def values_table(summary: pa.Table) -> str:
    """Values of experiments: quantiles with the interval of the median of every condition and metric; of a flag, how many have it true.

    summary: from `results.rows.value_summary.summarise_values`.
    """
    columns: dict[str, Cell] = {
        "condition": lambda row: latex_escape(row["condition"]),
        "metric": lambda row: latex_escape(row["metric"]),
        "$n$": lambda row: f"{row['values']}/{row['planned']}",
        **_quantiles(""),
    }
    rows = []
    for row in returned(summary):
        cells = [cell(row) for cell in columns.values()]
        if row["kind"] == "flag":
            cells[3:] = [rf"\multicolumn{{{len(QUANTILES)}}}{{l}}{{true: {_share(row, 'true', 'values', 'true')}}}"]
        rows.append(cells)
    return _table("the last value that each replicate returned", columns, rows)


def _table(about: str, columns: dict[str, Cell], rows: Sequence[Sequence[str]]) -> str:
    """The first two columns are text."""
    lines = [
        f"% {about}; n: replicates with a number / planned; diverged ones rank worst",
        "% an interval of a median is distribution-free; an end that is -- has no bound: too few replicates, or too many diverged",
        r"\begin{tabular}{ll" + "r" * (len(columns) - 2) + "}",
        r"\toprule",
        " & ".join(columns) + r" \\",
        r"\midrule",
        *(" & ".join(cells) + r" \\" for cells in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _quantiles(prefix: str) -> dict[str, Cell]:
    """The cells of the five quantiles. prefix: of their columns in the summary."""
    return {title: partial(_quantile, f"{prefix}{name}") for name, title in _NAMES.items()}


def _quantile(column: str, row: Row) -> str:
    value = row[column]
    text = "diverged" if value is not None and math.isinf(value) else _real(value)
    return (
        f"{text} [{_real(row['median_low'])}, {_real(row['median_high'])}]"
        if column.endswith("median") and value is not None
        else text
    )


def _real(value: float | None) -> str:
    """Three digits; -- where there is no number, or no bound."""
    if value is None or not math.isfinite(value):
        return "--"
    size = abs(value)
    if value == 0 or 0.001 <= size < 1e6:
        return f"{'$-$' * (value < 0)}{distinct(size, 3, 'g', 1) if size < 999.5 else significant(size)}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa}\times 10^{{{int(exponent)}}}$"


def _share(row: Row, count: str, of: str, ends: str) -> str:
    if not row[of]:
        return "--"
    low, high = (distinct(row[f"{ends}_{end}"], 3, "f", 0, 1) for end in ("low", "high"))
    return f"{row[count]}/{row[of]} [{low}, {high}]"
