"""Causal language models of local Hugging Face folders. `transformers` is optional, and nothing is downloaded."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from results.errors import StudyError


@dataclass(frozen=True)
class ModelFolder:
    """The folder of a causal language model, whose weights need not be loaded to count the tokens of a text.

    longest: tokens that the model takes at most, None if unknown; content: the digest of the files.
    """

    tokenizer: Any
    name: str
    longest: int | None
    content: str

    def ids(self, text: str) -> list[int]:
        """The tokens of a text alone."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []

    def start(self, text: str) -> list[int]:
        """What the tokenizer puts before a text, such as a token for the beginning of a sequence."""
        alone, whole = self.ids(text), self.tokenizer(text)["input_ids"]
        return whole[: next((i for i in range(len(whole)) if whole[i : i + len(alone)] == alone), 0)]


@dataclass(frozen=True)
class LanguageModel(ModelFolder):
    """A causal language model and its tokenizer. model(input_ids [B, T]) → logits [B, T, V]; parameters: how many."""

    model: Any
    parameters: int


def refuse_other_folder(folder: Path) -> None:
    """StudyError where a path is not the folder of a model."""
    if not (folder / "config.json").is_file():
        raise StudyError(f"{folder} is not the folder of a Hugging Face model: it has no config.json (nothing is downloaded)")


def open_folder(folder: Path) -> ModelFolder:
    """The tokenizer of a local folder. ValueError in one sentence where it, or `transformers`, is missing."""
    transformers = _library()
    refuse_other_folder(folder)
    with _one_sentence(folder):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):  # what transformers makes of a folder without one
        raise StudyError(f"{folder} has no tokenizer, such as tokenizer.json: save it there with tokenizer.save_pretrained")
    longest = getattr(config, "max_position_embeddings", None)
    return ModelFolder(tokenizer, folder.resolve().name, longest, _content(folder))


def load(folder: Path, device: torch.device) -> LanguageModel:
    """The model and tokenizer of a local folder. ValueError in one sentence where either, or `transformers`, is missing."""
    opened = open_folder(folder)
    with _one_sentence(folder):
        model: Any = _library().AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype="auto")
    model = model.to(device).eval()
    count = sum(parameter.numel() for parameter in model.parameters())
    return LanguageModel(**vars(opened), model=model, parameters=count)


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise StudyError("language models need the package transformers: pip install transformers") from error
    return transformers


@contextmanager
def _one_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        raise StudyError(f"{folder} can't be opened as a causal language model: {str(error).splitlines()[0]}") from error


def _content(folder: Path) -> str:
    """SHA-256 of the weights, configuration and vocabulary: 32 digits."""
    whole = hashlib.sha256()
    kinds = (".safetensors", ".bin", ".json", ".txt", ".model")
    for path in sorted(file for file in folder.iterdir() if file.suffix in kinds):
        with path.open("rb") as stream:
            whole.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()[:32]
