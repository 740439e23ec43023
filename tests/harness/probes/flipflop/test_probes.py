"""Probes of attention: the bound holds for any weights, drift follows the sign of the margin, and rows reach the store once."""

import math

import pyarrow.compute as pc
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.draw import Draw
from harness.probes.flipflop.attention import PATTERN, attention, correct_write, pattern
from harness.probes.flipflop.dilution import dilution, lengths, measure
from harness.probes.flipflop.drift import drift, margin
from harness.probes.strings import strings
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.rows.probe_values import by_key
from results.store.tables import open_store, read
from tasks.flipflop.flipflop import SYMBOL, WRITE, FlipFlop
from tasks.flipflop.simulation import Simulation
from tests.harness.probes.flipflop.decoders import build_decoder, values_by_place
from tests.harness.tiny import write_study
from tests.rounding import rounded_single

SIMULATION = """
name: sim
question: Where does it look?
task: {name: flipflop_simulation, length: 10}
model: {name: transformer, layers: 1, width: 8, heads: 1, positions: linear}
train: {steps: 3, batch: 2}
evaluate: {sets: {own: {sequences: 4}}}
conditions: {linear: {}, rotary: {model: {positions: rotary}}, lstm: {model: {name: lstm, width: 8}}}
replicates: 2
executor: local
wandb: off
keep: all
pack: {size: 2}
"""


