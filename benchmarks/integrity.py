"""What checking digests and page checksums adds to reading tables: many small files, and one file per table.

python -m benchmarks.integrity [--replicates 1000] [--rounds 41]

Two threads read small files, and their timing makes single readings differ by a third, so medians count.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from unittest.mock import patch

import pyarrow.dataset
import pyarrow.parquet

import results.store.parquet
import results.store.seal
import results.store.second_copy
from benchmarks.report_speed import STUDY, write_store
from results.markdown_table import markdown_table
from results.store.merge import compact
from results.store.tables import Store, committed, open_store, read

BOUND = 0.05  # of the time that reading takes without checks


@contextmanager
def unchecked() -> Iterator[None]:
    """The reader without its checks: nothing is hashed, no checksum of a page is compared, and no value is looked at."""
    file, options = pyarrow.parquet.ParquetFile, pyarrow.dataset.ParquetFragmentScanOptions
    reader = results.store.parquet
    with ExitStack() as stack:
        for module in (results.store.seal, results.store.second_copy):
            stack.enter_context(patch.object(module, "_holds", lambda data, place: True))
        stack.enter_context(patch.object(reader, "_refuse_impossible", lambda *_: None))
        stack.enter_context(patch.object(reader, "_read_columns", lambda _, file, columns, *__: file.read(columns, False)))
        stack.enter_context(patch.object(reader, "impossible", lambda rows: ""))
        stack.enter_context(patch.object(pyarrow.parquet, "ParquetFile", lambda source, **_: file(source)))
        stack.enter_context(patch.object(pyarrow.dataset, "ParquetFragmentScanOptions", lambda **_: options()))
        yield


def read_study(store: Store) -> float:
    """Seconds of processor time for reading what a report needs; other work on the machine does not count."""
    started = time.process_time()
    winning = committed(store)
    for table in ("evaluations", "curves", "profiles"):
        read(store, table, winning=winning)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=41, help="Of each way, alternately; their medians count.")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_store(folder, options.replicates)
        store = open_store(folder, STUDY)
        for layout in ("one pack per replicate", "compacted"):
            if layout == "compacted":
                compact(store)
            with_checks, without = [], []
            for _ in range(options.rounds):
                with_checks.append(read_study(store))
                with unchecked():
                    without.append(read_study(store))
            bare, checked = median(without), median(with_checks)
            rows.append([layout, f"{bare:.3f}", f"{checked:.3f}", f"{checked / bare - 1:+.1%}", f"{BOUND:.0%}"])
    print(markdown_table(["layout", "s without", "s with", "more", "bound"], rows))


if __name__ == "__main__":
    main()
