"""Users' modules packed with torch.func against a loop over the same modules."""

import sys

import pytest
import torch

import models
from harness.draw import Draw
from harness.machine.device import resolve
from harness.study.config import Condition, build, from_dict, to_dict
from harness.study.training_options import Train
from harness.training.pack_state import Training
from models.custom.custom import Packed, _check_device, allow, configure
from models.unfit import UnfitModel
from tasks import build as build_task
from tests.harness.packs import SETS, pack
from tests.models.custom import custom_modules
from tests.rounding import assert_same

# torch's own: cells run by a loop under vmap, oneDNN lacks projections, and its compiler uses what is deprecated
pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop.*_cell"),
    pytest.mark.filterwarnings("ignore:LSTM with projections"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning"),
]
HERE = "tests.models.custom.custom_modules"
allow(HERE, "no_such_module", "broken_models")
GOOD = {
    "convolution": ("Conv", {"width": 24}),
    "attention": ("Attention", {"width": 16, "heads": 4}),
    "encoder": ("Encoder", {}),
    "gru": ("Recurrent", {}),
    "gru, two ways": ("Recurrent", {"layers": 2, "bidirectional": True, "bias": False}),
    "lstm": ("Recurrent", {"cell": "LSTM", "layers": 2}),
    "lstm, two ways": ("Recurrent", {"cell": "LSTM", "bidirectional": True}),
    "lstm, projected": ("Projected", {}),
    "rnn": ("Recurrent", {"cell": "RNN"}),
    "gru cell": ("Cell", {}),
    "random features": ("Features", {}),
    "a part in evaluation mode": ("Rested", {}),
}
EVERY = pytest.mark.parametrize(("name", "options"), GOOD.values(), ids=GOOD)


def make(name, seeds=(3, 1, 2), **options):
    return configure(f"{HERE}:{name}", **options).make(Draw(torch.tensor(seeds), "init"), 5, 12)


def strings(replicates=3, batch=4):
    return torch.randint(0, 5, (replicates, batch, 12), generator=torch.Generator().manual_seed(0))


def single(packed, slot, name, options):
    """The module of one slot by itself, in torch's own way: its class, and load_state_dict."""
    module = getattr(custom_modules, name)(vocabulary=5, length=12, **options)
    state = {theirs: packed.get_parameter(own)[slot] for own, theirs in packed._names.items()}
    for own, theirs in packed._constants.items():
        buffer = packed.get_buffer(own)
        state[theirs] = buffer if theirs in packed._shared else buffer[slot]
    missing, unexpected = module.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(each == "head.weight" for each in missing)  # where it is tied
    return module


@EVERY
def test_a_pack_equals_a_loop_over_its_modules(name, options):
    packed, tokens = make(name, **options), strings()
    logits = packed(tokens)
    logits.square().sum().backward()
    for slot in range(3):
        module = single(packed, slot, name, options)
        theirs = module(tokens[slot])
        assert_same(logits[slot], theirs)
        theirs.square().sum().backward()
        for own, parameter in packed.named_parameters():
            expected = module.get_parameter(packed._names[own]).grad
            assert expected.abs().max() > 0
            assert_same(parameter.grad[slot], expected)


@EVERY
def test_a_pack_of_one_equals_the_slot_of_a_pack_of_three(name, options):
    together, alone = make(name, **options), make(name, (1,), **options)
    tokens = strings()
    ours, own = together(tokens), alone(tokens[1:2])
    assert_same(ours[1], own[0])
    ours.square().sum().backward()
    own.square().sum().backward()
    for one, other in zip(together.parameters(), alone.parameters(), strict=True):
        assert_same(one.grad[1], other.grad[0])


@EVERY
def test_initial_weights_follow_from_the_seed_alone(name, options):
    state = torch.random.get_rng_state()
    together, alone, last = make(name, **options), make(name, (1,), **options), make(name, (7, 8, 9, 1), **options)
    assert torch.equal(state, torch.random.get_rng_state())
    for one, other, another in zip(together.parameters(), alone.parameters(), last.parameters(), strict=True):
        assert torch.equal(one[1], other[0])
        assert torch.equal(one[1], another[3])
    assert not torch.equal(together.get_parameter("embed__weight")[0], together.get_parameter("embed__weight")[1])


