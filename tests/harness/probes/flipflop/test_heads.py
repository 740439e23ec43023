"""The probe of heads: against attention written out in loops, against constructions whose answers are known, and by step in a store."""

import math

import pyarrow.compute as pc
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.draw import Draw
from harness.probes.flipflop.attention import PATTERN, pattern
from harness.probes.flipflop.heads import heads, look
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.rows.probe_values import by_key
from results.store.tables import committed, open_store, read
from tasks.flipflop.simulation import Simulation
from tests.harness.probes.flipflop.decoders import build_decoder, heads_in_loops, values_by_place
from tests.rounding import rounded_single

STUDY = """
name: sim
question: How do heads change?
task: {name: flipflop_simulation, length: 10}
model: {name: transformer, layers: 2, width: 8, heads: 2, bias: true}
train: {steps: 6, batch: 2, warmup: 0}
evaluate: {sets: {own: {sequences: 4}}}
conditions: {none: {}, entropy: {train: {sharpen: {kind: entropy, weight: 0.01, schedule: constant}}}}
replicates: 1
executor: local
wandb: off
keep: steps(0, 2, 4)
pack: {size: 2}
"""


@given(seed=st.integers(0, 10**6), scale=st.floats(0.5, 6))
@settings(max_examples=6, deadline=None)
@torch.no_grad()
def test_rows_are_those_of_attention_in_loops(seed, scale):
    task = Simulation(length=9, p_ignore=0.6)
    model = build_decoder(task, seed, layers=2, heads=2, bias=True).double()
    for block in model.blocks:
        block.query.weight.mul_(scale)
        block.norm1.gain.add_(0.3 * torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))
    found = values_by_place(heads(model, task, 5))
    last = [0, 0, 2, 2, 2, 5, 6, 6]  # the writes of s1 ⊥ s0 ⊥ ⊥ s0 s1 ⊥, by eye
    for layer, members in enumerate(heads_in_loops(model, torch.tensor(PATTERN))):
        for head, (weights, norms) in enumerate(members):
            read = weights * norms
            for i, write in enumerate(last):
                at = {name: found[layer, head, f"i={i} {name}"] for name in ("key", "weight", "norm", "write", "norm_key")}
                assert at["weight"] == rounded_single(float(weights[i].max()))
                key = int(at["key"])
                assert float(weights[i, key]) == rounded_single(float(weights[i].max()))
                assert at["write"] == (key == write)
                assert at["norm"] == rounded_single(float(read[i, key]))
                assert float(read[i, int(at["norm_key"])]) == rounded_single(float(read[i].max()))
                assert found[layer, head, f"i={i} weight_write"] == rounded_single(float(weights[i, write]))
                assert found[layer, head, f"i={i} norm_write"] == rounded_single(float(read[i, write]))
            away = sum((float(weights[i, j]) - float(j == last[i])) ** 2 for i in range(8) for j in range(8))
            assert found[layer, head, "ideal"] == rounded_single(math.sqrt(away))
    strings = task.sample(Draw(torch.tensor([0]), "evaluate").rows(0), 5).inputs[0]
    for layer in (0, 1):
        apart = []
        for string in strings:
            (one, _), (other, _) = heads_in_loops(model, string)[layer]
            apart.append(math.sqrt(sum(float(one[i, j] - other[i, j]) ** 2 for i in range(9) for j in range(9))))
        assert found[layer, 0, "distance 1"] == rounded_single(sum(apart) / 5)


@pytest.mark.parametrize("norm", ["pre", "none", "post", "branch"])
@torch.no_grad()
def test_weighted_values_sum_to_what_the_output_map_is_given(norm):
    """Where all but one weight vanish, the norm of a weighted value is that of the head's whole sum."""
    task = Simulation(length=6)
    model = build_decoder(task, 4, heads=2, norm=norm, bias=True).double()
    inputs = []
    hook = model.blocks[0].out.register_forward_pre_hook(lambda module, given: inputs.append(given[0]))
    seen = look(model, torch.tensor([[1, 0, 0, 2, 0, 0]]))
    hook.remove()
    first = inputs[0].view(6, 2, 4)[0].norm(dim=-1)  # the first row sees itself alone
    torch.testing.assert_close(seen.norms[0][0, :, 0], first)
    torch.testing.assert_close(seen.weights[0][0, :, 0, 0], torch.ones(2, dtype=torch.float64))


