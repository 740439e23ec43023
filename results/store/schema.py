"""The tables of a store: one fixed Arrow schema per table, the same for every study.

Only nullable columns are ever appended, at the end: pyarrow takes the schema of the first file it meets and silently drops
a later file's extra column, so every reader passes the schema written here. Frozen by `tests/results/store/test_schema.py`.
"""

import pyarrow as pa


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_KEY = [_required("key", pa.string()), _required("stage", pa.int32())]
_PACK = _required("pack", pa.string())

LABELS_RIGHT = "labels_right"  # in curves: the share of a pool's strings that the stage before answered right throughout
MOST_VALUE = 1e150  # of a measured number: its square is finite, and so is the axis that it is drawn on
STATUSES = ("finished", "diverged", "no_transition")

SCHEMAS: dict[str, pa.Schema] = {
    "replicates": pa.schema(
        [
            *_KEY,
            pa.field("parent_key", pa.string()),
            pa.field("parent_step", pa.int64()),
            _required("condition", pa.string()),
            _required("config", pa.string()),  # canonical JSON of everything that is hashed but the seeds
            _required("init_seed", pa.int64()),
            _required("data_seed", pa.int64()),
            _required("status", pa.string()),
            pa.field("diverged_at", pa.int64()),
            _required("steps", pa.int64()),
            _required("samples", pa.int64()),
            _required("tokens", pa.int64()),
            _required("parameters", pa.int64()),
            _required("loss", pa.float64()),  # mean training loss of the last min(100, steps) steps; NaN if diverged or none
            # provenance from here on: left out when two stores are compared
            _PACK,
            _required("pack_size", pa.int32()),
            _required("slot", pa.int32()),
            _required("attempt", pa.int32()),
            _required("started", pa.timestamp("us", tz="UTC")),
            _required("ended", pa.timestamp("us", tz="UTC")),
            _required("train_s", pa.float64()),  # the pack's seconds divided by its replicates
            _required("evaluate_s", pa.float64()),
            _required("host", pa.string()),
            _required("device", pa.string()),
            _required("numerics", pa.string()),  # JSON
            _required("versions", pa.string()),  # JSON
            pa.field("git", pa.string()),
            pa.field("dirty", pa.bool_()),
            _required("sets", pa.list_(pa.string())),  # set_hash of every evaluation set this row's pack has scored
            pa.field("own_git", pa.string()),  # of the checkout that a person's own code is in
            pa.field("own_dirty", pa.bool_()),
            pa.field("own_wandb", pa.string()),  # ids of the W&B runs that the replicate's own script made
        ]
    ),
    "evaluations": pa.schema(
        [
            *_KEY,
            _PACK,
            _required("step", pa.int64()),
            _required("weights", pa.string()),  # raw | ema
            _required("set", pa.string()),
            _required("set_hash", pa.string()),
            pa.field("length", pa.int64()),
            _required("metric", pa.string()),
            # counts, not rates; null where the replicate had diverged
            pa.field("errors", pa.int64()),
            pa.field("count", pa.int64()),
            _required("sequences", pa.int64()),
            pa.field("sequences_wrong", pa.int64()),
            pa.field("errors_sq", pa.int64()),  # sum over sequences of errors²
            pa.field("errors_x_count", pa.int64()),  # sum over sequences of errors·count
            pa.field("count_sq", pa.int64()),  # sum over sequences of count²
            pa.field("value", pa.float64()),  # of an experiment; null where it is no finite number
            pa.field("kind", pa.string()),  # of an experiment's metric: number | flag | array
        ]
    ),
    "profiles": pa.schema(
        [
            *_KEY,
            _PACK,
            _required("step", pa.int64()),
            _required("set", pa.string()),
            _required("set_hash", pa.string()),
            _required("axis", pa.string()),  # since_write | since_event | position | …
            _required("lo", pa.int64()),
            _required("hi", pa.int64()),  # exclusive
            _required("errors", pa.int64()),
            _required("count", pa.int64()),
        ]
    ),
    "curves": pa.schema(
        [*_KEY, _PACK, _required("step", pa.int64()), _required("metric", pa.string()), _required("value", pa.float64())]
    ),
    "probes": pa.schema(
        [
            *_KEY,
            _PACK,
            _required("step", pa.int64()),
            _required("probe", pa.string()),
            pa.field("layer", pa.int32()),
            pa.field("head", pa.int32()),
            pa.field("item", pa.string()),
            _required("value", pa.float64()),
            pa.field("other_key", pa.string()),  # of rows that compare two replicates
        ]
    ),
    "failures": pa.schema(
        [
            _required("pack", pa.string()),
            _required("attempt", pa.int32()),
            _required("keys", pa.list_(pa.string())),
            _required("stage", pa.int32()),
            pa.field("step", pa.int64()),
            _required("kind", pa.string()),
            _required("exception", pa.string()),
            _required("traceback", pa.string()),
            _required("at", pa.timestamp("us", tz="UTC")),
        ]
    ),
}

# the columns of `replicates` that say what a replicate is and how it ended, as against where and when it ran
IDENTITY_COLUMNS = SCHEMAS["replicates"].names[: SCHEMAS["replicates"].names.index("pack")]

TABLES = tuple(SCHEMAS)
