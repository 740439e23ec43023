"""Runs finished elsewhere: what is imported is what the file holds, and a file that would mislead is refused by name."""

import math
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from harness.exchange.exported_files import read_table
from harness.exchange.finished_runs import Columns, import_runs, runs_of
from harness.experiments.entries import entry_of
from harness.replicates.rerun import rerun
from launch.cli import main
from results.errors import StudyError
from results.report.contrasts import show_contrasts
from results.report.report import write_report
from results.rows.summary import replicates_of
from results.store.manifest import manifest_of, newest_manifest
from results.store.tables import committed, open_store, read

ROWS = [
    {"seed": seed, "lr": lr, "width": 32, "accuracy": 0.8 + lr + seed / 100, "loss": 1.0 / (1 + seed), "id": f"run-{lr}-{seed}"}
    for lr in (0.1, 0.01)
    for seed in range(8)
]
COLUMNS = Columns("seed", ("lr", "width"), {"accuracy": "higher", "loss": "lower"}, ignore=("id",))


def write(folder, rows, name="runs.csv"):
    table, path = pa.Table.from_pylist(rows), folder / name
    if name.endswith("sv"):
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t" if name.endswith("tsv") else ","))
    else:
        pa.parquet.write_table(table, path)
    return path


def with_word(column, word):
    """ROWS as texts in this column, with a word in the sixth of them."""
    return [row | {column: word if row is ROWS[5] else str(row[column])} for row in ROWS]


def imported(folder, rows=ROWS, columns=COLUMNS, name="runs.csv"):
    folder.mkdir(exist_ok=True)
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


def test_an_imported_run_cannot_be_run_again_and_says_so(tmp_path):
    store, _ = imported(tmp_path)
    with pytest.raises(
        StudyError, match=r"^these runs were imported from a table: the store has their numbers, and nothing that could"
    ):
        rerun(store, committed(store)["key"][0].as_py(), say=lambda line: None)


def test_commands_that_need_weights_say_that_the_run_was_imported(tmp_path, capsys):
    store, _ = imported(tmp_path)
    root, key = str(tmp_path / "store"), committed(store)["key"][0].as_py()
    evaluate = ["evaluate", root, key, "--set", "p_ignore=0.5 sequences=5"]
    export = ["export", root, key, "--format", "safetensors", "--out", str(tmp_path / "out")]
    for words in (["glitches", root, key], ["trace", root, key], evaluate, export):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{key} was imported: manyseeds has the numbers of this run" in line


def test_the_same_file_adds_nothing_and_a_longer_one_what_is_new(tmp_path):
    imported(tmp_path, ROWS[:10])
    assert "0 runs added, 10 were there already; " in imported(tmp_path, ROWS[:10])[1][0]
    store, said = imported(tmp_path)
    assert "6 runs added, 10 were there already; " in said[0]
    assert committed(store).num_rows == 16


def test_a_whole_number_is_the_same_setting_when_a_longer_table_has_a_fraction_beside_it(tmp_path):
    """A reader of CSV then takes the whole column as floats, also the column of steps beside a value that is missing."""
    columns = Columns("seed", ("lr",), {"acc": ""}, step="epoch")
    rows = [{"seed": seed, "lr": lr, "epoch": 5, "acc": 0.5} for lr in (1, 2) for seed in range(3)]
    imported(tmp_path, rows, columns)
    as_floats = [row | {"lr": float(row["lr"]), "epoch": float(row["epoch"])} for row in rows]
    longer = [*as_floats, {"seed": 0, "lr": 0.5, "epoch": 5.0, "acc": 0.5}]
    for name in ("runs.csv", "runs.parquet"):
        store, said = imported(tmp_path, longer, columns, name)
    assert "0 runs added, 7 were there already; runs.parquet has 3 conditions" in said[0]
    assert sorted(set(committed(store)["condition"].to_pylist())) == ["lr=0.5", "lr=1", "lr=2"]


