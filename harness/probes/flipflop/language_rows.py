"""The rows and the manifest of language models on the English flip-flop: a study like any other, with nothing trained."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import torch

import harness.machine.device
from harness.exchange.replicate import LANGUAGE_MODEL
from harness.machine.provenance import code_state, columns, versions
from harness.planning.manifest import to_bytes
from harness.study.identity import canonical, digest
from results.errors import StudyError
from results.plain_values import Options, Tree
from results.store.manifest import ConditionFields, newest_manifest, write_manifest
from results.store.manifest_fields import ConditionSet, ScoringFields, SetFields
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, committed, read

STRINGS = 500  # of the paper
_CLAIMS = {"R3": {"value": 0.5}}
_METRIC = "read"
_ERROR = "a string whose wrong answer has the higher logit"


@dataclass(frozen=True)
class Answers:
    """What a model answered. content: a hash of its files; errors: by length, of `strings` strings each."""

    name: str
    content: str
    parameters: int
    dtype: str
    strings: int
    seed: int
    errors: Mapping[int, int]


@dataclass(frozen=True)
class Asked:
    """A model and the strings of each length that it is asked. content: a hash of its files."""

    name: str
    content: str
    strings: int
    seed: int

    def id(self) -> str:
        """Name of the checkpoints of its answers."""
        return digest({"language model": self.content, "strings": self.strings, "seed": self.seed}, 16)

    def is_of(self, config: Options) -> bool:
        """Whether a configuration is that of these files and strings, at whatever lengths."""
        task, model = config.get("task", {}), config.get("model", {})
        found = (model.get("name"), model.get("content"), task.get("strings"), task.get("seed"))
        return found == (LANGUAGE_MODEL, self.content, self.strings, self.seed)


def answered(store: Store, asked: Asked) -> dict[int, int]:
    """The committed errors of a model by length, whatever its name was; the last ones where a length was asked twice."""
    rows = [row for row in committed(store).to_pylist() if asked.is_of(json.loads(row["config"]))]
    place = {row["key"]: index for index, row in enumerate(sorted(rows, key=lambda row: row["ended"]))}
    scores = read(store, "evaluations", ["key", "length", "errors"], pc.field("key").isin(pa.array(place, pa.string())))
    return {score["length"]: score["errors"] for score in sorted(scores.to_pylist(), key=lambda score: place[score["key"]])}


def is_planned(store: Store, asked: Asked, errors: Mapping[int, int]) -> bool:
    """Whether the newest plan has a model with exactly these lengths, committed."""
    return any(
        condition["name"] == asked.name
        and asked.is_of(condition["config"])
        and set(condition["config"]["task"]["lengths"]) == set(errors)
        for condition, _ in _models_held(store, [])[0]
    )


def replaced(store: Store, asked: Asked) -> list[str]:
    """A sentence for each model of the newest plan whose place this one takes."""
    sentences = []
    for condition, _ in _models_held(store, [])[0]:
        name, task, same = condition["name"], condition["config"]["task"], asked.is_of(condition["config"])
        if name == asked.name and not same:
            sentences.append(
                f"{name}: its earlier answers, of other files or strings ({task['strings']} of seed {task['seed']}), count no longer"
            )
        elif same and name != asked.name:
            sentences.append(f"{asked.name}: its files are those of {name}, whose place it takes")
    return sentences


def write(store: Store, answers: Answers, device: torch.device, began: datetime.datetime) -> None:
    """Write the manifest with this model beside the earlier ones, then commit its rows where they are not committed."""
    strings, seed = answers.strings, answers.seed
    errors = dict(sorted(answers.errors.items()))
    asked = Asked(answers.name, answers.content, strings, seed)
    task = {"name": "english_flipflop", "p_ignore": 0.8, "lengths": list(errors), "strings": strings, "seed": seed}
    model = {"name": LANGUAGE_MODEL, "content": answers.content, "parameters": answers.parameters}
    config = {"task": task, "model": model, "train": {}}
    key, pack = digest(config, 32), digest({"language model": config}, 16)
    hashes = {
        length: digest({"task": task["name"], "length": length, "strings": strings, "seed": seed}, 16) for length in errors
    }
    now = datetime.datetime.now(datetime.UTC)
    row = {"key": key, "stage": 0, "pack": pack}
    replicate = row | {
        **{"condition": answers.name, "config": canonical(config), "init_seed": seed, "data_seed": seed, "status": "finished"},
        **{"steps": 0, "samples": 0, "tokens": 0, "parameters": answers.parameters, "loss": float("nan"), "pack_size": 1},
        **{"slot": 0, "attempt": 1, "started": began, "ended": now, "train_s": 0.0},
        **{"evaluate_s": (now - began).total_seconds()},
        **columns(harness.machine.device.describe(device), harness.machine.device.numerics(device, answers.dtype)),
        "sets": sorted(hashes.values()),
    }
    evaluations = [
        row
        | {
            "step": 0,
            "weights": "raw",
            "set": f"length-{length}",
            "set_hash": hashes[length],
            "length": length,
            "metric": _METRIC,
        }
        | {"errors": wrong, "count": strings, "sequences": strings, "sequences_wrong": wrong, "errors_sq": wrong}
        | {"errors_x_count": wrong, "count_sq": strings}
        for length, wrong in errors.items()
    ]
    content = to_bytes(_manifest(store, asked, key, config, hashes))
    write_manifest(store, content)
    if key in committed(store)["key"].to_pylist() and answered(store, asked) == errors:
        return
    rows = {"evaluations": evaluations, "replicates": [replicate]}
    commit(store, pack, {table: pa.Table.from_pylist(of_table, SCHEMAS[table]) for table, of_table in rows.items()})


def refuse_other_strings(store: Store, names: Sequence[str], strings: int, seed: int) -> None:
    """StudyError where the study holds a model, not among `names`, that answered other strings: its sets have the same names."""
    for condition, _ in _models_held(store, names)[0]:
        task = condition["config"]["task"]
        if (task["strings"], task["seed"]) != (strings, seed):
            raise StudyError(
                f"{condition['name']} in the study {store.study} answered {task['strings']} strings of each length, of seed "
                f"{task['seed']}, and {strings} of seed {seed} are other ones: "
                f"give --strings {task['strings']} --seed {task['seed']}, or another --study"
            )


def _models_held(
    store: Store, replaced: Sequence[str]
) -> tuple[list[tuple[ConditionFields, tuple[str, int, int]]], dict[str, SetFields]]:
    """The committed models that are not replaced, each with (key, init seed, data seed), and the sets of the study's newest plan."""
    newest = newest_manifest(store)
    if newest is None:
        return [], {}
    plan, committed_keys = newest[1], set(committed(store)["key"].to_pylist())
    models = [(plan["conditions"][row[1]], (row[0], row[2], row[3])) for row in plan["replicates"] if row[0] in committed_keys]
    return [model for model in models if model[0]["name"] not in replaced], plan["sets"]


