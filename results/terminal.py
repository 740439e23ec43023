"""The one way to print: what a store holds may be anyone's, and a terminal obeys what it is sent."""

import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# controls, formats such as those that turn the direction of text, halves of characters, private and unassigned ones, and line ends
_OBEYED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str) -> str:
    r"""Text as one line that a terminal shows and does not obey: what it would obey is written as an escape.

    >>> print(printable("red \x1b[31m, bell \a, two\nlines, turned \u202e"))
    red \x1b[31m, bell \x07, two\nlines, turned \u202e
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _OBEYED and character != "\t"
        else character
        for character in text
    )


def say(line: object = "", err: bool = False) -> None:
    """Print one line: everything that a command says goes through here. `err`: on stderr."""
    stream, shown = sys.stderr if err else sys.stdout, printable(str(line))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # a redirected output may have an encoding of few characters, and a run must not end by a "·"
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings of the calls inside through `say`, each once: a library quotes names of a store in them."""

    said: set[str] = set()  # matplotlib warns of a missing glyph each time that it draws one

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        line = f"{category.__name__}: {message}"
        if line not in said:
            said.add(line)
            say(line, err=True)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
