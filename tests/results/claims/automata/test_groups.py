"""What the claims on automata share: medians that decide together, letters of an automaton, and the page that lists the claims."""

import re
from pathlib import Path

import pytest

from harness.study.load import load
from launch.families import find_study
from results.claims import REGISTRY
from results.claims.automata.groups import letters, miss, reach
from results.claims.evidence import Condition
from tasks.automata.named_automata import NINETEEN, semiautomaton


@pytest.mark.parametrize(("test", "held_at", "turned_at"), [(reach, 0.001, 0.05), (miss, 0.05, 0.001)])
def test_one_median_of_many_refutes_at_five_percent_together(test, held_at, turned_at):
    """What 9 of 10 replicates show has a confidence of 97.9 %: enough for one median of two, and not of three."""
    held, turned = [held_at] * 10, [turned_at] * 9 + [held_at]
    assert test([held, held], 0.99) == (True, False)
    assert test([turned], 0.99) == (False, True)
    assert test([turned, held], 0.99) == (False, True)
    assert test([turned, held, held], 0.99) == (False, False)
    assert test([[turned_at] * 10, held, held], 0.99) == (False, True)
    assert test([[held_at] * 9 + [turned_at]] * 3, 0.99) == (True, False)


@pytest.mark.parametrize("name", [*NINETEEN, "S5_5", "Dyck_4_8", "abab"])
def test_words_are_counted_by_the_letters_that_may_be_read(name):
    made = semiautomaton(name)
    assert letters(Condition("one", {"task.automaton": name}, ())) == made.valid.sum(1).max()
    table = {"task.automaton.table": made.table.tolist()}
    assert letters(Condition("one", table, ())) == made.table.shape[1]


def test_every_claim_of_the_family_has_a_study_that_states_it():
    page = (Path(__file__).parents[4] / "docs" / "explanation" / "length-generalization.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([AD]\d\S*) \| [^|]+ \| [^|]+ \| (\d+) \|$", page, re.MULTILINE))
    mine = [each for name, each in REGISTRY.items() if re.match(r"A\d|D1", name)]
    assert table == {each.id: str(each.needs) for each in mine}
    for each in mine:
        assert each.id in load(find_study(*each.study.split("/"))).claims
