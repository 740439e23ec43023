"""One replicate out and in again: our own folders bit for bit, Hugging Face's GPT-2 and BERT to float32 rounding."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import models
from harness.draw import Draw
from harness.exchange import from_bert, from_gpt2, load, to_bert, to_gpt2
from harness.exchange.folder import write_folder
from harness.exchange.gpt2 import fold_bias
from harness.exchange.replicate import find
from harness.run import run
from harness.study.load import load as load_study
from harness.training import weights as artifacts
from harness.training.pack_state import Training
from launch.cli import main
from models.custom.custom import allow
from results.rows.keys import resolve_key
from results.store.tables import committed, open_store
from tests.harness.packs import condition, pack
from tests.harness.tiny import write_study
from tests.rounding import assert_same

ROOT = Path(__file__).parents[3]
# Both sides compute in float64, from parameters that are kept in float32: 2^6 of those roundings may reach a logit.
STORED = 2**6 * int(torch.finfo(torch.float32).eps / torch.finfo(torch.float64).eps)
GPT2 = {"layers": 2, "width": 32, "heads": 4}
BERT = {
    **{"layers": 2, "width": 32, "heads": 4, "causal": False, "norm": "post", "bias": True},
    **{"embedding_norm": True, "head": "transform"},
}


def _pack(vocabulary=7, length=12, replicates=2, **fields):
    """A pack in which no parameter has a special value, such as a gain of 1 or a bias of 0."""
    model = models.build(
        "transformer", Draw(torch.arange(replicates) + 3, "init"), vocabulary=vocabulary, length=length, **fields
    )
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def _tokens(vocabulary=7, length=12, replicates=2):
    return torch.randint(vocabulary, (replicates, 3, length), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def hugging_face(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import transformers

    return transformers


def _open(kind, folder):
    """A folder as that library opens it, with nothing missing and nothing left over."""
    model, report = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    return model


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tied": True, "bias": True, "activation": "relu"},
        {"positions": "none", "feed_forward": 24},
        {"positions": "sinusoidal", "head_bias": False},
        {"positions": "linear"},
        {"initial": "gpt2", "shift": 5, "attention_dropout": 0.1},
        {"positions": "sinusoidal", "shift": 5, "head_dim": 8},
    ],
)
def test_a_replicate_as_gpt2_gives_the_same_logits_there_and_back(fields, tmp_path, hugging_face):
    ours, tokens = _pack(**GPT2 | fields), _tokens()
    to_gpt2(ours, tmp_path / "out", slot=1, about={"key": "ab"})
    theirs = _open(hugging_face.GPT2LMHeadModel, tmp_path / "out")
    assert theirs.config.manyseeds == {"key": "ab"}
    wanted = ours.double()(tokens)[1]
    assert_same(theirs.double()(tokens[1]).logits, wanted, roundings=STORED)
    assert_same(from_gpt2(tmp_path / "out").double()(tokens[1:])[0], wanted, roundings=STORED)


@pytest.mark.parametrize("fields", [{}, {"tied": True, "activation": "relu"}, {"bias": False, "head_bias": False, "shift": 3}])
def test_a_replicate_as_bert_gives_the_same_logits_there_and_back(fields, tmp_path, hugging_face):
    ours, tokens = _pack(**BERT | fields), _tokens()
    to_bert(ours, tmp_path / "out", slot=1)
    theirs = _open(hugging_face.BertForMaskedLM, tmp_path / "out")
    wanted = ours.double()(tokens)[1]
    assert_same(theirs.double()(tokens[1]).logits, wanted, roundings=STORED)
    assert_same(from_bert(tmp_path / "out").double()(tokens[1:])[0], wanted, roundings=STORED)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_tokens_that_nobody_attends_to_are_those_of_an_attention_mask(kind, attention, tmp_path, hugging_face):
    """Padding and, as in the authors' code of masked prediction, tokens inside a string; not the first, all that GPT-2 sees there."""
    ours, tokens = _pack(**(BERT if kind == "bert" else GPT2)), _tokens()
    hidden = (tokens * 3 + torch.arange(12)) % 4 == 0
    hidden[..., 0] = False
    hidden[:, 1, 8:] = True
    write, opened = (to_bert, hugging_face.BertForMaskedLM) if kind == "bert" else (to_gpt2, hugging_face.GPT2LMHeadModel)
    write(ours, tmp_path / "out", slot=1)
    theirs = opened.from_pretrained(tmp_path / "out", attn_implementation=attention).double()
    wanted = theirs(tokens[1], attention_mask=(~hidden[1]).long()).logits
    assert_same(ours.double()(tokens, hidden=hidden)[1], wanted, roundings=STORED)
    assert not torch.allclose(ours(tokens)[1], wanted, atol=1e-3)


