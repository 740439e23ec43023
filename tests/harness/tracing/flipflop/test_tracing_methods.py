"""Traces, S_rep and baselines on models whose cause is known, and attention and gradients on constructions."""

import builtins
import math

import pytest
import torch

import models
from benchmarks.planted import plant
from harness.draw import Draw
from harness.tracing.flipflop.baselines import last_write, leave_one_out, lime, random_scores, top
from harness.tracing.flipflop.corpus import FAMILIES, conditioned
from harness.tracing.flipflop.hits import hits, wrongness
from harness.tracing.flipflop.network import attends, attention, gradient_input, gradient_shap, rollout
from harness.tracing.flipflop.prompt import prompt_of
from harness.tracing.flipflop.replay import replay
from harness.tracing.flipflop.trace import Settings, evidence, searched, trace
from harness.tracing.last_logits import logits_at
from harness.tracing.search import Search
from tasks.flipflop.flipflop import SYMBOL, FlipFlop
from tests.rounding import rounded, rounded_single

QUICK = Settings(strings=1024, search=Search(size=3))


def planted(family, number=2, effect=0.8):
    defect = plant(family, number, effect, 48)
    return defect, prompt_of(defect.task, defect.prompt)


def a_model(seed=0, layers=2, **options):
    fields = {"layers": layers, "width": 16, "heads": 2} | options
    return models.build("transformer", Draw(torch.tensor([seed]), "init"), vocabulary=5, length=48, **fields)


def test_a_trace_is_a_function_of_model_prompt_settings_and_seed():
    defect, prompt = planted("offsets")
    first, again, other = trace(defect, prompt, QUICK, 0), trace(defect, prompt, QUICK, 0), trace(defect, prompt, QUICK, 1)
    assert first == again
    assert first.causes[0].support != other.causes[0].support
    assert set(first.of(2).events) == defect.truth[0] == set(other.of(2).events)
    assert first.of(9) == first.causes[-1]
    assert first.best.bound == max(each.bound for each in first.causes)
    assert first.of(2).psi == rounded(math.log(first.of(2).mean / first.of(2).base))


@pytest.mark.parametrize(
    "change", [{"hits": "hard"}, {"target": "token"}, {"anchors": "offset"}, {"masking": "bernoulli"}, {"family": "gen"}]
)
def test_a_cause_is_found_in_every_form_of_the_trace(change):
    defect, prompt = planted("offsets")
    assert (
        set(trace(defect, prompt, Settings(strings=2048, search=Search(size=2), **change), 0).of(2).events) == defect.truth[0]
    )


def test_offsets_tell_a_distance_from_a_position():
    """On strings of many lengths an event at one position goes with the error where it is looked for there, and not at its distance."""
    defect, prompt = planted("absolute")
    (place,) = defect.truth[0]
    assert trace(defect, prompt, QUICK, 0).of(1).events == (place,)
    here, moved = (evidence(defect, prompt, Settings(anchors=anchors, strings=2048), 0) for anchors in ("position", "offset"))
    assert float(here.hit[here.same[:, place]].mean()) > 0.8
    assert float(moved.hit[moved.same[:, place]].mean()) < 0.3


def test_the_slice_of_the_target_keeps_the_truth():
    defect, prompt = planted("guarded")
    whole, part = (evidence(defect, prompt, Settings(target=target, strings=500), 0) for target in ("error", "token"))
    assert len(whole.hit) == 500
    assert len(part.hit) == round(500 * whole.preserved) < 500
    with pytest.raises(ValueError, match=r"target = 'token' .* 64: write error"):
        evidence(*planted("order"), Settings(target="token", strings=50), 0)


def test_srep_is_the_share_of_wrong_reads_around_the_events():
    defect, prompt = planted("offsets")
    cause = replay(defect, prompt, sorted(defect.truth[0]), 0, 300)
    assert cause.hard == dict.fromkeys(FAMILIES, 1.0)
    assert cause.srep == 1.0
    assert all(0.8 < value < 0.9 for value in cause.soft.values())
    nothing = replay(defect, prompt, [], 0, 300)
    assert nothing.srep < 0.2
    for family in FAMILIES:
        corpus = conditioned(prompt, [], family, 300, prompt.draw(0))
        soft, hard = hits(defect, corpus)
        assert nothing.hard[family] == rounded(float(hard[corpus.known].mean()))
        assert nothing.soft[family] == rounded(float(soft[corpus.known].mean()))
        kept = (corpus.truth == prompt.truth)[corpus.known].double().mean()
        assert nothing.preserved[family] == rounded(float(kept))


def test_an_absolute_cause_is_lost_in_shifted_strings():
    numbers = [n for n in range(20) if min(planted("absolute", n)[0].truth[0]) > 5][:2]
    for number in numbers:
        defect, prompt = planted("absolute", number)
        found = replay(defect, prompt, sorted(defect.truth[0]), 0, 300)
        assert found.hard["type"] == found.hard["gen"] == 1.0
        assert found.hard["shift"] < 0.5
    assert "shift" not in replay(defect, prompt, [0], 0, 20).hard
    assert math.isnan(replay(defect, prompt, [0], 0, 20, ["shift"]).srep)


def test_baselines_on_a_planted_cause():
    defect, prompt = planted("offsets")
    given = evidence(defect, prompt, QUICK, 0)
    truth = sorted(defect.truth[0])
    assert sorted(lime(given).topk(2).indices.tolist()) == truth
    out = leave_one_out(defect, prompt, 0)
    assert sorted(out.topk(2).indices.tolist()) == truth
    others = [j for j in range(prompt.query) if j not in truth]
    assert float(out[others].abs().max()) < 0.1 < float(out[truth].min())
    scores = last_write(prompt)
    assert int(scores.argmax()) == prompt.last_write
    subsets = {top(random_scores(prompt), 2, prompt, seed) for seed in range(20)}
    assert len(subsets) > 15
    assert top(scores, 1, prompt, 0) == (prompt.last_write,)


