"""The explicit constructions of Liu et al. on random words: each equals a walk through the transition table, state for state."""

import pytest
import torch

from benchmarks.theory.constructions import gridworld, memory, modular_counter, parallel_composition
from tasks.automata.named_automata import NINETEEN, semiautomaton


def _walk(table, start, tokens):
    """States by the definition, one token after the other."""
    rows = []
    for word in tokens.tolist():
        state, row = start, []
        for token in word:
            state = int(table[state][token])
            row.append(state)
        rows.append(row)
    return torch.tensor(rows)


def _words(kinds, count, length, seed=0):
    return torch.randint(kinds, (count, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", [*NINETEEN, "abab"])
@pytest.mark.parametrize("length", [1, 11, 16])
def test_composition_of_depth_log_t_simulates_every_semiautomaton(name, length):
    machine = semiautomaton(name)
    stay = torch.arange(len(machine.table))[:, None]
    table = torch.where(machine.valid, machine.table, stay)  # the theorem is of total maps
    words = _words(table.shape[1], 3 if len(table) > 30 else 40, length)
    assert torch.equal(parallel_composition(table, machine.start, words), _walk(table, machine.start, words))


def test_composition_simulates_random_maps_that_are_no_permutations():
    for seed in range(5):
        table = _words(6, 6, 3, seed)
        words = _words(3, 20, 64, seed + 100)
        assert torch.equal(parallel_composition(table, 2, words), _walk(table, 2, words))


def test_keys_turned_as_printed_do_not_compose(monkeypatch):
    """The card's correction matters: with the other sign the construction is wrong."""
    import benchmarks.theory.constructions as constructions

    right = constructions._select
    monkeypatch.setattr(constructions, "_select", lambda angle, turn, gamma: right(angle, -turn, gamma))
    machine = semiautomaton("S4")
    words = _words(8, 20, 16)
    found = parallel_composition(machine.table, machine.start, words)
    assert not torch.equal(found, _walk(machine.table, machine.start, words))


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize("length", [1, 40, 100])
def test_one_layer_counts_modulo_n(n, length):
    words = _words(n, 20, length)
    assert torch.equal(modular_counter(n, words), _walk(semiautomaton(f"C{n}").table, 0, words))


@pytest.mark.parametrize("states", [2, 5])
@pytest.mark.parametrize("length", [1, 50, 200])
@pytest.mark.parametrize("rare", [False, True])
def test_one_layer_is_a_memory(states, length, rare):
    table = [[q, *range(states)] for q in range(states)]
    words = _words(1 + states, 20, length)
    if rare:
        words = torch.where(_words(10, 20, length, 1) == 0, words, 0)
    for start in range(states):
        assert torch.equal(memory(states, start, words), _walk(table, start, words))


@pytest.mark.parametrize("last", [1, 3, 8])
@pytest.mark.parametrize("idle", [False, True])
def test_algorithm_1_walks_the_gridworld(last, idle):
    tokens = _words(3 if idle else 2, 100, 60)
    moves = tokens - 1 if idle else 2 * tokens - 1
    table = [[min(max(q + step, 0), last) for step in ((-1, 0, 1) if idle else (-1, 1))] for q in range(last + 1)]
    found = gridworld(last, moves)
    assert torch.equal(found, _walk(table, 0, tokens))
    assert {0, last} <= set(found.flatten().tolist())  # both ends are met