def by_hand(noop=1.0, write=0.0, value=1.0):
    """One head whose scores depend on the key alone, `noop` of ⊥ and `write` of a write, and whose value of a write has norm `value`.

    The answer is the sum of the writes' values: that of the state that was written more often.
    """
    task = Simulation(length=12, p_ignore=0.5)
    model = build_decoder(task, width=6, norm="none", positions="none", feed_forward=0, head_dim=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.tokens[0, 0, 0] = model.tokens[0, 1, 1] = model.tokens[0, 2, 2] = 1
        model.tokens[0, :, 3] = 1
        block = model.blocks[0]
        block.query.weight[0, 3, 0] = math.sqrt(2)
        block.key.weight[0, 0, 0], block.key.weight[0, 1:3, 0] = noop, write
        block.value.weight[0, 1, 1], block.value.weight[0, 2, 1] = -value, value
        block.value.weight[0, 0, 0] = 0.01  # ⊥ brings a little, at right angles
        block.out.weight[0, 1, 4] = 1
        model.head.weight[0, 4, 0], model.head.weight[0, 4, 1] = -1, 1
    return model, task


def test_a_largest_weight_on_a_noop_may_bring_less_than_the_write():
    """Weights e : 1, norms 0.01 : 1: the weight is on ⊥ wherever there is one, the norm on a write always (figure 3.35)."""
    model, task = by_hand()
    found = values_by_place(heads(model, task, 40))
    assert found[0, 0, "weight_write"] == found[0, 0, "weight_state"] == 0  # a row of ⊥ has itself
    batch = task.sample(Draw(torch.tensor([0]), "evaluate").rows(0), 40)
    rows = right = elsewhere_norm = norm_write = 0
    for string in batch.inputs[0].tolist():
        for i, token in enumerate(string):
            if token == 0:
                seen = [each for each in string[: i + 1] if each]
                answer = 1 if sum(1 if each == 2 else -1 for each in seen) > 0 else 0  # equal logits answer 0
                rows += 1
                first = string[0] == seen[-1]  # all writes are equal: the first key of them has the largest norm
                right += answer == seen[-1] - 1
                elsewhere_norm += answer == seen[-1] - 1 and first
                norm_write += len(seen) == 1 or (first and max(j for j in range(i) if string[j]) == 0)
    assert found[None, None, "rows"] == rows
    assert found[None, None, "wrong"] == rounded_single(1 - right / rows)
    assert found[0, 0, "elsewhere"] == rounded_single(right / rows)
    assert found[0, 0, "elsewhere_norm"] == rounded_single(elsewhere_norm / rows)
    assert found[0, 0, "norm_write"] == rounded_single(norm_write / rows)
    assert 0 < elsewhere_norm < right < rows
    assert found[0, 0, "i=1 key"] == 1
    assert found[0, 0, "i=1 write"] == 0
    assert found[0, 0, "i=1 norm_key"] == 0
    assert found[0, 0, "i=1 weight"] == rounded_single(math.e / (1 + math.e))
    assert found[0, 0, "i=1 norm"] == rounded_single(0.01 * math.e / (1 + math.e))
    assert found[0, 0, "i=1 norm_write"] == rounded_single(1 / (1 + math.e))


def test_norms_of_weights_are_of_the_named_maps():
    model, task = by_hand(noop=3.0, write=4.0)
    found = values_by_place(heads(model, task, 1))
    assert found[0, None, "norm query"] == rounded_single(math.sqrt(2))
    assert found[0, None, "norm key"] == rounded_single(math.sqrt(9 + 16 + 16))
    assert found[0, None, "norm value"] == rounded_single(math.sqrt(2 + 0.01**2))
    assert found[0, None, "norm out"] == 1
    assert found[None, None, "norm"] == pytest.approx(math.sqrt(2 + 41 + 2.0001 + 1 + 6 + 2), rel=1e-6)


def test_strings_of_writes_alone_have_no_rows_and_the_ends_of_weight_are_exact():
    model, task = by_hand()
    found = values_by_place(heads(model, Simulation(length=task.length, p_ignore=0.0), 2))
    assert found[None, None, "rows"] == 0
    assert (None, None, "wrong") not in found
    assert (0, 0, "weight_write") not in found
    assert found[0, 0, "ideal"] > 0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads")
    (folder / "sim.yaml").write_text(STUDY)
    assert run_study(load(str(folder / "sim.yaml"), [f"store={folder / 'runs'}", "device=cpu"]), say=lambda line: None) == 0
    return open_store(folder / "runs", "sim")


def test_every_kept_step_has_rows_once_and_is_drawn(store, tmp_path, capsys):
    main(["probe", store.root, "--probe", "heads", "--strings", "3", "--figures", str(tmp_path)])
    drawn = {path.name for path in (tmp_path / "sim").iterdir()}
    keys = committed(store)["key"].to_pylist()
    names = ["distances-0", *(f"heads-{key[:12]}" for key in keys)]
    assert drawn == {name + suffix for name in names for suffix in (".svg", ".png")}
    assert "sim: heads of 2 replicates added, 0 had it" in capsys.readouterr().out
    rows = read(store, "probes", filter=pc.field("probe") == "heads")
    steps = {(row["key"], row["step"]) for row in rows.select(["key", "step"]).to_pylist()}
    assert steps == {(key, step) for key in keys for step in (0, 2, 4, 6)}
    main(["probe", store.root, "--probe", "heads", "--strings", "3"])
    assert "sim: heads of 0 replicates added, 2 had it" in capsys.readouterr().out
    assert read(store, "probes", filter=pc.field("probe") == "heads").equals(rows)
    newest = by_key(rows)
    last = {
        row["item"]: row["value"] for row in rows.filter((pc.field("step") == 6) & pc.is_null(pc.field("layer"))).to_pylist()
    }
    assert newest[rows["key"][-1].as_py()]["heads", None, None, "rows"] == last["rows"]


def test_a_pattern_and_its_largest_weights_agree():
    model = build_decoder(Simulation(length=8), 5, heads=2)
    square, found = values_by_place(pattern(model)), values_by_place(heads(model, Simulation(length=8), 1))
    for head in (0, 1):
        for i in range(8):
            row = [square[0, head, f"{i},{j}"] for j in range(8)]
            assert found[0, head, f"i={i} weight"] == rounded_single(max(row))
            assert row[int(found[0, head, f"i={i} key"])] == max(row)
