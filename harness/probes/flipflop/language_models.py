"""Causal language models of local Hugging Face folders on the English flip-flop: `manyseeds language-model`.

A model is a row of `replicates` of a study of its own, with nothing trained (steps 0, loss NaN), and has one evaluation a length: an error
is a string whose wrong answer has the higher logit (metric `read`). So merge, status and claims take it as any study. No length that was
answered is asked again: a checkpoint holds its count until the model is committed. `transformers` is optional; nothing is downloaded.
"""

import datetime
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import harness.machine.device
import harness.training.checkpoint as checkpoints
from harness.draw import Draw
from harness.exchange.language_model import LanguageModel, ModelFolder, load, open_folder, refuse_other_folder
from harness.probes.flipflop.language_rows import (
    STRINGS,
    Answers,
    Asked,
    answered,
    is_planned,
    refuse_other_strings,
    replaced,
    write,
)
from results.errors import StudyError
from results.store.tables import Store
from tasks.flipflop.english import ANSWERS, PREFIX, Prompt, prompts

LENGTHS = (16, 32, 64, 128, 256, 512)
_TOKENS = 2**13  # of a forward pass
Encoded = tuple[list[int], int, int, int]  # tokens of a prompt, token of " off", token of " on", bit


def asked(length: int, strings: int, seed: int) -> list[Prompt]:
    """The prompts of a length: the same for every model, and of another length other strings."""
    seeds = torch.tensor([seed])
    return prompts(Draw(seeds, "evaluate", 2**31 + length), Draw(seeds, "evaluate", length), length, strings)


def encode(language: ModelFolder, given: Sequence[Prompt]) -> list[Encoded]:
    """Every prompt in tokens. ValueError where the two answers do not differ behind a prompt."""
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


def encode_length(language: ModelFolder, length: int, strings: int, seed: int) -> list[Encoded] | None:
    """The prompts of a length in tokens; None where one is longer than the model takes."""
    longest = language.longest
    if longest is not None and (PREFIX + length) // 2 > longest:  # a sentence has at least one token
        return None
    for count in sorted({1, strings}):  # the first prompt alone tells of most lengths that they are too long
        encoded = encode(language, asked(length, count, seed))
        if longest is not None and max(len(prompt[0]) for prompt in encoded) > longest:
            return None
    return encoded


@torch.no_grad()
def errors(language: LanguageModel, encoded: Sequence[Encoded], device: torch.device) -> int:
    """How many prompts give the wrong answer a logit that is at least the right one's."""
    encoded = sorted(encoded, key=lambda prompt: len(prompt[0]))
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

    Lengths that a model has answered are not asked again, and stay beside those of this call. Raises StudyError, before any model is
    loaded, on a wrong length or seed, two models of one name, a folder that holds no model, and other strings than earlier models had.
    """
    lengths = sorted(set(lengths))
    if not lengths or any(length < 4 or length % 2 for length in lengths) or strings < 1:
        raise StudyError("--lengths must be even numbers of at least 4 and --strings at least 1")
    if not 0 <= seed < 2**63:
        raise StudyError(f"--seed {seed} must be a whole number from 0 to 2^63 - 1")
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise StudyError("two of the folders have one name, which is the model's name in the store: rename one")
    for folder in folders:
        refuse_other_folder(Path(folder))
    refuse_other_strings(store, names, strings, seed)
    torch_device = harness.machine.device.resolve(device)
    for folder in folders:
        _ask(store, Path(folder), lengths, strings, seed, torch_device, say)


def _ask(
    store: Store,
    folder: Path,
    lengths: Sequence[int],
    strings: int,
    seed: int,
    device: torch.device,
    say: Callable[[str], None],
) -> None:
    """Ask a model the lengths that it has not answered, and commit all its answers. Its weights are loaded only for a question."""
    began = datetime.datetime.now(datetime.UTC)
    opened = open_folder(folder)
    about = Asked(opened.name, opened.content, strings, seed)
    saved = checkpoints.newest(store, about.id())
    wrong_by_length = answered(store, about) | {int(length): wrong for length, wrong in (saved[1] if saved else {}).items()}
    if again := [str(length) for length in lengths if length in wrong_by_length]:
        what = "length {} was answered before and is" if len(again) == 1 else "lengths {} were answered before and are"
        say(f"{opened.name}: {what.format(', '.join(again))} not asked again")
    for sentence in replaced(store, about):
        say(sentence)
    language = None
    for length in lengths:
        if length in wrong_by_length:
            continue
        encoded = encode_length(opened, length, strings, seed)
        if encoded is None:
            say(f"{opened.name}: length {length} is left out, its prompts exceed the model's {opened.longest} tokens")
            continue
        language = language or load(folder, device)
        wrong_by_length[length] = errors(language, encoded, device)
        checkpoints.write(store, about.id(), len(wrong_by_length), {}, wrong_by_length)
        say(f"{opened.name}: length {length}, {strings - wrong_by_length[length]} of {strings} right")
    if not wrong_by_length.keys() & set(lengths):
        raise StudyError(f"no length of {', '.join(map(str, lengths))} fits {opened.name}: give smaller --lengths")
    if language is None and is_planned(store, about, wrong_by_length):
        return
    language = language or load(folder, device)
    dtype = str(next(language.model.parameters()).dtype).removeprefix("torch.")
    answers = Answers(language.name, language.content, language.parameters, dtype, strings, seed, wrong_by_length)
    write(store, answers, device, began)
    checkpoints.clear(store, about.id())