def test_lime_is_a_ridge_regression():
    defect, prompt = planted("either")
    given = evidence(defect, prompt, QUICK, 0)
    x, y = given.same[:, :-1].double(), given.hit
    w = lime(given, penalty=3.0)
    b = (y - x @ w).mean()
    gradient = x.T @ (x @ w + b - y) + 3.0 * w
    assert float(gradient.abs().max()) < 1e-8


def test_hits_are_those_of_one_string_after_the_other():
    prompt = planted("absolute")[1]
    model = a_model()
    corpus = conditioned(prompt, [], "shift", 40, prompt.draw(0))
    soft, hard = hits(model, corpus)
    with torch.no_grad():
        for tokens, query, truth, p, wrong in zip(
            corpus.tokens, corpus.query.tolist(), corpus.truth.tolist(), soft.tolist(), hard.tolist(), strict=True
        ):
            among = model(tokens[None, None, : query + 1])[0, 0, -1, SYMBOL:].double().softmax(-1)
            assert p == pytest.approx(1 - float(among[truth]), abs=1e-5)
            assert wrong == (int(among.argmax()) != truth)
    small = logits_at(model, corpus.tokens, corpus.query, size=3)
    assert torch.allclose(small, logits_at(model, corpus.tokens, corpus.query), atol=1e-5)
    soft, hard = wrongness(torch.tensor([[9.0, 9, 9, 1, 0]]), torch.tensor([1]))
    assert (float(soft), float(hard)) == (rounded_single(1 / (1 + math.exp(-1))), 1.0)


def test_attention_is_that_of_the_read_by_event():
    prompt = planted("absolute")[1]
    model = a_model()
    seen = []
    tokens = prompt.tokens[None, None, :-1]
    model(tokens, attend=lambda layer, weights: seen.append(weights[0, 0].detach().double()))
    last = seen[-1].mean(0)[-1]
    expected = [float(last[2 * j] + last[2 * j + 1]) for j in range(prompt.query)]
    assert attention(model, prompt).tolist() == rounded_single(expected)
    flow = torch.eye(tokens.shape[-1], dtype=torch.float64)
    for weights in seen:
        flow = (0.5 * weights.mean(0) + 0.5 * torch.eye(len(flow), dtype=torch.float64)) @ flow
    row = flow[-1]
    assert float(row.sum()) == rounded_single(1)
    assert rollout(model, prompt).tolist() == rounded_single([float(row[2 * j] + row[2 * j + 1]) for j in range(prompt.query)])


def test_gradient_times_input_is_that_of_finite_differences():
    pytest.importorskip("captum")
    prompt = planted("absolute")[1]
    model = a_model().double()
    scores = gradient_input(model, prompt)
    tokens = prompt.tokens[None, None, :-1]
    vectors = model._vectors(tokens).detach()

    def odds(scaled):
        model._vectors = lambda tokens: scaled
        with torch.no_grad():
            logits = model(tokens)[0, 0, -1, SYMBOL:]
        del model._vectors
        return float(logits[1 - prompt.truth] - logits[prompt.truth])

    for event in (0, 5, prompt.query - 1):
        step = torch.zeros_like(vectors)
        step[:, :, 2 * event : 2 * event + 2] = vectors[:, :, 2 * event : 2 * event + 2] * 1e-5
        difference = (odds(vectors + step) - odds(vectors - step)) / 2e-5
        assert float(scores[event]) == pytest.approx(difference, rel=1e-3, abs=1e-7)


def test_gradient_shap_adds_up_and_follows_from_its_seed():
    """Shapley values of the path: they sum to the difference between the prompt and the origin, as its samples grow."""
    pytest.importorskip("captum")
    import numpy as np

    prompt = planted("absolute")[1]
    model = a_model(layers=1).double()
    state = np.random.get_state()[1].tolist()
    scores = gradient_shap(model, prompt, 0)
    assert torch.equal(scores, gradient_shap(model, prompt, 0))
    assert not torch.equal(scores, gradient_shap(model, prompt, 1))
    assert np.random.get_state()[1].tolist() == state
    assert bool(scores.isfinite().all())
    correlation = torch.corrcoef(torch.stack([scores, gradient_shap(model, prompt, 1)]))[0, 1]
    assert float(correlation) > 0.9


def test_gradients_without_captum_are_refused_in_a_sentence(monkeypatch):
    imported = builtins.__import__

    def missing(name, *rest):
        if name == "captum":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ValueError, match=r"captum: pip install 'manyseeds\[tracing\]'"):
        gradient_input(a_model(), planted("absolute")[1])


def test_attention_and_gradients_are_of_causal_transformers():
    assert attends(a_model())
    assert not attends(a_model(tied=True))
    assert not attends(a_model(causal=False))
    lstm = models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=5, length=48, width=4)
    assert not attends(lstm)
    prompt = planted("absolute")[1]
    found = trace(lstm, prompt, Settings(strings=128, search=Search(size=1)), 0)
    assert len(found.causes) == 1


def test_settings_and_traces_that_cannot_be():
    with pytest.raises(ValueError, match=r"family = 'bert' .*type, gen, iid, shift"):
        Settings(family="bert")
    with pytest.raises(ValueError, match="strings = 0 must be at least 1"):
        Settings(strings=0)
    defect, prompt = planted("absolute")
    given = evidence(defect, prompt, Settings(strings=20), 0)
    with pytest.raises(ValueError, match="no event of the prompt is in at least 32 of the 20 strings"):
        searched(given, prompt, Search())
    assert isinstance(prompt.task, FlipFlop)
