"""The README's finding is what its command prints, from committed rows."""

import re

import pytest

from results.report.flipflop.same_recipe import drawing, finding, main
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
    assert [list(line.get_ydata()) for line in left.lines] == [list(pair) for pair in PAIRS]
    assert len(right.lines) == 1


def test_a_study_without_the_conditions_is_refused_in_a_sentence():
    with pytest.raises(SystemExit, match=r"baseline"):
        main([str(ROOT / "docs/studies/flipflop"), "fflm-quick"])
