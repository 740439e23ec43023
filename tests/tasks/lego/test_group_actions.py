"""Group actions against sympy's permutation groups, and tables that are none."""

import itertools
import math

import pytest
from sympy.combinatorics import Permutation, PermutationGroup
from sympy.combinatorics.named_groups import AlternatingGroup, CyclicGroup, DihedralGroup, SymmetricGroup

from tasks.lego.group_actions import Actions, from_name, from_table, group_action

SYMPY = {
    "C5": CyclicGroup(5),
    "C6": CyclicGroup(6),
    "C120": CyclicGroup(120),
    "S3": SymmetricGroup(3),
    "S4": SymmetricGroup(4),
    "S5": SymmetricGroup(5),
    "A4": AlternatingGroup(4),
    "A5": AlternatingGroup(5),
    "D6": DihedralGroup(3),
    "D10": DihedralGroup(5),
}


@pytest.mark.parametrize("name", SYMPY)
def test_named_actions_hold_the_elements_of_sympys_groups(name):
    made, group = group_action(name), SYMPY[name]
    assert sorted(made.table.tolist()) == sorted(element.array_form for element in group.elements)
    assert group.is_transitive()
    assert made.actions == group.order()
    assert made.values == group.degree


@pytest.mark.parametrize("name", ["S3_regular", "S4_regular", "A4_regular", "D8_regular"])
def test_regular_actions_are_multiplication_from_the_left(name):
    made, points = group_action(name), group_action(name.removesuffix("_regular"))
    elements = [Permutation(row) for row in points.table.tolist()]
    # sympy's product a * b applies a first
    assert made.table.tolist() == [[elements.index(h * g) for h in elements] for g in elements]
    group = PermutationGroup([Permutation(row) for row in made.table.tolist()])
    assert group.order() == made.actions == made.values
    assert group.is_transitive()


def test_c6_is_simply_transitive_and_s5_a_symmetry():
    cyclic, symmetric = group_action("C6"), group_action("S5")
    assert (cyclic.actions, cyclic.values, cyclic.symmetry) == (6, 6, False)
    assert (symmetric.actions, symmetric.values, symmetric.symmetry) == (120, 5, True)
    assert cyclic.table.tolist() == [[(y + k) % 6 for y in range(6)] for k in range(6)]
    for made, size in ((cyclic, 1), (symmetric, math.factorial(4))):
        for target, value in itertools.product(range(made.values), repeat=2):
            assert (made.table[:, value] == target).sum() == size
    regular = group_action("S3_regular")
    assert regular.actions == regular.values
    assert not group_action("A5").symmetry


def test_a_table_of_ones_own_is_taken_as_it_is():
    klein = ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0))
    made = from_table(Actions(klein))
    assert made.table.tolist() == [list(row) for row in klein]
    twice = from_table(Actions(((0, 1), (1, 0), (0, 1), (1, 0))))  # C4 on two values: not faithful, and a group action
    assert (twice.actions, twice.values) == (4, 2)
    for name, group in SYMPY.items():
        if group.order() <= 24:
            rows = tuple(tuple(element.array_form) for element in group.elements)
            assert from_table(Actions(rows)).table.shape == group_action(name).table.shape


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ((), "is empty"),
        (((0, 1), (1,)), "is no function: action 1 has 1 entries and action 0 has 2"),
        (((0, 1), (1, 2)), r"\[1\]\[1\] = 2 is no value: there are 0 … 1"),
        (((0, 1), (True, 0)), r"\[1\]\[0\] = True is no value"),
        (((0, 1, 2), (2, 1, 2)), "is no group action: action 1 leads from values 0 and 2 to 2"),
        (((0, 1, 2), (1, 2, 0)), "action 1 followed by action 1 is none of the table's"),
        (((1, 0),), "action 0 followed by action 0 is none"),
        (((0, 1), (1, 0), (1, 0)), "some maps are there 2 times and others 1"),
        (((0, 1, 2), (1, 0, 2)), "no action leads from value 0 to value 2: "),
        (((0, 1, 2, 3), (1, 0, 3, 2)), "to values 2, 3: "),
        (((0,),), "1 actions on 1 values"),
    ],
)
def test_tables_that_are_no_group_action_are_refused(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_table(Actions(table))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("c6", "did you mean C6"),
        ("C1", "out of range: C2 … C256"),
        ("S9", "out of range: S3 … S6"),
        ("A3", "out of range: A4 … A6"),
        ("D7", "name the order 2n"),
        ("C6_regular", "a cyclic group acts on itself already"),
        ("Q8", "there is C<n>, S<n>"),
    ],
)
def test_unknown_names_are_refused(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_name(name)
