"""What tracing a language model needs of texts: whether a target was said, and what a token may be replaced by."""

from collections.abc import Callable, Sequence
from typing import Any

from results.errors import StudyError

Target = str | tuple[str, ...]

_OPERATORS, _BRACKETS = set("+-*/=<>!&|^%~@"), set("()[]{}")


def detect(targets: Sequence[Target], text: str) -> bool:
    """Whether any target is in the text, in either case: a string as a part of it, a tuple where all of its strings are."""
    low = text.lower()
    return any(all(part.lower() in low for part in ([target] if isinstance(target, str) else target)) for target in targets)


def refuse_echoes(targets: Sequence[Target], text: str) -> None:
    """ValueError for no or empty targets, and for one that stands in the text: a model that repeats the text would count as wrong."""
    for target in targets:
        if not target or not all([target] if isinstance(target, str) else target):
            raise StudyError("a target is an empty string: give what the model says wrongly")
        if detect([target], text):
            raise StudyError(f"the target {target!r} stands in the text itself: repeating the text would count as saying it")
    if not targets:
        raise StudyError("there is no target: give what the model says wrongly")


def accepting(tokenizer: Any) -> Callable[[int, list[int]], list[int]]:
    """A function that leaves of a token's neighbours those that may replace it, as in the paper's code.

    Left out are special tokens, tokens of another category, texts that contain its text or are contained in it, and all but the first of
    texts that differ only in case and spaces. The code's categories of words come from a tagger; here all words are one.
    """
    special = set(tokenizer.all_special_ids)

    def accept(token: int, nearest: list[int]) -> list[int]:
        own = tokenizer.decode([token])
        bare = own.strip().lower()
        seen: set[str] = set()
        accepted = []
        for candidate in nearest:
            text = tokenizer.decode([candidate])
            other = text.strip().lower()
            if candidate == token or candidate in special or other in seen or category(text) != category(own):
                continue
            if bare in other or other in bare:
                continue
            seen.add(other)
            accepted.append(candidate)
        return accepted

    return accept


def category(text: str) -> str:
    """whitespace, digit, word, operator, bracket, punctuation or unknown."""
    bare = text.strip()
    if not bare:
        return "whitespace"
    if bare.isdigit():
        return "digit"
    if bare.isidentifier() or bare.isalpha():
        return "word"
    if set(bare) <= _OPERATORS:
        return "operator"
    if set(bare) <= _BRACKETS:
        return "bracket"
    return "punctuation" if not any(character.isalnum() for character in bare) else "unknown"
