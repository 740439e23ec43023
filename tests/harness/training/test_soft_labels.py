"""Labels that are laws: the loss, the training, the averages of an evaluation and what is watched, against plain torch for one model."""

import math
from dataclasses import replace

import pyarrow.compute as pc
import pytest
import torch

import models
import tasks
from harness.draw import Draw
from harness.machine.device import prepare
from harness.planning.pack import Pack, Replicate, ScoredSet
from harness.planning.plan import pack_id
from harness.study.config import Condition, Watch
from harness.study.identity import key
from harness.study.training_options import Train
from harness.training.evaluate import strings
from harness.training.pack_state import Stopped, Training
from harness.training.train import train
from results.store.tables import open_store
from tests.harness.packs import comparable
from tests.harness.training.float64 import float32, training_in_float64, trainings_in_float64
from tests.rounding import assert_same

CPU = torch.device("cpu")
TASK = tasks.build("in_context_ngram", alphabet=3, order=3, length=10, alpha=0.5)
SETTINGS = {"steps": 12, "batch": 8, "optimizer": "adam", "lr": 0.01, "weight_decay": 0.0, "warmup": 0, "schedule": "constant"}


EPS = torch.finfo(torch.float32).eps


@pytest.fixture(autouse=True)
def _one_thread():
    prepare(CPU)


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path, "laws")


def _condition(model="simple_disentangled", task=TASK, **train_fields):
    return Condition("c", task, models.configure(model), Train(**SETTINGS | train_fields))


def _pack(conditions, watch=Watch(every=4, sequences=24, lags=2, strings=8)):  # noqa: B008
    """One replicate per condition, with seeds 0, 1, …"""

    def sets(task):
        return (ScoredSet("online", task, 40, 3, "0a" * 16), ScoredSet("test", task, 100, None, "0b" * 16))

    replicates = tuple(
        Replicate(key(each.config(), 0, seed, seed), each, seed, seed, sets(each.task)) for seed, each in conditions
    )
    return Pack(pack_id([each.key for each in replicates], 2, {}), "s", replicates, 6, {}, watch=watch)


def _probabilities(weights, tokens):
    """Section 2.2 of Varre et al. 2025 at the last position, for one model: tokens [B, T] → p [B, S]."""
    r0 = torch.eye(3, dtype=weights["query"].dtype)[tokens]
    hidden = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
    heads = [
        a.masked_fill(hidden, -math.inf).softmax(-1) @ r0 @ v for a, v in zip(weights["scores"], weights["value"], strict=True)
    ]
    r1 = torch.cat([r0, *heads], -1)
    scores = (r1[:, -1:] @ weights["query"] @ weights["key"].T @ r1.transpose(1, 2))[:, 0]
    return (scores.softmax(-1)[:, None] @ r0)[:, 0]


