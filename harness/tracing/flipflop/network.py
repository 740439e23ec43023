"""Scores of events by what happens inside a transformer: its attention, and its gradients by the library captum.

Each returns float64 [P - 1], one number per event before the read: the sum over its two tokens.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call

from harness.machine.global_generators import seeded
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.scores import SAMPLES, captum
from models.transformer.transformer import Decoder
from tasks.flipflop.flipflop import SYMBOL


def attention(model: Decoder, prompt: Prompt) -> Tensor:
    """The read's attention in the last layer, mean over heads."""
    return _by_event(_layers(model, prompt)[-1][-1])


def rollout(model: Decoder, prompt: Prompt) -> Tensor:
    """Attention rollout (Abnar and Zuidema 2020): the product over layers of half the mean attention and half the residual link."""
    layers = _layers(model, prompt)
    flow = torch.eye(layers.shape[-1], dtype=torch.float64)
    for layer in layers:
        flow = (layer + torch.eye(len(layer), dtype=torch.float64)) / 2 @ flow
    return _by_event(flow[-1])


def gradient_input(model: Decoder, prompt: Prompt) -> Tensor:
    """Gradient times token vector, of the log odds of a wrong symbol."""
    attr = captum()
    wrong, vectors = _from_vectors(model, prompt)
    return _by_event(attr.InputXGradient(wrong).attribute(vectors)[0].detach().double().sum(-1))


def gradient_shap(model: Decoder, prompt: Prompt, seed: int) -> Tensor:
    """Gradient-SHAP of the log odds of a wrong symbol, from the mean of all token vectors; SAMPLES points between."""
    attr = captum()
    wrong, vectors = _from_vectors(model, prompt)
    origin = model.tokens.detach().mean(1, keepdim=True).expand_as(vectors)
    with seeded(int(prompt.draw(seed).words((1,), 2000))):
        shares = attr.GradientShap(wrong).attribute(vectors, baselines=origin, n_samples=SAMPLES, stdevs=0.0)
    return _by_event(shares[0].detach().double().sum(-1))


def attends(model: nn.Module) -> bool:
    """Whether attention and gradients of token vectors can be had from a model."""
    return isinstance(model, Decoder) and model.config.causal and not model.config.tied


@torch.no_grad()
def _layers(model: Decoder, prompt: Prompt) -> Tensor:
    """Attention up to the read's instruction, mean over heads: float64 [L, T, T]."""
    seen: list[Tensor] = []
    tokens = prompt.tokens[None, None, :-1].to(model.tokens.device)
    model(tokens, attend=lambda layer, weights: seen.append(weights[0, 0].double().mean(0).cpu()))
    return torch.stack(seen)


def _from_vectors(model: Decoder, prompt: Prompt) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The log odds of a wrong symbol [B] as a function of token vectors [B, T, D], and those of the prompt, [1, T, D]."""
    tokens = prompt.tokens[:-1].to(model.tokens.device)
    size, right = len(tokens), prompt.truth

    def wrong(vectors: Tensor) -> Tensor:
        # every token of every string gets a row of its own in the token table
        rows = torch.arange(len(vectors) * size, device=vectors.device).view(1, -1, size)
        query = torch.full((1, len(vectors), 1), size - 1, device=vectors.device)
        table = {"tokens": vectors.flatten(0, 1)[None]}
        logits = functional_call(model, table, (rows,), {"needed": (query,)})[0, :, 0, SYMBOL:]
        others = [symbol for symbol in range(logits.shape[-1]) if symbol != right]
        return logits[:, others].logsumexp(-1) - logits[:, right]

    return wrong, model.tokens.detach()[:, tokens].clone().requires_grad_()


def _by_event(tokens: Tensor) -> Tensor:
    """[2P - 1] values of tokens, the read's instruction last, to [P - 1] values of events."""
    return tokens[:-1].view(-1, 2).sum(-1).cpu()
