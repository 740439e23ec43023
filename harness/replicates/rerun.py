"""One committed replicate trained again, held against its rows, and its weights kept: `manyseeds rerun`.

The study's own files are read and never written: training goes to a temporary store, and only weights whose rows agree are copied to
the store's artifacts, where export, probes and `manyseeds evaluate` find them.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import torch

import harness.machine.device
import harness.planning.manifest as manifests
from harness.exchange.folder import metadata_of, tensors_of
from harness.exchange.replicate import refuse_language_model
from harness.experiments.measure import measure
from harness.machine.exit_guard import no_exit
from harness.planning.pack import Pack, Replicate, scored_sets
from harness.planning.plan import signature
from harness.replicates.compare_rows import disagreement
from harness.study.config import Condition, Study
from harness.study.identity import canonical
from harness.study.identity import key as key_of
from harness.study.stages import steps_taken
from harness.training import weights as artifacts
from harness.training.train import train
from models.custom.custom import Custom
from models.unfit import UnfitModel
from results.errors import StudyError, settings_errors
from results.plain_values import Row, Tree
from results.rows.keys import resolve_key
from results.store.filesystem import content, info_of
from results.store.manifest import FOLDER, as_planned, label
from results.store.schema import SCHEMAS
from results.store.seal import state
from results.store.tables import Store, open_store, read, write_file

TOLERANCE = 0.01  # relative, where the numerics are not those of the row
_COMPARED = ("replicates", "curves", "evaluations", "profiles")


@dataclass(frozen=True)
class Rerun:
    """How a rerun compares with the committed rows.

    agrees: every row within the tolerance, which is 0 (bit for bit) if `differing`, the numerics that differ, is empty. message: one
    sentence; kept: where the weights are, or None.
    """

    key: str
    agrees: bool
    differing: tuple[str, ...]
    message: str
    kept: str | None = None


def rerun(
    stores: Store | Sequence[Store],
    key: str,
    keep: bool = False,
    device: str = "auto",
    say: Callable[[str], None] = lambda line: None,
) -> Rerun:
    """Train one replicate of these studies again from its recorded configuration, alone, and compare it with its committed rows.

    key: 32 digits, or as many as tell it apart; keep: write its weights where they agree. Losses, curves, evaluations and profiles must be
    equal bit for bit on a CPU in fp32 with the recorded numerics; with others, which are named, each value within TOLERANCE, relative
    (and a tenth of it, absolute), and each rare error count within its sampling error. Raises ValueError, before training, where the
    replicate or its manifest is not there, or the code is another; weights that are kept already are never replaced.
    """
    stores = [stores] if isinstance(stores, Store) else list(stores)
    full = resolve_key(stores, key)
    store, row = next((holder, row) for holder in stores if (row := _row(holder, full)) is not None)
    refuse_language_model(json.loads(row["config"]), full)
    study, condition = _planned(store, row)
    torch_device = harness.machine.device.resolve(device)
    harness.machine.device.prepare(torch_device)
    recorded = json.loads(row["numerics"])
    numerics = harness.machine.device.planned_numerics(torch_device.type, bool(recorded.get("compile")))
    replicate = Replicate(full, condition, row["init_seed"], row["data_seed"], scored_sets(study, condition), row["parent_key"])
    shared = (study.curve_every, numerics, True, row["stage"])
    pack = Pack(f"rerun-{full}", signature(condition, study.sets), (replicate,), *shared, watch=study.watch)
    who = f"{label(row['condition'], row['stage'])}, seeds {row['init_seed']}, {row['data_seed']}"
    say(f"{full} ({who}): {row['steps']} steps on {torch_device.type}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = open_store(folder, store.study)
        if row["stage"]:  # the weights that it began from
            for step in sorted(steps_taken(condition)):
                given = (row["parent_key"], row["stage"] - 1, step)
                write_file(scratch, artifacts.path(scratch, *given), artifacts.data(store, *given))
        kind, run = ("training", train) if condition.experiment is None else ("experiment", measure)
        with settings_errors(UnfitModel), no_exit(f"the {kind}"):
            ours = {table: SCHEMAS[table].empty_table() for table in _COMPARED} | run(pack, scratch, torch_device)
        differing = _differing(recorded, json.loads(ours["replicates"]["numerics"][0].as_py()), row, condition)
        tolerance = TOLERANCE if differing else 0.0
        theirs = {table: read(store, table, filter=pc.field("key") == full) for table in _COMPARED}
        wrong = disagreement(theirs, ours, tolerance)
        if wrong:
            return Rerun(full, False, differing, _mismatch(full, row, wrong, ours, differing))
        message = f"{full} agrees with its rows " + (
            f"within {tolerance:.0%}; its numerics are others: {'; '.join(differing)}" if differing else "bit for bit"
        )
        if not keep:
            return Rerun(full, True, differing, message)
        if condition.experiment is None:
            weights = content(scratch.filesystem, artifacts.path(scratch, full, row["stage"], row["steps"]))
            return _kept(store, row, row["steps"], weights, differing, message)
        steps = artifacts.steps_of(scratch, full, 0)
        if not steps:
            raise StudyError(f"{full} is an experiment that returns no arrays, and has no weights to keep: leave --keep out")
        arrays = {step: content(scratch.filesystem, artifacts.path(scratch, full, 0, step)) for step in steps}
    kept = [_kept(store, row, step, data, differing, message, "arrays") for step, data in arrays.items()]
    return next((comparison for comparison in kept if not comparison.agrees), kept[-1])


def _row(store: Store, key: str) -> Row | None:
    """The committed row of the replicate's last stage."""
    rows = as_planned(store, read(store, "replicates", filter=pc.field("key") == key)).to_pylist()
    return max(rows, key=lambda row: row["stage"], default=None)