@pytest.mark.parametrize(("again", "better"), [("", "higher"), ("lower", "lower")])
def test_a_direction_holds_until_another_is_stated(tmp_path, again, better):
    rows = [{"seed": 0, "acc": 0.5}, {"seed": 1, "acc": 0.6}]
    imported(tmp_path, rows[:1], Columns("seed", (), {"acc": "higher"}))
    store, _ = imported(tmp_path, rows, Columns("seed", (), {"acc": again}))
    assert newest_manifest(store)[1]["metrics"] == {"acc": {"better": better, "kind": ""}}


def test_a_report_says_how_a_table_states_which_way_is_better(tmp_path):
    """It has no file of a study to edit."""
    store, _ = imported(tmp_path, columns=replace(COLUMNS, metrics={"accuracy": "", "loss": "lower"}))
    page = write_report(store).read_text()
    assert "import the table again with, for example, <code>--metric accuracy=higher</code>." in page
    assert "evaluate.metrics" not in page


def test_a_report_has_a_setting_that_is_called_name(tmp_path):
    rows = [{"seed": 0, "name": name, "acc": 0.5} for name in ("first one", "second one")]
    page = write_report(imported(tmp_path, rows, Columns("seed", ("name",), {"acc": "higher"}))[0]).read_text()
    assert page.count(">first one</td>") == 1


@pytest.mark.slow
def test_a_report_says_which_conditions_and_metrics_its_figures_leave_out(tmp_path):
    metrics = dict.fromkeys((f"m{number}" for number in range(10)), "lower")
    rows = [{"seed": 0, "lr": lr, "step": step, **dict.fromkeys(metrics, 1.0)} for lr in range(31) for step in (1, 2)]
    store, _ = imported(tmp_path, rows, Columns("seed", ("lr",), metrics, step="step"))
    page = write_report(store).read_text()
    assert page.count("The first 9 of 10 metrics are shown. The first 30 of 31 conditions are shown.") == 1
    assert page.count("The first 9 of 31 conditions are shown.") == 9
    few = Columns("seed", ("lr",), {"m0": "lower"}, step="step", ignore=tuple(metrics)[1:])
    assert " are shown." not in write_report(imported(tmp_path / "few", rows[:4], few)[0]).read_text()


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


@pytest.mark.parametrize("name", ["runs.csv", "runs.tsv", "runs.parquet"])
def test_a_value_that_is_not_finite_is_a_diverged_run(tmp_path, name):
    rows = [row | {"loss": float("nan")} if row["seed"] == 3 else row for row in ROWS]
    store, _ = imported(tmp_path, rows, name=name)
    assert [row["init_seed"] for row in committed(store).to_pylist() if row["status"] == "diverged"] == [3, 3]


