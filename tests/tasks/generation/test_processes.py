"""The laws of finite processes against enumeration and linear algebra, to 1e-9."""

import itertools

import numpy as np
import pytest
import torch

from harness.draw import Draw
from tasks.generation import processes
from tasks.generation.processes import Process

DRAW = Draw(torch.tensor([3, 8]), "experiment")
EXACT = 1e-9


@pytest.fixture(scope="module", params=[(2, 4), (3, 3)], ids=["binary", "ternary"])
def tree(request):
    alphabet, horizon = request.param
    return processes.tree(DRAW, horizon, alphabet)


@pytest.fixture(scope="module")
def value(tree):
    """Wrong by up to a factor of e inside, and exact at leaves."""
    return processes.mistaken(processes.values(tree), DRAW, 1.0, 0.0)


class Nodes:
    """The prefixes of a tree as a graph, from the definition of the walk (algorithm 2), without the states of a process."""

    def __init__(self, process: Process, value, slot: int):
        tokens, horizon = range(process.tokens), process.horizon
        self.names = [word for h in range(horizon + 1) for word in itertools.product(tokens, repeat=h)]
        self.leaf = np.array([len(word) == horizon for word in self.names])
        place = {word: index for index, word in enumerate(self.names)}
        self.weight = np.zeros((len(self.names), len(self.names)))  # of going from one to the other
        self.base = np.ones(len(self.names))
        for word in self.names:
            for token in tokens if len(word) < horizon else ():
                child = (*word, token)
                law = float(process.law[slot, len(word), self.state(process, word), token])
                judged = float(value[slot, len(child), self.state(process, child)])
                self.base[place[child]] = self.base[place[word]] * law
                self.weight[place[word], place[child]] = law * judged
                self.weight[place[child], place[word]] = judged
        self.chain = 0.5 * np.eye(len(self.names)) + 0.5 * self.weight / self.weight.sum(1, keepdims=True)

    @staticmethod
    def state(process: Process, word) -> int:
        state = 0
        for token in word:
            state = int(process.successor[state, token])
        return state


@pytest.fixture(scope="module")
def nodes(tree, value):
    return [Nodes(tree, value, slot) for slot in range(2)]


def test_values_and_the_target_are_those_of_enumeration(tree):
    base = processes.leaf_law(tree, tree.law)
    reward = tree.reward[:, -(tree.tokens**tree.horizon) :]
    expected = base * reward
    torch.testing.assert_close(processes.values(tree)[:, 0, 0], expected.sum(1), rtol=EXACT, atol=0)
    law = processes.leaf_law(tree, processes.target(tree))
    torch.testing.assert_close(law, expected / expected.sum(1, keepdim=True), rtol=EXACT, atol=0)


def test_the_walk_is_reversible_with_the_stationary_law_that_is_stated(tree, value, nodes):
    mass = processes.stationary(tree, value)
    for slot, graph in enumerate(nodes):
        own = np.array([float(mass[slot, len(word), Nodes.state(tree, word)]) for word in graph.names])  # a state is a prefix
        flow = own[:, None] * graph.chain
        np.testing.assert_allclose(flow, flow.T, atol=EXACT)
        np.testing.assert_allclose(own @ graph.chain, own, rtol=EXACT)


def test_the_leaves_have_the_target_for_any_value_that_is_exact_there(tree, value):
    leaves = processes.stationary(tree, value)[:, -1, -(tree.tokens**tree.horizon) :]
    found = leaves / leaves.sum(1, keepdim=True)
    torch.testing.assert_close(found, processes.leaf_law(tree, processes.target(tree)), rtol=EXACT, atol=0)
    wrong = processes.stationary(tree, processes.mistaken(processes.values(tree), DRAW, 1.0, 1.0))[:, -1, -found.shape[1] :]
    assert processes.distance(wrong / wrong.sum(1, keepdim=True), found).min() > 0.01


def test_with_the_exact_value_leaves_have_1_of_2h_and_are_reached_after_2h_squared_steps(tree):
    exact, horizon = processes.values(tree), tree.horizon
    mass = processes.stationary(tree, exact)[:, -1].sum(1)
    torch.testing.assert_close(mass, torch.full_like(mass, 1 / (2 * horizon)), rtol=EXACT, atol=0)
    steps = processes.first_leaf_steps(tree, exact)
    torch.testing.assert_close(steps, torch.full_like(steps, 2.0 * horizon**2), rtol=EXACT, atol=0)


