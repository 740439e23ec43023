"""A folder with one model: `config.json` and `model.safetensors`, ours or a Hugging Face one."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from results.errors import StudyError, output_errors
from results.plain_values import Options, Tree
from results.store.filesystem import reason, write_local

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def refuse_used(folder: str | os.PathLike[str]) -> None:
    """ValueError where a folder holds something already: an export never mixes with other files."""
    path = Path(folder)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise StudyError(f"{path} exists already: give the name of a new or empty folder")


def write_folder(folder: str | os.PathLike[str], config: Options, tensors: Mapping[str, Tensor]) -> Path:
    """Write both files, the weights first; tensors are copied, so that none shares memory. ValueError where it is in use."""
    refuse_used(folder)
    path = Path(folder).absolute()
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    # the format tag is asked for by Hugging Face's reader
    with output_errors(path):
        write_local(str(path / WEIGHTS), save(copies, {"format": "pt"}))
        write_local(str(path / CONFIG), (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def read_folder(folder: str | os.PathLike[str]) -> tuple[Tree, dict[str, Tensor]]:
    """config.json and the tensors by name. ValueError naming the file that is missing or is not what it should be."""
    path = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            raise StudyError(f"{path} has no {name}: give a folder that holds {CONFIG} and {WEIGHTS}")
    try:
        config = json.loads((path / CONFIG).read_bytes())
    except ValueError as error:
        raise StudyError(f"{path / CONFIG} is not JSON ({reason(error)})") from None
    if not isinstance(config, dict):
        raise StudyError(f"{path / CONFIG} is not a JSON object: it holds a {type(config).__name__}")
    return config, tensors_of((path / WEIGHTS).read_bytes(), str(path / WEIGHTS))


def tensors_of(data: bytes, where: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file. ValueError naming it when it is truncated or none."""
    try:
        return load(data)
    except SafetensorError as error:
        raise StudyError(f"{where} is not a whole safetensors file ({reason(error)})") from None


def metadata_of(data: bytes, where: str) -> dict[str, str]:
    """The metadata of a safetensors file: 8 bytes give the length of a JSON header, in which it is `__metadata__`."""
    try:
        size = int.from_bytes(data[:8], "little")
        return json.loads(data[8 : 8 + size]).get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise StudyError(f"{where} is not a whole safetensors file ({reason(error)})") from None