@pytest.mark.parametrize("spelling", ["nan", "NaN", "-nan", "-NaN", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND"])
def test_a_value_that_is_no_number_is_not_one_that_is_missing(tmp_path, spelling):
    """Arrow takes each spelling for a missing value by default. Here the loss is no number at step 2 and missing at step 3."""
    path = tmp_path / "runs.csv"
    path.write_text(f"seed,word,epoch,loss,acc\n0,{spelling},1,0.5,0.25\n0,{spelling},2,{spelling},\n0,{spelling},3,,0.5\n")
    table = read_table(path)
    assert (table["loss"].type, table["word"].type) == (pa.float64(), pa.float64())
    (run,) = runs_of(
        table, Columns("seed", (), {"loss": "", "acc": ""}, step="epoch", ignore=("word",)), path.name, pytest.fail
    )
    assert [list(entry.values) for entry in run.entries] == [["loss", "acc"], ["loss"], ["acc"]]
    assert math.isnan(run.entries[1].values["loss"][0])


def test_a_word_that_spells_no_number_stays_a_word(tmp_path):
    (tmp_path / "runs.csv").write_text("seed,lr,acc\n0,1.#IND,0.5\n1,low,0.5\n")
    assert read_table(tmp_path / "runs.csv")["lr"].to_pylist() == ["1.#IND", "low"]


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"),
    [
        ([*ROWS, ROWS[3]], COLUMNS, "seed 3 of lr=0.1, width=32 is in rows 5 and 18 of runs.csv"),
        (
            [{"seed": 1, "epoch": epoch, "acc": 0.5} for epoch in (1, 2, 3, 2)],
            Columns("seed", (), {"acc": ""}, step="epoch"),
            "seed 1 of all runs is in rows 3 and 5 of runs.csv at step 2: leave one of them out",
        ),
        (
            ROWS,
            Columns("seed", ("width",), {"accuracy": ""}, ignore=("id", "loss")),
            "runs.csv: lr differs between runs (lr: 0.1, 0.01, …)",
        ),
        (ROWS, Columns("sed", ("lr",), {"accuracy": ""}), "has no column 'sed'; did you mean seed?"),
        (ROWS, Columns("seed", ("lr", "seed"), {"accuracy": ""}), "the column 'seed' is named twice"),
        (
            ROWS,
            Columns("seed", ("lr",), {"id": ""}, ignore=("accuracy", "loss")),
            "row 2 of runs.csv: id is 'run-0.1-0', which is no number",
        ),
        # one such value makes a reader of CSV take its whole column as words
        (with_word("accuracy", "oops"), COLUMNS, "row 7 of runs.csv: accuracy is 'oops', which is no"),
        (with_word("accuracy", "1_000"), COLUMNS, "row 7 of runs.csv: accuracy is '1_000', which is no number"),
        (
            [{"seed": seed, "solved": value} for seed, value in enumerate(("true", "true", "FALSE", "0.5", "1"))],
            Columns("seed", (), {"solved": ""}),
            "runs.csv: solved is 'true' in row 2 and '0.5' in row 5: write true and false alone, or numbers alone",
        ),
        (
            ROWS,
            Columns("seed", ("lr",), {"accuracy=up": ""}, ignore=("id", "loss")),
            "--metric accuracy=up: better values are higher or lower ones, so write accuracy=higher or accuracy=lower",
        ),
        (with_word("seed", "five"), COLUMNS, "row 7 of runs.csv: seed is 'five', which is no number"),
        (ROWS, Columns("lr", (), {"accuracy": ""}, ignore=("seed", "id", "loss")), "lr = 0.1 is not a seed"),
    ],
)
def test_a_file_that_would_mislead_is_refused_by_name(tmp_path, rows, columns, sentence):
    path = write(tmp_path, rows)
    with pytest.raises(StudyError) as refused:
        runs_of(read_table(path), columns, path.name, pytest.fail)
    assert sentence in str(refused.value)


def test_a_row_is_not_compared_with_every_row_of_its_run(tmp_path, monkeypatch):
    class Step(int):
        def __eq__(self, other):
            pytest.fail("a step was compared with that of another row")

        __hash__ = int.__hash__

    def entry_with_step(returned, known):
        entry = entry_of(returned, known)
        return replace(entry, step=Step(entry.step))

    monkeypatch.setattr("harness.exchange.finished_runs.entry_of", entry_with_step)
    table = pa.table({"seed": [0] * 9, "epoch": range(9), "acc": [0.5] * 9})
    (run,) = runs_of(table, Columns("seed", (), {"acc": ""}, step="epoch"), "runs.csv", pytest.fail)
    assert len(run.entries) == 9


@pytest.mark.parametrize(
    "text",
    [
        "seed, lr ,acc, model\n1, 0.1, 0.5, big\n2, 0.1, 0.6, big\n",
        ",seed,lr,acc,model\n0,1,0.1,0.5,big\n7,2,0.1,0.6,big\n",  # DataFrame.to_csv writes its index
    ],
)
def test_spaces_after_commas_and_the_index_of_pandas_are_no_part_of_a_run(tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    runs = runs_of(read_table(tmp_path / "runs.csv"), Columns("seed", ("lr", "model"), {"acc": ""}), "runs.csv", pytest.fail)
    assert [(run.seed, run.settings) for run in runs] == [(seed, {"lr": 0.1, "model": "big"}) for seed in (1, 2)]


STATES = ("finished", "failed", "crashed", "running")


def replicate_rows(store):
    rows = [read(store, table) for table in ("replicates", "evaluations", "failures")]
    return [vars(replicate) for replicate in replicates_of(manifest_of(store), *rows)]


def with_state(row):
    return row | {"State": STATES[row["seed"] if row["lr"] == 0.1 and row["seed"] < 4 else 0]}


@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet"])
def test_rows_of_wandbs_export_that_have_not_finished_are_left_out_and_named(tmp_path, name):
    store, said = imported(tmp_path, [with_state(row) for row in ROWS], name=name)
    first = 3 if name == "runs.csv" else 2
    rows = f"({first}, {first + 1}, {first + 2})"
    assert said[0] == f"counted as failed or missing (State crashed or failed or running): 3 rows of {name} {rows}"
    assert committed(store).num_rows == len(ROWS) - 3
    for _ in range(2):  # the second import of the same file adds nothing
        ended = {row["init_seed"]: row["status"] for row in replicate_rows(store) if row["condition"] == "lr=0.1, width=32"}
        assert ended == {0: "finished", 1: "failed", 2: "failed", 3: "missing"} | dict.fromkeys(range(4, 8), "finished")
        assert sorted(read(store, "failures")["exception"].to_pylist()) == [
            f"the State of the run in {name} is {state}" for state in ("crashed", "failed")
        ]
        store, said = imported(tmp_path, [with_state(row) for row in ROWS], name=name)
    store, _ = imported(tmp_path, name=name)  # all have finished since
    assert {row["status"] for row in replicate_rows(store)} == {"finished"}
    kept = Columns("seed", ("lr", "width"), {"accuracy": "higher", "loss": "lower"}, ignore=("id", "State"))
    store, said = imported(tmp_path / "all", [with_state(row) for row in ROWS], kept)
    assert (len(said), committed(store).num_rows) == (1, len(ROWS))
    with pytest.raises(StudyError, match=r"row 9 of runs\.csv: accuracy is 'oops'"):  # rows keep their numbers
        imported(tmp_path / "word", [with_state(row | {"accuracy": "oops" if row is ROWS[7] else "0.5"}) for row in ROWS])
    with pytest.raises(StudyError, match=r"none of the runs in runs\.csv has the State finished"):
        imported(tmp_path / "none", [row | {"State": "failed"} for row in ROWS])


def test_of_runs_that_have_not_finished_those_count_that_are_known_and_have_no_finished_row(tmp_path):
    rows = [row | {"State": "finished"} for row in ROWS]
    again, unknown = (ROWS[0] | {"accuracy": None, "loss": None, "State": "crashed"} | more for more in ({}, {"lr": None}))
    store, said = imported(tmp_path, [*rows, again, unknown])
    assert said[:2] == [
        "left out, since the run has finished in another row (State crashed): 1 row of runs.csv (18)",
        "left out for want of a seed or a setting (State crashed): 1 row of runs.csv (19)",
    ]
    assert [row["status"] for row in replicate_rows(store)] == ["finished"] * len(ROWS)


def test_a_column_that_is_called_state_may_hold_other_words(tmp_path):
    rows = [row | {"State": "Ohio"} for row in ROWS]
    assert committed(imported(tmp_path, rows)[0]).num_rows == len(ROWS)


def test_a_run_without_a_value_is_refused_with_its_row(tmp_path):
    rows = [row | {"accuracy": None, "loss": None} if row is ROWS[2] else row for row in ROWS]
    with pytest.raises(StudyError, match=r"row 4 of runs\.csv: seed 2 of lr=0\.1, width=32 has no value of accuracy, loss"):
        imported(tmp_path, rows)


def test_another_column_without_a_name_must_get_one(tmp_path):
    (tmp_path / "runs.csv").write_text("seed,,acc\n1,a,0.5\n2,b,0.6\n")
    with pytest.raises(StudyError, match=r"runs\.csv has a column without a name"):
        runs_of(read_table(tmp_path / "runs.csv"), Columns("seed", (), {"acc": ""}), "runs.csv", pytest.fail)


def test_other_settings_or_metrics_for_runs_that_are_there_are_seen(tmp_path):
    """Runs under other settings are other runs: only a person knows whether they are the same ones a second time."""
    imported(tmp_path)
    with pytest.raises(StudyError, match=r"with the metrics accuracy, loss, and runs\.csv gives accuracy: name the same"):
        imported(tmp_path, columns=replace(COLUMNS, metrics={"accuracy": ""}, ignore=("id", "loss")))
    said = imported(tmp_path, columns=replace(COLUMNS, config=("lr",), ignore=("id", "width")))[1]
    assert "16 runs added; runs.csv has 2 conditions, and the study 4" in said[0]


def test_other_numbers_for_a_run_that_is_there_are_refused(tmp_path):
    imported(tmp_path)
    with pytest.raises(StudyError, match=r"seed 0 of lr=0\.1, width=32 is in the study mine with other numbers"):
        imported(tmp_path, [ROWS[0] | {"accuracy": 0.5}])


FOREIGN = {"seed": [1, 2], "lr": [0.1, 0.1], "acc": [0.5, 0.6]}
FOREIGN_COLUMNS = Columns("seed", ("lr",), {"acc": "higher"})
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(bytes([0] * 4 + [1] + [0] * 3 + [2] + [0] * 3)), pa.py_buffer(b"\xff\xfe")]
)


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("more", pa.array([[1], [2]]), "more holds lists or mappings: add it to --ignore"),
        ("more", pa.array([{"a": 1}, {"a": 2}]), "more holds lists or mappings: add it to --ignore"),
        ("more", pa.array([2**62, 1], pa.timestamp("us")), "more: values of the kind timestamp[us]) and is not named"),
        ("lr", pa.array([2**62, 1], pa.timestamp("us")), "lr holds values of the kind timestamp[us]"),
        ("lr", pa.array([1, 2], pa.timestamp("ns")), "lr holds values of the kind timestamp[ns]"),
        ("lr", pa.array([2**31 - 1, 1], pa.int32()).view(pa.date32()), "lr holds values of the kind date32"),
        ("lr", pa.array([b"\xff", b"\xfe"]), "lr holds bytes that are no text"),
        ("lr", pa.array([[1], [2]]), "lr holds lists or mappings"),
        ("lr", NOT_UTF8, "can't be read: "),
        ("lr", pa.array(["x" * 1001, "y"]), "lr has a text of 1,001 characters, and a value may have 1,000"),
        ("seed", pa.array([1.0, 2.0**53]), "is not a seed"),
    ],
)
def test_columns_of_other_kinds_are_refused_in_one_sentence(tmp_path, column, values, sentence):
    pa.parquet.write_table(pa.table(FOREIGN | {column: values}), tmp_path / "runs.parquet")
    with pytest.raises(StudyError) as refused:
        runs_of(read_table(tmp_path / "runs.parquet"), FOREIGN_COLUMNS, "runs.parquet", pytest.fail)
    assert sentence in str(refused.value)


