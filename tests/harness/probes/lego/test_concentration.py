"""The probe of attention concentration: the exact dilution law, attention made by hand, what it is asked of, and rows in a store."""

import pytest
import torch

import models
from harness.draw import Draw
from harness.probes.lego.concentration import concentrations, lengths, means
from harness.probes.strings import strings
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.rows.probe_values import by_key
from results.store.tables import open_store, read
from tasks.lego.lego import Lego
from tasks.lego.lego_attention import diluted
from tests.harness.probes.fixed_attention import Fixed, by_place
from tests.models.lego.construction import load as solution
from tests.rounding import assert_same, rounded_single

STUDY = """
name: chains
question: Where does it look?
task: {name: lego, group: C3, length: 3, variables: 13}
model: {name: clauses, width: 4, feed_forward: 8}
train: {steps: 2, batch: 2, warmup: 0}
evaluate: {sets: {own: {sequences: 4}}}
conditions: {clauses: {}, ordinary: {model: {name: lego_transformer, layers: 2, width: 20, feed_forward: 8}}}
replicates: 1
executor: local
wandb: off
keep: all
pack: {size: 1}
"""


def test_a_hand_made_attention_has_the_masses_that_it_was_made_of():
    """Head 0 looks at the predicate and itself by half, head 1 spreads over the others; sentences have their predicates shuffled."""
    task = Lego(group="C3", length=3, variables=13, order="shuffled")

    def attention(inputs):
        length = inputs.shape[1] // 2
        weights = torch.zeros(len(inputs), 2, 2 * length, 2 * length)
        for b, sentence in enumerate(inputs):
            for query in range(length, 2 * length):
                (consumes,) = [k for k in range(length) if sentence[k, 2] == sentence[query, 3]]
                weights[b, 0, query, consumes], weights[b, 0, query, query] = 0.5, 0.3
                others = [k for k in range(query) if k != consumes]
                weights[b, 0, query, others] = 0.2 / len(others)
                weights[b, 1, query, consumes] = 1.0
        return weights

    rows = by_place(concentrations(Fixed(2, attention), task, 5), "layer", "head", "item")
    for length in (3, 6, 12):
        for head, epsilon, gap in ((0, 0.2, 0.2), (1, 0, 1), (None, 0.1, 0.6)):
            assert rows[0, head, f"L={length} epsilon"] == pytest.approx(epsilon, abs=1e-6)
            assert rows[0, head, f"L={length} gap"] == rounded_single(gap)
            assert rows[0, head, f"L={length} odds"] == pytest.approx(epsilon / (1 - epsilon), abs=1e-6)
            for answer in range(1, length + 1):
                assert rows[0, head, f"L={length} l={answer} itself"] == rounded_single({0: 0.3, 1: 0, None: 0.15}[head])
    assert (0, 0, "L=3 l=4 itself") not in rows


def test_the_proofs_model_follows_the_exact_law_of_dilution():
    """Scores of 4 on both clauses: every answer's masses, and odds that grow as the number of other clauses."""
    task = Lego(group="C6", length=5, variables=41)
    config = models.configure("lego_theory", neurons=6)
    model = solution(config.make(Draw(torch.tensor([0]), "init"), task.vocabulary, 5), task, concentration=3.5, gap=1.0)
    for length in (5, 20):
        (found,) = means(model, Lego(group="C6", length=length, variables=41), 8)
        expected = torch.tensor([diluted(4.0, 3.0, length, answer) for answer in range(1, length + 1)], dtype=torch.float64)
        assert torch.allclose(found[0].T, expected, atol=1e-6)


def test_lengths_double_up_to_what_the_paper_tests_and_the_variables_allow():
    assert lengths(Lego()) == [5, 10, 20, 40, 80, 160]
    assert lengths(Lego(length=5, variables=40)) == [5, 10, 20]
    assert lengths(Lego(length=5, variables=41)) == [5, 10, 20, 40]
    assert lengths(Lego(length=7, variables=8)) == [7]


def test_batches_do_not_change_the_means(monkeypatch):

    task = Lego(group="C3", length=3, variables=13)
    model = models.configure("clauses", width=4, feed_forward=8).make(Draw(torch.tensor([3]), "init"), task.vocabulary, 3)
    (whole,) = means(model, task, 7)
    monkeypatch.setattr("harness.probes.strings._WEIGHTS", 2 * 36 * 2)  # 2 sentences at a time
    assert [len(batch.inputs[0]) for batch in strings(task, 7, 2)] == [2, 2, 2, 1]
    (parts,) = means(model, task, 7)
    assert_same(whole, parts)


def test_rows_reach_the_store_for_every_layer(tmp_path, capsys):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    assert run_study(load(path, [f"store={tmp_path}/runs"]), lambda text: None) == 0
    main(["probe", str(tmp_path / "runs"), "--probe", "concentration", "--strings", "4"])
    assert "concentration of 2 replicates added" in capsys.readouterr().out
    found = by_key(read(open_store(tmp_path / "runs", "chains"), "probes"))
    layers = sorted({layer for (_, layer, _, item) in values if item == "L=12 epsilon"} for values in found.values())
    assert layers == [{0}, {0, 1}]
    for values in found.values():
        assert values["concentration", None, None, "L=12 others"] == rounded_single(12 - 2 + 6.5)
        assert all(0 <= value <= 1 for (*_, item), value in values.items() if item.endswith(("epsilon", "itself")))