def _theirs(library, kind, tied):
    if kind == "gpt2":
        config = library.GPT2Config(
            vocab_size=7, n_positions=12, n_embd=32, n_layer=2, n_head=4, activation_function="gelu", tie_word_embeddings=tied
        )
        model = library.GPT2LMHeadModel(config)
    else:
        config = library.BertConfig(
            **{"vocab_size": 7, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48},
            **{"max_position_embeddings": 12, "layer_norm_eps": 1e-5, "pad_token_id": None, "tie_word_embeddings": tied},
        )
        model = library.BertForMaskedLM(config)
    return model.eval()


@pytest.mark.parametrize("start", ["as initialised", "all parameters moved"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_outputs_and_every_gradient_equal_hugging_face(kind, tied, start, tmp_path, hugging_face):
    torch.manual_seed(0)
    theirs = _theirs(hugging_face, kind, tied)
    if start == "all parameters moved":
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
    theirs.save_pretrained(tmp_path / "theirs")
    back = {"gpt2": from_gpt2, "bert": from_bert}[kind]
    ours, tokens = back(tmp_path / "theirs").double(), _tokens(replicates=1)
    logits, other = ours(tokens), theirs.double()(tokens[0]).logits
    assert_same(logits[0], other, roundings=STORED)
    weights = torch.randn(other.shape, dtype=torch.float64)
    (logits[0] * weights).sum().backward()
    (other * weights).sum().backward()
    # their gradients take the way of their weights into our layout, where each has its name
    saved = load_file(tmp_path / "theirs" / "model.safetensors")
    named = dict(theirs.named_parameters())
    gradients = {name: named[name].grad for name in saved if named[name].grad is not None}
    unused = {name: torch.zeros_like(saved[name]) for name in saved if name not in gradients}
    assert set(unused) <= {"cls.predictions.bias"}  # of an untied BERT, which adds its decoder's
    types = "bert.embeddings.token_type_embeddings.weight"
    if types in gradients:  # added to the positions on the way in, and so are not of their gradient
        gradients[types] = torch.zeros_like(gradients[types])
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    write_folder(tmp_path / "gradients", config, gradients | unused)
    wanted = dict(back(tmp_path / "gradients").named_parameters())
    assert len(wanted) > 30
    for name, parameter in ours.named_parameters():
        assert_same(parameter.grad, wanted[name].detach().double(), name, roundings=STORED)


@pytest.mark.parametrize(
    ("write", "fields", "sentence"),
    [
        (to_gpt2, {"positions": "rotary"}, "model.positions = rotary is not in a Hugging Face GPT-2, which has learned or"),
        (to_gpt2, {"positions": "alibi"}, "use the format safetensors"),
        (to_gpt2, {"activation": "swiglu"}, "model.activation = swiglu"),
        (to_gpt2, {"norm": "none"}, "model.norm = none"),
        (to_gpt2, {"final_norm": False}, "model.final_norm = false"),
        (to_gpt2, {"residual": False}, "model.residual = false"),
        (to_gpt2, {"join": "average"}, "model.join = average"),
        (to_gpt2, {"head_dim": 4}, "model.heads · model.head_dim = 4 · 4 is not model.width = 32"),
        (to_gpt2, {"feed_forward": 0}, "model.feed_forward = 0"),
        (to_gpt2, {"embedding_norm": True}, "model.embedding_norm = true"),
        (
            to_gpt2,
            BERT,
            "model.causal = false is not in a Hugging Face GPT-2, which has true: use the format bert or safetensors",
        ),
        (to_bert, {}, "model.causal = true is not in a Hugging Face BERT, which has false: use the format gpt2 or safetensors"),
        (to_bert, BERT | {"head": "linear"}, "model.head = linear"),
        (to_bert, BERT | {"norm": "pre"}, "model.norm = pre"),
        (to_bert, BERT | {"embedding_norm": False}, "model.embedding_norm = false"),
    ],
)
def test_an_option_that_does_not_fit_is_named(write, fields, sentence, tmp_path):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        write(_pack(**GPT2 | fields), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_classes_that_are_not_the_tokens_and_other_models_do_not_fit(tmp_path):
    config = models.configure("transformer", **GPT2)
    other = config.make(Draw(torch.tensor([0]), "init"), 7, 12, 3)
    with pytest.raises(ValueError, match="3 output classes for 7 tokens"):
        to_gpt2(other, tmp_path / "out")
    with pytest.raises(ValueError, match="the model is lstm, and a Hugging Face GPT-2 is a transformer"):
        to_gpt2(models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=7, length=12, width=8), tmp_path / "out")
    with pytest.raises(ValueError, match=re.escape("slot = 2 is outside 0 … 1")):
        to_gpt2(_pack(**GPT2), tmp_path / "out", slot=2)


def test_a_head_bias_is_folded_exactly_or_refused(tmp_path):
    generator = torch.Generator().manual_seed(0)
    weight, bias, shift = (torch.randn(shape, generator=generator) for shape in ((9, 9), (9,), (9,)))
    folded = fold_bias(weight, shift, bias)
    rounded = (
        torch.finfo(torch.float32).eps / 2 * float((weight.abs() @ folded.abs()).max())
    )  # what is folded is kept in float32
    torch.testing.assert_close(weight.double() @ folded.double(), weight.double() @ shift.double() + bias, rtol=0, atol=rounded)
    assert torch.equal(fold_bias(weight, shift, torch.zeros(9)), shift)
    weight[3] = weight[4]
    with pytest.raises(ValueError, match=r"9 rows of the head .*9 dimensions"):
        fold_bias(weight, shift, bias)
    with pytest.raises(ValueError, match=r"model\.head_bias can't be folded"):
        to_gpt2(_pack(vocabulary=40, **GPT2), tmp_path / "out")
    with pytest.raises(ValueError, match="the replicate diverged"):
        fold_bias(weight * torch.nan, shift, bias)


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        (
            "gpt2",
            {"activation_function": "gelu_new"},
            "the activation 'gelu_new' and a GPT-2 can be imported with gelu or relu",
        ),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        ("gpt2", {"model_type": "llama"}, "a model of type 'llama', which is not gpt2"),
        ("gpt2", {"n_layer": 1}, "holds transformer.h.1."),
        ("gpt2", {"n_layer": 3}, "lacks transformer.h.2."),
        (
            "gpt2",
            {"n_inner": 64},
            "the weights do not fit the model: blocks.0.down.weight is [128, 32] in the file and [64, 32]",
        ),
        ("bert", {"layer_norm_eps": 1e-12}, "layer_norm_eps = 1e-12 and our transformer has 1e-05"),
        ("bert", {"model_type": "gpt2"}, "which is not bert"),
    ],
)
def test_what_ours_lacks_is_refused_on_import(kind, change, sentence, tmp_path, hugging_face):
    _theirs(hugging_face, kind, True).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match=re.escape(sentence)):
        {"gpt2": from_gpt2, "bert": from_bert}[kind](tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(ValueError, match=re.escape("has no config.json")):
        from_gpt2(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=re.escape("has no model.safetensors")):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x05")
    with pytest.raises(ValueError, match="is not JSON"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        load(tmp_path)
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"safetensors.*config\.json has no 'task'"):
        load(tmp_path)
    to_gpt2(_pack(**GPT2), tmp_path / "gpt2")
    with pytest.raises(ValueError, match="open it with from_gpt2"):
        load(tmp_path / "gpt2")


# ---- from a store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    study = load_study(write_study(folder), ["keep=all", "replicates=2", f"store={folder / 'runs'}"])
    assert run(study, say=lambda text: None) == 0
    return open_store(folder / "runs", "tiny")


@pytest.fixture
def command(store, tmp_path, capsys):
    def call(*words):
        status = 0
        try:
            main(["export", *words, "--store", store.root])
        except SystemExit as ended:
            status = ended.code
        output = capsys.readouterr()
        return status, output.out, output.err

    return call


def _key(store, name):
    return min(row["key"] for row in committed(store).to_pylist() if row["condition"] == name)


@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_a_replicate_of_a_pack_is_loaded_bit_for_bit(model, tmp_path):
    training = Training(pack(condition(model), [1, 2, 3]), torch.device("cpu"))
    for _ in range(10):
        training.advance()
    store, key = open_store(tmp_path / "runs", "tiny"), training.pack.replicates[1].key
    artifacts.write(store, training.pack, training.model, 10)
    kept = find(store, key)
    write_folder(tmp_path / "out", kept.about(), kept.tensors)
    module, task, about = load(tmp_path / "out")
    assert task == training.task
    assert (about["seeds"], about["step"], about["key"]) == ({"init": 2, "data": 2}, 10, key)
    inputs = task.sample(Draw(torch.tensor([1, 2, 3]), "data", 4), 5).inputs
    with torch.no_grad():
        assert torch.equal(module(inputs[1:2])[0], training.model(inputs)[1])


def test_a_users_module_comes_back_with_the_features_that_its_seed_drew(tmp_path):
    allow("tests.models.custom.custom_modules")
    one = condition("tests.models.custom.custom_modules:Features", model_fields={})
    training = Training(pack(one, [1, 2, 3]), torch.device("cpu"))
    training.advance()
    store, key = open_store(tmp_path / "runs", "tiny"), training.pack.replicates[1].key
    artifacts.write(store, training.pack, training.model, 1)
    kept = find(store, key)
    write_folder(tmp_path / "out", kept.about(), kept.tensors)
    module, task, _ = load(tmp_path / "out")
    inputs = task.sample(Draw(torch.tensor([1, 2, 3]), "data", 4), 5).inputs
    with torch.no_grad():
        assert_same(module.double()(inputs[1:2])[0], training.model.double()(inputs)[1])


def test_the_command_writes_each_format(store, command, tmp_path, hugging_face):
    key = _key(store, "transformer")
    for form in ("safetensors", "gpt2"):
        status, said, error = command(key[:8], "--format", form, "--out", str(tmp_path / form))
        assert (status, error) == (0, "")
        assert said == f"{tmp_path / form}: {key} after 40 steps as {form}\n"
    module, task, about = load(tmp_path / "safetensors")
    assert about["key"] == key
    theirs = _open(hugging_face.GPT2LMHeadModel, tmp_path / "gpt2")
    assert theirs.config.manyseeds == about
    inputs = task.sample(Draw(torch.tensor([1]), "data", 4), 5).inputs
    assert_same(theirs.double()(inputs[0]).logits, module.double()(inputs)[0], roundings=STORED)


def test_each_bad_word_is_one_sentence(store, command, tmp_path):
    out = str(tmp_path / "out")
    key = _key(store, "lstm")
    wrong = ("0" if key[0] != "0" else "1") + key[1:]
    for words, sentence in (
        (
            (wrong, "--format", "safetensors"),
            f"no key of the 4 replicates of the study tiny begins with '{wrong}'; did you mean {key}?",
        ),
        (("", "--format", "safetensors"), "no key of the 4 replicates of the study tiny begins with ''"),
        ((key, "--format", "safetensors", "--step", "7"), f"step 7 of {key} was not kept; kept: 40"),
        (
            (key, "--format", "gpt2"),
            "the model is lstm, and a Hugging Face GPT-2 is a transformer: use the format safetensors",
        ),
        ((key, "--format", "safetensors", "--study", "other"), "there is no study 'other' in"),
    ):
        status, said, error = command(*words, "--out", out)
        assert (status, said) == (2, "")
        assert error.startswith("error: ")
        assert sentence in error
        assert error.count("\n") == 1
    assert not os.path.exists(out)
    status, _, error = command(key, "--format", "onnx", "--out", out)
    assert status == 2
    assert "'onnx' is not one of 'gpt2', 'bert', 'safetensors'" in error
    Path(out).mkdir()
    (Path(out) / "mine").write_text("")
    status, _, error = command(key, "--format", "safetensors", "--out", out)
    assert status == 2
    assert "exists already: give the name of a new or empty folder" in error


def test_a_prefix_of_several_keys_and_weights_that_were_not_kept(tmp_path):
    study = load_study(write_study(tmp_path), ["replicates=9", f"store={tmp_path / 'runs'}", "train.steps=1"])
    assert run(study, say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    keys = committed(store)["key"].to_pylist()
    first = next(key[0] for key in keys if sum(other[0] == key[0] for other in keys) > 1)  # 18 keys, 16 digits
    with pytest.raises(ValueError, match=rf"tiny .*{first}: give more digits"):
        resolve_key([store], first)
    with pytest.raises(ValueError, match=r"begins with ''; give the first digits of one, such as [0-9a-f]{8}$"):
        resolve_key([store], "")
    with pytest.raises(ValueError, match=f"were not kept: manyseeds rerun {re.escape(store.shell_word)} "):
        find(store, resolve_key([store], keys[0]))


def test_a_file_of_another_replicate_is_refused(store, tmp_path):
    from results.store.tables import write_file

    key, other = _key(store, "lstm"), "f" * 32
    data = Path(artifacts.path(store, key, 0, 40)).read_bytes()
    copy = open_store(tmp_path, "tiny")
    write_file(copy, artifacts.path(copy, other, 0, 40), data)
    with pytest.raises(ValueError, match=f"holds the weights of {key}"):
        find(copy, other)


def test_transformers_is_not_imported():
    code = "import sys, harness.exchange; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_page_runs_as_printed(store, tmp_path, monkeypatch, hugging_face, capsys):
    page = (ROOT / "docs" / "guides" / "export.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(store.root)
    commands, *code = re.findall(r"^```(?:bash|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    lines = [shlex.split(line, comments=True) for line in commands.replace("4e1f07", _key(store, "transformer")).splitlines()]
    assert len(lines) >= 2
    for words in lines:
        assert words[0] == "manyseeds"
        main(words[1:])
    assert len(code) >= 2
    names: dict = {}
    for block in code:
        exec(block, names)


def test_weights_that_are_not_finite_are_said_to_be(tmp_path, capsys):
    wild = ["train.lr=1e18", "train.warmup=0", "train.weight_decay=1", "train.steps=30"]
    words = ["only=[transformer]", "keep=steps(0)", "replicates=1", f"store={tmp_path / 'runs'}"]
    assert run(load_study(write_study(tmp_path), [*words, *wild]), say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    key = _key(store, "transformer")
    said = {}
    capsys.readouterr()
    for step in (0, 30):
        out = str(tmp_path / f"at-{step}")
        main(["export", store.root, key, "--format", "safetensors", "--step", str(step), "--out", out])
        said[step] = capsys.readouterr().out
    assert said[30] == said[0].replace("-0:", "-30:").replace("after 0 ", "after 30 ").replace(
        "\n", "; it diverged: not all of these weights are finite\n"
    )