def test_a_parquet_file_of_more_rows_than_are_read_is_refused_by_its_footer(tmp_path, monkeypatch):
    pa.parquet.write_table(pa.table(FOREIGN), tmp_path / "runs.parquet")
    monkeypatch.setattr("harness.exchange.exported_files.MOST_ROWS", 1)
    monkeypatch.setattr("pyarrow.parquet.read_table", lambda *of, **options: pytest.fail("the rows were read"))
    with pytest.raises(StudyError, match="2 rows of 3 columns, and at most 1 rows"):
        read_table(tmp_path / "runs.parquet")


def test_one_long_text_for_many_rows_of_a_parquet_file_stays_one(tmp_path):
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 200_000]))  # 4 GB
    rows = pa.table({"seed": range(20_000), "lr": text, "acc": [0.5] * 20_000})
    pa.parquet.write_table(rows, tmp_path / "runs.parquet", dictionary_pagesize_limit=2**30, store_schema=False)
    before = pa.total_allocated_bytes()
    found = read_table(tmp_path / "runs.parquet")
    assert pa.total_allocated_bytes() - before < 2**24
    with pytest.raises(StudyError, match="lr has a text of 200,000 characters"):
        runs_of(found, FOREIGN_COLUMNS, "runs.parquet", pytest.fail)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("runs.csv", b"seed,l\xe9r,acc\n1,2,3\n", "is not UTF-8 text"),
        ("runs.csv", b"seed,lr,acc\n1,\xe9,3\n", "lr holds bytes that are no text in UTF-8"),
        ("runs.csv", b"seed,lr,acc\n1,2024-01-01 00:00:00.123456789,3\n", "lr holds values of the kind timestamp[ns]"),
        ("runs.jsonl", b'{"seed": 1, "lr": "\xff", "acc": 1}\n', "is not UTF-8 text"),
        ("runs.jsonl", b'{"seed": 1, "lr": 1, "acc": 1, "x": [1]}\n', "x holds lists or mappings: add it to --ignore"),
        ("runs.jsonl", b'{"seed": 1, "lr": 1, "acc": 1, "acc": 2}\n', "line 1 of"),
        ("runs.jsonl", b'{"seed": 1}\n[1]\n', "line 2 of"),
        ("runs.jsonl", b'{"seed": 1, "x": ' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_001 + b"\n", "line 1 of"),
        ("runs.jsonl", b'{"seed": 1, "lr": 1, "acc": 1}\n{"seed": 2, "lr": "a", "acc": 1}\n', "'lr' mixes kinds of values"),
        ("runs.jsonl", b'{"seed": 1, "lr": "\\ud800", "acc": 1}\n', "is not"),
        ("runs.jsonl", b'{"seed": 1, "lr": ' + b"9" * 400 + b', "acc": 1}\n', "'lr' mixes kinds of values"),
    ],
)
def test_texts_that_are_no_table_are_refused_in_one_sentence(tmp_path, name, data, sentence):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(StudyError) as refused:
        runs_of(read_table(tmp_path / name), FOREIGN_COLUMNS, name, pytest.fail)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_a_pipe_in_the_place_of_a_table_is_refused(tmp_path):
    os.mkfifo(tmp_path / "runs.csv")
    with pytest.raises(StudyError, match="is not a file"):
        read_table(tmp_path / "runs.csv")


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"),
    [
        ([{"seed": 1, "lr": 1, "step": 0.5}], Columns("seed", ("lr",), {"step": ""}), "a metric can't be called 'step'"),
        (
            [{"seed": 1, "acc": 0.5, "at": None}, {"seed": 1, "acc": 0.5, "at": 3}],
            Columns("seed", (), {"acc": ""}, step="at"),
            "row 2 of runs.csv has no at",
        ),
        ([{"seed": 1, "m" * 3000: 0.5}], Columns("seed", (), {"m" * 3000: ""}), "no study can be made of runs.csv"),
    ],
)
def test_what_no_study_can_hold_is_refused_before_anything_is_written(tmp_path, rows, columns, sentence):
    with pytest.raises(StudyError) as refused:
        imported(tmp_path, rows, columns)
    assert sentence in str(refused.value)
    assert not list((tmp_path / "store").rglob("*.*"))


