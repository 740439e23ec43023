"""The rows and the manifest of language models on the English flip-flop: a study like any other, with nothing trained."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch

import harness.machine.device
from harness.exchange.replicate import LANGUAGE_MODEL
from harness.machine.provenance import code_state, columns, versions
from harness.planning.manifest import to_bytes
from harness.study.identity import canonical, digest
from results.errors import StudyError
from results.plain_values import Tree
from results.store.manifest import ConditionFields, newest_manifest, write_manifest
from results.store.manifest_fields import ConditionSet, ScoringFields, SetFields
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, committed

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


def write(store: Store, answers: Answers, device: torch.device, began: datetime.datetime) -> None:
    """Write the manifest with this model beside the earlier ones, then commit its rows."""
    errors, strings, seed = answers.errors, answers.strings, answers.seed
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
    content = to_bytes(_manifest(store, answers.name, key, config, hashes))
    write_manifest(store, content)
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


def _manifest(store: Store, name: str, key: str, config: Tree, hashes: dict[int, str]) -> dict[str, object]:
    """What a study's readers need: every model so far, one of the same name replaced."""
    held, sets_before = _models_held(store, [name])
    sets: dict[str, ConditionSet] = {
        f"length-{length}": {"hash": set_hash, "task": {"name": config["task"]["name"], "length": length}}
        for length, set_hash in hashes.items()
    }
    scoring: ScoringFields = {"metrics": [_METRIC], "direction": "lower", "error": _ERROR, "tokens": None, "outputs": 2}
    new: ConditionFields = {
        "name": name,
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
