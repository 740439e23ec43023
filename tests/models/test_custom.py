"""Users' modules packed with torch.func against a loop over the same modules."""

import pytest
import torch

import models
from harness.configuration import Condition, Train, build, from_dict, to_dict
from harness.device import resolve
from harness.draw import Draw
from harness.train import Training
from models.custom import configure
from tasks import build as build_task
from tests.harness.packs import SETS, pack
from tests.models import custom_modules

HERE = "tests.models.custom_modules"
GOOD = {"GRU": {"width": 24}, "Attention": {"width": 16, "heads": 4}}


def make(name, seeds=(3, 1, 2), **options):
    return configure(f"{HERE}:{name}", **options).make(Draw(torch.tensor(seeds), "init"), 5, 12)


@pytest.mark.parametrize("name", GOOD)
def test_a_pack_equals_a_loop_over_its_modules(name):
    packed = make(name, **GOOD[name])
    tokens = torch.randint(0, 5, (3, 4, 12), generator=torch.Generator().manual_seed(0))
    logits = packed(tokens)
    logits.square().mean((1, 2, 3)).sum().backward()
    for slot in range(3):
        single = getattr(custom_modules, name)(vocabulary=5, length=12, **GOOD[name])
        own = {packed._names[own]: parameter[slot].detach() for own, parameter in packed.named_parameters()}
        single.load_state_dict(own, strict=False)
        theirs = single(tokens[slot])
        torch.testing.assert_close(logits[slot], theirs, rtol=1e-5, atol=1e-6)
        theirs.square().mean().backward()
        for own_name, parameter in packed.named_parameters():
            expected = single.get_parameter(packed._names[own_name]).grad
            torch.testing.assert_close(parameter.grad[slot], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", GOOD)
def test_initial_weights_follow_from_the_seed_alone(name):
    state = torch.random.get_rng_state()
    together, alone = make(name, **GOOD[name]), make(name, (1,), **GOOD[name])
    assert torch.equal(state, torch.random.get_rng_state())
    for one, other in zip(together.parameters(), alone.parameters(), strict=True):
        assert torch.equal(one[1], other[0])
    assert not torch.equal(together.get_parameter("embed__weight")[0], together.get_parameter("embed__weight")[1])


def test_tied_weights_are_one_parameter():
    assert [name for name, _ in make("Attention").named_parameters()] == ["place", "embed__weight", "qkv__weight", "qkv__bias"]


def test_needed_positions_are_gathered():
    packed = make("GRU")
    tokens = torch.randint(0, 5, (3, 4, 12), generator=torch.Generator().manual_seed(0))
    block = torch.tensor([2, 7]).expand(3, 4, 2)
    assert torch.equal(packed(tokens, (block,)), packed(tokens)[:, :, [2, 7]])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Dropout", "draws random numbers in forward"),
        ("Rand", "draws random numbers in forward"),
        ("BatchNorm", "changes norm.num_batches_tracked, norm.running_mean, norm.running_var in forward"),
        ("Counter", "changes calls in forward"),
        ("Running", "changes seen in forward"),
        ("Last", r"returned torch.float32 \[2, 5\] for tokens \[2, 12\]: its forward must return float logits \[2, 12, 5\]"),
        ("Fixed", "parameter embed.weight must be trainable float32"),
    ],
)
def test_what_is_no_function_of_weights_and_tokens_is_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        make(name)


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("no_such_module:GRU", {}, "No module named 'no_such_module'"),
        (f"{HERE}:LSTN", {}, "has no LSTN"),
        (f"{HERE}:NotAModule", {}, "is no subclass of torch.nn.Module"),
        (f"{HERE}:Sizeless", {"width": 3}, "takes no argument `vocabulary`"),
        (f"{HERE}:GRU", {"widht": 3}, r"model.widht is not an option of .*; did you mean model.width\?"),
        (f"{HERE}:GRU", {"length": 3}, "model.length is given by the task"),
        (f"{HERE}:GRU", {"width": {"a": 1}}, "must be a number, a word, true, false, null or a list"),
    ],
)
def test_a_wrong_name_or_option_is_one_sentence(path, options, reason):
    with pytest.raises(ValueError, match=reason):
        configure(path, **options)


def test_a_class_that_can_not_be_called_and_one_without_outputs_are_refused():
    with pytest.raises(ValueError, match="can't be called with vocabulary, length, width"):
        make("GRU", width=None)
    with pytest.raises(ValueError, match="takes no argument `outputs`, and the task has 3 classes"):
        configure(f"{HERE}:Attention").make(Draw(torch.tensor([0]), "init"), 5, 12, outputs=3)
    assert (
        configure(f"{HERE}:GRU").make(Draw(torch.tensor([0]), "init"), 5, 12, outputs=3)(torch.zeros(1, 2, 12).long()).shape[-1]
        == 3
    )
    with pytest.raises(ValueError, match="hands out no attention"):
        make("GRU")(torch.zeros(3, 2, 12).long(), attend=print)


def test_a_study_names_it_and_a_replicate_is_the_same_in_any_pack_to_rounding():
    model = build("model", {"name": f"{HERE}:GRU", "width": 24})
    assert model == models.configure(f"{HERE}:GRU", width=24)
    one = Condition("mine", build_task("flipflop", length=16), model, Train(steps=20, batch=4, lr=1e-2, warmup=2))
    assert one.config()["model"] == {"name": f"{HERE}:GRU", "width": 24}
    assert from_dict(to_dict(one)).model == model
    cpu = resolve("cpu")
    together, alone = (Training(pack(one, seeds, sets=SETS), cpu) for seeds in ([(1, 1), (2, 2), (3, 3)], [(2, 2)]))
    for state in (together, alone):
        state.advance()
        state.advance()
    torch.testing.assert_close(together.recent[1:3, 1], alone.recent[1:3, 0], rtol=1e-5, atol=1e-6)
    together.step = 19
    together.advance()
    assert together.record()
    assert {row["set"] for row in together.rows.evaluations} == {"sparse", "online", "dense"}
