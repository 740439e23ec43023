"""Strings of associations against brute force: every subsequence of two tokens is looked up in the table."""

import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks
from harness.draw import Draw
from tasks.subsequences.associations import FINAL, Associations


def _draw(*seeds, **rest):
    return Draw(torch.tensor(seeds), **rest)


@st.composite
def _tasks(draw, **fixed):
    symbols, decoys, sure = draw(st.integers(1, 5)), draw(st.integers(0, 4)), draw(st.floats(0.1, 1))
    fields = {
        "length": draw(st.integers(decoys + 4, 14)),
        "pairs": draw(st.integers(1, symbols**2)),
        "symbols": symbols,
        "fillers": draw(st.integers(1, 4)),
        "outputs": draw(st.integers(2, 6)),
        "decoys": decoys,
        "zipf": draw(st.floats(0, 2)),
        "sure": sure,
        "spread": sure * draw(st.sampled_from([0, 0.5, 0.9])),
        "table_seed": draw(st.integers(0, 2**40)),
    }
    return Associations(**fields | fixed)


@settings(max_examples=60, deadline=None)
@given(_tasks(sure=1.0, spread=0.0), st.integers(0, 2**40))
def test_each_string_has_one_pair_and_its_answer(task, seed):
    batch = task.sample(_draw(seed, seed + 1), 8)
    table = {(first, second): answer for first, second, answer in task.table(Draw.of_seed).tolist()}
    assert len(table) == task.pairs
    for string, target in zip(batch.inputs.flatten(0, 1).tolist(), batch.targets.flatten(0, 1).tolist(), strict=True):
        assert max(string) < task.vocabulary
        assert [place for place, token in enumerate(string) if token == FINAL] == [task.length - 1]
        assert sum(0 < token <= 2 * task.symbols for token in string) == 2 + task.decoys
        ordered = [
            (string[i], string[j], j - i)
            for i, j in itertools.combinations(range(task.length), 2)
            if 0 < string[i] <= task.symbols < string[j] <= 2 * task.symbols
        ]
        (first, second, distance), *more = ordered
        assert not more, "a first symbol stands before a second one once only"
        assert distance > 1
        assert target[-1] == table[first, second] < task.outputs
    assert batch.weights[..., -1].eq(1).all()
    assert batch.weights.sum() == 16


@settings(max_examples=30, deadline=None)
@given(_tasks(), st.integers(0, 2**40), st.integers(0, 1000))
def test_a_string_is_a_function_of_its_seed_and_row(task, seed, row):
    together = task.sample(_draw(seed, 7, step=3), row % 50 + 1)
    alone = task.sample(_draw(seed, step=3).rows(row % 50), 1)
    picked = task.sample(_draw(seed, step=3).pick(torch.tensor([[row % 50]])), 1)
    for each in (alone, picked):
        assert torch.equal(each.inputs[0, 0], together.inputs[0, row % 50])
        assert torch.equal(each.targets[0, 0], together.targets[0, row % 50])


@settings(max_examples=40, deadline=None)
@given(_tasks())
def test_the_table_is_drawn_without_replacement_by_its_seed_alone(task):
    rows = task.table(Draw.of_seed).tolist()
    assert len({(first, second) for first, second, _ in rows}) == task.pairs
    assert all(1 <= first <= task.symbols < second <= 2 * task.symbols for first, second, _ in rows)
    other = tasks.build(
        "associations", pairs=task.pairs, symbols=task.symbols, outputs=task.outputs, table_seed=task.table_seed
    )
    assert torch.equal(other.table(Draw.of_seed), task.table(Draw.of_seed))
    # a larger table begins with a smaller one of the same seed
    assert torch.equal(
        Associations(20, task.symbols**2, task.symbols, 4, task.outputs, table_seed=task.table_seed).table(Draw.of_seed)[
            : task.pairs
        ],
        task.table(Draw.of_seed),
    )


def test_combinations_and_answers_are_uniform_over_table_seeds():
    tables = [Associations(pairs=3, symbols=3, outputs=4, table_seed=seed).table(Draw.of_seed) for seed in range(450)]
    combinations = Counter((a, b) for table in tables for a, b, _ in table.tolist())
    answers = Counter(answer for table in tables for *_, answer in table.tolist())
    for counts, kinds in ((combinations, 9), (answers, 4)):
        assert len(counts) == kinds
        assert max(abs(count - 1350 / kinds) for count in counts.values()) < 5 * (1350 / kinds) ** 0.5
    assert len({tuple(table.flatten().tolist()) for table in tables}) > 400


@pytest.mark.parametrize(("length", "decoys"), [(5, 0), (7, 0), (6, 1), (8, 3)])
def test_every_admissible_placement_is_as_probable(length, decoys):
    """Places of the symbols and how many stand before the pair, against the list of them all."""
    task = Associations(length, 4, 2, 2, 2, decoys)
    wanted = {
        (places, split)
        for places in itertools.combinations(range(length - 1), decoys + 2)
        for split in range(decoys + 1)
        if places[split + 1] - places[split] > 1
    }
    count, found = 4000, Counter()
    for string in task.sample(_draw(5), count).inputs[0].tolist():
        places = tuple(place for place, token in enumerate(string) if 0 < token <= 4)
        found[places, sum(string[place] > 2 for place in places) - 1] += 1
    assert found.keys() == wanted
    mean = count / len(wanted)
    assert max(abs(each - mean) for each in found.values()) < 5 * mean**0.5


