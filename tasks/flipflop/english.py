"""The flip-flop in English sentences, for language models that were trained on text (Liu's thesis, section 3.5.6.2).

A write is "Alice turns the light off" or "… on", an ignored instruction "Bob eats a banana" or "… an apple", a read "The light is turned
off" or "… on"; sentences are joined by ". ". The prompt ends before the last read's answer. What the paper leaves open is set here:
p_ignore = 0.8, reads and writes alike, and a prefix of its own for every string.
"""

from dataclasses import dataclass

from tasks.draws import Draw
from tasks.flipflop.flipflop import IGNORE, SYMBOL, WRITE, FlipFlop

ANSWERS = (" off", " on")  # by the bit
PREFIX = 16  # length of the string in front, in tokens of the flip-flop language
_WRITES = ("Alice turns the light off", "Alice turns the light on")
_IGNORES = ("Bob eats a banana", "Bob eats an apple")
_READ = "The light is turned"


@dataclass(frozen=True)
class Prompt:
    """A prompt and its answer. text: ends before the answer. bit: 0 = off, 1 = on."""

    text: str
    bit: int


def prompts(before: Draw, draw: Draw, length: int, strings: int, p_ignore: float = 0.8) -> list[Prompt]:
    """`strings` prompts of a flip-flop string of `length` tokens (two an instruction), each behind a prefix of 16 tokens.

    before, draw: the randomness of prefixes and of strings, R = 1. Raises ValueError where the length is odd or below 4.
    """
    prefixes = FlipFlop(PREFIX, p_ignore).sample(before, strings).inputs[0].tolist()
    questions = FlipFlop(length, p_ignore).sample(draw, strings).inputs[0].tolist()
    return [
        Prompt(". ".join([*sentences(prefix), *sentences(question)[:-1], _READ]), question[-1] - SYMBOL)
        for prefix, question in zip(prefixes, questions, strict=True)
    ]


def sentences(tokens: list[int]) -> list[str]:
    """A string of the flip-flop language, instruction and bit by turns, as one sentence per instruction."""
    lines = []
    for instruction, symbol in zip(tokens[::2], tokens[1::2], strict=True):
        bit = symbol - SYMBOL
        if instruction == WRITE:
            lines.append(_WRITES[bit])
        else:
            lines.append(_IGNORES[bit] if instruction == IGNORE else _READ + ANSWERS[bit])
    return lines