def _plain(seed, steps):
    """Adam on -Σ y log(p + 1e-8), with torch's own optimizer, on the strings of this seed, in float64."""
    made = models.build("simple_disentangled", Draw(torch.tensor([seed]), "init"), vocabulary=3, length=10).double()
    weights = {name: each[0].detach().clone().requires_grad_() for name, each in made.named_parameters()}
    adam, losses = torch.optim.Adam(weights.values(), lr=float32(0.01)), []
    for step in range(1, steps + 1):
        batch = TASK.sample(Draw(torch.tensor([seed]), "data", step), 8)
        loss = -(batch.targets[0, :, 0] * (_probabilities(weights, batch.inputs[0]) + 1e-8).log()).sum(-1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return weights, losses


def test_a_training_is_adam_on_the_papers_loss():
    state = training_in_float64(_pack([(seed, _condition()) for seed in (0, 1)]))
    for _ in range(12):
        state.advance()
    for slot in (0, 1):
        weights, losses = _plain(slot, 12)
        assert_same(state.recent[1:13, slot], torch.tensor(losses), roundings=1)  # they are kept in float32
        for name, each in state.model.named_parameters():
            assert_same(each[slot].detach(), weights[name].detach(), name)


def test_averages_are_those_of_the_set(store):
    with trainings_in_float64():
        found = train(_pack([(0, _condition()), (1, _condition())]), store, CPU)
    rows = found["evaluations"].filter(pc.field("value").is_valid())
    state = training_in_float64(_pack([(0, _condition()), (1, _condition())]))
    for _ in range(12):
        state.advance()
    scored = state.pack.replicates[0].sets[1]
    (batch,) = strings(scored, CPU)
    for slot in (0, 1):
        weights = {name: each[slot].detach() for name, each in state.model.named_parameters()}
        said = (_probabilities(weights, batch.inputs[0]) + 1e-8).log().double()
        truth, known = batch.targets[0, :, 0], {name: each[:, 0, :, 0] for name, each in TASK.references(batch).items()}
        wanted = {"loss": -(truth * said).sum(-1)}
        for name, each in known.items():
            wanted[f"kl {name}"] = (each * (each.log() - said)).sum(-1).mean(-1).min()
            wanted[f"tv {name}"] = (each[0] - said.exp()).abs().sum(-1) / 2
        wanted |= {f"baseline {name}": each[0, :, 0] for name, each in TASK.baselines(batch).items()}
        own = rows.filter((pc.field("key") == state.pack.replicates[slot].key) & (pc.field("set") == "test")).to_pylist()
        assert {row["metric"] for row in own} == wanted.keys()
        for row in own:
            assert row["step"] == 12
            # logits are rounded to float32 before they are scored, and a divergence is a difference of what follows from them
            assert row["value"] == pytest.approx(float(wanted[row["metric"]].mean()), rel=0, abs=2**4 * EPS)
    counts = found["evaluations"].filter(pc.field("errors").is_valid())
    assert set(counts["metric"].to_pylist()) == {"next"}
    looks = rows.filter((pc.field("set") == "online") & (pc.field("metric") == "kl 2-gram"))
    assert sorted(set(looks["step"].to_pylist())) == [3, 6, 9, 12]


def test_what_is_watched_is_what_the_weights_are(store):
    """Computed in float64 and kept in float32."""
    pack = _pack([(0, _condition()), (1, _condition())])
    with trainings_in_float64():
        found = train(pack, store, CPU)["curves"]
    rows = {}
    for row in found.filter(~pc.field("metric").isin(["loss", "lr"])).to_pylist():
        rows.setdefault((row["key"], row["step"]), {})[row["metric"]] = row["value"]
    assert {step for _, step in rows} == {4, 8, 12}
    state = training_in_float64(pack)
    for step in range(1, 13):
        before = {name: each.detach().clone() for name, each in state.model.named_parameters()}
        state.advance()
        if step % 4:
            continue
        for slot, replicate in enumerate(pack.replicates):
            mine = rows[replicate.key, step]
            weights = {name: each[slot].detach() for name, each in state.model.named_parameters()}
            old = {name: each[slot].clone().requires_grad_() for name, each in before.items()}
            batch = TASK.sample(Draw(torch.tensor([slot]), "data", step), 8)
            (-(batch.targets[0, :, 0] * (_probabilities(old, batch.inputs[0]) + 1e-8).log()).sum(-1).mean()).backward()
            now = {name: each.clone().requires_grad_() for name, each in weights.items()}
            sample = TASK.sample(Draw(torch.tensor([slot]), "monitor"), 24)
            (-(sample.targets[0, :, 0] * (_probabilities(now, sample.inputs[0]) + 1e-8).log()).sum(-1).mean()).backward()
            for title, each in (("gradient", old), ("sample gradient", now)):
                squares = {name: float(one.grad.double().square().sum()) for name, one in each.items()}
                assert mine[title] == pytest.approx(sum(squares.values()) ** 0.5, rel=EPS)
                for name, square in squares.items():
                    assert mine[f"{title} {name}"] == pytest.approx(square**0.5, rel=EPS)
            hidden = torch.ones(10, 10, dtype=torch.bool).triu(1)
            maps = weights["scores"].masked_fill(hidden, -math.inf).softmax(-1)
            for head, each in enumerate(maps):
                assert mine[f"norm {'scores'}"] == pytest.approx(float(weights["scores"].norm()), rel=EPS)
                for lag in range(3):
                    mass = sum(float(each[i, i - lag]) for i in range(2, 10)) / 8
                    assert mine[f"lag 0.{head}.{lag}"] == pytest.approx(mass, rel=EPS)


@pytest.mark.parametrize("model", ["simple_disentangled", "attn_mlp"])
def test_a_replicate_is_the_same_in_any_pack(model, tmp_path):
    """Conditions of one shape share a pack, with languages and sets of their own."""
    sharp = tasks.build("in_context_ngram", alphabet=3, order=3, length=10, alpha=2.0)
    members = [
        (0, _condition(model, steps=6)),
        (1, _condition(model, sharp, steps=6)),
        (2, _condition(model, steps=6, lr=0.02)),
    ]

    def rows(some, folder):
        return comparable(train(_pack(some), open_store(folder, "s"), CPU))

    whole = rows(members, tmp_path / "together")
    alone = [rows([one], tmp_path / str(one[0])) for one in members]
    for table in whole:
        assert whole[table] == sorted(row for each in alone for row in each[table]), table


@pytest.mark.parametrize("stop_at", [1, 4, 9])
def test_a_resumed_pack_equals_an_undisturbed_one(store, stop_at):
    pack = _pack([(0, _condition()), (1, _condition())])
    whole = train(pack, open_store(store.root, "other"), CPU)
    reached = []
    with pytest.raises(Stopped):
        train(pack, store, CPU, report=reached.append, should_stop=lambda: len(reached) == stop_at)
    assert comparable(train(pack, store, CPU)) == comparable(whole)


def test_a_pack_stopped_within_an_evaluation_keeps_the_gradient_of_that_step(store, monkeypatch):
    pack = _pack([(0, _condition()), (1, _condition())], watch=Watch(every=3, lags=1))
    whole = train(pack, open_store(store.root, "other"), CPU)
    real, calls = Training._score, []

    def broken_off(self, due, rows, should_stop):
        calls.append(self.step)
        return len(calls) != 2 and real(self, due, rows, should_stop)

    monkeypatch.setattr(Training, "_score", broken_off)
    with pytest.raises(Stopped):
        train(pack, store, CPU, should_stop=lambda: len(calls) == 2)
    assert comparable(train(pack, store, CPU)) == comparable(whole)


def test_labels_at_every_position_are_scored_together(store):
    every = replace(TASK, labels="every")
    found = train(_pack([(0, _condition("attn_only", every))]), store, CPU)["evaluations"].to_pylist()
    counts = {row["set"]: row["count"] for row in found if row["metric"] == "next"}
    assert counts == {"online": 40 * 9, "test": 100 * 9}
    losses = [row["value"] for row in found if row["metric"] == "loss" and row["set"] == "test"]
    assert len(losses) == 1
    assert 0.9 < losses[0] < 1.15
