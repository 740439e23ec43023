"""Causal language models of local Hugging Face folders. `transformers` is optional, and nothing is downloaded."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from results.errors import StudyError


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model and its tokenizer.

    model(input_ids [B, T]) → logits [B, T, V]; parameters: how many; longest: tokens that it takes at most, None if unknown; content: the
    digest of its files.
    """

    model: Any
    tokenizer: Any
    name: str
    parameters: int
    longest: int | None
    content: str

    def ids(self, text: str) -> list[int]:
        """The tokens of a text alone."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []

    def start(self, text: str) -> list[int]:
        """What the tokenizer puts before a text, such as a token for the beginning of a sequence."""
        alone, whole = self.ids(text), self.tokenizer(text)["input_ids"]
        return whole[: next((i for i in range(len(whole)) if whole[i : i + len(alone)] == alone), 0)]


def load(folder: Path, device: torch.device) -> LanguageModel:
    """The model and tokenizer of a local folder. ValueError in one sentence where either, or `transformers`, is missing."""
    try:
        import transformers
    except ImportError as error:
        raise StudyError("language models need the package transformers: pip install transformers") from error
    if not (folder / "config.json").is_file():
        raise StudyError(f"{folder} is not the folder of a Hugging Face model: it has no config.json (nothing is downloaded)")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype="auto")
    except (OSError, ValueError, KeyError) as error:
        raise StudyError(f"{folder} can't be opened as a causal language model: {str(error).splitlines()[0]}") from error
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):  # what transformers makes of a folder without one
        raise StudyError(f"{folder} has no tokenizer, such as tokenizer.json: save it there with tokenizer.save_pretrained")
    model = model.to(device).eval()
    count = sum(parameter.numel() for parameter in model.parameters())
    longest = getattr(model.config, "max_position_embeddings", None)
    return LanguageModel(model, tokenizer, folder.resolve().name, count, longest, _content(folder))


def _content(folder: Path) -> str:
    """SHA-256 of the weights, configuration and vocabulary: 32 digits."""
    whole = hashlib.sha256()
    kinds = (".safetensors", ".bin", ".json", ".txt", ".model")
    for path in sorted(file for file in folder.iterdir() if file.suffix in kinds):
        with path.open("rb") as stream:
            whole.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()[:32]
