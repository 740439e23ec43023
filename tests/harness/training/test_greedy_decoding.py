"""Greedy decoding against one word after the other, against teacher-forced scores, and as labels that follow from weights and seeds."""

from dataclasses import replace

import pytest
import torch

from harness.draw import Draw
from harness.planning.pack import Pack, Replicate, ScoredSet
from harness.study.config import Condition, EvaluationSet, build
from harness.study.training_options import Train
from harness.training.evaluate import batch_size, score, strings
from harness.training.pack_state import Training
from harness.training.self_labels import Annotator
from tasks.continuation import continued
from tasks.lego.lego import VALUE, VARIABLE, Lego
from tests.models.lego.construction import load

CPU = torch.device("cpu")
SMALL = {"name": "clauses", "width": 8, "feed_forward": 48}
FAST = {"batch": 64, "optimizer": "adam", "lr": 3e-3, "weight_decay": 0.0, "warmup": 0, "schedule": "constant"}


def _set(task, sequences, name="set"):
    return ScoredSet(name, task.evaluation(), sequences, None, EvaluationSet(name, {}, sequences).hash(task, 0))


def _free(scored):
    """The same strings, answered by the model alone."""
    return replace(scored, task=replace(scored.task, decode="greedy"))


def _labelled(model, task, seeds, pool):
    """The strings of a pool with the greedy answers of a model as their labels."""
    rows = torch.arange(pool).expand(len(seeds), -1)
    annotator = Annotator(model, [task] * len(seeds), seeds, pool, lambda: None)
    return annotator.batch(Draw(seeds, "pool").pick(rows), pool, 1, rows)


def _pack(task, model, seeds, steps, **train):
    condition = Condition(
        "c", build("task", {"name": "lego", **task}), build("model", model), Train(steps=steps, **FAST | train)
    )
    replicates = tuple(Replicate(str(seed), condition, seed, seed, ()) for seed in seeds)
    return Pack("pack", "signature", replicates, 10, {})


def _trained(task, model, seeds, steps, **train):
    training = Training(_pack(task, model, seeds, steps, **train), CPU)
    while training.step < steps:
        training.advance()
    return training


@pytest.fixture(scope="module")
def half_trained():
    """Three replicates that are wrong about one clause in ten at length 4."""
    return _trained({"group": "S3", "length": 4, "variables": 12}, SMALL, [3, 4, 5], 350).model


def _one_by_one(model, prompt, count):
    """The definition: the whole string so far through the model, the last word appended."""
    given = prompt
    for _ in range(count):
        said = model(given)[:, :, -1].argmax(-1)
        given = torch.cat([given, said[:, :, None]], dim=2)
    return given[:, :, prompt.shape[2] :]


def _counted(model, passes):
    def run(*arguments):
        passes.append(1)
        return model(*arguments)

    return run


@pytest.mark.parametrize("order", ["chain", "shuffled"])
@pytest.mark.parametrize("length", [1, 4, 11])
@torch.no_grad()
def test_a_continuation_is_what_the_model_says_word_by_word(half_trained, length, order):
    task = Lego("S3", length=length, variables=12, order=order)
    prompt, truth = task.sentences(Draw(torch.tensor([1, 2, 3])), 50)
    expected = _one_by_one(half_trained, prompt, length)
    assert 0 < (expected == truth).all(-1).float().mean() < 1
    for draft in (None, task.draft):
        passes = []
        assert torch.equal(continued(_counted(half_trained, passes), prompt, length, draft), expected)
        assert len(passes) <= length
    # with the draft a string takes a pass more than it has words that break the chain
    broken = (expected != task.draft(prompt, expected, torch.zeros(3, 50, dtype=torch.long))).any(-1).any(-1)
    assert broken.any()


@torch.no_grad()
def test_an_untrained_model_and_one_of_several_layers_continue_word_by_word():
    task = Lego("C6", length=7, variables=9)
    prompt, _ = task.sentences(Draw(torch.tensor([1, 2])), 6)
    for model in (SMALL, {"name": "lego_transformer", "width": 20, "layers": 2, "positions": "rotary", "heads": 5}):
        made = build("model", model).make(Draw(torch.tensor([0, 1]), "init"), task.vocabulary, task.tokens)
        for draft in (None, task.draft):
            assert torch.equal(continued(made, prompt, 7, draft), _one_by_one(made, prompt, 7))


@torch.no_grad()
def test_tokens_without_slots_continue_word_by_word():
    made = build("model", {"name": "transformer", "width": 16, "heads": 2, "layers": 2}).make(Draw(torch.tensor([0, 1])), 7, 20)
    given = torch.randint(0, 7, (2, 5, 6), generator=torch.Generator().manual_seed(0))
    assert torch.equal(continued(made, given, 14), _one_by_one(made, given, 14))


def test_a_good_model_needs_one_pass():
    task = Lego("C6", length=40, variables=41)
    made = build("model", {"name": "lego_theory", "neurons": 6}).make(Draw(torch.tensor([0])), task.vocabulary, task.tokens)
    made, passes = load(made, task, concentration=12.0), []
    prompt, truth = task.sentences(Draw(torch.tensor([1])), 5)
    assert torch.equal(continued(_counted(made, passes), prompt, 40, task.draft), truth)
    assert len(passes) == 1


