"""Students of a teacher in the compiled loop: the ordinary loop's numbers, and bits that follow from the step alone."""

import math
import shutil

import pytest
import torch

from harness.planning.pack import resolve
from harness.planning.plan import plan
from harness.study.load import from_tree
from harness.training.pack_state import Stopped, Training
from harness.training.teachers import Teachers, teachers_of
from harness.training.train import train
from harness.training.training_strings import Feed
from results.store.tables import commit, open_store
from tests.harness.training.float64 import assert_as_near, training_in_float64
from tests.rounding import assert_same

CPU = torch.device("cpu")
STEPS = 600
SGD = {"batch": 1, "optimizer": "sgd", "lr": 0.02, "schedule": "constant", "warmup": 0, "weight_decay": 0.0}
TREE = {
    "name": "taught",
    "question": "What does it learn?",
    "task": {"name": "sparse_parity", "length": 12, "degree": 3},
    "model": {"name": "mlp", "width": 64},
    "train": SGD | {"steps": 400},
    "evaluate": {"sets": {"test": {"sequences": 64, "every": 150}}, "curve_every": 100},
    "executor": "local",
    "wandb": "off",
}
SHARED = {"model": {"name": "mlp", "width": 20}, "train": {"steps": STEPS}, "labels": "teacher"}
PROGRESSIVE = {"shots": 7}
MIDDLE = {"checkpoints": [{"at": 30, "steps": 250}, {"at": "last"}]}

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")


def packs(students, replicates=2, **changes):
    """The packs of a study whose conditions are these last stages, by stage."""
    conditions = {f"c{i}": {"stages": [SHARED | each]} for i, each in enumerate(students)}
    study = from_tree(TREE | {"conditions": conditions, "replicates": replicates} | changes)
    return resolve(plan(study, None, 16, numerics={}), {}, {})


def student(*students, replicates=2, **changes):
    """The one pack of students."""
    (found,) = (each for each in packs(students, replicates, **changes) if each.stage)
    return found


def teachers_for(pack, block=None, broken=(), grid=None):
    """Teachers of random weights that follow from their key and step; `broken`: keys of those that diverged. grid: of which all weights
    are multiples."""
    made = None

    def read(key, step):
        generator = torch.Generator().manual_seed(int(key[:12], 16) + step)
        names = {name: parameter.shape[1:] for name, parameter in made.named_parameters()}
        weights = {name: torch.randn(shape, generator=generator) / math.sqrt(shape[0]) for name, shape in names.items()}
        if grid is not None:
            weights = {name: torch.round(each / grid) * grid for name, each in weights.items()}
        return {name: each * torch.nan if key in broken else each for name, each in weights.items()}

    made = Teachers(pack, CPU, None).model
    found = Teachers(pack, CPU, read)
    found.block = block or found.block
    return found


def trained(pack, loop=True, steps=STEPS, window=None, begin=Training, **options):
    """The training at its end, and the losses of all steps [S, R]."""
    training = begin(pack, CPU, teachers=teachers_for(pack, **options))
    assert training.loop is not None
    if window is not None:
        training.loop.window = window
    if not loop:
        training.loop = None
    found = []
    while training.step < steps:
        training.advance()
        if training.step % 100 == 0:
            found.append(training.recent[torch.arange(1, 101) % 100].clone())
    return training, torch.cat(found)


