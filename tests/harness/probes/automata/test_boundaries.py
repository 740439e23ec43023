"""The probe of boundary visits: patterns made by hand, uniform attention, Algorithm 1's reading of the walk, and rows in a store."""

import pytest
import torch

from benchmarks.theory.constructions import gridworld
from harness.probes.automata.boundaries import boundaries, places
from harness.probes.strings import strings
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.rows.probe_values import by_key
from results.store.tables import open_store, read
from tasks.automata.automata import Automaton
from tasks.automata.composition import states_after
from tasks.automata.named_automata import semiautomaton
from tests.harness.probes.fixed_attention import Fixed, by_place
from tests.rounding import rounded_single

GRID = Automaton(automaton="Grid4", length=12)
STUDY = """
name: walks
question: Do heads look for the ends?
task: {name: automaton, automaton: Grid4, length: 8}
model: {name: transformer, layers: 2, width: 8, heads: 2}
train: {steps: 2, batch: 2, warmup: 0}
evaluate: {sets: {own: {sequences: 4}}}
conditions: {grid: {}, parity: {task: {automaton: C2}}, lstm: {model: {name: lstm, width: 8}}, both: {model: {causal: false}}}
replicates: 1
executor: local
wandb: off
keep: all
pack: {size: 1}
"""


def walk(moves, last):
    """States of a word, one move after the other."""
    states, state = [], 0
    for move in moves:
        state = min(max(state + (1 if move else -1), 0), last)
        states.append(state)
    return states


def patterns(tokens):
    """Head 0 on the latest visit (on the query before one), head 1 even, head 2 on the first token, head 3 even over all visits."""
    weights = torch.zeros(len(tokens), 4, *2 * tokens.shape[1:])
    for b, word in enumerate(tokens.tolist()):
        states = walk(word, 3)
        for t in range(len(word)):
            visits = [s for s in range(t + 1) if states[s] in (0, 3)]
            weights[b, 0, t, visits[-1] if visits else t] = 1
            weights[b, 1, t, : t + 1] = 1 / (t + 1)
            weights[b, 2, t, 0] = 1
            weights[b, 3, t, visits or [t]] = 1 / max(len(visits), 1)
    return weights


def test_hand_made_patterns_have_the_masses_that_they_were_made_of():
    count = 9
    rows = by_place(boundaries(Fixed(4, patterns), GRID, count), "head", "item")
    assert [rows[0, item] for item in ("visits", "latest", "before", "peak")] == rounded_single([1, 1, 0, 1])
    assert rows[3, "visits"] == rounded_single(1)
    assert rows[3, "latest"] + rows[3, "before"] == rounded_single(1)
    for item in ("visits", "latest", "before"):
        assert rows[1, item] == rounded_single(rows[None, f"uniform {item}"])
    (batch,) = strings(GRID, count, count)
    mass, first, before, queries = 0.0, 0, 0, 0
    for word in batch.inputs[0].tolist():
        states = walk(word, 3)
        for t in range(len(word)):
            visits = [s for s in range(t + 1) if states[s] in (0, 3)]
            if visits:
                queries, mass = queries + 1, mass + len(visits) / (t + 1)
                first, before = first + (0 in visits), before + (visits[-1] > 0)
    assert rows[None, "uniform visits"] == rounded_single(mass / queries)
    assert (rows[2, "visits"], rows[2, "before"]) == rounded_single((first / queries, before / queries))


@pytest.mark.parametrize("last", [1, 3, 8])
def test_the_latest_visit_is_what_algorithm_1_reads_the_state_from(last):
    """State at the latest visit, and the moves since: the state that Algorithm 1 computes from prefix sums alone."""
    moves = torch.randint(2, (20, 60), generator=torch.Generator().manual_seed(last))
    states = states_after(semiautomaton(f"Grid{last + 1}"), moves)
    _, latest, asked = places((states == 0) | (states == last))
    steps = 2 * moves - 1
    sums, place = steps.cumsum(-1), latest.clamp(min=0)
    found = sums - sums.gather(-1, place) + states.gather(-1, place)
    assert torch.equal(found[asked], gridworld(last, steps)[asked])
    assert asked.any()


def test_words_that_visit_no_end_are_refused():
    with pytest.raises(ValueError, match="none of 1 words of 1 moves visits an end"):
        boundaries(Fixed(1, lambda tokens: torch.ones(1, 1, 1, 1)), _upward(), 1)


def _upward():
    """A task of one word, which goes up."""

    class Upward(Automaton):
        def sample(self, draw, batch):
            found = super().sample(draw, batch)
            return type(found)(torch.ones_like(found.inputs), found.targets, found.weights, found.about)

    return Upward(automaton="Grid4", length=1)


def test_rows_reach_the_store_of_causal_transformers_on_gridworlds_alone(tmp_path, capsys):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    assert run_study(load(path, [f"store={tmp_path}/runs"]), lambda text: None) == 0
    main(["probe", str(tmp_path / "runs"), "--probe", "boundaries", "--strings", "4"])
    assert "boundaries of 1 replicate added" in capsys.readouterr().out
    ((found),) = by_key(read(open_store(tmp_path / "runs", "walks"), "probes")).values()
    assert {(layer, head) for _, layer, head, item in found if item == "visits"} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert all(0 <= value <= 1 for value in found.values())
    main(["probe", str(tmp_path / "runs"), "--probe", "boundaries"])
    said = capsys.readouterr().out
    assert "0 replicates added, 1 had it" in said
    assert "keep their strings" not in said
    main(["probe", str(tmp_path / "runs"), "--probe", "boundaries", "--strings", "8"])
    assert "rows that were there keep their strings: to make them with 8, move" in capsys.readouterr().out
