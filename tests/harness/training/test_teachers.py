"""Distillation: what a student is answered by and what its loss is, against single models and formulas written out here."""

import pytest
import torch
from safetensors.torch import load
from torch.nn.functional import cross_entropy, one_hot

from harness.draw import Draw
from harness.exchange.weights import single
from harness.planning.pack import resolve
from harness.planning.plan import plan
from harness.study import load as study
from harness.study.stages import parent_of
from harness.training import weights as artifacts
from harness.training.loss_positions import Needed
from harness.training.pack_state import Stopped, Training
from harness.training.teachers import Teachers, probabilities, resolved, teachers_of
from harness.training.train import train
from harness.training.training_strings import Strings
from results.store.tables import commit, open_store
from tasks.distillation.pcfg import MASK
from tests.harness.chained import write_study as write_lego
from tests.harness.distilled import GRAMMAR, PARITY, write_study
from tests.harness.training.fake_graph import called_again
from tests.harness.training.float64 import training_in_float64
from tests.rounding import assert_same

CPU = torch.device("cpu")


def _packs(folder, text, *words, size=2):
    loaded = study.load(write_study(folder, text), list(words))
    return resolve(plan(loaded, None, size, numerics={}), {}, {})


def _teachers(pack, store, said=None):
    return teachers_of(pack, store, CPU, lambda: False, (said if said is not None else []).append, Stopped)


def _student(packs, store, name, begin=Training):
    """The training of the pack of the second stage that holds this condition. begin: `exact` for one in float64."""
    (pack,) = (each for each in packs if each.stage and each.replicates[0].condition.name == name)
    return begin(pack, CPU, teachers=_teachers(pack, store))


def exact(pack, device, teachers):
    return training_in_float64(pack, teachers)


def _teacher(store, replicate, step):
    """The model of a replicate's teacher after a step, alone."""
    parent = parent_of(replicate.condition)
    weights = load(artifacts.data(store, replicate.parent, 0, step))
    return single(parent.model, parent.task.vocabulary, parent.task.tokens, weights)


@pytest.fixture(scope="module")
def parity(tmp_path_factory):
    """(store with trained teachers, packs of 3)."""
    folder = tmp_path_factory.mktemp("parity")
    packs = _packs(folder, PARITY, "pack.size=3")
    store = open_store(folder / "store", "distilled")
    commit(store, packs[0].id, train(packs[0], store, CPU))
    return store, packs


