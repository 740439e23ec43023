"""Numbers in sentences."""

import math
import re
from collections.abc import Iterable, Sequence


def counted(number: int, what: str) -> str:
    """A number with its noun, such as 1 layer or 2 layers."""
    return f"{number:,} {what if number == 1 else plural(what)}"


def plural(noun: str) -> str:
    """The regular plural.

    >>> plural("closing bracket"), plural("query"), plural("class")
    ('closing brackets', 'queries', 'classes')
    """
    if re.search("[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search("(s|x|z|ch|sh)$", noun) else f"{noun}s"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first names of a list, and how many more there are.

    >>> first_of(["a", "b"], 2), first_of(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def ranges(numbers: Iterable[int], to: str = " to ") -> str:
    """Runs of whole numbers, such as 0 to 24, 30."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{low}" if low == high else f"{low}{to}{high}" for low, high in runs)


def significant(number: float, digits: int = 3) -> str:
    """A number of 0 or more to so many significant digits, all of those before the point, and no exponent above 1.

    >>> significant(6.7712), significant(30), significant(1794.2), significant(999.7), significant(53.2, 2)
    ('6.77', '30', '1,794', '1,000', '53')
    """
    return f"{number:.{digits}g}" if number < 10**digits - 0.5 else f"{number:,.0f}"


def distinct(number: float, digits: int, kind: str, *marks: float) -> str:
    """A number to so many decimals (kind f) or digits (kind g), and to more where it would read as one of the marks, which it is not.

    >>> distinct(0.31, 2, "f", 0, 1), distinct(0.998, 2, "f", 0, 1), distinct(1.0, 2, "f", 0, 1), distinct(0.9996, 3, "g", 1)
    ('0.31', '0.998', '1.00', '0.9996')
    """
    text = f"{number:.{digits}{kind}}"
    blurred = any(float(text) == mark and abs(number - mark) > 1e-9 for mark in marks)  # nearer is rounding of the sums
    return distinct(number, digits + 1, kind, *marks) if blurred else text


def p_value(p: float, digits: int) -> str:
    """A p-value to so many digits, and to more where it would read as 0.05 or 1.

    >>> p_value(0.0312, 2), p_value(0.04999, 3), p_value(0.0, 2)
    ('0.031', '0.04999', 'below 1e-300')
    """
    return distinct(p, digits, "g", 0.05, 1) if p >= 1e-300 else "below 1e-300"  # float64 holds no less


def factor(ratio: float) -> str:
    """A ratio as a factor.

    >>> factor(6.714), factor(0.2), factor(1234.5), factor(float("inf"))
    ('6.7×', '0.20×', '1,234×', '∞×')
    """
    if not math.isfinite(ratio):  # a median of 0 has no ratio to another one
        return "∞×" if ratio > 0 else "–"
    if ratio == 0:
        return "0"
    digits = 0 if ratio >= 100 else 1 if ratio >= 1 else 2 if ratio >= 0.01 else 4
    return f"{ratio:,.{digits}f}×"


def factors(low: float, high: float) -> str:
    """A range of factors.

    >>> factors(291, float("inf")), factors(2, 3.25)
    ('at least 291×', '2.0× to 3.2×')
    """
    return f"at least {factor(low)}" if math.isinf(high) else f"{factor(low)} to {factor(high)}"