@pytest.mark.parametrize("order", ["chain", "shuffled"])
def test_a_draft_goes_on_from_what_was_said(order):
    task = Lego("S4", length=6, variables=9, order=order)
    prompt, truth = task.sentences(Draw(torch.tensor([1, 2])), 30)
    nothing = torch.zeros(2, 30, dtype=torch.long)
    assert torch.equal(task.draft(prompt, torch.zeros_like(truth), nothing), truth)
    said, table = truth.clone(), task.action.table
    said[:, :, 2, VALUE] = (said[:, :, 2, VALUE] - task.first_value + 1) % 4 + task.first_value
    found = task.draft(prompt, said, nothing + 3)
    assert torch.equal(found[:, :, :3], said[:, :, :3])
    assert torch.equal(found[..., VARIABLE], truth[..., VARIABLE])
    for r, b in ((0, 0), (1, 7), (1, 29)):
        actions = {clause[2]: clause[1] - task.first_action for clause in prompt[r, b, :6].tolist()}
        for step in range(3, 6):
            action = actions[int(found[r, b, step - 1, VARIABLE])]
            assert found[r, b, step, VALUE] - task.first_value == table[action, found[r, b, step - 1, VALUE] - task.first_value]
    said[:, :, 2] = torch.randint(0, task.vocabulary, said[:, :, 2].shape, generator=torch.Generator().manual_seed(0))
    garbage = task.draft(prompt, said, nothing + 3)  # of any words it makes words
    assert 0 <= garbage.min() <= garbage.max() < task.vocabulary


def test_counts_of_greedy_answers(half_trained):
    """Against counts made string by string; and a string is right throughout where every teacher-forced clause is."""
    task = Lego("S3", length=9, variables=12)
    scored = _set(task, 1000)  # two passes
    found = score(half_trained, [_free(scored)] * 3, CPU, "fp32")
    forced = score(half_trained, [scored] * 3, CPU, "fp32")
    batches = list(strings(scored, CPU))
    assert len(batches) > 1
    for slot, (scores, number) in enumerate(found):
        rows = {row["metric"]: row for row in scores.evaluation_rows(number, False)}
        wrong, clauses = [], []
        with torch.no_grad():
            for batch in batches:
                prompt, truth = batch.inputs[:, :, :10], batch.targets[:, :, 9:]
                said = _one_by_one(half_trained, prompt.expand(3, -1, -1, -1), 9)[slot]
                wrong.append(said[..., VALUE] != truth[0, ..., VALUE])
                clauses.append((said != truth[0]).any(-1))
        wrong, clauses = torch.cat(wrong), torch.cat(clauses)
        assert (rows["read"]["errors"], rows["read"]["count"]) == (int(wrong.sum()), 9000)
        assert rows["read"]["sequences_wrong"] == int(wrong.any(-1).sum())
        assert rows["clause"]["errors"] == int(clauses.sum())
        by_step = [row["errors"] for row in scores.profile_rows(number)]
        assert by_step == wrong.sum(0).tolist()
        scores, number = forced[slot]
        teacher = {row["metric"]: row for row in scores.evaluation_rows(number, False)}
        assert 0 < teacher["clause"]["sequences_wrong"] == rows["clause"]["sequences_wrong"] < 1000
        assert 0 < by_step[-1] <= rows["read"]["sequences_wrong"]
    assert score(half_trained, [_free(scored)] * 3, CPU, "fp32", lambda: True) is None


def test_replicates_with_sets_of_their_own_are_scored_on_them(half_trained):
    sets = [_free(_set(Lego("S3", length=4, variables=12, order=order), 30)) for order in ("chain", "shuffled", "chain")]
    together = score(half_trained, sets, CPU, "fp32")
    for slot, (one, (scores, number)) in enumerate(zip(sets, together, strict=True)):
        alone, place = score(half_trained, [one] * 3, CPU, "fp32")[slot]
        assert scores.evaluation_rows(number, False) == alone.evaluation_rows(place, False)
        assert scores.profile_rows(number) == alone.profile_rows(place)


def test_labels_are_a_function_of_weights_seed_and_number(half_trained):
    task, seeds = Lego("S3", length=8, variables=12), torch.tensor([7, 8, 9])
    size = batch_size(_set(task, 1), CPU)  # strings that are answered at once
    whole = _labelled(half_trained, task, seeds, size + 20)
    answers = whole.targets[:, :, 8:]
    assert answers.shape == (3, size + 20, 8, 5)
    fewer = _labelled(half_trained, task, seeds, size + 3)
    assert torch.equal(fewer.targets[:, :, 8:], answers[:, : size + 3])
    prompt, truth = task.sentences(Draw(seeds, "pool"), size + 20)
    assert 0 < (answers == truth).flatten(2).all(-1).float().mean() < 1
    with torch.no_grad():
        assert torch.equal(answers[:, :40], _one_by_one(half_trained, prompt[:, :40], 8))
    assert torch.equal(whole.inputs[:, :, :9], prompt)
    assert torch.equal(whole.inputs[:, :, 9:], answers[:, :, :-1])
    # alone as in the pack, bit for bit
    alone = build("model", SMALL).make(Draw(torch.tensor([0])), task.vocabulary, task.tokens)
    with torch.no_grad():
        for parameter, packed in zip(alone.parameters(), half_trained.parameters(), strict=True):
            parameter.copy_(packed[1:2])
    assert torch.equal(_labelled(alone, task, seeds[1:2], 40).targets[:, :, 8:], answers[1:2, :40])


def test_a_model_that_reads_ahead_cannot_go_on_with_its_own_answers():
    greedy = build("task", {"name": "lego", "length": 2, "variables": 8, "group": "C2", "decode": "greedy"})
    blind = build("model", {"name": "lego_transformer", "causal": False})
    model = blind.make(Draw(torch.tensor([0])), greedy.vocabulary, greedy.tokens)
    with pytest.raises(ValueError, match="causal"):
        score(model, [ScoredSet("s", greedy, 3, None, "0" * 16)], CPU, "fp32")