def test_the_first_leaf_is_that_of_the_absorbed_walk(tree, value, nodes):
    law = processes.leaf_law(tree, processes.guided(tree, processes.first_leaf(tree, value)))
    steps = processes.first_leaf_steps(tree, value)
    for slot, graph in enumerate(nodes):
        inside = ~graph.leaf
        stays = np.eye(inside.sum()) - graph.chain[np.ix_(inside, inside)]
        absorbed = np.linalg.solve(stays, graph.chain[np.ix_(inside, graph.leaf)])[0]
        np.testing.assert_allclose(law[slot].numpy(), absorbed, atol=EXACT)
        assert float(steps[slot]) == pytest.approx(np.linalg.solve(stays, np.ones(inside.sum()))[0], rel=EXACT)


def test_the_divergence_is_that_of_the_laws_of_whole_strings(tree, value):
    law = processes.guided(tree, value)
    wanted, other = (processes.leaf_law(tree, each) for each in (processes.target(tree), law))
    torch.testing.assert_close(processes.divergence(tree, law), (wanted * (wanted / other).log()).sum(1), rtol=0, atol=EXACT)
    assert processes.divergence(tree, processes.target(tree)).abs().max() < EXACT


def tokenwise_queries(process: Process, value):
    """Mean number of tokens that tokenwise rejection draws for one string, [R]; the verifier is asked about each of them."""
    allowed = processes.accepted(value)
    law = processes.guided(process, allowed)
    chance = torch.stack([(process.law[:, h] * process.onward(allowed, h)).sum(-1) for h in range(process.horizon)], dim=1)
    seen = processes.visits(process, law)[:, :-1]
    return torch.where(seen > 0, seen / chance, 0.0).sum((1, 2))


def rejection_queries(process: Process):
    """Mean number of tokens that rejection of whole strings draws until one has a reward, [R]."""
    chance = (processes.visits(process, process.law)[:, -1] * processes.accepted(process.reward)).sum(-1)
    return process.horizon / chance


def test_rejection_of_a_rare_string_costs_h_2_to_the_h_and_tokenwise_rejection_2h():
    """Proposition 3.1.1."""
    for horizon in (1, 5, 12):
        process = processes.only_zeros(horizon, 2)
        assert float(rejection_queries(process)) == pytest.approx(horizon * 2**horizon, rel=EXACT)
        assert float(tokenwise_queries(process, processes.values(process))) == pytest.approx(2 * horizon, rel=EXACT)


def test_a_verifier_is_no_help_where_the_hidden_prefix_is_unknown():
    """Theorem 3.1.1: every prefix can be completed, so that it never says no before the end, which needs H·2^(H - 1) tokens."""
    process = processes.hidden_parity(6)
    allowed = processes.extendable(process)
    seen = processes.visits(process, process.law)
    assert (allowed.expand_as(seen)[:, :-1][seen[:, :-1] > 0] == 1).all()
    assert float(rejection_queries(process)) == pytest.approx(6 * 2**5, rel=EXACT)


def test_tokenwise_rejection_doubles_the_string_whose_only_zero_is_the_last():
    """Proposition 3.1.2."""
    process = processes.some_zero(5)
    law = processes.leaf_law(process, processes.guided(process, processes.extendable(process)))[0]
    expected = torch.full((32,), 2.0**-5, dtype=torch.float64)
    expected[-2], expected[-1] = 2.0**-4, 0.0
    torch.testing.assert_close(law, expected, rtol=EXACT, atol=0)
    uniform = processes.leaf_law(process, processes.target(process))[0]
    torch.testing.assert_close(uniform[:-1], torch.full((31,), 1 / 31, dtype=torch.float64), rtol=EXACT, atol=0)


def test_the_law_of_bracket_strings_is_that_of_the_definition():
    horizon, depth, opens, first, wrong = 6, 2, 0.4, 0.7, 0.1
    process = processes.brackets(horizon, depth, opens, first, wrong)
    law, total = processes.leaf_law(process, process.law)[0], 0.0
    rewarded = processes.leaf_law(process, processes.target(process))[0]
    for number, word in enumerate(itertools.product(range(4), repeat=horizon)):
        chance, stack = 1.0, []
        for place, token in enumerate(word):
            kind, closing = token // 2, token % 2
            opening = 1.0 if not stack else 0.0 if len(stack) in (depth, horizon - place) else opens
            if not closing:
                chance *= opening * (first if kind == 0 else 1 - first)
                stack.append(kind)
            else:
                chance *= (1 - opening) * (1 - wrong if stack and stack[-1] == kind else wrong)
                if not stack or stack.pop() != kind:
                    stack = None
            if stack is None or not chance:
                break
        if stack == [] and chance:
            assert float(law[number]) == pytest.approx(chance, rel=EXACT)
            total += chance
        else:
            assert float(rewarded[number]) == 0
    assert float(processes.values(process)[0, 0, 0]) == pytest.approx(total, rel=EXACT)
    assert float(law.sum()) == pytest.approx(1, rel=EXACT)
