"""Plans of a small study, and the rows of packs that were run."""

import pyarrow as pa

from harness.planning.plan import plan
from harness.study.load import from_tree

NUMERICS = {"device": "cpu", "threads": 1, "torch": "2.13.0"}


def trial_study(*overrides, **changes):
    tree = {
        "name": "trial",
        "task": {"name": "flipflop", "length": 16},
        "model": {"name": "transformer", "layers": 1, "width": 8, "heads": 2},
        "train": {"steps": 20},
        "evaluate": {"sets": {"sparse": {"p_ignore": 0.98, "sequences": 100}, "dense": {"p_ignore": 0.1, "sequences": 50}}},
        "replicates": 8,
    }
    return from_tree(tree | changes, overrides)


def planned_packs(study, committed=None, sizes=4, **options):
    return plan(study, committed, sizes, numerics=NUMERICS, **options)


def committed_rows(*packs):
    """The replicates table after (plan, pack) were run."""
    rows = []
    for planned, pack in packs:
        for index in pack.replicates:
            each = planned.replicates[index]
            sets = list(planned.study.set_hashes(planned.study.conditions[each.condition]).values())
            rows.append({"key": each.key, "stage": 0, "pack": pack.id, "sets": sets})
    schema = pa.schema([("key", pa.string()), ("stage", pa.int32()), ("pack", pa.string()), ("sets", pa.list_(pa.string()))])
    return pa.Table.from_pylist(rows, schema)


def planned_keys(planned):
    return sorted(planned.replicates[index].key for pack in planned.packs for index in pack.replicates)
