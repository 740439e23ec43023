"""Runs finished elsewhere: what is imported is what the file holds, and a file that would mislead is refused by name."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from harness.exchange.finished_runs import Columns, import_runs, read_table, runs_of
from results.errors import StudyError
from results.report.contrasts import show_contrasts
from results.store.tables import committed, open_store, read

ROWS = [
    {"seed": seed, "lr": lr, "width": 32, "accuracy": 0.8 + lr + seed / 100, "loss": 1.0 / (1 + seed), "id": f"run-{lr}-{seed}"}
    for lr in (0.1, 0.01)
    for seed in range(8)
]
COLUMNS = Columns("seed", ("lr", "width"), {"accuracy": "higher", "loss": "lower"}, ignore=("id",))


def write(folder, rows, name="runs.csv"):
    table, path = pa.Table.from_pylist(rows), folder / name
    if name.endswith("csv"):
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path)
    return path


def imported(folder, rows=ROWS, columns=COLUMNS, name="runs.csv"):
    store, said = open_store(folder / "store", "mine"), []
    import_runs(store, write(folder, rows, name), columns, "", said.append)
    return store, said


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet"])
def test_a_study_has_the_numbers_of_the_file(tmp_path, name):
    store, _ = imported(tmp_path, name=name)
    replicates = {row["key"]: row for row in committed(store).to_pylist()}
    found = {
        (replicates[row["key"]]["condition"], replicates[row["key"]]["init_seed"], row["metric"]): row["value"]
        for row in read(store, "evaluations").to_pylist()
    }
    assert found == {
        (f"lr={row['lr']}, width=32", row["seed"], metric): row[metric] for row in ROWS for metric in ("accuracy", "loss")
    }
    said = []
    show_contrasts(store, None, said.append)
    line = next(line for line in said if "accuracy" in line)
    assert "8 pairs" in line
    assert "| -0.09 [-0.09, -0.09] |" in line


def test_the_same_file_adds_nothing_and_a_longer_one_what_is_new(tmp_path):
    imported(tmp_path, ROWS[:10])
    assert "0 runs added, 10 were there" in imported(tmp_path, ROWS[:10])[1][0]
    store, said = imported(tmp_path)
    assert "6 runs added, 10 were there" in said[0]
    assert committed(store).num_rows == 16


def test_a_run_of_several_rows_has_its_values_by_step(tmp_path):
    rows = [{"seed": seed, "epoch": epoch, "accuracy": seed + epoch / 10} for seed in (0, 1) for epoch in (1, 2)]
    store, _ = imported(tmp_path, rows, Columns("seed", (), {"accuracy": ""}, step="epoch"))
    assert sorted((row["step"], row["value"]) for row in read(store, "evaluations").to_pylist()) == [
        (1, 0.1),
        (1, 1.1),
        (2, 0.2),
        (2, 1.2),
    ]
    assert {row["steps"] for row in committed(store).to_pylist()} == {2}


def test_a_value_that_is_not_finite_is_a_diverged_run(tmp_path):
    rows = [row | {"loss": float("nan")} if row["seed"] == 3 else row for row in ROWS]
    store, _ = imported(tmp_path, rows, name="runs.parquet")
    assert [row["init_seed"] for row in committed(store).to_pylist() if row["status"] == "diverged"] == [3, 3]


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"),
    [
        ([*ROWS, ROWS[3]], COLUMNS, "seed 3 of lr=0.1, width=32 is in rows 5 and 18 of runs.csv"),
        (
            ROWS,
            Columns("seed", ("width",), {"accuracy": ""}, ignore=("id", "loss")),
            "runs.csv: lr differ between runs (lr: 0.1, 0.01, …)",
        ),
        (ROWS, Columns("sed", ("lr",), {"accuracy": ""}), "has no column 'sed'; did you mean seed?"),
        (ROWS, Columns("seed", ("lr", "seed"), {"accuracy": ""}), "the column 'seed' is named twice"),
        (
            ROWS,
            Columns("seed", ("lr",), {"id": ""}, ignore=("accuracy", "loss")),
            "the metric id is 'run-0.1-0', which is no number",
        ),
        (ROWS, Columns("lr", (), {"accuracy": ""}, ignore=("seed", "id", "loss")), "lr = 0.1 is no seed"),
    ],
)
def test_a_file_that_would_mislead_is_refused_by_name(tmp_path, rows, columns, sentence):
    path = write(tmp_path, rows)
    with pytest.raises(StudyError) as refused:
        runs_of(read_table(path), columns, path.name)
    assert sentence in str(refused.value)


def test_other_numbers_for_a_run_that_is_there_are_refused(tmp_path):
    imported(tmp_path)
    with pytest.raises(StudyError, match=r"seed 0 of lr=0\.1, width=32 is in the study mine with other numbers"):
        imported(tmp_path, [ROWS[0] | {"accuracy": 0.5}])
