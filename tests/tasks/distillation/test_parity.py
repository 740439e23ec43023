"""Labels of sparse and hierarchical parity against brute force: every string, and the figure's tree walked node by node."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tasks
from harness.draw import Draw
from tasks.bits import bits
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity


def _draw(*seeds, **rest):
    return Draw(torch.tensor(seeds), **rest)


def _signs(row):
    return [1 - 2 * bit for bit in row]


@pytest.mark.parametrize(
    "task", [SparseParity(), SparseParity(40, 3), SparseParity(33, 4, (0, 7, 30, 32)), SparseParity(5, 5), SparseParity(1, 1)]
)
def test_the_class_is_the_sign_of_the_product(task):
    batch = task.sample(_draw(3, 9), 200)
    for string, target in zip(batch.inputs.flatten(0, 1).tolist(), batch.targets.flatten(0, 1).tolist(), strict=True):
        signs = _signs(string)
        assert target[-1] == (0 if math.prod(signs[i] for i in task.coordinates) > 0 else 1)
    assert batch.weights[..., -1].eq(1).all()
    assert batch.weights.sum() == 400


def _walk(task, signs):
    """The figure's tree in its own words: left on -1, right on +1, leaves numbered from the left."""
    leaves, node = list(range(2**task.depth)), 1
    while len(leaves) > 1:
        product = math.prod(signs[i] for i in range((node - 1) * task.degree, node * task.degree))
        half = len(leaves) // 2
        leaves = leaves[:half] if product == -1 else leaves[half:]
        node = 2 * node if product == -1 else 2 * node + 1
    return leaves[0]


@pytest.mark.parametrize("task", [HierarchicalParity(), HierarchicalParity(20, 2, 3), HierarchicalParity(15, 4, 1)])
def test_the_class_is_the_leaf_that_the_tree_leads_to(task):
    batch = task.sample(_draw(1, 2), 300)
    for string, target in zip(batch.inputs.flatten(0, 1).tolist(), batch.targets.flatten(0, 1).tolist(), strict=True):
        assert target[-1] == _walk(task, _signs(string))
    assert len(batch.targets[..., -1].unique()) == task.outputs


def test_a_path_holds_the_groups_that_decide_its_class():
    """Figure 4.20: the first class depends on x1-5, x6-10 and x16-20, nodes 1, 2 and 4."""
    task = HierarchicalParity()
    assert task.path(0) == (1, 2, 4)
    assert [(task.group(node)[0] + 1, task.group(node)[-1] + 1) for node in task.path(0)] == [(1, 5), (6, 10), (16, 20)]
    for string in task.sample(_draw(5), 50).inputs[0].tolist():
        signs, label = _signs(string), _walk(task, _signs(string))
        for place, node in enumerate(task.path(label)):
            went_right = task.path(label)[place + 1] % 2 if place + 1 < task.depth else label % 2
            assert math.prod(signs[i] for i in task.group(node)) == (1 if went_right else -1)


@pytest.mark.parametrize("length", [1, 5, 32, 33, 100])
def test_bits_are_fair_independent_and_a_function_of_their_row(length):
    found = bits(_draw(0, 1), 4096, length)
    assert found.shape == (2, 4096, length)
    assert found.unique().tolist() == [0, 1]
    # 6 standard deviations of the mean of 8,192 coins, and of the product of two of them
    signs = 1.0 - 2 * found.flatten(0, 1)
    assert (signs.T @ signs / 8192 - torch.eye(length)).abs().max() < 6 / 8192**0.5
    assert signs.mean(0).abs().max() < 6 / 8192**0.5
    assert torch.equal(bits(_draw(1).rows(100), 3, length)[0], found[1, 100:103])
    assert torch.equal(bits(_draw(1).pick(torch.tensor([[7, 7, 50]])), 3, length)[0], found[1, [7, 7, 50]])


@given(st.integers(1, 9), st.data())
def test_all_strings_of_a_small_parity(length, data):
    support = tuple(sorted(data.draw(st.sets(st.integers(0, length - 1), min_size=1))))
    task = SparseParity(length, len(support), support)

    class Every:
        """A draw that hands out all strings in order, as the words of 32 bits that hold them."""

        seeds = torch.tensor([0])

        def words(self, shape, site):
            return torch.arange(shape[0]).view(1, *shape)

    batch = task.sample(Every(), 2**length)
    strings = list(itertools.product((0, 1), repeat=length))
    assert sorted(map(tuple, batch.inputs[0].tolist())) == strings
    ones = batch.inputs[0, :, list(support)].sum(-1)
    assert torch.equal(batch.targets[0, :, -1], ones % 2)


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("sparse_parity", {"degree": 0}, "task.degree = 0 must be from 1 to task.length = 100"),
        ("sparse_parity", {"length": 4}, "task.degree = 6 must be from 1 to task.length = 4"),
        ("sparse_parity", {"support": [1, 2]}, "task.support has 2 coordinates and task.degree = 6"),
        ("sparse_parity", {"support": [1]}, "task.support has 1 coordinate and task.degree = 6"),
        ("sparse_parity", {"degree": 2, "support": [2, 1]}, "different coordinates of 0 … 99 in ascending order"),
        ("sparse_parity", {"degree": 2, "support": [2, 2]}, "different coordinates of 0 … 99 in ascending order"),
        ("sparse_parity", {"degree": 2, "support": [5, 100]}, "different coordinates of 0 … 99 in ascending order"),
        ("hierarchical_parity", {"length": 34}, "write at least 35"),
        ("hierarchical_parity", {"depth": 0}, "task.depth = 0 must be at least 1"),
        ("hierarchical_parity", {"depth": 40}, "task.depth = 40 must be at most 16"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(name, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks.build(name, **fields)


@pytest.mark.parametrize("call", [lambda task: task.group(8), lambda task: task.group(0), lambda task: task.path(8)])
def test_nodes_and_classes_that_do_not_exist_are_refused(call):
    with pytest.raises(ValueError, match="there is no"):
        call(HierarchicalParity())


def test_draws_never_change():
    """Frozen: the order of the bits is part of every committed result."""
    strings = SparseParity(12, 3).sample(_draw(0, step=5), 2).inputs[0].tolist()
    assert strings == [[0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1]]