def _planned(store: Store, row: Row) -> tuple[Study, Condition]:
    """The study and condition that the row's pack was planned from, else ones that ask for the row's evaluation sets."""
    plans = []
    for manifest in manifests.read_all(store):
        places = [index for key, index, *_ in manifest["replicates"] if key == row["key"]]
        if not places:
            continue
        study = manifests.study_of(manifest)
        condition = study.conditions[places[0]]
        if sorted(study.set_hashes(condition).values()) == row["sets"]:
            plans.append((any(pack["id"] == row["pack"] for pack in manifest["packs"]), study, condition))
    if not plans:
        raise StudyError(
            f"no manifest of {store.path(FOLDER)} plans {row['key']} with the evaluation sets that its row names: bring the manifest "
            "that it was trained from"
        )
    _, study, condition = max(plans, key=lambda plan: plan[0])
    again = key_of(condition.config(), row["stage"], row["init_seed"], row["data_seed"], row["parent_key"])
    if again != row["key"] or canonical(condition.config()) != row["config"]:
        raise StudyError(
            f"{row['key']} has another configuration in its row than in the manifest of {store.study}, or another key in this code: "
            f"use the version that wrote it ({row['git'] or 'unknown'}), on files that nobody changed"
        )
    return study, condition


def _differing(recorded: Tree, ours: Tree, row: Row, condition: Condition) -> tuple[str, ...]:
    """Why the rerun may have other bits, in words; () where it should have the same."""
    plain = json.loads(json.dumps(ours))
    differences = [
        f"{name} is {plain.get(name)!r} and was {recorded.get(name)!r}"
        for name in sorted(recorded.keys() | plain.keys())
        if recorded.get(name) != plain.get(name)
    ]
    if row["pack_size"] > 1 and isinstance(condition.model, Custom):
        differences.append(f"a module of your own is alone and was in a pack of {row['pack_size']}")
    elif row["pack_size"] > 1 and (ours["device"] != "cpu" or ours["precision"] != "fp32"):
        differences.append(f"pack_size is 1 and was {row['pack_size']}, in {ours['precision']} on {ours['device']}")
    elif ours["device"] != "cpu":
        differences.append(f"no two trainings on {ours['device']} are known to be equal bit for bit")
    return tuple(differences)


def _mismatch(key: str, row: Row, wrong: str, ours: dict[str, pa.Table], differing: tuple[str, ...]) -> str:
    code = ours["replicates"]["git"][0].as_py()
    other = f", its code was {row['git'][:12]} and this is {code[:12]}" if row["git"] and code and row["git"] != code else ""
    allowed = f" (allowed: {TOLERANCE:.0%}, as its numerics are others: {'; '.join(differing)})" if differing else ""
    return f"{key} does not agree with its rows{allowed}: {wrong}{other}"


def _kept(
    store: Store,
    row: Row,
    step: int,
    weights: bytes,
    differing: tuple[str, ...],
    message: str,
    what: str = "weights",
) -> Rerun:
    """Write the weights, or the arrays, of a step; where there are some already, compare them."""
    where = artifacts.path(store, row["key"], row["stage"], step)
    if not info_of(store.filesystem, where).is_file:
        write_file(store, where, weights)
        return Rerun(row["key"], True, differing, f"{message}; its {what} are in {where}", where)
    kept = content(store.filesystem, where)
    if state(kept) == "damaged":
        cure = "are damaged: delete them and run this again"
        return Rerun(row["key"], False, differing, f"{message}, but the {what} that were kept before {cure}: {where}", where)
    same = _equal(kept, weights, where)
    if same or differing:
        word = "the same" if same else "left as they were"
        return Rerun(row["key"], True, differing, f"{message}; the {what} in {where} are {word}", where)
    return Rerun(row["key"], False, differing, f"{message}, but the {what} that were kept before are others: {where}", where)


def _equal(one: bytes, other: bytes, where: str) -> bool:
    """The same tensors bit for bit, of the same replicate; their order in a file is not fixed, and its pack may be another."""
    first, second = tensors_of(one, where), tensors_of(other, where)
    about, others = metadata_of(one, where), metadata_of(other, where)
    if any(about.get(name) != others.get(name) for name in ("key", "config", "seeds")) or first.keys() != second.keys():
        return False
    return all(torch.equal(tensor.view(torch.uint8), second[name].view(torch.uint8)) for name, tensor in first.items())