def _manifest(store: Store, asked: Asked, key: str, config: Tree, hashes: dict[int, str]) -> dict[str, object]:
    """What a study's readers need: every model so far, one of the same name or files replaced."""
    models, sets_before = _models_held(store, [asked.name])
    held = [model for model in models if not asked.is_of(model[0]["config"])]
    sets: dict[str, ConditionSet] = {
        f"length-{length}": {"hash": set_hash, "task": {"name": config["task"]["name"], "length": length}}
        for length, set_hash in hashes.items()
    }
    scoring: ScoringFields = {"metrics": [_METRIC], "direction": "lower", "error": _ERROR, "tokens": None, "outputs": 2}
    new: ConditionFields = {
        "name": asked.name,
        "config": config,
        "settings": config,
        "sets": sets,
        "replicates": 1,
        "scored": 1,
        "scoring": scoring,
    }
    strings, seed = config["task"]["strings"], config["task"]["seed"]
    conditions = [*(condition for condition, _ in held), new]
    rows = [*(row for _, row in held), (key, seed, seed)]
    own_sets = {
        f"length-{length}": {"definition": {"length": length}, "sequences": strings, "every": None, "seed": seed}
        for length in hashes
    }
    return {
        "study": store.study,
        "question": "How often do language models follow the flip-flop in English?",
        **{"source": {"paper": "fflm", "card": "F5"}, "scale": "paper", "overrides": [], "wandb": "off", "claims": _CLAIMS},
        "reductions": [
            f"strings of each length for {condition['name']}: {STRINGS} -> {count}"
            for condition in conditions
            if (count := condition["config"]["task"]["strings"]) != STRINGS
        ],
        **{"keep": "none", "device": "auto", "executor": "local", "store": "", "pack_size": 1, "curve_every": 1},
        "sets": dict(sorted((sets_before | own_sets).items(), key=lambda named: int(named[0].rpartition("-")[2]))),
        "conditions": conditions,
        "replicates": [[row_key, index, init_seed, data_seed] for index, (row_key, init_seed, data_seed) in enumerate(rows)],
        **{"packs": [], "numerics": {}, "versions": versions(), "git": code_state()[0], "dirty": code_state()[1]},
    }
