"""What stands beside a report's page to be downloaded, and the part of the page that a paper takes over: methods, citations, tables."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from results.plain_values import Tree
from results.report.citations import harness, references
from results.report.family import ReportFamily
from results.report.methods import methods_text
from results.rows.summary import Replicate, to_parquet
from results.store.manifest_types import Manifest
from results.store.schema import TABLES as STORE_TABLES

TABLES = (
    ("Summary, a row a condition and evaluation set", ("summary.csv", "summary.tex", "summary.parquet")),
    ("Replicates, a row each", ("replicates.csv", "replicates.parquet")),
    ("Evaluations at the last step, counts and sums of squares", ("evaluations.parquet",)),
    ("Whole tables, only the rows that count", tuple(f"tables/{name}.parquet" for name in STORE_TABLES)),
)


def more_tables(planned: Sequence[Replicate], rows: pa.Table, replicates: pa.Table, evaluations: pa.Table) -> dict[str, bytes]:
    """{file name: content} of the tables that `results.report.report` does not write already; `rows` is of
    `results.rows.summary.raw_rows`.
    """
    return {
        "replicates.parquet": to_parquet(rows),
        "evaluations.parquet": to_parquet(final_rows(planned, replicates, evaluations)),
    }


def final_rows(planned: Sequence[Replicate], replicates: pa.Table, evaluations: pa.Table) -> pa.Table:
    """The rows of `evaluations` at the last step of the replicates of the plan, in an order that is theirs alone."""
    keys = pa.array(sorted({replicate.key for replicate in planned}), pa.string())
    last = replicates.filter(pc.is_in(replicates["key"], keys)).select(["key", "stage", "pack", "steps"])
    last = last.rename_columns(["key", "stage", "pack", "step"])
    last_rows = evaluations.join(last, keys=["key", "stage", "pack", "step"], join_type="left semi")
    order = [(name, "ascending") for name in ("key", "stage", "set", "set_hash", "weights", "length", "metric")]
    return last_rows.select(evaluations.column_names).sort_by(order)


def for_a_paper(
    manifest: Manifest,
    planned: Sequence[Replicate],
    replicates: pa.Table,
    summary: pa.Table,
    families: Sequence[ReportFamily],
) -> Tree:
    """The values that `methods.html` shows."""
    keys = pa.array([replicate.key for replicate in planned], pa.string())
    commits = replicates.filter(pc.is_in(replicates["key"], keys))["git"].drop_null().unique().to_pylist()
    papers = {name: entries for family in families for name, entries in family.references.items()}
    return {
        "methods_text": methods_text(manifest, planned, replicates, summary, families),
        "references": [*references(manifest.get("source"), papers), harness(sorted(commits))],
        "downloads": TABLES,
    }
