"""What a store holds is shown by a terminal, and never obeyed: one function prints."""

import ast
import io
import unicodedata
import warnings
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from results.terminal import printable, say, warnings_said

ROOT = Path(__file__).parents[2]


@given(st.text(st.characters()))
def test_printed_text_is_one_line_without_a_character_that_a_terminal_obeys(text):
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert {unicodedata.category(character) for character in shown.replace("\t", "")}.isdisjoint({"Cc", "Cf", "Cs"})
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown
    shown.encode()


def test_ordinary_text_is_printed_as_it_is(capsys):
    line = "médiane 4.2×10⁻⁵ – “dense”, 語\tπ\u00a0≈\u202f3"
    say(line)
    say("error", err=True)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (f"{line}\n", "error\n")


def test_a_character_that_the_output_lacks_is_written_as_an_escape(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    say("12 steps · naïve")
    assert stream.buffer.getvalue() == b"12 steps \\xb7 na\\xefve\n"


def test_nothing_is_printed_but_through_the_function_that_escapes():
    written = []
    for path in sorted(path for room in ("results", "harness", "launch") for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write", "pprint"):
                    written.append(str(path.relative_to(ROOT)))
    assert written == ["results/terminal.py"]


def test_warnings_are_printed_once_and_as_all_else(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        with warnings_said():
            for _ in range(2):
                warnings.warn_explicit("Glyph \x1b[31m is missing\n", UserWarning, "figures.py", 1)
        assert warnings.showwarning is before
    assert capsys.readouterr().err == "UserWarning: Glyph \\x1b[31m is missing\\n\n"
