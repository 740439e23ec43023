"""The study of depth against the length of a subsequence: its labels are what it says, and its points are those of the card."""

import itertools

import torch

from harness.draw import Draw
from harness.study.load import load
from launch.families import find_study

STUDY = find_study("subsequences", "depth")


def piece_of(task):
    """The token that leads on from each state but the last."""
    return tuple(
        next(token for token, after in enumerate(row) if after > state) for state, row in enumerate(task.automaton.table[:-1])
    )


def test_every_label_says_whether_the_piece_has_been_read():
    tasks = {each.name.split(",")[0]: each.task for each in load(STUDY).conditions}
    assert list(tasks) == [f"length_{length}" for length in (2, 3, 4, 8, 16)]
    for name, task in tasks.items():
        piece, batch = piece_of(task), task.sample(Draw(torch.tensor([0])), 200)
        assert len(piece) == int(name.removeprefix("length_"))
        assert task.vocabulary == max(len(set(piece)), round(32 / len(piece)))
        for tokens, labels in zip(batch.inputs[0].tolist(), batch.targets[0].tolist(), strict=True):
            rest = iter(enumerate(tokens))
            places = [next((t for t, each in rest if each == token), len(tokens)) for token in piece]
            assert labels == [0] * places[-1] + [1] * (len(tokens) - places[-1])
        assert 0.35 < batch.targets.double().mean() < 0.65


def test_the_points_are_those_of_the_card():
    conditions = load(STUDY).conditions
    assert all(len(each.seeds) == 20 for each in conditions)
    lengths, layers = (2, 3, 4, 8, 16), (1, 2, 3, 4, 5)
    found = {(len(piece_of(each.task)), each.model.layers) for each in conditions}
    assert found == set(itertools.product(lengths, layers))


def test_the_laptop_scale_has_the_depths_around_the_logarithm_of_each_length():
    conditions, smaller = load(STUDY).conditions, load(STUDY, ["scale=laptop"]).conditions
    assert {len(each.seeds) for each in smaller} == {10}
    depths = {2: {1, 2}, 4: {1, 2, 3}, 8: {1, 2, 3, 4}}  # log2 n, what S1 and S1-below compare it with, and those between
    assert {(len(piece_of(each.task)), each.model.layers) for each in smaller} == {(n, d) for n in depths for d in depths[n]}
    assert {each.task for each in smaller} <= {each.task for each in conditions}
    assert {each.model for each in smaller} <= {each.model for each in conditions}
