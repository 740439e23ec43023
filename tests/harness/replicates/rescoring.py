"""An experiment with arrays, and calls of `manyseeds evaluate` whose rows are read back."""

import pyarrow.parquet

from harness.replicates.rescore import SCHEMA
from launch.cli import main
from tests.harness.experiments import own_functions

EXPERIMENT = f"""
name: arrays
question: Are arrays weights?
experiment: {{name: "{own_functions.__name__}:array_once"}}
evaluate: {{metrics: {{score: higher}}}}
replicates: 1
executor: local
wandb: off
"""


def evaluate(store, key, definition, *more):
    main(["evaluate", store.root, key, "--set", definition, "--device", "cpu", *more])


def rows_of(store, name):
    return pyarrow.parquet.read_table(store.path("rescored", f"{name}.parquet"), schema=SCHEMA).to_pylist()