def assert_as_the_ordinary_loop(pack, **options):
    """The compiled loop's losses and weights are as near to those in float64 as the ordinary loop's."""
    options = {"steps": STEPS // 2, **options}
    (one, losses), (other, expected) = trained(pack, **options), trained(pack, loop=False, **options)
    exact, best = trained(pack, loop=False, begin=lambda pack, _, teachers: training_in_float64(pack, teachers), **options)
    assert_as_near(losses, expected, best.double())
    assert_as_near(one.flat.values, other.flat.values, exact.flat.values)
    assert not torch.equal(one.flat.values, other.flat.values)  # another order of sums: the loop was used


@pytest.mark.parametrize("temperature", [1.0, 0.05, 0])
@pytest.mark.parametrize("name", ["sparse_parity", "hierarchical_parity"])
def test_losses_and_weights_are_those_of_the_ordinary_loop(name, temperature):
    task = {"name": name, "length": 12} | ({"degree": 3} if name == "sparse_parity" else {"depth": 2, "degree": 2})
    learnt = {"temperature": temperature, "teacher": PROGRESSIVE}
    pack = student(learnt, learnt | {"train": {"steps": STEPS, "lr": 0.05}}, task=task)
    assert len(pack.replicates) == 4
    assert_as_the_ordinary_loop(pack)


def test_a_low_temperature_is_the_ordinary_loops():
    """What divides logits by 1e-4 multiplies their last bits by 10,000, so those of this teacher have no roundings: all its products
    are multiples of 2^-12 and its sums below 2^10."""
    assert_as_the_ordinary_loop(student({"temperature": 1e-4, "teacher": MIDDLE}), grid=2**-6)


def test_any_model_can_teach():
    transformer = {"name": "transformer", "layers": 1, "width": 16, "heads": 2, "positions": "learned"}
    adam = {"steps": 400, "batch": 8, "optimizer": "adam", "lr": 1e-3, "schedule": "constant", "warmup": 0}
    pack = student({"train": SGD | {"steps": STEPS}, "teacher": MIDDLE}, model=transformer, train=adam)
    assert pack.replicates[0].condition.model.width == 20
    assert_as_the_ordinary_loop(pack)


def test_neither_a_look_nor_the_strings_that_are_drawn_at_once_change_a_bit():
    one = student({"temperature": 1e-4, "teacher": PROGRESSIVE}, evaluate=TREE["evaluate"] | {"curve_every": 100})
    whole, losses = trained(one, block=16)
    for window in (1, 16, 40, 1000):
        found, same = trained(one, block=16, window=window)
        assert torch.equal(same, losses)
        assert torch.equal(found.flat.values, whole.flat.values)


def test_a_teachers_answers_are_the_same_bits_however_many_blocks_are_asked_for_at_once():
    """So a training that goes on from any step has the answers of one that was never stopped."""
    pack = student({"temperature": 1e-4, "teacher": PROGRESSIVE})
    teachers, feed = teachers_for(pack, 32), Feed(pack, CPU)
    strings = feed.batch(1, 640).inputs.view(640, 2, 12)
    whole = teachers.answers(strings, 1)
    assert whole.shape == (640, 2, 2)
    for first, last in ((1, 32), (321, 640), (65, 96)):  # backwards too
        assert torch.equal(teachers.answers(strings[first - 1 : last], first), whole[first - 1 : last])
    with pytest.raises(ValueError, match=r"2 … 33 .*blocks of 32"):
        teachers.answers(strings[1:33], 2)


def test_a_student_is_bitwise_the_same_in_any_pack():
    """Students of one teacher, some of which read the same strings, and alone."""
    kind = {"teacher": {"seed": 0, **PROGRESSIVE}}
    pack = student(kind, kind | {"train": {"steps": STEPS, "lr": 0.05}}, replicates=3)
    assert len(pack.replicates) == 6
    training, losses = trained(pack, block=16)
    assert len(training.teachers._keys) == 3  # sequences of strings
    for slot in range(6):
        alone, mine = trained(pack.part((pack.replicates[slot],)), block=16)
        assert torch.equal(mine[:, 0], losses[:, slot])
        assert torch.equal(alone.flat.values[0], training.flat.values[slot])


def test_a_teacher_that_diverged_disturbs_no_other_student():
    pack = student({"teacher": MIDDLE}, replicates=3)
    lost = pack.replicates[1].parent
    training, losses = trained(pack, broken=(lost,))
    assert training.diverged_at.tolist() == [-1, 0, -1]
    assert losses[:, 1].isnan().all()
    _, expected = trained(pack)
    assert torch.equal(losses[:, [0, 2]], expected[:, [0, 2]])


def test_the_loss_is_the_divergence_from_the_teacher():
    """KL(teacher || student) of the first string, with both networks written out from their weights."""
    pack = student({"temperature": 0.5})  # one checkpoint teaches
    bits = 1 - 2 * Feed(pack, CPU).batch(1, 1).inputs.view(2, 12).double()
    training, made = Training(pack, CPU, teachers=teachers_for(pack)), teachers_for(pack)
    made.answers(Feed(pack, CPU).batch(1, made.block).inputs.view(-1, 2, 12), 1)  # reads the checkpoint

    def log_probabilities(model, temperature):
        hidden, head = model.layers[0], model.head
        said = [
            torch.relu(x @ hidden.weight[r].double() + hidden.bias[r].double()) @ head.weight[r].double()
            + head.bias[r].double()
            for r, x in enumerate(bits)
        ]
        return (torch.stack(said) / temperature).log_softmax(-1)

    with torch.no_grad():
        teacher, learner = log_probabilities(made.model, 0.5), log_probabilities(training.model, 1.0)
    training.advance()
    expected = (teacher.exp() * (teacher - learner)).sum(-1)
    assert (expected > 1e-4).all()
    # sums over 12 inputs and up to 64 hidden units in two networks, and their log-softmax
    assert_same(training.recent[1], expected.float(), roundings=2**8)


def test_a_student_that_is_stopped_goes_on_bit_for_bit(tmp_path):
    """Out of a store, with teachers that the loop has trained as well; the last stop is in the middle of a block."""
    first, later = packs([{"temperature": 1e-4, "teacher": PROGRESSIVE}])
    store = open_store(tmp_path, "taught")
    commit(store, first.id, train(first, store, CPU))

    def tables(stops):
        for stop in stops:
            reached = []
            with pytest.raises(Stopped):
                train(later, store, CPU, reached.append, lambda seen=reached, stop=stop: bool(seen) and seen[-1] >= stop)
            assert reached[-1] == stop
        steps = []
        found = train(later, store, CPU, steps.append)
        rows = {name: found[name].to_pylist() for name in ("evaluations", "curves")}
        return rows, found["replicates"].select(["loss", "status", "parent_step"]).to_pylist(), steps

    stopped = tables([100, 300])
    assert stopped[2] == [400, 450, 500, 600]
    store = open_store(tmp_path / "again", "taught")
    commit(store, first.id, train(first, store, CPU))
    whole = tables([])
    assert whole[:2] == stopped[:2]
    assert {row["parent_step"] for row in whole[1]} == {400 // 7}
    teachers = teachers_of(later, store, CPU, lambda: False, print, Stopped)
    assert teachers.block == 256


def test_a_wide_teacher_answers_fewer_strings_at_once():
    """A layer's activations for the strings that are answered together take at most 16 MiB, and small teachers answer as many as any."""

    def block(length=12, **model):
        task = TREE["task"] | {"length": length}
        return teachers_for(student({"train": SGD | {"steps": STEPS}}, replicates=1, model=model, task=task)).block

    small, wide = block(name="mlp", width=1), block(name="mlp", width=50_000)
    long = block(length=1000, name="transformer", layers=1, width=64, heads=2)
    assert small == block(name="mlp", width=1000)
    assert small > max(wide, long)
    assert max(wide * 50_000, long * 1000 * 64) * 4 <= 16 * 2**20