@given(
    scale=st.floats(0.05, 8),
    seed=st.integers(0, 10**6),
    positions=st.sampled_from(["learned", "none", "sinusoidal", "linear"]),
    norm=st.sampled_from(["pre", "none", "post", "branch"]),
    causal=st.booleans(),
    bias=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_no_weight_exceeds_the_bound_at_any_length(scale, seed, positions, norm, causal, bias):
    task = Simulation(length=64)
    model = build_decoder(task, seed, layers=2, heads=2, positions=positions, norm=norm, causal=causal, bias=bias)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "query" in name or "key" in name:
                parameter.mul_(scale)
    for length in (1, 2, 7, 64):
        tokens = Simulation(length=length).sample(Draw(torch.tensor([seed]), "data"), 3).inputs
        for bound, largest, mean in measure(model, tokens):
            assert (largest <= bound * (1 + 1e-12)).all()
            assert (mean <= largest * (1 + 1e-12)).all()
            assert (bound <= 1).all()


def test_the_bound_is_reached_by_the_weights_that_dilute_least():
    """Latents ±v and the score σ between equal ones: one key of v among -v has exactly the bound, exp(2σ) / (exp(2σ) + T - 1)."""
    task, sigma, length = Simulation(length=16), 1.5, 16
    model = build_decoder(task, width=2, norm="none", positions="none", feed_forward=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.tokens[0, 1, 0], model.tokens[0, 0, 0] = 1, -1
        model.blocks[0].query.weight[0, 0, 0] = -sigma * math.sqrt(2)  # the query is ⊥, and the write attracts it
        model.blocks[0].key.weight[0, 0, 0] = 1
    ((bound, largest, _),) = measure(model, torch.tensor([[[1, *[0] * (length - 1)]]]))
    assert float(bound) == pytest.approx(math.exp(2 * sigma) / (math.exp(2 * sigma) + length - 1), rel=1e-6)
    assert float(largest) == pytest.approx(float(bound), rel=1e-6)


def test_dilution_rows_grow_to_twice_the_length_where_positions_can():
    assert lengths(20, table=True) == [8, 16, 20]
    assert lengths(16, table=False) == [8, 16, 32]
    found = values_by_place(dilution(build_decoder(FlipFlop(length=20), heads=2), FlipFlop(length=20), 3))
    assert len(found) == 3 * 2 * 3
    assert all(found[0, head, f"T={t} largest"] <= found[0, head, f"T={t} bound"] for head in (0, 1) for t in (8, 16, 20))
    for positions in ("rotary", "alibi"):
        with pytest.raises(ValueError, match="the dilution bound is for scores of latents"):
            dilution(build_decoder(Simulation(length=8), positions=positions), Simulation(length=8), 1)


def linear_by_hand(product, length=50):
    """⊥ attends to writes by 20; the position terms give W_Qp · W_Kp = `product`; the answer is the state of the mixed values."""
    task = Simulation(length=length)
    model = build_decoder(task, width=6, norm="none", positions="linear", feed_forward=0, head_dim=2)
    one, zero, ever, answer, position = 0, 1, 2, 3, 5
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.tokens[0, 2, one] = model.tokens[0, 1, zero] = 1
        model.tokens[0, :, ever] = 1
        block = model.blocks[0]
        block.query.weight[0, ever, 0] = 20 * math.sqrt(2)
        block.key.weight[0, one, 0] = block.key.weight[0, zero, 0] = 1
        block.query.weight[0, ever, 1] = math.sqrt(2)  # later writes before earlier ones, while the product lets them
        block.key.weight[0, position, 1] = 10
        block.query.weight[0, position, 1] = product / 10
        block.value.weight[0, one, 0], block.value.weight[0, zero, 0] = 1, -1
        block.out.weight[0, 0, answer] = 1
        model.head.weight[0, answer, 1] = 1
    return model, task


@pytest.mark.parametrize(("product", "ends"), [(60.0, "recent"), (-50.0, "early")])
def test_the_sign_of_the_margin_decides_how_attention_fails(product, ends):
    model, task = linear_by_hand(product)
    found = {item: value for (_, _, item), value in values_by_place(drift(model, task)).items()}
    assert found["margin"] == rounded_single(product)
    assert math.copysign(1, found["cosine"]) == math.copysign(1, product)
    last = max(int(item.split()[1][2:]) for item in found if item.startswith("b p="))
    assert found[f"b p={last} {ends}"] > 0.9
    other = {"recent": "early", "early": "recent"}[ends]
    assert found[f"b p={last} {other}"] < 0.1
    assert found[f"b p={last} right"] < 0.1
    assert 4 < found["b drifts"] <= last
    if ends == "early":
        assert found[f"b p={last} wrong"] == 1
        assert 4 < found["b onset"] <= last


def test_the_margin_of_a_model_with_layer_norm_is_that_of_its_scores():
    """Latents before attention move by the margin's direction: checked against queries and keys at two positions."""
    task = Simulation(length=10)
    model = build_decoder(task, seed=3, positions="linear", norm="pre").double().requires_grad_(False)
    with torch.no_grad():
        model.blocks[0].norm1.gain.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(0))
    block = model.blocks[0]
    x = torch.randn(1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    moved = x.clone()
    moved[..., -1] += 1

    def maps(vectors, like):
        centred = vectors - vectors.mean(-1, keepdim=True)
        latent = centred / (like.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt() * block.norm1.gain + block.norm1.bias
        return latent @ block.query.weight[0], latent @ block.key.weight[0]

    torch.testing.assert_close(maps(x, x)[0], block.norm1(x) @ block.query.weight[0])
    (q0, k0), (q1, k1) = maps(x, x), maps(moved, x)
    scale = float((x.var(-1, unbiased=False) + 1e-5).item())
    assert float(((q1 - q0) * (k1 - k0)).sum()) * scale == rounded_single(margin(model)[0])


def test_drift_refuses_other_models():
    for options in ({"layers": 2}, {"heads": 2}, {"positions": "learned"}):
        with pytest.raises(ValueError, match=r"drift .*1 layer, 1 head and positions linear"):
            drift(build_decoder(Simulation(length=8), **({"positions": "linear"} | options)), Simulation(length=8))


def test_the_correct_write_answers_every_scored_row():
    task = FlipFlop(length=24, p_ignore=0.5)
    (batch,) = strings(task, 20, 20)
    scored = batch.weights > 0
    write = correct_write(task, batch)
    assert torch.equal(batch.inputs.gather(-1, write)[scored], batch.targets[scored])
    assert (batch.inputs.gather(-1, write - 1)[scored] == WRITE).all()
    assert (batch.inputs.gather(-1, write)[scored] >= SYMBOL).all()
    (batch,) = strings(Simulation(length=24), 20, 20)
    write = correct_write(Simulation(length=24), batch)
    assert torch.equal(batch.inputs.gather(-1, write) - 1, batch.targets)


def test_a_model_made_to_attend_to_the_last_write_does():
    model, task = linear_by_hand(0.0, length=20)
    with torch.no_grad():
        model.blocks[0].key.weight[0, 5, 1] = 400  # the later write by far
        model.blocks[0].query.weight[0, 2, 0] = 1000 * math.sqrt(2)
    found = values_by_place(attention(model, task, 8))
    assert found[0, 0, "right"] == 1
    assert found[0, 0, "on_write"] == pytest.approx(1, abs=1e-3)
    assert found[0, 0, "largest"] == pytest.approx(1, abs=1e-3)
    assert found[0, 0, "entropy"] == pytest.approx(0, abs=1e-2)
    square = values_by_place(pattern(model))
    last = [max(j for j in range(i + 1) if PATTERN[j]) for i in range(8)]
    assert all(square[0, 0, f"{i},{j}"] > 0.99 for i, j in enumerate(last))


def test_uniform_attention_has_the_entropy_of_a_uniform_law():
    model, task = linear_by_hand(0.0, length=16)
    with torch.no_grad():
        model.blocks[0].query.weight.zero_()
    found = values_by_place(attention(model, task, 2))
    rows = torch.arange(1, 17, dtype=torch.float64)
    assert found[0, 0, "entropy"] == rounded_single(float(rows.log().mean()))
    assert found[0, 0, "largest"] == rounded_single(float((1 / rows).mean()))
    assert found[0, 0, "on_write"] == rounded_single(float((1 / rows).mean()))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    (folder / "sim.yaml").write_text(SIMULATION)
    assert run_study(load(str(folder / "sim.yaml"), [f"store={folder / 'runs'}", "device=cpu"]), say=lambda line: None) == 0
    return open_store(folder / "runs", "sim")


def test_the_command_adds_rows_once_and_draws_them(store, tmp_path, capsys):
    for name, probed in (("attention", 4), ("dilution", 2), ("drift", 2)):
        drawing = [] if name == "dilution" else ["--figures", str(tmp_path)]
        strings = [] if name == "drift" else ["--strings", "4"]
        main(["probe", store.root, "--probe", name, *strings, *drawing])
        assert f"sim: {name} of {probed} replicates added, 0 had it" in capsys.readouterr().out
        rows = read(store, "probes", filter=pc.field("probe") == name)
        assert len(rows["key"].unique()) == probed
        main(["probe", store.root, "sim", "--probe", name, *strings])
        assert f"0 replicates added, {probed} had it" in capsys.readouterr().out
        assert read(store, "probes", filter=pc.field("probe") == name).equals(rows)
    drawn = {path.name.split("-")[0] + path.suffix for path in (tmp_path / "sim").iterdir()}
    assert drawn == {"pattern.svg", "pattern.png", "drift.svg", "drift.png"}
    square = next(iter(by_key(read(store, "probes", filter=pc.field("probe") == "pattern")).values()))
    assert sum(square["pattern", 0, 0, f"7,{j}"] for j in range(8)) == pytest.approx(1, abs=1e-5)


def test_no_weights_and_no_fitting_model_are_one_sentence(store, tmp_path, capsys):
    words = [f"store={tmp_path / 'runs'}", "device=cpu", "train.steps=6", "replicates=1"]
    assert run_study(load(write_study(tmp_path), words), say=lambda line: None) == 0
    for arguments, message in (
        ([str(tmp_path / "runs"), "--probe", "attention"], "keep: all or keep: tail(n)"),
        ([store.root, "--probe", "attention", "--strings", "0"], "--strings 0 must be at least 1"),
        (
            [store.root, "--probe", "drift", "--strings", "8"],
            "--strings 8: the drift probe has strings of its own: leave it out",
        ),
        ([store.root, "--probe", "monomials", "--option", "outside=1000000"], "outside = 1000000 must be at most 100,000"),
    ):
        with pytest.raises(SystemExit):
            main(["probe", *arguments])
        assert message in capsys.readouterr().err
    words = [f"store={tmp_path / 'kept'}", "device=cpu", "train.steps=6", "replicates=1", "keep=all"]
    assert run_study(load(write_study(tmp_path), words), say=lambda line: None) == 0
    with pytest.raises(SystemExit):
        main(["probe", str(tmp_path / "kept"), "--probe", "drift"])
    assert "the drift probe is for transformers of flipflop_simulation" in capsys.readouterr().err
    main(["probe", str(tmp_path / "kept"), "--probe", "attention", "--strings", "2", "--figures", str(tmp_path / "drawn")])
    assert "nothing to draw: the attention probe has no figures of these replicates" in capsys.readouterr().out
    assert not (tmp_path / "drawn").exists()
    with pytest.raises(SystemExit):
        main(["probe", str(tmp_path / "kept"), "--probe", "dilution", "--figures", str(tmp_path / "drawn")])
    assert "the dilution probe has no figures: leave it out" in capsys.readouterr().err