def test_a_constant_of_the_seed_is_each_replicates_own():
    together, alone = make("Features"), make("Features", (1,))
    assert together.get_buffer("constant__random").shape == (3, 8)
    assert together.get_buffer("constant__same").shape == (8,)  # one for all
    assert torch.equal(together.get_buffer("constant__random")[1], alone.get_buffer("constant__random"))
    assert [name for name in together.state_dict() if "constant" in name] == []


def test_each_seed_gives_the_weights_of_the_class_under_torchs_generator():
    packed = make("Conv", (3,), width=24)
    low, high = Draw(torch.tensor([3]), "init").named("custom").words((2,))[0].tolist()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(low | (high & 0x7FFFFFFF) << 32)
        module = custom_modules.Conv(5, 12, width=24)
    for name, parameter in module.named_parameters():
        assert torch.equal(packed.get_parameter(name.replace(".", "__"))[0], parameter)


@pytest.mark.parametrize("name", ["Conv", "Attention", "Recurrent"])
def test_bf16_equals_a_loop_in_bf16(name):
    packed, tokens = make(name), strings()
    with torch.autocast("cpu", torch.bfloat16):
        logits = packed(tokens)
        for slot in range(3):
            theirs = single(packed, slot, name, {})(tokens[slot])
            torch.testing.assert_close(logits[slot].float(), theirs.float(), rtol=0.05, atol=0.05)


def test_tied_weights_are_one_parameter():
    assert [name for name, _ in make("Attention").named_parameters()] == ["place", "embed__weight", "qkv__weight", "qkv__bias"]


