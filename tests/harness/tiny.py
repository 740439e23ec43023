"""A study that trains in seconds, written where a test wants it."""

import json
from pathlib import Path

from results.store.schema import IDENTITY_COLUMNS, TABLES
from results.store.tables import open_store, read

STUDY = """
name: tiny
question: Does a tiny model learn?
source: {paper: fflm, card: F2}
task: {name: flipflop, length: 16}
model: {name: transformer, layers: 1, width: 16, heads: 2}
train: {steps: 40, batch: 4, lr: 1.0e-3, warmup: 5}
evaluate:
  sets:
    sparse: {p_ignore: 0.95, sequences: 100}
    dense: {p_ignore: 0.1, sequences: 50}
    online: {p_ignore: 0.95, sequences: 20, every: 20}
conditions: {transformer: {}, lstm: {model: {name: lstm, width: 8}}}
replicates: 4
pack: {size: 2}
executor: local
wandb: off
"""


def write_study(folder: Path) -> str:
    path = folder / "tiny.yaml"
    path.write_text(STUDY)
    return str(path)


def tables(root, study="tiny") -> dict[str, list[str]]:
    """A store's tables, ready to compare: `replicates` without where and when, the others without pack, sorted; no failures."""
    store = open_store(root, study)
    out = {}
    for table in TABLES:
        if table == "failures":
            continue
        rows = read(store, table)
        rows = rows.select(IDENTITY_COLUMNS) if table == "replicates" else rows.drop_columns(["pack"])
        out[table] = sorted(json.dumps(row, sort_keys=True) for row in rows.to_pylist())
    return out


def files(root, study="tiny") -> dict[str, bytes]:
    """Every committed table file and its content."""
    folder = Path(root) / study
    return {str(path.relative_to(folder)): path.read_bytes() for table in TABLES for path in (folder / table).glob("*.parquet")}
