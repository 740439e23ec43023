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
from results.store.tables import committed, list_names, open_store, read
from tasks.flipflop.english import prompts, sentences

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


def other_model(folder, parent):
    """A model with other files, though it gives the same answers."""
    other = shutil.copytree(folder, parent / "other")
    (other / "card.txt").write_text("another model")
    return other


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
    assert errors(language, encode(language, given), CPU) == wrong
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
    for each in rows:
        assert each["errors"] == errors(language, encode(language, asked(each["length"], 40, 0)), CPU)
    (found,) = scoreboard(store)
    assert (found.claim.id, found.verdict) == ("R3", "too few replicates")
    main(["language-model", str(other_model(folder, tmp_path)), "--store", str(tmp_path), "--strings", "40", "--lengths", "8"])
    assert committed(store).num_rows == 2
    assert "R3  too few" in _claims(tmp_path, capsys)
    main(["status", str(tmp_path)])
    assert "2 of 2 replicates committed" in capsys.readouterr().out
    main(["report", str(tmp_path)])
    assert "tiny-gpt2" in (tmp_path / "language-models" / "report" / "index.html").read_text()


def test_models_of_one_study_answer_the_same_strings(folder, tmp_path):
    store = open_store(tmp_path, "m")
    run(store, [folder], [8], 20, device="cpu", say=lambda line: None)
    said = []
    run(store, [folder], [8], 30, seed=1, device="cpu", say=said.append)  # the same model once more, in its own place
    assert said[0] == "tiny-gpt2: its earlier answers, of other files or strings (20 of seed 0), count no longer"
    other = other_model(folder, tmp_path)
    with pytest.raises(ValueError, match="it has no config"):  # before the strings are compared
        run(store, [tmp_path / "nothing"], [8], 20, device="cpu")
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


def planned_lengths(store):
    return {condition["name"]: condition["config"]["task"]["lengths"] for condition in manifest_of(store)["conditions"]}


def rows_of(store):
    """Every committed row but what says where and when it was asked, and whether all that is planned has rows."""
    planned = {row[0] for row in manifest_of(store)["replicates"]}
    assert planned <= set(committed(store)["key"].to_pylist())
    rows = [row for row in read(store, "evaluations").to_pylist() if row["key"] in planned]
    return sorted((row["key"], row["length"], row["errors"]) for row in rows)


def test_what_is_committed_is_not_asked_again(folder, tmp_path, monkeypatch):
    store, at_once, said = open_store(tmp_path, "m"), open_store(tmp_path, "at_once"), []
    run(at_once, [folder], [8, 12, 16], 20, device="cpu", say=lambda line: None)
    run(store, [folder], [8, 16, 64], 20, device="cpu", say=lambda line: None)
    run(store, [folder], [12], 20, device="cpu", say=said.append)  # other lengths stay
    assert said == [f"tiny-gpt2: length 12, {20 - rows_of(store)[1][2]} of 20 right"]
    assert planned_lengths(store) == {"tiny-gpt2": [8, 12, 16]}
    assert rows_of(store) == rows_of(at_once)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr("harness.probes.flipflop.language_models.load", None)  # no weights are needed
    said.clear()
    run(store, [folder], [8, 16, 64], 20, device="cpu", say=said.append)
    assert said == [
        "tiny-gpt2: lengths 8, 16 were answered before and are not asked again",
        "tiny-gpt2: length 64 is left out, its prompts exceed the model's 120 tokens",
    ]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_call_that_ended_between_two_models_goes_on_with_the_second(folder, tmp_path):
    store, other, said = open_store(tmp_path / "runs", "m"), other_model(folder, tmp_path), []

    def stop(line):
        if line.startswith("other"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(store, [folder, other], [8], 20, device="cpu", say=stop)
    assert planned_lengths(store) == {"tiny-gpt2": [8]}
    run(store, [folder, other], [8], 20, device="cpu", say=said.append)
    assert said == [f"{name}: length 8 was answered before and is not asked again" for name in ("tiny-gpt2", "other")]
    assert len(rows_of(store)) == 2


def test_a_call_that_ended_between_two_lengths_asks_only_the_rest(folder, tmp_path):
    store, at_once, said = open_store(tmp_path, "m"), open_store(tmp_path, "at_once"), []
    run(at_once, [folder], [8, 12, 16], 20, device="cpu", say=lambda line: None)

    def stop(line):
        if "length 12" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(store, [folder], [8, 12, 16], 20, device="cpu", say=stop)
    assert committed(store).num_rows == 0
    run(store, [folder], [8, 12, 16], 20, device="cpu", say=said.append)
    assert said == [
        "tiny-gpt2: lengths 8, 12 were answered before and are not asked again",
        f"tiny-gpt2: length 16, {20 - rows_of(store)[2][2]} of 20 right",
    ]
    assert rows_of(store) == rows_of(at_once)
    assert committed(store).num_rows == 1
    assert list_names(store, "checkpoints") == []


def test_a_folder_that_was_renamed_keeps_its_answers(folder, tmp_path):
    store, renamed, said = open_store(tmp_path / "runs", "m"), shutil.copytree(folder, tmp_path / "renamed"), []
    run(store, [folder], [8], 20, device="cpu", say=lambda line: None)
    before = rows_of(store)
    run(store, [renamed], [8], 20, device="cpu", say=said.append)
    assert said == [
        "renamed: length 8 was answered before and is not asked again",
        "renamed: its files are those of tiny-gpt2, whose place it takes",
    ]
    assert planned_lengths(store) == {"renamed": [8]}
    assert rows_of(store) == before


def test_a_length_beyond_the_context_is_left_out_before_its_strings_are_made(folder, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        "harness.probes.flipflop.language_models.prompts", lambda *given: made.append(given[2:]) or prompts(*given)
    )
    said = []
    run(open_store(tmp_path, "m"), [folder], [8, 64, 10**9], 20, device="cpu", say=said.append)
    assert said[2] == f"tiny-gpt2: length {10**9} is left out, its prompts exceed the model's 120 tokens"
    assert made == [(8, 1), (8, 20), (64, 1)]


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
        run(store, [folder, tmp_path / "nothing"], [8], 2)
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