@pytest.fixture(scope="module")
def grammar(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grammar")
    packs = _packs(folder, GRAMMAR)
    store = open_store(folder / "store", "grammar")
    commit(store, packs[0].id, train(packs[0], store, CPU))
    return store, packs


def _hardened(training, store, steps):
    """The same training on the labels that single teachers give, step by step: steps(of the student) is the teacher's."""
    plain = Training(training.pack, CPU)
    plain.teachers, feed = None, plain.feed.at

    def at(step):
        strings = feed(step)
        said = []
        for slot, replicate in enumerate(training.pack.replicates):
            logits = _teacher(store, replicate, steps(step))(strings.inputs[slot][None])[0]  # [B, T, V]
            place = strings.needed.order[slot]
            said.append(logits.argmax(-1).gather(-1, place))
        wanted = strings.needed
        return Strings(strings.inputs, Needed(wanted.blocks, torch.stack(said), wanted.weights, wanted.order))

    plain.feed.at = at
    return plain


def test_a_temperature_of_zero_is_training_on_the_teachers_own_labels(parity):
    """shared: four checkpoints, 15, 30, 45 and 60, each for six steps, of the teacher with seed 0; bit for bit."""
    store, packs = parity
    taught = _student(packs, store, "shared")
    plain = _hardened(taught, store, lambda step: 15 * ((step + 5) // 6))
    for _ in range(24):
        taught.advance()
        plain.advance()
    assert torch.equal(taught.recent, plain.recent)
    assert torch.equal(taught.flat.values, plain.flat.values)


@pytest.mark.parametrize(("temperature", "tolerance"), [(1e-4, 1e-3), (1e-20, None)])
def test_a_low_temperature_comes_near_it(parity, temperature, tolerance):
    """In float64, so that what is left at 1e-4 is not rounding: labels of strings whose logits lie within some 10 temperatures."""
    store, packs = parity
    hard, soft = _student(packs, store, "shared", exact), _student(packs, store, "shared", exact)
    soft.teachers.temperature = temperature
    for _ in range(24):
        hard.advance()
        soft.advance()
    if tolerance is None:
        assert_same(soft.recent, hard.recent, roundings=2)  # both are rounded to float32 where they are kept
        assert_same(soft.flat.values, hard.flat.values)
    else:
        assert torch.allclose(soft.recent, hard.recent, rtol=0, atol=tolerance)
        assert torch.allclose(soft.flat.values, hard.flat.values, rtol=0, atol=tolerance)
    assert not torch.equal(hard.flat.values, Training(hard.pack, CPU).flat.values)


def test_a_teacher_and_its_student_read_the_same_masked_strings(grammar):
    """Three checkpoints, 4, 8 and 12; the first two for two steps each. At the scored positions: softmax of the single model's logits."""
    store, packs = grammar
    training = _student(packs, store, "progressive", exact)
    for step, of_teacher in [(1, 4), (2, 4), (3, 8), (4, 8), (5, 12), (10, 12)]:
        strings = training.feed.at(step)
        answered = training.teachers(strings, step)
        assert answered.inputs is strings.inputs
        assert answered.needed is strings.needed
        assert bool((strings.inputs == MASK).any())
        for slot, replicate in enumerate(training.pack.replicates):
            mine = {"hidden": strings.hidden[slot][None]}  # the padding
            logits = _teacher(store, replicate, of_teacher).double()(strings.inputs[slot][None], **mine)[0].detach()
            place = strings.needed.order[slot][..., None].expand(-1, -1, logits.shape[-1])
            expected = (logits.gather(1, place) / 0.5).softmax(-1)
            assert_same(answered.soft[slot], expected)


def test_the_loss_is_the_forward_divergence_and_its_gradient_that_of_soft_targets(grammar):
    store, packs = grammar
    training = _student(packs, store, "progressive", exact)
    strings = training.teachers(training.feed.at(3), 3)
    wanted, weights = strings.needed, strings.needed.weights.double()
    training.flat.differentiate(training.losses(strings).sum())
    gradients = [each.grad.clone() for each in training.model.parameters()]
    logits = training.model(strings.inputs, wanted.blocks, hidden=strings.hidden)
    given = strings.soft
    divergence = (given * (given.log() - logits.log_softmax(-1))).sum(-1)
    expected = (divergence * weights).sum((-1, -2)) / wanted.weights.sum((-1, -2))  # a float32 sum, as in the loss
    assert_same(training.losses(strings).detach(), expected.detach())
    surprise = cross_entropy(logits.flatten(0, -2), strings.soft.flatten(0, -2), reduction="none").view(weights.shape)
    each = (surprise * wanted.weights).sum((-1, -2)) / wanted.weights.sum((-1, -2))
    for ours, theirs in zip(gradients, torch.autograd.grad(each.sum(), list(training.model.parameters())), strict=True):
        assert_same(ours, theirs)
        assert bool(theirs.any())


def test_a_monitor_is_answered_by_the_checkpoint_of_the_step(grammar):
    store, packs = grammar
    training = _student(packs, store, "progressive")
    for _ in range(5):
        training.advance()
    found, other = training.monitored(), Training(training.pack, CPU, teachers=_teachers(training.pack, store))
    other.flat.values.data.copy_(training.flat.values)
    total = torch.zeros(2, dtype=torch.float64)
    for strings in other.feed.monitored(6, 4):
        total += other.losses(other.teachers(strings, 5)).double() * strings.inputs.shape[1]
    assert found == (total / 6).tolist()


@pytest.mark.parametrize("name", ["shared", "risen"])
def test_a_replayed_student_equals_an_eager_one(parity, name):
    """Labels of a teacher's argmax, and its probabilities: both are copied into the replay's fixed places."""
    store, packs = parity
    eager, replayed = _student(packs, store, name), _student(packs, store, name)
    assert replayed.fix(called_again)
    for _ in range(24):
        eager.advance()
        replayed.advance()
    assert torch.equal(eager.recent, replayed.recent)
    assert torch.equal(eager.flat.values, replayed.flat.values)


def test_a_rule_is_the_first_step_of_its_grid(parity):
    """Against scores of single models on 20,000 fresh strings: the step is where they cross the rule's accuracy."""
    store, packs = parity
    pack = next(each for each in packs if each.stage and each.replicates[0].condition.name == "risen")
    teachers = _teachers(pack, store)
    for replicate, schedule in zip(pack.replicates, teachers.schedules, strict=True):
        risen = schedule.first + 5
        assert [(span.begin, span.at) for span in schedule.spans] == [(1, risen - 5), (11, 60)]
        task, right = replicate.condition.task, {}
        strings = task.sample(Draw(torch.tensor([99])), 20_000)
        for step in range(5, risen + 1, 5):
            said = _teacher(store, replicate, step)(strings.inputs)[0, :, -1].argmax(-1)
            right[step] = float((said == strings.targets[0, :, -1]).double().mean())
        assert right[risen] > 0.7 - 0.05
        assert all(share < 0.7 + 0.05 for step, share in right.items() if step < risen)


def test_students_of_one_teacher_and_one_sequence_of_strings_are_answered_once(parity, tmp_path):
    store, _ = parity
    packs = _packs(tmp_path, PARITY, "pack.size=6")
    pack = next(each for each in packs if each.stage and each.replicates[0].condition.name == "one_shot")
    assert [each.condition.name for each in pack.replicates] == ["one_shot"] * 3 + ["slower"] * 3
    teachers = _teachers(pack, store)
    teachers.model.double()
    assert next(teachers.model.parameters()).shape[0] == 3
    strings = Training(pack, CPU).feed.at(2)
    soft = teachers(strings, 2).soft
    assert torch.equal(soft[:3], soft[3:])
    for slot, replicate in enumerate(pack.replicates):
        logits = _teacher(store, replicate, 60).double()(strings.inputs[slot][None], [strings.needed.blocks[0][slot][None]])
        assert_same(soft[slot], logits[0].detach().softmax(-1))


def test_a_position_of_several_tokens_adds_up_their_divergences(tmp_path):
    """LEGO's clauses have five words a position."""
    words = ["conditions=null", "replicates=2", "pack.size=2", "stages=[{labels: teacher}]"]
    loaded = study.load(write_lego(tmp_path), words)
    pack = resolve(plan(loaded, None, 2, numerics={}), {}, {})[1]
    training = training_in_float64(pack)
    training.teachers.model.double()  # a fresh one
    strings = training.teachers(training.feed.at(1), 1)
    wanted, weights = strings.needed, strings.needed.weights.double()
    assert strings.soft.shape[:-1] == wanted.targets.shape
    with torch.no_grad():
        given, mine = strings.soft.double(), training.model(strings.inputs, wanted.blocks).log_softmax(-1)
        divergence = (given * (given.log() - mine)).sum((-1, -2))
        expected = (divergence * weights).sum((-1, -2)) / weights.sum((-1, -2))
        assert_same(training.losses(strings), expected)


def test_probabilities_survive_the_temperature_of_the_paper():
    logits = torch.tensor([[3.0, 3.0000002, -50.0], [1e4, -1e4, 0.0], [2.0, 2.0, 1.0]])
    cold = probabilities(logits, 1e-20)
    assert torch.equal(cold[:2], one_hot(logits[:2].argmax(-1), 3).float())
    assert torch.equal(cold[2], torch.tensor([0.5, 0.5, 0.0]))
    assert_same(probabilities(logits.double(), 2.0), (logits.double() / 2).softmax(-1))


def test_weights_that_are_not_the_teachers_are_named(parity):
    _, packs = parity
    pack = next(each for each in packs if each.stage)
    with pytest.raises(ValueError, match="the teacher's weights do not fit"):
        Teachers(pack, CPU, lambda key, step: {"other": torch.zeros(3)})(Training(pack, CPU).feed.at(1), 1)


def test_a_stop_while_a_rule_is_looked_for_is_one(parity):
    store, packs = parity
    pack = next(each for each in packs if each.stage and each.replicates[0].condition.name == "risen")
    with pytest.raises(Stopped):
        teachers_of(pack, store, CPU, lambda: True, lambda text: None, Stopped)
    schedule = resolved(pack.replicates[0].condition, pack.replicates[0].parent, _reader(store), CPU)
    assert schedule.first in range(5, 60, 5)


def _reader(store):
    return lambda key, step: load(artifacts.data(store, key, 0, step))
