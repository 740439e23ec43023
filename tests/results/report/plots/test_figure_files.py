"""Figures as SVG: what matplotlib wrote, with places in hundredths of a point."""

import re
import xml.etree.ElementTree as ET
from unittest.mock import patch

import numpy as np

from results.report.plots import figure_files
from results.report.plots.errors_by_condition import errors_by_condition

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _drawn():
    rates = 10 ** np.random.default_rng(0).uniform(-4, 0, 40)
    return errors_by_condition({"s": {'</text> d="M 1.234567"': rates, "b": np.append(rates[:20], 0.0)}})


def _numbers(document: str) -> list[tuple[str, str, float]]:
    """Every number of every attribute and text, with where it stands."""
    found = []
    for element in ET.fromstring(document).iter():
        for name, value in {**element.attrib, "text": element.text or ""}.items():
            found += [(element.tag.rpartition("}")[2], name, float(number)) for number in NUMBER.findall(value)]
    return found


def test_paths_and_markers_lie_within_a_two_hundredth_of_a_point_and_nothing_else_moves():
    short = figure_files.svg(_drawn())
    with patch.object(figure_files, "hundredths", lambda document: document):
        long = figure_files.svg(_drawn())
    assert len(short) < 0.95 * len(long)
    for document in re.findall(r'<(?:path|use|text)\b[^>]*?\s(?:d|x|y)="([^"]*)"', short):
        assert not re.search(r"\.\d{3}|-0(?!\.)", document)
    before, after = _numbers(long), _numbers(short)
    assert len(before) == len(after)
    for (tag, name, there), (same_tag, same_name, here) in zip(before, after, strict=True):
        assert (tag, name) == (same_tag, same_name)
        assert abs(there - here) <= (0.005 + 1e-9 if tag in {"path", "use", "text"} and name in {"d", "x", "y"} else 0)
    assert re.sub(NUMBER, "", long) == re.sub(NUMBER, "", short)


def test_a_text_that_looks_like_a_path_stays_as_it_is():
    text = '<text x="1.234567">an x="1.234567" path d="M 1.234567"</text>'
    path = '<path id="m1.234567" d="M 1.234567 -0.000001 \nL 99999.996 0.5" style="stroke-width: 0.12345" transform="scale(0.015625)"/>'
    placed = text.replace('<text x="1.234567">', '<text x="1.23">')
    rounded = path.replace("M 1.234567 -0.000001", "M 1.23 0").replace("99999.996", "100000")
    assert figure_files.hundredths(text + path) == placed + rounded


def _styles(document: str) -> list[tuple[dict[str, str], str]]:
    """Every marker with the style that holds for it, its own or that of what it stands in."""

    def below(element, inherited):
        style = element.get("style", inherited)
        if element.tag.endswith("}use"):
            yield {name: value for name, value in element.attrib.items() if name != "style"}, style
        for child in element:
            yield from below(child, "" if element.tag.endswith("}defs") else style)

    return list(below(ET.fromstring(document), ""))


def test_the_style_of_markers_in_a_row_stands_once_and_each_keeps_its_own():
    with patch.object(figure_files, "smaller", figure_files.hundredths):
        long = figure_files.svg(_drawn())
    short = figure_files.smaller(long)
    assert len(short) < 0.9 * len(long)
    assert _styles(short) == _styles(long)
    assert figure_files.smaller(short) == short


def test_groups_that_say_nothing_are_gone_and_all_else_stands_as_it_was():
    """Elements in their order, each with the attributes of the groups around it, but for names that matplotlib counts up."""

    def below(element, around):
        own = element.tag.rpartition("}")[2]
        if own == "g":
            named = re.fullmatch(r"[A-Za-z.0-9]+_\d+", element.get("id", ""))
            around = [*around, *(each for each in element.attrib.items() if not (each[0] == "id" and named))]
        else:
            yield own, element.attrib, element.text, around
        for child in element:
            yield from below(child, around)

    with patch.object(figure_files, "smaller", figure_files.hundredths):
        long = figure_files.svg(_drawn())
    long = long.replace('<g id="axes_1">', '<g id="kept" opacity="0.5">\n<g id="line2d_900"/>', 1)
    short = figure_files.without_bare_groups(figure_files._NUMBERED.sub("", long))
    assert list(below(ET.fromstring(short), [])) == list(below(ET.fromstring(long), []))
    assert re.findall(r"<g\b[^>]*id=[^>]*>", short) == ['<g id="kept" opacity="0.5">']
    assert "<g>" not in short


def _commands(path: str) -> list[tuple[str, tuple[float, float]]]:
    """Each pair of numbers of a path with the command that it belongs to: further pairs after M are lines to."""
    found, command = [], ""
    for letter, x, y in re.findall(r"([A-Za-z])|(-?[\d.]+)\s+(-?[\d.]+)", path):
        command = letter or command
        if not letter:
            found.append((command, (float(x), float(y))))
            command = "L" if command == "M" else command
    return found


def test_paths_draw_the_same_without_the_letters_of_lines():
    """Also after curves, which the frame of a legend has, where the letter must stay."""
    with patch.object(figure_files, "smaller", figure_files.hundredths):
        long = figure_files.svg(_drawn())
    short = figure_files.smaller(long)
    before, after = ([_commands(each) for each in re.findall(r'\sd="([^"]*)"', document)] for document in (long, short))
    assert before == after
    assert {command for path in before for command, _ in path} >= {"M", "L", "C"}
    assert len(short) < 0.95 * len(long)
    frame = '<path d="M 1 2 \nL -3.5 4 \nQ 5 6 7 8 \nL 9 10 \nL 1 2 \nz\n"/>'
    assert figure_files.smaller(frame) == frame.replace("2 \nL -3.5", "2\n-3.5").replace("10 \nL 1", "10\n1")
