"""Causal language models of local Hugging Face folders on the English flip-flop: `manyseeds language-model`.

A model is a row of `replicates` of a study of its own, with nothing trained (steps 0, loss NaN), and has one evaluation a length: an error
is a string whose wrong answer has the higher logit (metric `read`). So merge, status and claims take it as any study. `transformers` is
optional, and nothing is downloaded.
"""

import datetime
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import harness.machine.device
from harness.draw import Draw
from harness.exchange.language_model import LanguageModel, load
from harness.probes.flipflop.language_rows import STRINGS, Answers, refuse_other_strings, write
from results.errors import StudyError
from results.store.tables import Store
from tasks.flipflop.english import ANSWERS, Prompt, prompts

LENGTHS = (16, 32, 64, 128, 256, 512)
_TOKENS = 2**13  # of a forward pass


def asked(length: int, strings: int, seed: int) -> list[Prompt]:
    """The prompts of a length: the same for every model, and of another length other strings."""
    seeds = torch.tensor([seed])
    return prompts(Draw(seeds, "evaluate", 2**31 + length), Draw(seeds, "evaluate", length), length, strings)


def encode(language: LanguageModel, given: Sequence[Prompt]) -> list[tuple[list[int], int, int, int]]:
    """(tokens, token of " off", token of " on", bit) of every prompt. ValueError where the two answers do not differ behind a prompt."""
    start = language.start("Alice")
    tails: dict[str, tuple[int, int]] = {}
    out = []
    for prompt in given:
        tokens = language.ids(prompt.text)
        ending = prompt.text.rpartition(". ")[2]
        if ending not in tails:
            off, on = (language.ids(prompt.text + answer) for answer in ANSWERS)
            if off[: len(tokens)] != tokens or on[: len(tokens)] != tokens or off[len(tokens) :][:1] == on[len(tokens) :][:1]:
                raise StudyError(
                    f"the tokenizer of {language.name} does not tell “on” from “off” by the token behind “{ending}”"
                )
            tails[ending] = off[len(tokens)], on[len(tokens)]
        out.append((start + tokens, *tails[ending], prompt.bit))
    return out


@torch.no_grad()
def errors(language: LanguageModel, given: Sequence[Prompt], device: torch.device) -> int | None:
    """How many prompts give the wrong answer a logit that is at least the right one's.

    None where a prompt is longer than the model takes.
    """
    encoded = sorted(encode(language, given), key=lambda prompt: len(prompt[0]))
    if language.longest is not None and len(encoded[-1][0]) > language.longest:
        return None
    last_only = "logits_to_keep" in inspect.signature(language.model.forward).parameters
    size = max(1, _TOKENS // len(encoded[-1][0]))
    wrong = 0
    for first in range(0, len(encoded), size):
        batch = encoded[first : first + size]
        longest = len(batch[-1][0])
        # padding stands behind the prompt, where a causal model does not look
        tokens = torch.tensor([prompt[0] + [0] * (longest - len(prompt[0])) for prompt in batch], device=device)
        mask = torch.tensor([[1] * len(prompt[0]) + [0] * (longest - len(prompt[0])) for prompt in batch], device=device)
        last = torch.tensor([len(prompt[0]) - 1 for prompt in batch], device=device)
        places, where = last.unique(return_inverse=True)
        kept = {"logits_to_keep": places} if last_only else {}
        logits = language.model(input_ids=tokens, attention_mask=mask, use_cache=False, **kept).logits.float()
        at = logits[torch.arange(len(batch), device=device), where if last_only else last]  # [B, V]
        off, on, bit = (torch.tensor(column, device=device)[:, None] for column in list(zip(*batch, strict=True))[1:])
        right, other = torch.where(bit == 1, on, off), torch.where(bit == 1, off, on)
        wrong += int((~(at.gather(1, right) > at.gather(1, other))).sum())
    return wrong


def run(
    store: Store,
    folders: Sequence[str | Path],
    lengths: Sequence[int] = LENGTHS,
    strings: int = STRINGS,
    seed: int = 0,
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> None:
    """Score the models of these folders and commit one replicate each; the study's manifest then plans them beside the earlier ones.

    Raises StudyError, before any model is loaded, on a wrong length or seed, two models of one name, and other strings than earlier models
    had.
    """
    lengths = sorted(set(lengths))
    if not lengths or any(length < 4 or length % 2 for length in lengths) or strings < 1:
        raise StudyError("--lengths must be even numbers of at least 4 and --strings at least 1")
    if not 0 <= seed < 2**63:
        raise StudyError(f"--seed {seed} must be a whole number from 0 to 2^63 - 1")
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise StudyError("two of the folders have one name, which is the model's name in the store: rename one")
    refuse_other_strings(store, names, strings, seed)
    torch_device = harness.machine.device.resolve(device)
    texts = {length: asked(length, strings, seed) for length in lengths}
    for folder in folders:
        began = datetime.datetime.now(datetime.UTC)
        language = load(Path(folder), torch_device)
        wrong_by_length: dict[int, int] = {}
        for length in lengths:
            wrong = errors(language, texts[length], torch_device)
            if wrong is None:
                say(f"{language.name}: length {length} is left out, its prompts exceed the model's {language.longest} tokens")
                continue
            wrong_by_length[length] = wrong
            say(f"{language.name}: length {length}, {strings - wrong} of {strings} right")
        if not wrong_by_length:
            raise StudyError(f"no length of {', '.join(map(str, lengths))} fits {language.name}: give smaller --lengths")
        dtype = str(next(language.model.parameters()).dtype).removeprefix("torch.")
        write(
            store,
            Answers(language.name, language.content, language.parameters, dtype, strings, seed, wrong_by_length),
            torch_device,
            began,
        )
