"""The one way to print: what a store holds may be anyone's, and a terminal obeys what it is sent."""

import sys
import unicodedata

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
    print(printable(str(line)), file=sys.stderr if err else sys.stdout, flush=True)