def test_needed_positions_are_gathered():
    packed = make("Conv")
    tokens = strings()
    block = torch.tensor([2, 7]).expand(3, 4, 2)
    assert torch.equal(packed(tokens, (block,)), packed(tokens)[:, :, [2, 7]])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Dropout", "draws random numbers in forward"),
        ("Rand", "draws random numbers in forward"),
        ("Undefined", r"returned NaN for tokens \[2, \d+\] before any training: its forward must return numbers"),
        ("NumpyRandom", "draws random numbers in forward"),
        ("Depth", "draws random numbers in forward"),
        ("Seen", "changes generator in forward"),
        ("BatchNorm", "changes norm.num_batches_tracked, norm.running_mean, norm.running_var in forward"),
        ("BatchStatistics", "other logits for a string alone than beside another one"),
        ("Squeezed", "other logits for a string alone than beside another one"),
        ("Counter", "changes calls in forward"),
        ("Cache", r"changes _cache\['last'\] in forward"),
        ("Running", "changes seen in forward"),
        ("Shrinking", "changes head.weight in forward"),
        ("Clamped", "changes head.weight in forward"),
        ("Elsewhere", "other logits for the same tokens when called again"),
        ("Slowly", "other logits for the same tokens when called again: it keeps state outside itself"),
        ("Annealed", "other logits for the same tokens when called again: it keeps state outside itself"),
        ("Steadily", "other logits for the same tokens when called again: it keeps state outside itself"),
        ("Once", r"raised StopIteration in forward for int64 tokens .*\(\w+.py, line \d+\)"),
        ("OnlyTraining", r"other logits after module.eval\(\): a module stays in training mode here, in evaluation too"),
        ("ForUse", r"other logits after module.eval\(\)"),
        ("OneWay", r"raised RuntimeError in backward for int64 tokens .*: no way back \(\w+.py, line \d+\)"),
        ("Compiled", "head is compiled, which a pack can't be: leave torch.compile out"),
        ("Padded", "the gradient of embed.weight in a pack .* torch.func ignores padding_idx: leave padding_idx out"),
        ("Projection", "projection differs between seeds and is no parameter: keep it with register_buffer"),
        ("Aside", "returns other logits in a pack than alone"),
        ("NumpyMade", "draws from `random` or `numpy.random` when it is made"),
        ("Reseeding", "calls torch.manual_seed when it is made: every replicate would be the same"),
        ("Growing", "number differs between two modules made from one seed"),
        ("Colliding", "would be called head__weight in a pack, a name that is taken: rename it"),
        ("Last", r"returned torch.float32 \[2, 5\] for tokens \[2, 12\]: its forward must return float32 logits \[2, 12, 5\]"),
        ("Whole", r"returned torch.int64 \[2, 12, 5\] for tokens"),
        ("Half", r"returned torch.float16 \[2, 12, 5\] for tokens \[2, 12\]: its forward must return float32 logits"),
        ("Fixed", r"parameter embed.weight is frozen \(requires_grad is False\)"),
        ("Integers", "parameter table is torch.int64, and must be torch.float32; make it a buffer if it is fixed"),
        ("Double", "parameter embed.weight is torch.float64, and must be torch.float32"),
        ("Complex", "parameter turn is torch.complex64, and must be torch.float32"),
        ("SparseTable", r"parameter table is sparse \(torch.sparse_coo\), and must be dense"),
        ("Sparse", "the gradient of embed.weight is sparse: write sparse=False"),
        ("Lazy", "parameter head.weight has no shape yet"),
        (
            "Heads",
            r"raised RuntimeError when it was called with vocabulary, length: 3 heads do not divide 8 \(\w+.py, line \d+\)",
        ),
        ("Mismatched", r"raised RuntimeError in forward for int64 tokens .*\(\w+.py, line \d+\)"),
    ],
)
def test_what_is_no_function_of_weights_and_tokens_is_refused(name, reason):
    state = torch.random.get_rng_state()
    with pytest.raises(ValueError, match=reason):
        make(name)
    with pytest.raises(ValueError, match=reason):
        make(name, (1,))  # alone too: whether a model can be trained is no matter of its pack
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("no_such_module:Conv", {}, "No module named 'no_such_module'"),
        ("my_models:", {}, "must be MODULE:CLASS, such as my_models:Mamba$"),
        (
            "my-models:Conv",
            {},
            "CLASS: write my_models:Conv; no module has a hyphen in its name, so rename its file to my_models.py$",
        ),
        ("my-own/conv-net.py:Conv", {}, "CLASS: write my_own.conv_net:Conv; .* rename its file to my_own/conv_net.py$"),
        ("my_models.py:Conv", {}, "must be MODULE:CLASS: write my_models:Conv$"),
        ("./my_own/models.py:Conv", {}, "must be MODULE:CLASS: write my_own.models:Conv$"),
        ("my_models:Conv-2", {}, "must be MODULE:CLASS, such as my_models:Mamba$"),
        (":Mamba", {}, "must be MODULE:CLASS, such as"),
        (".my_models:Mamba", {}, "must be MODULE:CLASS: write my_models:Mamba$"),
        (f"{HERE}:Attentoin", {}, r"has no Attentoin; did you mean Attention\?"),
        (f"{HERE}:Needy", {}, "model.width is missing"),
        (f"{HERE}:Named", {}, "its `rev` is .*, and must be a whole number"),
        (f"{HERE}:Open", {"rev": 2}, "model.rev is the revision of .* attribute of the class"),
        (f"{HERE}:Open", {"scale": float("nan")}, "must be a finite number"),
        (f"{HERE}:NotAModule", {}, "is no subclass of torch.nn.Module"),
        (f"{HERE}:Sizeless", {"width": 3}, "takes no argument `vocabulary`"),
        (f"{HERE}:Conv", {"widht": 3}, r"model.widht is not an option of .*; did you mean model.width\?"),
        (f"{HERE}:Conv", {"length": 3}, "model.length is given by the task"),
        (f"{HERE}:Conv", {"width": {"a": 1}}, "must be a finite number, a word, true, false, null or a list"),
    ],
)
def test_a_wrong_name_or_option_is_one_sentence(path, options, reason):
    with pytest.raises(ValueError, match=reason):
        configure(path, **options)


def test_a_class_that_can_not_be_called_and_one_without_outputs_are_refused():
    with pytest.raises(ValueError, match=r"called with vocabulary, length, width, outputs: .* \(custom_modules.py, line \d+\)"):
        make("Conv", width=None)
    with pytest.raises(ValueError, match=r"no argument `outputs`.* 3 classes"):
        configure(f"{HERE}:Attention").make(Draw(torch.tensor([0]), "init"), 5, 12, outputs=3)
    assert (
        configure(f"{HERE}:Conv")
        .make(Draw(torch.tensor([0]), "init"), 5, 12, outputs=3)(torch.zeros(1, 2, 12).long())
        .shape[-1]
        == 3
    )
    with pytest.raises(ValueError, match="hands out no attention"):
        make("Conv")(torch.zeros(3, 2, 12).long(), attend=print)


