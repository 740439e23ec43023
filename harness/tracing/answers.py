"""What a causal language model says behind strings of one length."""

import inspect

import torch
from torch import Tensor

from harness.draw import Draw
from harness.exchange.language_model import LanguageModel

_SAMPLE = 4096  # first site of the draws of tokens that are said


def alike(tokens: list[int], rows: int) -> Tensor:
    return torch.tensor(tokens, dtype=torch.int64).expand(rows, -1)


@torch.no_grad()
def probability(language: LanguageModel, strings: Tensor, answer: list[int]) -> Tensor:
    """The probability that strings [B, n] go on with the answer's tokens, float64 [B]."""
    device = next(language.model.parameters()).device
    tokens = torch.cat([strings, alike(answer[:-1], len(strings))], dim=1).to(device)
    last_only = "logits_to_keep" in inspect.signature(language.model.forward).parameters
    kept = {"logits_to_keep": len(answer)} if last_only else {}
    logits = language.model(input_ids=tokens, use_cache=False, **kept).logits[:, -len(answer) :]
    spoken = torch.tensor(answer, device=device).expand(len(tokens), -1)[..., None]
    return logits.double().log_softmax(-1).gather(-1, spoken)[..., 0].sum(-1).exp().cpu()


@torch.no_grad()
def said(language: LanguageModel, strings: Tensor, count: int, temperature: float, draw: Draw | None) -> list[str]:
    """What the model says behind strings [B, n], `count` tokens up to its end token: sampled with keyed draws, or the likeliest tokens."""
    device = next(language.model.parameters()).device
    tokens, past, spoken = strings.to(device), None, []
    for step in range(count):
        out = language.model(input_ids=tokens, past_key_values=past, use_cache=True)
        past, logits = out.past_key_values, out.logits[:, -1].double()
        if draw is None:
            tokens = logits.argmax(-1, keepdim=True)
        else:
            upto = (logits / temperature).softmax(-1).cumsum(-1)
            dice = draw.uniform((len(strings), 1), _SAMPLE + step)[0].double().to(device) * upto[:, -1:]
            tokens = torch.searchsorted(upto, dice, right=True).clamp(max=logits.shape[-1] - 1)
        spoken.append(tokens)
    end = language.tokenizer.eos_token_id
    rows = torch.cat(spoken, dim=1).tolist()
    return [language.tokenizer.decode(row[: row.index(end)] if end in row else row) for row in rows]
