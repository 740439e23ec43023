"""Glitches of single replicates as a file of the store: <study>/glitches/<key>-<set>.parquet, one row per glitch.

They are not rows of `probes`, since a glitch has a prompt and lists by head that a study's other readers do not need. The file's metadata
holds `About` as JSON. `harness.probes.flipflop.glitch_record` writes the file, `results.report.flipflop.glitch_page` draws it.
"""

import json
from dataclasses import asdict, dataclass, fields

import pyarrow as pa
import pyarrow.compute as pc

from results.errors import DamagedFile
from results.names import slug
from results.plain_values import Row
from results.store.parquet import deserialise, serialise
from results.store.tables import Store, list_names, read_bytes, write_bytes

FOLDER = "glitches"
_META = b"manyseeds"

SCHEMA = pa.schema(
    [
        ("string", pa.int64()),  # its number in the evaluation set, from 0
        ("position", pa.int32()),  # the query, from 0
        ("prompt", pa.list_(pa.uint16())),  # tokens 0 … position, all T where the model is not causal
        ("answer", pa.int32()),  # what the model says, and what is right: classes
        ("right", pa.int32()),
        ("margin", pa.float64()),  # logit of the (best) wrong bit minus the right one
        ("write", pa.int32()),  # position of the last write's bit
        ("since_write", pa.int32()),  # as in profiles
        ("since_event", pa.int32()),
        ("margins", pa.list_(pa.float32())),  # [steps] at the kept steps
        ("sister_margins", pa.list_(pa.float32())),  # [sisters]
        ("sister_wrong", pa.list_(pa.bool_())),
        # by layer, head and kept key: the last write's, then those of the largest weights or norms; empty for a model without attention
        ("keys", pa.list_(pa.uint16())),  # [layers · heads · kept]
        ("weights", pa.list_(pa.float32())),  # a_ij
        ("norms", pa.list_(pa.float32())),  # ‖a_ij v_j‖
        ("totals", pa.list_(pa.float32())),  # [layers · heads] the sum of ‖a_ij v_j‖ over all keys
    ]
)


@dataclass(frozen=True)
class About:
    """The description of a file of glitches. tokens, answers: names of the task's tokens and of the classes that a model answers with.

    looked, sequences: strings searched, and strings of the set. errors, reads: committed by the study for the whole set. steps: of
    `margins`. kept: number of keys by head. sisters: {key, init, data} of the sister replicates that were asked. sisters_known: how many
    sisters have weights.
    """

    study: str
    key: str
    stage: int
    condition: str
    init_seed: int
    data_seed: int
    set: str
    set_hash: str
    step: int
    limit: int
    looked: int
    sequences: int
    errors: int
    reads: int
    length: int
    layers: int
    heads: int
    kept: int
    causal: bool
    unit: str
    tokens: list[str]
    answers: list[str]
    steps: list[int]
    sisters: list[Row]
    sisters_known: int


def name_of(key: str, set_name: str) -> str:
    """The name of a file of glitches."""
    return f"{slug(key)}-{slug(set_name)}.parquet"


def write(store: Store, about: About, rows: list[Row]) -> str:
    """Write the glitches of a replicate and set, replacing earlier ones; returns the path."""
    table = pa.Table.from_pylist(rows, SCHEMA).replace_schema_metadata({_META: json.dumps(asdict(about))})
    path = f"{FOLDER}/{name_of(about.key, about.set)}"
    write_bytes(store, path, serialise(table))
    return store.path(path)


def read(store: Store, key: str, set_name: str) -> tuple[About, pa.Table] | None:
    """Read what `write` wrote; None if there is no such file. ValueError, naming the file, if it is another."""
    name = name_of(key, set_name)
    if name not in list_names(store, FOLDER):
        return None
    try:
        table = deserialise(read_bytes(store, f"{FOLDER}/{name}"))
        given = json.loads((table.schema.metadata or {})[_META])
        about = About(**{field.name: given[field.name] for field in fields(About)})
        rows = table.select(SCHEMA.names).cast(SCHEMA)
        _check_lengths(about, rows)
        return about, rows
    except (pa.ArrowInvalid, KeyError, ValueError, TypeError) as error:
        raise DamagedFile(
            f"{store.path(FOLDER, name)} holds no glitches ({type(error).__name__}): delete it and run the command again"
        ) from error


def _check_lengths(about: About, rows: pa.Table) -> None:
    """Raise ValueError where a list is longer or shorter than `about` says."""
    heads = about.layers * about.heads
    lengths = {"margins": len(about.steps), "totals": heads, **dict.fromkeys(("keys", "weights", "norms"), heads * about.kept)}
    lengths |= dict.fromkeys(("sister_margins", "sister_wrong"), len(about.sisters))
    for name, length in lengths.items():
        if set(pc.list_value_length(rows[name]).to_pylist()) - {length}:
            raise ValueError(f"{name} must have {length} values a glitch")


def sets_of(store: Store, key: str) -> list[str]:
    """The sets whose glitches were written for a replicate, by their names in file names."""
    start, end = f"{slug(key)}-", ".parquet"
    return [name[len(start) : -len(end)] for name in list_names(store, FOLDER) if name.startswith(start) and name.endswith(end)]
