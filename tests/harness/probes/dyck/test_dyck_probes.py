"""Probes of Dyck models: the balance violation written out, stacks by hand, variation, and comparisons of replicates in a store."""

import itertools
from dataclasses import replace

import pytest
import torch

import models
import tasks
from harness.draw import Draw
from harness.probes import run as probes
from harness.probes.dyck.balance import balance, violations
from harness.probes.dyck.map import attention_map
from harness.probes.dyck.stack import stack_hits
from harness.probes.dyck.variation import attention, fixed_string, variation
from harness.study.config import Condition
from harness.study.training_options import Train
from harness.training.train import train
from results.rows.probe_values import by_key, by_pair
from results.store.merge import compact
from results.store.tables import commit, open_store, read
from tests.harness.packs import pack
from tests.harness.probes.fixed_attention import Fixed
from tests.rounding import rounded


def _model(seed=0, depth=3, types=2, **fields):
    draw = Draw(torch.tensor([seed]), "init")
    model = models.configure("minimal_first_layer", depth=depth, width=6, **fields).make(draw, 2 * types + 2, 12, 2 * types + 1)
    with torch.no_grad():
        model.query.weight.mul_(5)
    return model.double()


def _written_out(model, types, depth):
    """β of every query and key by equation 2.48, from the encoding of each token and the weights of the layer."""
    w = {name: value[0].detach() for name, value in model.named_parameters()}
    tokens = {}  # (token, depth after it) → its vector, from a string that holds it
    for opener, level in itertools.product(range(types), range(1, depth + 1)):
        string = [2 * types + 1] + [0] * (level - 1) + [2 * opener, 2 * opener + 1]
        slots = model.slots(torch.tensor([[string]]))[0, 0]
        tokens[2 * opener, level] = model.encodings[slots[-2]]
        tokens[2 * opener + 1, level - 1] = model.encodings[slots[-1]]
        tokens["start"] = model.encodings[slots[0]]

    def u(query, key):
        q = tokens[query] @ w["query.weight"] + w["query.bias"]
        k, v = tokens[key] @ w["key.weight"], tokens[key] @ w["value.weight"] + w["value.bias"]
        return torch.exp(k @ q / 6**0.5) * (v - v.mean())

    found = torch.zeros(types, depth - 1, types, depth).double()
    for j, delta in itertools.product(range(types), range(1, depth)):
        c = 2 * j + 1, delta
        norms = {}
        for t in itertools.product(range(types), repeat=delta):
            total = u(c, "start") + u(c, (2 * j, delta + 1)) + u(c, c)
            for r, kind in enumerate(t, 1):
                total = total + u(c, (2 * kind, r))
            norms[t] = float(total.norm())
        best = min(norms, key=norms.get)
        least = min(norm for t, norm in norms.items() if t[-1] != best[-1])
        for i, d in itertools.product(range(types), range(1, depth + 1)):
            found[j, delta - 1, i, d - 1] = float((u(c, (2 * i, d)) + u(c, (2 * i + 1, d - 1))).norm()) / least
    return found


@pytest.mark.parametrize(("types", "depth", "encoding"), [(2, 3, "pair"), (3, 2, "parts"), (2, 3, "angle")])
def test_the_violation_is_the_equations(types, depth, encoding):
    model = _model(types=types, depth=depth, encoding=encoding)
    with torch.no_grad():
        wanted = _written_out(model, types, depth)
        found = violations(model.score_table()[0], model.values()[0], types, depth)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=0)
    rows = {row["item"]: row["value"] for row in balance(model, tasks.build("dyck", types=types, depth=depth), 1, None)}
    assert rows == pytest.approx({"beta_mean": float(wanted.mean()), "beta_max": float(wanted.max())}, rel=1e-9)


def test_a_model_in_balance_has_no_violation_and_the_same_answer_behind_closed_brackets():
    """Uniform attention whose values of an opening bracket and of the one that closes it cancel (corollary 2.2.1)."""
    task = tasks.build("dyck", depth=3, length=10)
    draw = Draw(torch.tensor([0]), "init")
    model = models.configure("minimal_first_layer", depth=3, width=6, attention="uniform").make(draw, 6, 10, 5).double()
    with torch.no_grad():
        model.value.bias.zero_()
        model.value.weight.mul_(1e4)  # beside which the norm's 1e-5 is nothing
        model.value.weight[0, 6:12] = -model.value.weight[0, :6]
        assert violations(model.score_table()[0], model.values()[0], 2, 3).max() < 1e-12
        inputs = task.sample(Draw(torch.tensor([1])), 20).inputs
        view = task.view(Draw(torch.tensor([1]), "view"), inputs)
        before, behind = model(inputs), model(view.inputs, [view.places])
        compared = view.weights[0] > 0
        torch.testing.assert_close(before[0, compared], behind[0, compared], rtol=0, atol=1e-8)
        model.value.weight[0, 6:12] *= 0.5
        assert violations(model.score_table()[0], model.values()[0], 2, 3).max() > 0.1


