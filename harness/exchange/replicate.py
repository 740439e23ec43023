"""A replicate whose weights a study kept: found in a store by its key, exported, and loaded again.

Weights exist where the study ran with `keep: all`, or `tail(n)` and the replicate is of the n worst of its condition.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from torch import Tensor, nn

from harness.exchange.bert import to_bert
from harness.exchange.folder import metadata_of, read_folder, refuse_used, tensors_of, write_folder
from harness.exchange.gpt2 import to_gpt2
from harness.exchange.weights import single
from harness.study.config import Condition, from_dict
from harness.study.experiment import IMPORTED
from harness.training import weights as artifacts
from results.errors import DamagedFile, StudyError
from results.plain_values import Options, Tree
from results.rows.keys import resolve_key
from results.store.tables import Store, read

_HUGGING_FACE: dict[str, Callable[..., Path]] = {"gpt2": to_gpt2, "bert": to_bert}
FORMATS = ("safetensors", *_HUGGING_FACE)
LANGUAGE_MODEL = "language_model"  # model.name of a pretrained model, which was only asked


@dataclass(frozen=True)
class Kept:
    """The weights of one replicate after `step` steps of `stage`, and its condition as a manifest holds it."""

    key: str
    stage: int
    step: int
    config: Tree
    seeds: dict[str, int]
    tensors: dict[str, Tensor]

    def about(self) -> Tree:
        """{task, model, train, seeds, step, key}, and the stage or stages where there is more than one: plain data."""
        stage = {"stage": self.stage} if self.stage else {}
        return self.config | {"seeds": self.seeds, "step": self.step, "key": self.key} | stage

    def is_finite(self) -> bool:
        """Whether all weights are numbers: those of a replicate that has diverged by this step are not."""
        return all(bool(tensor.isfinite().all()) for tensor in self.tensors.values())


def export(
    stores: Store | Sequence[Store], key: str, form: str, folder: str | os.PathLike[str], step: int | None = None
) -> tuple[Kept, Path]:
    """Write one replicate of these studies as `form` (safetensors | gpt2 | bert) into a new or empty folder.

    key: 32 digits, or as many as tell it apart; step: default the last that was kept. Raises ValueError in one sentence.
    """
    if form not in FORMATS:
        raise StudyError(f"format {form!r} must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    refuse_used(folder)
    stores = [stores] if isinstance(stores, Store) else list(stores)
    kept = find(stores[0], resolve_key(stores, key), step)
    if form == "safetensors":
        return kept, write_folder(folder, kept.about(), kept.tensors)
    module, _ = _module(kept.about(), kept.tensors)
    return kept, _HUGGING_FACE[form](module, folder, about=kept.about())


def load(folder: str | os.PathLike[str]) -> tuple[nn.Module, Any, dict[str, Any]]:
    """(model as a pack with R = 1, its task, what config.json says) of a folder that `export` wrote as safetensors.

    Raises ValueError where the folder is another, where it holds the arrays of an experiment, and where the code has another
    revision of its task or model.
    """
    about, tensors = read_folder(folder)
    refuse_experiment(about, about.get("key", folder))
    missing = [name for name in ("task", "model", "train", "seeds", "step", "key") if name not in about]
    if missing:
        hint = f": open it with from_{about['model_type']}" if about.get("model_type") in _HUGGING_FACE else ""
        raise StudyError(f"{folder} was not exported as safetensors, its config.json has no {missing[0]!r}{hint}")
    module, task = _module(about, tensors)
    return module, task, about


def refuse_experiment(config: Options, key: object) -> None:
    """StudyError where a configuration is that of an experiment, whose arrays are kept as weights are, or of an imported run."""
    if "experiment" in config:
        refuse_imported(config, key)
        raise StudyError(f"{key} is an experiment, whose arrays are no weights of a model: results.arrays reads them")


def refuse_imported(config: Options, key: object) -> None:
    """StudyError where a configuration is that of a run brought in by `manyseeds import`, of which there are numbers alone."""
    if config.get("experiment", {}).get("name") == IMPORTED:
        raise StudyError(
            f"{key} was imported: manyseeds has the numbers of this run, and neither trained it nor has its weights"
        )


def refuse_language_model(config: Options, key: object) -> None:
    """StudyError where a configuration is that of a pretrained language model, which answered questions and was not trained here."""
    if config.get("model", {}).get("name") == LANGUAGE_MODEL:
        raise StudyError(
            f"{key} is a pretrained language model: manyseeds keeps its answers, and neither trained it nor has its weights"
        )


def find(store: Store, key: str, step: int | None = None) -> Kept:
    """The kept weights of a replicate's last stage, at `step` or the last step kept. ValueError where there are none."""
    stages = artifacts.stages_of(store, key)
    if not stages:
        for config in read(store, "replicates", ["config"], pc.field("key") == key)["config"].to_pylist():
            refuse_imported(json.loads(config), key)
            if "experiment" in json.loads(config):
                raise StudyError(f"{key} is an experiment: it has no model, and kept no arrays")
            refuse_language_model(json.loads(config), key)
        raise StudyError(
            f"the weights of {key} were not kept: manyseeds rerun {store.shell_word} {key[:8]} --keep weights trains it again and keeps "
            "them"
        )
    steps = artifacts.steps_of(store, key, stages[-1])
    if step is not None and step not in steps:
        raise StudyError(f"step {step} of {key} was not kept; kept: {', '.join(str(kept) for kept in steps)}")
    chosen = steps[-1] if step is None else step
    where = artifacts.path(store, key, stages[-1], chosen)
    data = artifacts.undamaged(store, where)
    tensors, about = tensors_of(data, where), metadata_of(data, where)
    if about.get("key") != key:
        raise DamagedFile(f"{where} holds the weights of {about.get('key')}: it is not the file that the study wrote")
    try:
        return Kept(key, stages[-1], chosen, json.loads(about["config"]), json.loads(about["seeds"]), tensors)
    except (ValueError, KeyError, RecursionError) as error:
        raise DamagedFile(f"{where} lacks the configuration that the study wrote: it is another file") from error


def _module(about: Tree, tensors: dict[str, Tensor]) -> tuple[nn.Module, Any]:
    refuse_experiment(about, about["key"])
    sections = {name: about[name] for name in ("task", "model", "train", "stages") if name in about}
    condition = from_dict({"name": about["key"], "config": sections})
    return trained_model(condition, tensors, about["seeds"]["init"]), condition.task


def trained_model(condition: Condition, tensors: Mapping[str, Tensor], init_seed: int) -> nn.Module:
    """A replicate of a condition with these weights, as a pack with R = 1. ValueError where they do not fit."""
    task = condition.task
    return single(condition.model, task.vocabulary, task.tokens, tensors, init_seed, outputs=task.outputs)