def test_settings_that_look_the_same_keep_two_names(tmp_path):
    for rows in ([{"seed": 1, "a": "1, b=2", "b": 3, "acc": 0.5}], [{"seed": 1, "a": 1, "b": "2, b=3", "acc": 0.6}]):
        store, _ = imported(tmp_path, rows, Columns("seed", ("a", "b"), {"acc": ""}), "runs.parquet")
    imported(
        tmp_path, [{"seed": 1, "a": "true", "b": True, "acc": 0.5}], Columns("seed", ("a", "b"), {"acc": ""}), "runs.parquet"
    )
    names = [condition["name"] for condition in newest_manifest(store)[1]["conditions"]]
    assert names == ['a="1, b=2", b=3', 'a=1, b="2, b=3"', 'a="true", b=true']


def test_a_metric_is_a_number_in_all_runs_or_in_none(tmp_path):
    imported(tmp_path, [{"seed": 1, "acc": 0.5}], Columns("seed", (), {"acc": ""}), "runs.parquet")
    with pytest.raises(
        StudyError, match=r"acc is a number in some runs and true or false in others, as of seed 2 in runs\.parquet"
    ):
        imported(tmp_path, [{"seed": 2, "acc": True}], Columns("seed", (), {"acc": ""}), "runs.parquet")
