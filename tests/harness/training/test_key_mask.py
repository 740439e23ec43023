"""Tokens that nobody attends to, in the engine: training and scores use the mask, and a model that can't is refused."""

import dataclasses

import pytest
import torch
import yaml

import models
from harness.draw import Draw
from harness.planning.pack import Pack, Replicate, ScoredSet, scored_sets
from harness.study.config import Condition, build
from harness.study.load import from_tree
from harness.study.training_options import Train
from harness.training.evaluate import score
from harness.training.key_mask import hiding
from harness.training.pack_state import Training
from harness.training.training_strings import Feed, Strings
from tasks.distillation.pcfg import PADDING
from tests.harness.tiny import STUDY

CPU = torch.device("cpu")
ENCODER = {"name": "transformer", "layers": 2, "width": 16, "heads": 2, "causal": False}
TASK = {"name": "pcfg", "root": 13, "length": 40}


def _condition(model=ENCODER, **task):
    return Condition("c", build("task", TASK | task), build("model", model), Train(steps=8, batch=4, lr=1e-3, warmup=2))


def _training(*conditions):
    replicates = tuple(Replicate(str(seed), each, seed, seed, ()) for seed, each in enumerate(conditions))
    return Training(Pack("pack", "signature", replicates, 10, {}), CPU)


def test_a_training_reads_no_padding():
    """The loss of the same strings with other tokens at the padding is the same, and without the mask it is not."""
    training = _training(_condition(), _condition())
    strings = training.feed.at(1)
    assert strings.hidden is not None
    assert strings.hidden.shape == (2, 4, 40)
    other = torch.where(strings.hidden, 1, strings.inputs)
    assert not torch.equal(other, strings.inputs)
    loss = training.losses(strings)
    assert torch.equal(loss, training.losses(dataclasses.replace(strings, inputs=other)))
    assert not torch.equal(loss, training.losses(Strings(strings.inputs, strings.needed)))


def test_conditions_that_hide_selected_positions_share_a_pack_with_others():
    hide, plain = _condition(hide_selected_from_attention=True), _condition()
    strings = Feed(Pack("pack", "s", (Replicate("0", hide, 0, 5, ()), Replicate("1", plain, 0, 5, ())), 10, {}), CPU).at(2)
    assert torch.equal(strings.inputs[0], strings.inputs[1])
    assert torch.equal(strings.hidden[1], strings.hidden[0] & strings.hidden[1])
    assert strings.hidden[0].sum() > strings.hidden[1].sum()
    together, alone = _training(hide, plain), _training(hide)
    for _ in range(3):
        together.advance()
        alone.advance()
    assert torch.equal(together.recent[:4, 0], alone.recent[:4, 0])


def test_a_replayed_step_reads_the_mask_of_its_own_strings():
    """As a CUDA graph would: everything that changes is copied into fixed places first."""
    eager, replayed = (_training(_condition(hide_selected_from_attention=True), _condition()) for _ in range(2))

    def again(captured):
        captured()
        return captured

    assert replayed.fix(again)
    for _ in range(4):
        eager.advance()
        replayed.advance()
    assert torch.equal(eager.recent, replayed.recent)


def test_scores_use_the_mask():
    condition = _condition(hide_selected_from_attention=True)
    model = _training(condition).model
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    found = score(model, [ScoredSet("set", condition.task, 50, None, "a" * 16)], CPU, "fp32")
    assert found is not None
    (scores, _) = found[0]
    draw = Draw(torch.tensor([int(("a" * 16)[:15], 16)]), "evaluate")
    batch = condition.task.sample(draw, 50)
    with torch.no_grad():
        seen, unseen = model(batch.inputs, hidden=batch.hidden), model(batch.inputs)
    scored = batch.weights > 0
    errors = [int((logits.argmax(-1) != batch.targets)[scored].sum()) for logits in (seen, unseen)]
    assert scores.sums["read"][0, 0] == errors[0] != errors[1]


@pytest.mark.parametrize("model", [{"name": "lstm", "width": 8}, {"name": "attn_only"}])
def test_models_without_a_mask_of_keys_read_from_left_to_right_and_are_refused_what_they_cannot_hide(model):
    task = build("task", TASK)
    batch = task.sample(Draw(torch.tensor([0])), 5)
    made = build("model", model).make(Draw(torch.tensor([0]), "init"), 8, 40)
    assert hiding(made, batch.hidden) == {}
    with torch.no_grad():
        other = torch.where(batch.hidden, 1, batch.inputs)
        assert torch.equal(made(other)[~batch.hidden], made(batch.inputs)[~batch.hidden]), "padding is read"
    with pytest.raises(ValueError, match=r"hide_selected_from_attention = true .*model"):
        _condition(model, hide_selected_from_attention=True)


def test_an_evaluation_set_that_hides_is_refused_too():
    sets = {"hid": {"sequences": 8, "hide_selected_from_attention": True}}
    tree = yaml.safe_load(STUDY) | {
        "task": TASK,
        "model": {"name": "lstm", "width": 8},
        "conditions": {},
        "evaluate": {"sets": sets},
    }
    study = from_tree(tree, [])
    with pytest.raises(ValueError, match=r"evaluate.sets.hid of condition lstm: .*hide_selected_from_attention = true .*model"):
        scored_sets(study, study.conditions[0])
    fine = from_tree(tree | {"model": ENCODER}, [])
    assert scored_sets(fine, fine.conditions[0])[0].task.hide_selected_from_attention


def test_a_set_or_a_teacher_that_would_read_answers_ahead_is_refused():
    tree = yaml.safe_load(STUDY) | {"task": TASK, "model": ENCODER, "conditions": {}}
    study = from_tree(tree | {"evaluate": {"sets": {"next": {"sequences": 8, "objective": "next"}}}}, [])
    with pytest.raises(ValueError, match=r"evaluate.sets.next of condition transformer: model.causal = false would read"):
        scored_sets(study, study.conditions[0])
    tree |= {"evaluate": {"sets": {"same": {"sequences": 8}}}}
    student = {"labels": "teacher", "task": {"objective": "next"}, "model": {"causal": True}}
    with pytest.raises(ValueError, match=r"stages\[0\]: the teacher answers .*model.causal = false would read"):
        from_tree(tree | {"stages": [student]}, [])
    student = {"labels": "teacher", "task": {"hide_selected_from_attention": True}, "model": ENCODER}
    with pytest.raises(ValueError, match=r"stages\[0\]: the teacher answers .*, and LSTM can't"):
        from_tree(tree | {"model": {"name": "lstm", "width": 8}, "stages": [student]}, [])


def test_a_model_is_told_nothing_where_nothing_is_hidden():
    model = models.configure("transformer", layers=1, width=16, heads=2).make(Draw(torch.tensor([0]), "init"), 8, 40)
    assert hiding(model, None) == {}
    hidden = torch.full((1, 2, 3), PADDING) == PADDING
    assert hiding(model, hidden)["hidden"] is hidden
