"""What the trace of a text is compared with: scores of its tokens, float64 [n], of which the k highest are taken."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.machine.global_generators import seeded
from harness.tracing.language import Asked, TextSettings, replay_places, replay_text, text_evidence, text_hits, trace_text
from harness.tracing.scores import SAMPLES, TRIES, captum, ridge
from harness.tracing.tokens import perturbed_tokens
from results.errors import StudyError

TRACE = "trace"
_TIE, _OUT = 1000, 1 << 20  # site of the order of equal scores; first row of the draws of leave-one-out


@dataclass(frozen=True)
class TextCase:
    """The text, how it is traced, and the trace's own strings with their hits."""

    asked: Asked
    how: TextSettings
    strings: Tensor
    hit: Tensor


def _random(case: TextCase) -> Tensor:
    return torch.zeros(len(case.asked.tokens), dtype=torch.float64)


def _lime(case: TextCase) -> Tensor:
    return ridge(case.strings == case.asked.tokens, case.hit)


def _leave_one_out(case: TextCase) -> Tensor:
    """How much the hit falls when one token becomes one of its neighbours, mean over TRIES strings."""
    asked, n = case.asked, len(case.asked.tokens)
    others = perturbed_tokens(asked.tokens, asked.choices, n * TRIES, 1.0, asked.draw.rows(_OUT), "bernoulli")
    at = torch.eye(n, dtype=torch.bool).repeat_interleave(TRIES, 0)
    hit = text_hits(asked, torch.where(at, others, asked.tokens), case.how, asked.draw.rows(_OUT))
    here = text_hits(asked, asked.tokens.repeat(TRIES, 1), case.how, asked.draw.rows(2 * _OUT)).mean()
    return here - hit.view(n, TRIES).mean(-1)


def _attention(case: TextCase) -> Tensor:
    """The attention of the last token in the last layer, mean over heads."""
    model, asked = case.asked.language.model, case.asked
    before = model.config._attn_implementation
    device = next(model.parameters()).device
    tokens = torch.tensor([[*asked.before, *asked.tokens.tolist(), *asked.behind]], device=device)
    model.set_attn_implementation("eager")  # the fused kernels hand out no weights
    try:
        with torch.no_grad():
            weights = model(input_ids=tokens, output_attentions=True, use_cache=False).attentions[-1]
    finally:
        model.set_attn_implementation(before)
    return weights[0, :, -1].double().mean(0).cpu()[len(asked.before) : len(asked.before) + len(asked.tokens)]


def _gradient_input(case: TextCase) -> Tensor:
    attr = captum()
    said, vectors, _ = _from_vectors(case)
    return attr.InputXGradient(said).attribute(vectors)[0].detach().double().sum(-1).cpu()


def _gradient_shap(case: TextCase) -> Tensor:
    attr = captum()
    said, vectors, origin = _from_vectors(case)
    with seeded(int(case.asked.draw.words((1,), 2000))):
        shares = attr.GradientShap(said).attribute(vectors, baselines=origin, n_samples=SAMPLES, stdevs=0.0)
    return shares[0].detach().double().sum(-1).cpu()


def _from_vectors(case: TextCase) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
    """ln P(a target is said) [B] as a function of token vectors [B, n, D]; those of the text, [1, n, D]; and the mean vector, as often."""
    asked, model = case.asked, case.asked.language.model
    if not asked.answers:
        raise StudyError("gradients need hits = 'soft': a sampled answer has none")
    table = model.get_input_embeddings()
    device = table.weight.device

    def vectors_of(tokens: Sequence[int]) -> Tensor:
        return table(torch.tensor(list(tokens), dtype=torch.int64, device=device)).detach()[None]

    before, behind = vectors_of(asked.before), vectors_of(asked.behind)

    def said(vectors: Tensor) -> Tensor:
        logprobs = []
        for answer in asked.answers:
            parts = [part.expand(len(vectors), -1, -1) for part in (before, behind, vectors_of(answer[:-1]))]
            whole = torch.cat([parts[0], vectors, *parts[1:]], dim=1)
            logits = model(inputs_embeds=whole, use_cache=False).logits[:, -len(answer) :].double()
            spoken = torch.tensor(answer, device=device).expand(len(vectors), -1)[..., None]
            logprobs.append(logits.log_softmax(-1).gather(-1, spoken)[..., 0].sum(-1))
        return torch.stack(logprobs).logsumexp(0)

    vectors = vectors_of(asked.tokens.tolist()).clone().requires_grad_()
    return said, vectors, table.weight.detach().mean(0).expand_as(vectors)


TEXT_BASELINES: dict[str, Callable[[TextCase], Tensor]] = {
    "random": _random,
    "leave-one-out": _leave_one_out,
    "lime": _lime,
    "attention": _attention,
    "gradient-input": _gradient_input,
    "gradient-shap": _gradient_shap,
}


def compare_text(
    asked: Asked, how: TextSettings, k: int, methods: Sequence[str] = tuple(TEXT_BASELINES), strings: int = 25
) -> dict[str, dict[str, float]]:
    """S_rep (`replay_places`) of the trace's k tokens and of as many of each method, by method, the trace first.

    ValueError for an unknown method, and where one is not possible: gradients without captum or with sampled hits.
    """
    for name in methods:
        if name not in TEXT_BASELINES:
            raise StudyError(f"method {name!r} must be one of {', '.join(TEXT_BASELINES)}")
    if not 1 <= k <= len(asked.tokens):
        raise StudyError(f"k = {k} must be 1 to {len(asked.tokens)}, the tokens of the text")
    case = TextCase(asked, how, *text_evidence(asked, how))
    traced = trace_text(asked, how, (case.strings, case.hit))
    rates = {TRACE: replay_text(asked, traced[min(k, len(traced)) - 1].events, how, strings)}
    order = asked.draw.permutation(len(asked.tokens), (), _TIE)[0]
    for name in methods:
        scores = TEXT_BASELINES[name](case)
        ranked = order[scores[order].argsort(descending=True, stable=True)]
        rates[name] = replay_places(asked, sorted(ranked[:k].tolist()), how, strings)
    return rates
