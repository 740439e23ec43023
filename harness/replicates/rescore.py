"""Kept weights on a new evaluation set: `manyseeds evaluate`.

Not rows of `evaluations`: a committed file is written once, and a compaction takes all rows of one (key, stage, pack) from one file, so
rows added later would be lost. They go to <store>/<study>/rescored/<name>.parquet instead, which no other reader looks at.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import torch

import harness.machine.device
import harness.planning.manifest as manifests
from harness.exchange.replicate import Kept, find, refuse_experiment, refuse_language_model, trained_model
from harness.planning.pack import ScoredSet
from harness.study.config import Condition, EvaluationSet, condition_of, refuse_unfit_model
from harness.study.tree import parse_words
from harness.training.evaluate import Scores, score
from harness.training.weights import stages_of
from models.unfit import UnfitModel
from results.errors import DamagedFile, StudyError
from results.plain_values import Row
from results.rows.keys import resolve_key
from results.statistics.intervals import FEW_WRONG, clopper_pearson, clustered_rates
from results.store.filesystem import reason
from results.store.manifest import as_planned, label, newest_manifest
from results.store.parquet import deserialise, serialise
from results.store.schema import SCHEMAS
from results.store.tables import Store, committed, list_names, read_bytes, write_bytes

FOLDER = "rescored"
SCHEMA = pa.schema(
    [
        *SCHEMAS["evaluations"],
        ("condition", pa.string()),
        ("init_seed", pa.int64()),
        ("data_seed", pa.int64()),
        ("low", pa.float64()),  # 95 % of errors / count, clustered by sequence
        ("high", pa.float64()),
    ]
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,-]*")


@dataclass(frozen=True)
class Wanted:
    """A new evaluation set, and the seed its strings follow from (with its definition and size)."""

    set: EvaluationSet
    seed: int


def parse(text: str, name: str | None = None) -> Wanted:
    """The set of a line such as `p_ignore=0.99 sequences=20000 seed=1`. ValueError in one sentence."""
    words = re.split(r"\s+(?=[A-Za-z_]\w*=)", text.strip())  # a value such as [0.5, 0.8] has spaces of its own
    options = [word.partition("=")[0] for word in words]
    for number, word in enumerate(words):
        if not re.match(r"[A-Za-z_]\w*=", word) or options[number] in options[:number]:
            raise StudyError(f"--set: {word!r} must be FIELD=VALUE, each field once, such as 'p_ignore=0.99 sequences=20000'")
    fields = parse_words(words)
    sequences, seed = fields.pop("sequences", None), fields.pop("seed", 0)
    if sequences is None:
        raise StudyError(f"--set {text.strip()!r} lacks sequences=N: add the number of strings, such as sequences=20000")
    if type(sequences) is not int or sequences < 1:
        raise StudyError(f"--set: sequences={sequences} must be a whole number of at least 1, the number of strings")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise StudyError(f"--set: seed={seed} must be a whole number from 0 to 2^63 - 1")
    for option in ("every", "name"):
        if option in fields:
            raise StudyError(f"--set: {option} can't be given: the weights of the end are scored, on their own task")
    set_name = name or ",".join(f"{option}={value}" for option, value in fields.items()) or "own"
    if not _NAME.fullmatch(set_name):
        raise StudyError(f"{set_name!r} can't name a set and its file: give --name with letters, digits, '.', '_' and '-'")
    return Wanted(EvaluationSet(set_name, fields, sequences), seed)


def rescore(store: Store, keys: Sequence[str], wanted: Wanted, device: torch.device, keep: bool = False) -> pa.Table:
    """Rows (SCHEMA) of these replicates of a study, whose weights are kept, on a new set. keep: they will be written.

    Raises ValueError where weights are missing, where a model can't read the strings, as longer ones than its table of positions, or
    where the study, or the file to be written, has a set of that name with another definition.
    """
    row_of = {row["key"]: row for row in as_planned(store, committed(store)).to_pylist()}
    # all are checked before any is scored, and each model on one string
    prepared = [(row_of[key], *_prepared(store, row_of[key], wanted)) for key in keys]
    if keep:
        _rows_before(store, wanted.set.name, {(row["condition"], row["stage"]): scored.hash for row, scored, _ in prepared})
    for row, scored, condition in {condition.label: (row, scored, condition) for row, scored, condition in prepared}.values():
        _scores(store, row, replace(scored, sequences=1), condition, device)
    rows = []
    for row, scored, condition in prepared:
        kept, (results, number) = _scores(store, row, scored, condition, device)
        about = {name: row[name] for name in ("key", "stage", "pack", "condition", "init_seed", "data_seed")}
        about |= {"step": kept.step, "weights": "raw"}
        scores_of_set = results.evaluation_rows(number, row["status"] != "finished")
        rows += [about | score_row | _interval(score_row) for score_row in scores_of_set]
    return pa.Table.from_pylist(rows, SCHEMA)


def _scores(
    store: Store, row: Row, scored: ScoredSet, condition: Condition, device: torch.device
) -> tuple[Kept, tuple[Scores, int]]:
    """The weights of a replicate, and what they score on a set. StudyError where the model can't read its strings."""
    kept = find(store, row["key"])
    model = trained_model(condition, kept.tensors, row["init_seed"]).to(device)
    try:
        scores = score(model, [scored], device, condition.train.precision)
    except UnfitModel as error:
        trained = condition.task.length
        instead = "" if scored.task.length == trained else f"; write length={trained}, as in its training"
        raise StudyError(f"--set asks too much of {condition.label} of {store.study}: {error}{instead}") from error
    if scores is None:
        raise AssertionError("nothing asked to stop")
    return kept, scores[0]


