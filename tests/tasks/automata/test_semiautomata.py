"""Transition tables against what they model, made another way: sympy, matrices, geometry, a stack; and composition against a walk."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics import Permutation
from sympy.combinatorics.generators import alternating, symmetric

from harness.study.config import build
from tasks.automata import composition
from tasks.automata.composition import prefixes, states_after, transition_monoid
from tasks.automata.named_automata import NINETEEN, from_name, semiautomaton
from tasks.automata.semiautomata import Semiautomaton, Table


@pytest.mark.parametrize("name", ["A4", "A5", "S4", "S5", "S5_5"])
def test_permutation_groups_are_those_of_sympy(name):
    made, n = from_name(name), int(name[1])
    elements = list(symmetric(n) if name[0] == "S" else alternating(n))
    assert [list(state) for state in made.states] == [element.array_form for element in elements]
    if name[0] == "A":
        tokens = [Permutation([[0, 1, i]], size=n) for i in range(2, n)]
    else:
        least = [Permutation([[0, 1]], size=n), Permutation([list(range(n))])]
        further = [element for element in elements if element not in least and not element.is_Identity]
        tokens = [*least, *further[: 3 if name == "S5_5" else 6]]
    assert made.table.shape[1] == len(tokens)
    # the token acts first: place i holds what place σ(i) held
    expected = [[elements.index(token * element) for token in tokens] for element in elements]
    assert made.table.tolist() == expected
    assert elements[made.start].is_Identity


def test_cyclic_groups_add():
    for n in range(2, 9):
        assert from_name(f"C{n}").table.tolist() == [[(q + s) % n for s in range(n)] for q in range(n)]
    for k in (2, 3):
        assert from_name(f"C2^{k}").table.tolist() == [[q ^ s for s in range(2**k)] for q in range(2**k)]
    assert from_name("C3^2").table[5].tolist() == [5, 3, 4, 8, 6, 7, 2, 0, 1]  # (1, 2) + each of (0, 0) … (2, 2)


@pytest.mark.parametrize("order", [6, 8, 10])
def test_dihedral_groups_move_a_polygon(order):
    """Advance and flip as motions of the plane: the polygon's corner 0 and its orientation say the state."""
    made, n = from_name(f"D{order}"), order // 2
    turn = 2 * np.pi / n
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    mirror = np.diag([1.0, -1.0])

    def motion(q):
        return np.linalg.matrix_power(rotation, q % n) @ np.linalg.matrix_power(mirror, q // n)

    for q in range(order):
        for token, generator in enumerate((rotation, mirror)):
            np.testing.assert_allclose(motion(int(made.table[q, token])), motion(q) @ generator, atol=1e-12)


def test_quaternions_multiply_like_complex_matrices():
    one, i = np.eye(2, dtype=complex), np.diag([1j, -1j])
    j = np.array([[0, 1], [-1, 0]], dtype=complex)
    units = [one, i, j, i @ j]
    matrices = [*units, *(-each for each in units)]
    made = from_name("Q8")
    expected = [
        [next(k for k, m in enumerate(matrices) if np.array_equal(m, matrices[q] @ token)) for token in units] for q in range(8)
    ]
    assert made.table.tolist() == expected


@pytest.mark.parametrize(
    ("name", "depth", "types", "count"), [("Dyck_4_2", 4, 2, 31), ("Dyck_4_8", 4, 8, 4681), ("Dyck_2_1", 2, 1, 3)]
)
def test_dyck_languages_are_a_stack(name, depth, types, count):
    made = from_name(name)
    assert len(set(made.states)) == len(made.states) == count
    assert made.states[made.start] == ()
    for q in range(0, count, max(1, count // 400)):
        for token in range(2 * types):
            stack = list(made.states[q])
            if token % 2 == 0:
                stack.append(token // 2)
                valid = len(stack) <= depth
            else:
                valid = bool(stack) and stack.pop() == token // 2
            assert bool(made.valid[q, token]) is valid
            if valid:
                assert made.states[int(made.table[q, token])] == tuple(stack)


def test_gridworlds_stay_at_their_ends():
    for n in (4, 9):
        assert from_name(f"Grid{n}").table.tolist() == [[max(q - 1, 0), min(q + 1, n - 1)] for q in range(n)]


def test_abab_walks_as_the_card_says():
    made, state, seen = from_name("abab"), 3, ""
    for letter in "abababaaabab":
        state = int(made.table[state, "ab".index(letter)])
        seen += str(state)
    assert (made.start, seen) == (3, "012301244444")


@pytest.mark.parametrize("name", [*NINETEEN, "S5_5", "Dyck_4_8", "abab"])
def test_every_state_is_reached(name):
    made = from_name(name)
    reached, step = {made.start}, {made.start}
    while step:
        step = {after for q in step for after in made.table[q].tolist() if after >= 0} - reached
        reached |= step
    assert reached == set(range(len(made.states)))
    assert bool(made.valid.any(-1).all())


def test_transition_monoids_of_groups_are_the_groups():
    """Of a group that acts on itself the monoid has as many elements, and its product table is a Latin square."""
    for name in ("C6", "C2^3", "D8", "Q8", "A4", "S4", "S5"):
        made = from_name(name)
        monoid = transition_monoid(made)
        size = len(made.states)
        assert sorted(monoid.states.tolist()) == list(range(size))
        square = monoid.product.view(size, size)
        for lines in (square, square.T):
            assert torch.equal(lines.sort(-1).values, torch.arange(size, dtype=torch.int32).expand(size, size))
    assert transition_monoid(from_name("S4"), most=23) is None
    assert transition_monoid(from_name("Dyck_4_2")) is None


@settings(max_examples=60, deadline=None)
@given(data=st.data(), states=st.integers(1, 6), tokens=st.integers(1, 4), length=st.integers(1, 40), way=st.integers(0, 2))
def test_composition_equals_a_walk(data, states, tokens, length, way):
    """Random maps: composed as numbers where their monoid is small, else as maps, else walked where there are many states."""
    table = torch.tensor(
        data.draw(
            st.lists(st.lists(st.integers(0, states - 1), min_size=tokens, max_size=tokens), min_size=states, max_size=states)
        )
    )
    made = Semiautomaton("table", tuple(range(states)), table, data.draw(st.integers(0, states - 1)))
    words = torch.tensor(data.draw(st.lists(st.integers(0, tokens - 1), min_size=2 * length, max_size=2 * length))).view(
        2, length
    )
    with pytest.MonkeyPatch.context() as patch:
        if way:
            patch.setattr(composition, "_monoid_on", lambda *_: None)
            patch.setattr(composition, "_MAP_ENTRIES", 1)  # word by word
            patch.setattr(composition, "MOST_MAPPED", 64 if way == 1 else 0)
        found = states_after(made, words)
    for word, after in zip(words.tolist(), found.tolist(), strict=True):
        state = made.start
        for token, reached in zip(word, after, strict=True):
            state = int(table[state, token])
            assert reached == state


@pytest.mark.parametrize("length", [*range(1, 18), 100])
def test_prefixes_keep_the_order(length):
    """Composition that does not commute: digits appended to a number modulo a prime, as (shift, offset) pairs."""
    prime = 10007
    digits = torch.arange(length) * 7 % 10

    def compose(a, b):
        return torch.stack([a[..., 0] * b[..., 0] % prime, (a[..., 1] * b[..., 0] + b[..., 1]) % prime], -1)

    found = prefixes(compose, torch.stack([torch.full((length,), 10), digits], -1)[None])[0, :, 1]
    text = "".join(map(str, digits.tolist()))
    assert found.tolist() == [int(text[: t + 1]) % prime for t in range(length)]


@pytest.mark.parametrize(
    ("automaton", "sentence"),
    [
        ("S7", "'S7' is out of range: S4, S5, S6, with 2 … 8 generators"),
        ("C1", "'C1' is out of range: n >= 2"),
        ("C2^9", "is out of range: n >= 2 and n^k <= 256"),
        ("D7", "name the order 2n of the group"),
        ("Dyck_9_9", "at most 5000 states"),
        ("Dyck_{4,2}", "did you mean Dyck_4_2?"),
        ("C02", "task.automaton = 'C02' is not known"),
        ({"table": []}, "task.automaton.table is empty"),
        ({"table": [[0, 1], [1]]}, "task.automaton.table is no function: state 1 has 1 entries and state 0 has 2"),
        ({"table": [[0, 2], [1, 0]]}, r"task.automaton.table\[0\]\[1\] = 2 is no state: there are 0 … 1"),
        ({"table": [[0, -2]]}, r"task.automaton.table\[0\]\[1\] = -2 is no state"),
        ({"table": [[0, None], [1, 0]]}, "task.automaton.table = None must be a whole number"),
        ({"table": [[1, 1], [-1, -1]]}, r"task.automaton.table\[1\] has no valid token"),
        ({"table": [[0, 0], [0, 1]]}, "no word leads from the start 0 to state 1"),
        ({"table": [[0] * 2] + [[1, 2]] * 14}, "no word leads from the start 0 to states 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …"),
        ({"table": [[0, 0]], "start": 1}, "task.automaton.start = 1 is no state: there are 0 … 0"),
        ({"table": [[0, 0]], "begin": 1}, "task.automaton.begin is unknown; options: table, start"),
    ],
)
def test_what_is_no_semiautomaton_is_refused(automaton, sentence):
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?").replace("^", r"\^").replace("{", r"\{")):
        build("task", {"name": "automaton", "automaton": automaton})


def test_a_table_of_ones_own_is_the_named_one():
    rows = from_name("D8").table.tolist()
    assert torch.equal(semiautomaton(Table(rows)).table, from_name("D8").table)
    assert semiautomaton(Table(rows, 3)).start == 3
    assert hash(Table(rows)) == hash(Table(tuple(map(tuple, rows))))