def test_options_reach_the_class_and_the_key():
    assert configure(f"{HERE}:Needy", width=2).described() == {"name": f"{HERE}:Needy", "rev": 3, "width": 2}
    assert make("Needy", width=2).get_parameter("path").shape == (3, 2)
    assert make("Needy", width=2)(strings()).shape == (3, 4, 12, 5)
    one, other = (
        configure(f"{HERE}:Open", **options) for options in ({"path": [1, 2], "b": None}, {"b": None, "path": (1, 2)})
    )
    assert one == other
    assert hash(one) == hash(other)
    assert make("Open", path=[1, 2])(strings()).shape == (3, 4, 12, 5)


@pytest.mark.parametrize(
    ("text", "reason"), [("1 / 0", "ZeroDivisionError: division by zero"), ("import sys; sys.exit(3)", "SystemExit: 3")]
)
def test_a_module_that_breaks_when_it_is_imported_is_one_sentence(text, reason, tmp_path, monkeypatch):
    (tmp_path / "broken_models.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(ValueError, match=f"importing broken_models raised {reason}"):
        configure("broken_models:Mamba")


@pytest.mark.parametrize(("package", "section"), [("models", "model"), ("tasks", "task")])
def test_a_file_with_the_name_of_one_of_our_packages_is_to_be_renamed(package, section, tmp_path, monkeypatch):
    (tmp_path / f"{package}.py").write_text("class Mine: pass")
    allow(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(
        ValueError, match=rf"{tmp_path}/{package}.py has the name of the package '{package}' of manyseeds.*: rename it"
    ):
        build(section, {"name": f"{package}:Mine"})


def test_running_out_of_memory_stays_what_it_is(monkeypatch):
    def full(self, *arguments):
        raise torch.OutOfMemoryError("vmap: no memory")

    packed = make("Conv")
    monkeypatch.setattr(Packed, "_one", full)
    with pytest.raises(torch.OutOfMemoryError):
        packed(strings())
    with pytest.raises(torch.OutOfMemoryError):
        _check_device(packed, strings()[0])


def test_a_forward_that_raises_for_other_strings_than_those_of_the_check_is_one_sentence():
    packed = make("Attention", width=16, heads=4)
    longer = torch.cat([strings(), strings()], -1)
    with pytest.raises(UnfitModel, match=r"raised RuntimeError in forward for int64 tokens \[4, 24\]: .*\(\w+.py, line \d+\)"):
        packed(longer)


def test_a_tensor_on_another_device_is_one_sentence():
    packed = make("Placed")  # works here
    packed(strings())
    reason = r"the CPU, but line \d+ of custom_modules.py fails on meta \(.*cpu.*\): make constants .* register_buffer, .*tokens.device"
    with pytest.raises(ValueError, match=reason):
        _check_device(packed.to("meta"), strings()[0].to("meta"))  # which stands for CUDA


def test_a_study_names_it_and_a_replicate_is_the_same_in_any_pack_to_rounding():
    model = build("model", {"name": f"{HERE}:Conv", "width": 24})
    assert model == models.configure(f"{HERE}:Conv", width=24)
    one = Condition("mine", build_task("flipflop", length=16), model, Train(steps=20, batch=4, lr=1e-2, warmup=2))
    assert one.config()["model"] == {"name": f"{HERE}:Conv", "width": 24}
    assert from_dict(to_dict(one)).model == model
    cpu = resolve("cpu")
    together, alone = (Training(pack(one, seeds, sets=SETS), cpu) for seeds in ([(1, 1), (2, 2), (3, 3)], [(2, 2)]))
    for state in (together, alone):
        state.advance()
        state.advance()
    assert_same(together.recent[1:3, 1], alone.recent[1:3, 0])
    together.step = 19
    together.advance()
    assert together.record()
    assert {row["set"] for row in together.rows.evaluations} == {"sparse", "online", "dense"}
