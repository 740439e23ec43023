"""Any causal model of a local folder on the English flip-flop: prompts as the card says, counts by hand, rows that readers take."""

import builtins
import json
import re
import shutil

import pytest
import torch

from harness.exchange.language_model import load
from harness.probes.flipflop.language_models import asked, encode, errors, run
from launch.cli import main
from results.claims import scoreboard
from results.store.manifest import manifest_of
from results.store.tables import committed, open_store, read
from tasks.flipflop.english import sentences

CPU = torch.device("cpu")
WORDS = "Alice Bob The light is turns turned the eats a an apple banana off on .".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import tokenizers
    import transformers

    path = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    vocabulary = {word: index for index, word in enumerate(["?", *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(vocabulary), n_positions=120, n_embd=16, n_layer=1, n_head=2, bos_token_id=None, eos_token_id=None
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(path)
    return path


def follow(text):
    """The state after a prompt, and how many sentences it has."""
    said = text.split(". ")
    assert said.pop() == "The light is turned"
    state = None
    for each in said:
        write = re.fullmatch(r"Alice turns the light (on|off)", each)
        answer = re.fullmatch(r"The light is turned (on|off)", each)
        assert write or answer or each in ("Bob eats a banana", "Bob eats an apple"), each
        state = write[1] if write else state
        assert not answer or answer[1] == state
    return state, len(said) + 1


def test_prompts_are_the_cards_and_their_answers_right():
    for length in (16, 64):
        given = asked(length, 200, seed=0)
        assert all(follow(each.text) == (["off", "on"][each.bit], (16 + length) // 2) for each in given)
        assert 60 < sum(each.bit for each in given) < 140
        assert len({each.text for each in given}) > 190
    eaten = sum(each.text.count("Bob") for each in given) / (200 * (7 + 31 - 1))
    assert 0.75 < eaten < 0.85
    assert asked(16, 5, 0) == asked(16, 200, 0)[:5]
    assert asked(16, 5, 1) != asked(16, 5, 0)
    assert sentences([0, 4, 2, 3, 1, 4]) == ["Alice turns the light on", "Bob eats a banana", "The light is turned on"]


def test_errors_are_those_of_one_prompt_after_the_other(folder):
    language = load(folder, CPU)
    given = asked(16, 60, seed=3)
    wrong = 0
    with torch.no_grad():
        for prompt, (tokens, off, on, bit) in zip(given, encode(language, given), strict=True):
            assert language.tokenizer.decode([off, on]).split() == ["off", "on"]
            assert bit == prompt.bit
            logits = language.model(torch.tensor([tokens])).logits[0, -1]
            wrong += int(logits[[off, on][bit]] <= logits[[on, off][bit]])
    assert errors(language, given, CPU) == wrong
    assert 0 < wrong < 60


def test_rows_are_committed_and_lengths_that_do_not_fit_are_named(folder, tmp_path, capsys):
    words = ["language-model", str(folder), "--store", str(tmp_path), "--strings", "40", "--device", "cpu"]
    main([*words, "--lengths", "8,16,64"])
    shown = capsys.readouterr().out
    assert "tiny-gpt2: length 64 is left out, its prompts exceed the model's 120 tokens" in shown
    store = open_store(tmp_path, "language-models")
    (row,) = committed(store).to_pylist()
    rows = read(store, "evaluations").to_pylist()
    assert [each["length"] for each in rows] == [8, 16]
    assert json.loads(row["config"])["model"]["parameters"] == row["parameters"] == load(folder, CPU).parameters
    language = load(folder, CPU)
    assert [each["errors"] for each in rows] == [errors(language, asked(length, 40, 0), CPU) for length in (8, 16)]
    (found,) = scoreboard(store)
    assert (found.claim.id, found.verdict) == ("R3", "too few replicates")
    main([*words, "--lengths", "8,16"])  # the same model, other sets
    assert committed(store).num_rows == 1
    other = folder.rename(folder.with_name("other"))
    try:
        main(["language-model", str(other), "--store", str(tmp_path), "--strings", "40", "--lengths", "8"])
    finally:
        other.rename(folder)
    assert committed(store).num_rows == 2
    assert "R3  too few" in _claims(tmp_path, capsys)
    main(["status", str(tmp_path)])
    assert "2 of 2 replicates committed" in capsys.readouterr().out
    main(["report", str(tmp_path)])
    assert "tiny-gpt2" in (tmp_path / "language-models" / "report" / "index.html").read_text()


def test_models_of_one_study_answer_the_same_strings(folder, tmp_path):
    store = open_store(tmp_path, "m")
    run(store, [folder], [8], 20, device="cpu", say=lambda line: None)
    run(store, [folder], [8], 30, seed=1, device="cpu", say=lambda line: None)  # the same model once more, in its own place
    other = shutil.copytree(folder, tmp_path / "other")
    for strings, seed in ((30, 0), (20, 1)):
        with pytest.raises(
            ValueError, match=r"tiny-gpt2 in the study m answered 30 strings of each length, of seed 1, .*--seed 1"
        ):
            run(store, [other], [8], strings, seed, "cpu", say=lambda line: None)
    run(store, [other], [8, 16], 30, 1, "cpu", say=lambda line: None)
    planned = {row[0]: row[2:4] for row in manifest_of(store)["replicates"]}
    rows = {row["key"]: [row["init_seed"], row["data_seed"]] for row in committed(store).to_pylist()}
    assert planned == {key: rows[key] for key in planned}
    assert len(planned) == 2


def _claims(store, capsys):
    capsys.readouterr()
    with pytest.raises(SystemExit) as raised:
        main(["claims", str(store)])
    assert raised.value.code == 0
    return capsys.readouterr().out


def test_a_model_without_its_tokenizer_is_one_sentence(folder, tmp_path):
    bare = shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("tokenizer*", "special_tokens*"))
    assert sorted(path.name for path in bare.iterdir()) == ["config.json", "generation_config.json", "model.safetensors"]
    with pytest.raises(ValueError, match=r"bare .*tokenizer\.json: save it there"):
        load(bare, CPU)


def test_wrong_folders_and_a_missing_package_are_one_sentence(folder, tmp_path, monkeypatch):
    store = open_store(tmp_path, "m")
    with pytest.raises(ValueError, match="it has no config"):
        run(store, [tmp_path / "nothing"], [8], 2)
    with pytest.raises(ValueError, match="even numbers"):
        run(store, [folder], [7], 2)
    for seed in (-1, 2**63):  # a manifest with such a seed could not be read again, and with it the whole study
        with pytest.raises(ValueError, match=f"--seed {seed} must be a whole number from 0 to 2"):
            run(store, [folder], [8], 2, seed, "cpu", say=lambda line: None)
    with pytest.raises(ValueError, match="no length of 64 fits tiny-gpt2"):
        run(store, [folder], [64], 2, device="cpu", say=lambda line: None)
    with pytest.raises(ValueError, match="have one name"):
        run(store, [folder, folder], [8], 2)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="can't be opened as a causal language model"):
        run(store, [tmp_path / "broken"], [8], 2)
    real = builtins.__import__

    def without(name, *rest):
        if name == "transformers":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match="pip install transformers"):
        load(folder, CPU)
    assert not (tmp_path / "m").exists()