def write(store: Store, table: pa.Table) -> str:
    """Unite the rows with those of earlier calls under rescored/<name>.parquet; returns the path.

    Raises ValueError where the file holds a set of the same name with another hash for a condition.
    """
    name, rows = table["set"][0].as_py(), table.to_pylist()
    path = f"{FOLDER}/{name}.parquet"
    hashes = {(row["condition"], row["stage"]): row["set_hash"] for row in rows}  # a later stage may have another task
    if before := _rows_before(store, name, hashes):
        fresh = {row["key"] for row in rows}
        rows = [row for row in before if row["key"] not in fresh] + rows
    write_bytes(store, path, serialise(pa.Table.from_pylist(rows, SCHEMA)))
    return store.path(path)


def _rows_before(store: Store, name: str, hashes: Mapping[tuple[str, int], str]) -> list[Row]:
    """The rows of earlier calls under a name. hashes: of the new set, by (condition, stage); StudyError where the file has another."""
    path = f"{FOLDER}/{name}.parquet"
    if f"{name}.parquet" not in list_names(store, FOLDER):
        return []
    try:
        before = as_planned(store, deserialise(read_bytes(store, path)).select(SCHEMA.names).cast(SCHEMA)).to_pylist()
    except (pa.ArrowInvalid, KeyError) as error:
        raise DamagedFile(f"{store.path(path)} holds no rows of manyseeds evaluate ({reason(error)}); delete it") from error
    for row in before:
        if hashes.get((row["condition"], row["stage"]), row["set_hash"]) != row["set_hash"]:
            raise StudyError(f"{store.path(path)} holds another set called {name}: give another --name, or move that file away")
    return before


def show(
    stores: Sequence[Store], key: str, text: str, name: str | None, device: str, keep: bool, say: Callable[[str], None]
) -> None:
    """Score and print one line per replicate; `keep`: also write the rows."""
    wanted = parse(text, name)
    torch_device = harness.machine.device.resolve(device)
    full = None if key == "all" else resolve_key(stores, key)
    chosen = []
    for store in stores:
        configs = {row["key"]: row["config"] for row in committed(store).to_pylist()}
        trained = [name for name in sorted(configs) if "experiment" not in json.loads(configs[name])]
        keys = [name for name in configs if name == full] if full else [name for name in trained if stages_of(store, name)]
        chosen += [(store, keys)] if keys else []
    if not chosen:
        raise StudyError(
            "no replicate of these studies has weights of a model: for one that was trained, "
            f"manyseeds rerun {stores[0].shell_word} KEY --keep weights makes them again"
        )
    harness.machine.device.prepare(torch_device)
    for store, keys in chosen[:1] if full else chosen:
        table = rescore(store, keys, wanted, torch_device, keep)
        say(f"{store.study}: {wanted.set.name}, {wanted.set.sequences} strings, error rate with 95 % interval by string")
        scored = {row["condition"]: row for row in as_planned(store, committed(store)).to_pylist() if row["key"] in set(keys)}
        metrics = {name: condition_of(row).task.metrics[0] for name, row in scored.items()}
        for row in table.to_pylist():
            if row["metric"] == metrics[row["condition"]]:
                who = label(row["condition"], row["stage"])
                say(f"  {row['key'][:12]}  {_line(row)}  {who}, seeds {row['init_seed']}, {row['data_seed']}")
        if keep:
            say(f"  rows: {write(store, table)}")


def _line(row: Row) -> str:
    if row["count"] is None:
        return "no numbers: it diverged, or had no teacher to learn from"
    rate = row["errors"] / row["count"] if row["count"] else float("nan")
    text = f"{rate:.3g} [{row['low']:.3g}, {row['high']:.3g}] ({row['errors']} of {row['count']} reads)"
    wrong = row["sequences_wrong"]
    if wrong is None or wrong >= FEW_WRONG:
        return text
    share = clopper_pearson(wrong, row["sequences"])
    return f"{text}; {wrong} of {row['sequences']} strings wrong [{share.low:.3g}, {share.high:.3g}]"


def _prepared(store: Store, row: Row, wanted: Wanted) -> tuple[ScoredSet, Condition]:
    config = json.loads(row["config"])
    refuse_experiment(config, row["key"])
    refuse_language_model(config, row["key"])
    condition = condition_of(row)
    asked = wanted.set
    try:
        asked.refuse_unknown_options(condition.task, "", ("sequences", "seed"))
        task, digest = asked.task(condition.task), asked.hash(condition.task, wanted.seed)
        refuse_unfit_model(task, condition.model)
    except StudyError as error:
        raise StudyError(f"--set of condition {condition.label} of {store.study}: {error}") from error
    newest = newest_manifest(store)
    if newest is not None and asked.name in newest[1]["sets"]:
        study = manifests.study_of(newest[1])
        theirs = next(other for other in study.sets if other.name == asked.name)
        if theirs.hash(condition.task, study.evaluate_seed) != digest:
            raise StudyError(f"the study {store.study} has another set called {asked.name}: give another --name")
    if not stages_of(store, row["key"]):
        raise StudyError(
            f"the weights of {row['key']} were not kept: manyseeds rerun {store.shell_word} {row['key'][:8]} --keep weights trains it "
            "again and keeps them"
        )
    return ScoredSet(asked.name, task, asked.sequences, None, digest), condition


def _interval(row: Row) -> dict[str, float | None]:
    if row["count"] is None:
        return {"low": None, "high": None}
    sums = (row[name] for name in ("errors", "count", "sequences", "errors_sq", "errors_x_count", "count_sq"))
    rates = clustered_rates(*sums)
    return {"low": float(rates.low[0]), "high": float(rates.high[0])}