@pytest.mark.parametrize("task", [Associations(8, 6, 3, 3, 4, 1, 1.0, 0.7), Associations(6, 9, 3, 2, 2, 0, 0.0, 1.0)])
def test_frequencies_and_answers_are_the_exact_ones(task):
    count = 20_000
    batch, whole = task.sample(_draw(11), count), task.table(Draw.of_seed)
    pair_of = {(first, second): pair for pair, (first, second, _) in enumerate(whole.tolist())}
    seen = torch.zeros(task.pairs, task.outputs, dtype=torch.float64)
    for string, target in zip(batch.inputs[0].tolist(), batch.targets[0, :, -1].tolist(), strict=True):
        first = next(token for token in string if 0 < token <= task.symbols)
        second = next(token for token in reversed(string) if task.symbols < token <= 2 * task.symbols)
        seen[pair_of[first, second], target] += 1
    weights = torch.tensor([(n + 1) ** -task.zipf for n in range(task.pairs)], dtype=torch.float64)
    assert torch.allclose(task.frequencies(), weights / weights.sum(), atol=1e-12)
    law = task.law(Draw.of_seed)
    assert torch.allclose(law.sum(-1), torch.ones(task.pairs, dtype=torch.float64))
    for pair, (_, _, own) in enumerate(whole.tolist()):
        sure = task.sure - task.spread * (pair / (task.pairs - 1) if pair else 0)
        assert law[pair, own] == pytest.approx(sure)
        assert {round(float(p), 12) for answer, p in enumerate(law[pair]) if answer != own} == {
            round((1 - sure) / (task.outputs - 1), 12)
        }
    expected = count * task.frequencies()[:, None] * law
    assert ((seen - expected).abs() <= 5 * expected.clamp(min=1).sqrt() * (expected > 0)).all()


@settings(max_examples=30, deadline=None)
@given(_tasks(), st.data())
def test_strings_that_hold_a_given_pair(task, data):
    pairs = torch.tensor([[data.draw(st.integers(0, task.pairs - 1)) for _ in range(4)] for _ in range(2)])
    batch = task.holding(_draw(1, 2), pairs)
    for string, pair in zip(batch.inputs.flatten(0, 1).tolist(), pairs.flatten().tolist(), strict=True):
        first, second, _ = task.table(Draw.of_seed)[pair].tolist()
        assert first in string
        assert second in string[string.index(first) :]
    drawn = _draw(1, 2).categorical(task.frequencies(), (4,), 0)
    assert torch.equal(task.holding(_draw(1, 2), drawn).inputs, task.sample(_draw(1, 2), 4).inputs)


def test_wrong_is_any_other_answer():
    task, targets = Associations(outputs=3), torch.tensor([0, 2])
    logits = torch.tensor([[0.1, 0.2, 0.0], [0.0, 0.1, 3.0]])
    assert task.wrong(logits, targets)["read"].tolist() == [True, False]
    assert (task.vocabulary, task.outputs, task.scored_positions()) == (1 + 16 + 16 + 16, 3, 1)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"pairs": 257}, "task.pairs = 257 must be at most 256: task.symbols = 16"),
        ({"pairs": 0}, "task.pairs = 0 must be at least 1"),
        ({"symbols": 5000}, "task.symbols = 5000 must be at most 4096"),
        ({"fillers": 0}, "task.fillers = 0 must be at least 1"),
        ({"outputs": 1}, "task.outputs = 1 must be at least 2"),
        ({"decoys": -1}, "task.decoys = -1 must be at least 0"),
        ({"length": 3}, "task.length = 3 has no room .* write at least 4"),
        ({"length": 6, "decoys": 3}, "task.length = 6 has no room .* task.decoys = 3 .* write at least 7"),
        ({"sure": 0.0}, "task.sure = 0 must be a probability above 0"),
        ({"sure": 0.5, "spread": 0.5}, "task.spread = 0.5 must be at least 0 and below task.sure = 0.5"),
        ({"sure": 1.5}, "task.sure = 1.5 must be a probability above 0"),
        ({"zipf": -1.0}, "task.zipf = -1 must be a number of 0 or more"),
        ({"zipf": float("nan")}, "task.zipf = nan must be a number of 0 or more"),
        ({"zipf": 6.0}, "task.zipf = 6 makes the last of task.pairs = 64 so rare"),
        ({"table_seed": 2**63}, "must be below 2\\^63"),
        ({"table_seed": -1}, "task.table_seed = -1 must be at least 0"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks.build("associations", **fields)


def test_draws_never_change():
    """Frozen: tables, strings and answers are part of every committed result."""
    task = Associations(10, 5, 3, 2, 4, 2, 1.0, 0.5)
    assert task.table(Draw.of_seed).tolist() == [[3, 5, 0], [1, 5, 3], [2, 5, 0], [1, 6, 2], [2, 4, 2]]
    batch = task.sample(_draw(0), 4)
    assert batch.inputs[0, 2:].tolist() == [[3, 8, 5, 8, 8, 7, 1, 1, 8, 0], [5, 5, 8, 8, 7, 8, 3, 7, 5, 0]]
    assert batch.targets[0, :, -1].tolist() == [3, 1, 3, 0]