def test_a_stack_looks_at_the_last_open_bracket():
    task = tasks.build("dyck", depth=3, length=10)

    def looks(inputs):
        weights = torch.zeros(len(inputs), 2, inputs.shape[1], inputs.shape[1])
        for b, string in enumerate(inputs.tolist()):
            stack = []
            for place, token in enumerate(string):
                if token < 4 and token % 2 == 0:
                    stack.append(place)
                elif token < 4:
                    stack.pop()
                weights[b, 0, place, stack[-1] if stack else 0] = 0.75
                weights[b, 0, place, 0] += 0.25
                weights[b, 1, place, 0] = 1.0
        return weights

    rows = {(row["head"], row["item"]): row["value"] for row in stack_hits(Fixed(1, looks), task, 30, None)}
    copied = stack_hits(Fixed(1, looks), tasks.build("dyck_copy", depth=3, length=10, complete=False), 2, None)
    assert {row["value"] for row in copied if row["head"] == 0 and row["item"] == "hit"} == {1.0}
    assert rows == rounded({(0, "hit"): 1.0, (0, "mass"): 0.75, (1, "hit"): 0.0, (1, "mass"): 0.0})


def test_variation_is_the_squared_distance_on_every_string():
    task = tasks.build("dyck")
    assert fixed_string(task).tolist() == [[[5, *[0] * 4, *[1] * 4, *[2] * 4, *[3] * 4]]]

    def first(inputs):
        return torch.eye(inputs.shape[1]).expand(len(inputs), 1, -1, -1)

    def second(inputs):
        weights = torch.zeros(len(inputs), 1, inputs.shape[1], inputs.shape[1])
        weights[..., 0] = 1.0
        return weights

    one, other = (attention(Fixed(1, look), task, 3, None) for look in (first, second))
    rows = {(row["layer"], row["head"], row["item"]): row["value"] for row in variation(one, other)}
    wanted = {"fixed": 2 * 16.0} | {f"string {number}": 2 * 18.0 for number in range(3)}
    assert rows == {(0, 0, name): value for name, value in wanted.items()}
    assert all(row["value"] == 0 for row in variation(one, one))


def _train(store, seeds, **fields):
    """Replicates of a condition, each in a pack of its own, with their weights."""
    task, model = tasks.build("dyck", depth=2, length=6), models.configure("minimal_first_layer", depth=2, width=4, **fields)
    condition = Condition("c", task, model, Train(steps=1, batch=2, warmup=0))
    for seed in seeds:
        one = replace(pack(condition, [(seed, 0)], sets=()), keep=True)
        commit(store, one.id, train(one, store, torch.device("cpu")))


def _probed(store, probe, strings=2):
    said = []
    probes.run([store], probe, strings, None, said.append)
    return said, [row for row in read(store, "probes").to_pylist() if row["probe"] == probe]


@pytest.mark.parametrize("compacts", [compact, lambda store: None])
def test_replicates_of_a_condition_are_compared_once_and_late_ones_with_all_before_them(tmp_path, compacts):
    store = open_store(str(tmp_path), "brackets")
    _train(store, [1])
    said, rows = _probed(store, "variation")
    assert said == ["brackets: variation compares replicates of one condition, and no condition has two with kept weights"]
    assert rows == []
    _train(store, [2])
    _train(store, [1, 2], attention="uniform")
    said, rows = _probed(store, "variation")
    assert said == ["brackets: variation of 2 replicates added, 2 had it"]  # the first of each condition has none before it
    assert len(rows) == 2 * 3
    compacts(store)
    _train(store, [0, 3])
    said, rows = _probed(store, "variation")
    assert said == ["brackets: variation of 3 replicates added, 3 had it"]  # seed 2 again, which now has two before it
    about = {row["key"]: ("uniform" in row["config"], row["init_seed"]) for row in read(store, "replicates").to_pylist()}
    pairs = [(about[row["key"]], about[row["other_key"]]) for row in rows if row["item"] == "fixed"]
    wanted = [((False, late), (False, early)) for early, late in itertools.combinations(range(4), 2)] + [((True, 2), (True, 1))]
    assert sorted(pairs) == sorted(wanted)
    assert all((row["value"] == 0) == about[row["key"]][0] for row in rows)
    compacts(store)
    again = _probed(store, "variation")
    assert again[0] == ["brackets: variation of 0 replicates added, 6 had it"]
    assert sorted(map(repr, again[1])) == sorted(map(repr, rows))
    # neither a claim nor a report takes a comparison for a measurement of one replicate
    assert by_key(read(store, "probes")) == {}
    assert len(by_pair(read(store, "probes"), "variation")) == 7


def test_violations_and_stacks_reach_the_store(tmp_path):
    store = open_store(str(tmp_path), "brackets")
    _train(store, [1])
    assert {row["item"] for row in _probed(store, "balance")[1]} == {"beta_mean", "beta_max"}
    assert {row["item"] for row in _probed(store, "stack")[1]} == {"hit", "mass"}


def test_a_map_has_every_weight_that_a_causal_model_may_give():
    task = tasks.build("dyck", depth=3, length=10)
    model = _model()
    rows = attention_map(model, task, 1, None)
    assert attention_map(model, tasks.build("dyck_copy", depth=3, length=10), 1, None) == rows
    seen = []
    with torch.no_grad():
        model(fixed_string(task), attend=lambda layer, weights: seen.append(weights[0, 0, 0]))
    size = 2 * 2 * 3 + 1
    assert {tuple(map(int, row["item"].split(","))): row["value"] for row in rows} == {
        (query, key): float(seen[0][query, key]) for query in range(size) for key in range(query + 1)
    }
