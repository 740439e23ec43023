"""The README's finding is what its command prints, from committed rows."""

import re

import pytest

from results.report.flipflop.same_recipe import drawing, finding, main
from results.report.plots.error_axis import error_scale
from tests.page_code import ROOT

PAIRS = [(0.0, 0.0), (0.0, 0.25), (0.5, 0.75)]


def test_the_finding_of_the_readme_is_the_one_of_its_command(capsys):
    readme = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"`python -m results\.report\.flipflop\.same_recipe ([^`]*)`", readme)
    store, study = command.split()
    main([str(ROOT / store), study])
    assert " ".join(capsys.readouterr().out.split()) in re.sub(r"\s+", " ", readme.replace("**", ""))


def test_the_finding_counts_the_seeds_that_know_their_training_distribution():
    text = finding(PAIRS, [(0.0, 0.0), (0.0, 0.1)])
    assert text.startswith("3 transformers, same recipe, different seeds: 2 make no error on their training distribution.")
    assert "1 of these 2 still make none, and the worst misreads 25.0%. 1 of 2 LSTMs" in text


def test_the_figure_has_a_line_for_every_seed():
    left, right = drawing(PAIRS, PAIRS[:1]).axes
    scale = error_scale(PAIRS)
    lines = [[line for line in panel.lines if len(line.get_xdata()) == 2] for panel in (left, right)]
    assert [line.get_ydata().tolist() for line in lines[0]] == [scale.place(pair).tolist() for pair in PAIRS]
    assert len(lines[1]) == 1
    labels = [label.get_text() for label in left.get_yticklabels()]
    assert labels[0].endswith("0 %")
    assert labels[-1] == "0"


def test_the_axis_is_broken_between_zero_and_the_smallest_rate():
    """It was linear below 0.01 %, which no mark said: a rate of 0.005 % stood halfway to 0."""
    figure = drawing([(0.0, 5e-5), (0.0, 0.4)], PAIRS[:1])
    strokes = [(line.get_ydata()[0], line.get_marker()) for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    scale = error_scale([0.0, 5e-5, 0.4])
    assert len(strokes) == 2
    assert all(scale.zero < place < scale.low and isinstance(marker, list) for place, marker in strokes)
    assert "0.01 %" in [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_study_without_the_conditions_is_refused_in_a_sentence():
    with pytest.raises(SystemExit, match=r"baseline"):
        main([str(ROOT / "docs/studies/flipflop"), "fflm-quick"])
