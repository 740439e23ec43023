"""Tracing a causal Hugging Face model of a local folder: batches equal one string after the other, and a planted cause is found."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks.planted import plant_literal
from harness.draw import Draw
from harness.exchange.language_model import LanguageModel, load
from harness.tracing.answers import said as answers
from harness.tracing.language import TextSettings, ask, replay_text, text_hits, trace_text
from harness.tracing.search import Search
from harness.tracing.text import accepting, category, detect
from harness.tracing.text_methods import TEXT_BASELINES, TextCase, _from_vectors, compare_text
from tests.rounding import rounded

WORDS = "a b c d e f g h i j cat cats dog 1 2 3 12 + - ( ) . , on off".split()
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    import tokenizers
    import transformers

    path = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(["?", *WORDS])}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?", eos_token="?").save_pretrained(path)
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS) + 1, "n_positions": 40, "n_embd": 16, "n_layer": 1, "n_head": 2}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=None, eos_token_id=None))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # so that answers differ
    model.save_pretrained(path)
    return load(path, CPU)


def test_soft_hits_are_probabilities_of_the_answer(language):
    how = TextSettings(strings=40)
    asked = ask(language, "a b c cat d 1", ["on", "dog off"], how, prefix="e f", suffix=".")
    strings = asked.tokens.repeat(50, 1)
    strings[:, 2] = torch.arange(50) % 20
    found = text_hits(asked, strings, how, None)
    ids = {word: index for index, word in enumerate(["?", *WORDS])}
    with torch.no_grad():
        for row, p in zip(strings, found.tolist(), strict=True):
            tokens = torch.tensor([[ids["e"], ids["f"], *row.tolist(), ids["."]]])
            first = language.model(tokens).logits[0, -1].double().softmax(-1)
            second = language.model(torch.cat([tokens, torch.tensor([[ids["dog"]]])], 1)).logits[0, -1].double().softmax(-1)
            assert p == pytest.approx(float(first[ids["on"]] + first[ids["dog"]] * second[ids["off"]]), rel=1e-4)


@torch.no_grad()
def test_sampled_answers_follow_the_models_law_and_the_seed(language):
    how = (3, 0.7)  # tokens, temperature
    strings = torch.tensor([[3, 5, 7]]).repeat(3000, 1)
    draw = Draw(torch.tensor([1]), "evaluate")
    said = answers(language, strings, *how, draw)
    assert said == answers(language, strings, *how, draw)
    assert said[5:9] == answers(language, strings[5:9], *how, draw.rows(5))
    law = (language.model(strings[:1]).logits[0, -1].double() / 0.7).softmax(-1)
    firsts = [text.split()[0] for text in said if text]
    for word in set(firsts):
        p = float(law[1 + WORDS.index(word)])
        assert firsts.count(word) / 3000 == pytest.approx(p, abs=0.04)
    greedy = answers(language, strings[:1], *how, None)[0].split()
    tokens = strings[:1]
    for word in greedy:
        best = int(language.model(tokens).logits[0, -1].argmax())
        assert (["?", *WORDS])[best] == word
        tokens = torch.cat([tokens, torch.tensor([[best]])], 1)
    assert not any("?" in text for text in said)  # the end token ends an answer


@pytest.mark.parametrize("hits", ["soft", "sampled"])
def test_a_text_is_traced_and_replayed(language, hits):
    how = TextSettings(strings=60, nearest=10, hits=hits, new_tokens=4, search=Search(size=3, support=5))
    asked = ask(language, "a b c cat d 1 a g", ["on"], how, seed=3)
    found = trace_text(asked, how)
    assert [len(each.events) for each in found] == [1, 2, 3]
    assert found == trace_text(asked, how)
    assert set(found[2].events) <= set(asked.tokens.tolist())
    played = replay_text(asked, found[2].events, how, 20)
    assert set(played) == {"near", "rand", "moved", "srep"}
    assert played["srep"] == rounded((played["near"] + played["rand"] + played["moved"]) / 3)
    assert all(0 <= value <= 1 for value in played.values())


class Planted(torch.nn.Module):
    """A planted cause behind the interface of a causal language model."""

    def __init__(self, defect):
        super().__init__()
        self.defect, self.table = defect, torch.nn.Embedding.from_pretrained(defect.embeddings)

    def get_input_embeddings(self):
        return self.table

    def forward(self, input_ids, use_cache=False):
        return SimpleNamespace(logits=self.defect(input_ids[None])[0])


class Numbers:
    """A tokenizer of numbers."""

    all_special_ids = ()

    def __call__(self, text, add_special_tokens=True):
        return {"input_ids": [int(word.strip("#")) for word in text.split()]}

    def decode(self, ids):
        return " ".join(f"#{token}#" for token in ids)


def test_a_planted_cause_is_found_through_the_adapter():
    for number in range(3):
        defect = plant_literal(number, 0.5)
        language = LanguageModel(Numbers(), "planted", None, "", Planted(defect), 0)
        how = TextSettings(nearest=10, search=Search(size=3))
        text = Numbers().decode(defect.prompt.tolist())
        asked = ask(language, text, [f"#{defect.target}#"], how)
        assert trace_text(asked, how)[-1].events == defect.cause
        assert replay_text(asked, defect.cause, how)["srep"] > 0.5 > replay_text(asked, defect.cause[:2], how)["srep"]


def test_methods_are_compared_on_a_planted_cause():
    defect = plant_literal(1, 0.8)
    language = LanguageModel(Numbers(), "planted", None, "", Planted(defect), 0)
    how = TextSettings(nearest=10, search=Search(size=3))
    asked = ask(language, Numbers().decode(defect.prompt.tolist()), [f"#{defect.target}#"], how)
    found = compare_text(asked, how, 3, ["lime", "leave-one-out", "random"], strings=60)
    assert list(found) == ["trace", "lime", "leave-one-out", "random"]
    assert found["trace"] == replay_text(asked, defect.cause, how, 60)
    assert found["trace"]["srep"] > 0.8
    assert found["lime"] == found["leave-one-out"] == found["trace"]
    assert found["random"]["srep"] < 0.2
    with pytest.raises(ValueError, match=r"'reagent' .*random, leave-one-out"):
        compare_text(asked, how, 3, ["reagent"])
    with pytest.raises(ValueError, match="k = 0 must be 1 to 24"):
        compare_text(asked, how, 0)


def test_attention_is_that_of_the_last_token(language):
    how = TextSettings(strings=40)
    asked = ask(language, "a b c cat d 1", ["on"], how, prefix="e f", suffix=".")
    before = language.model.config._attn_implementation
    scores = TEXT_BASELINES["attention"](TextCase(asked, how, torch.empty(0), torch.empty(0)))
    assert language.model.config._attn_implementation == before
    block, ids = language.model.transformer, torch.tensor([[5, 6, *asked.tokens.tolist(), len(WORDS) - 3]])
    with torch.no_grad():
        x = block.h[0].ln_1(block.wte(ids) + block.wpe(torch.arange(9)))
        query, key, _ = block.h[0].attn.c_attn(x)[0].split(16, dim=-1)
        weights = torch.stack([(query[-1, part] @ key[:, part].T / 8**0.5).softmax(-1) for part in (slice(8), slice(8, 16))])
    assert scores.tolist() == pytest.approx(weights.mean(0)[2:8].tolist(), abs=1e-5)


def test_gradients_of_a_text_are_those_of_finite_differences(language):
    pytest.importorskip("captum")
    how = TextSettings(strings=40)
    asked = ask(language, "a b c cat d 1", ["on", "dog off"], how, prefix="e f", suffix=".")
    language.model.double()
    try:
        case = TextCase(asked, how, torch.empty(0), torch.empty(0))
        scores = TEXT_BASELINES["gradient-input"](case)
        said, vectors, _ = _from_vectors(case)
        with torch.no_grad():
            assert float(said(vectors).exp()) == rounded(float(text_hits(asked, asked.tokens[None], how, None)))
            for place in range(6):
                step = torch.zeros_like(vectors)
                step[:, place] = 1e-6 * vectors[:, place]
                slope = float(said(vectors + step) - said(vectors - step)) / 2e-6
                assert float(scores[place]) == pytest.approx(slope, rel=1e-4, abs=1e-7)
        shap = TEXT_BASELINES["gradient-shap"](case)
        assert torch.equal(shap, TEXT_BASELINES["gradient-shap"](case))
    finally:
        language.model.float()
    sampled = TextSettings(hits="sampled", new_tokens=2)
    case = TextCase(ask(language, "a b", ["on"], sampled), sampled, torch.empty(0), torch.empty(0))
    with pytest.raises(ValueError, match="gradients need hits = 'soft'"):
        TEXT_BASELINES["gradient-input"](case)
    assert bool(TEXT_BASELINES["leave-one-out"](case).isfinite().all())


def test_targets_are_said_by_any_string_or_all_of_a_tuple():
    assert detect(["cat", ("x", "y")], "The CAT sat")
    assert not detect([("cat", "dog")], "the cat")
    assert detect([("cat", "dog")], "dogs and cats")


def test_neighbours_are_of_one_category_and_no_part_of_the_word(language):
    ids = {word: index for index, word in enumerate(["?", *WORDS])}
    accept = accepting(language.tokenizer)
    some = [ids[word] for word in ("?", "cat", "cats", "dog", "1", "on", "on")]
    assert accept(ids["cat"], some) == [ids["dog"], ids["on"]]
    assert accept(ids["1"], [ids[word] for word in ("12", "2", "a", "1")]) == [ids["2"]]
    kinds = {
        " ": "whitespace",
        "12": "digit",
        "cat": "word",
        "+": "operator",
        "(": "bracket",
        ".": "punctuation",
        "4th": "unknown",
    }
    assert {text: category(text) for text in kinds} == kinds


def test_texts_that_cannot_be_traced_are_one_sentence(language):
    how = TextSettings()
    for text, targets, said in (
        ("a cat b", ["CAT"], "the target 'CAT' stands in the text itself"),
        ("a b", [], "there is no target"),
        ("a b", [""], "a target is an empty string"),
        ("a b", [("on", "off")], "needs hits = 'sampled'"),
        ("a b", ["on", "on off"], "none begins another"),
        (" ", ["on"], "the text has no token"),
        ("a " * 50, ["on"], "have 51 tokens, and tiny-gpt2 takes 40"),
    ):
        with pytest.raises(ValueError, match=said):
            ask(language, text, targets, how)
    with pytest.raises(ValueError, match="hits = 'hard' must be soft or sampled"):
        TextSettings(hits="hard")
    with pytest.raises(ValueError, match="temperature above 0"):
        TextSettings(temperature=0)
    few = TextSettings(strings=3)
    with pytest.raises(ValueError, match="no token stands in 32 of the 3 strings"):
        trace_text(ask(language, "a b c", ["on"], few), few)
