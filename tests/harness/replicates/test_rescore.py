"""Kept weights on a new set: the study's own set gives its own counts, others are named, checked and written beside the tables."""

import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from harness.exchange.replicate import load as load_replicate
from harness.replicates.rescore import SCHEMA, parse, write
from harness.run import run
from harness.study.load import load as load_study
from launch.cli import main
from models.custom import custom
from results.errors import StudyError
from results.store.tables import committed, open_store, read
from tests.harness.experiments import own_functions
from tests.harness.replicates.rescoring import EXPERIMENT, evaluate, rows_of
from tests.harness.tiny import files, write_study

SUMS = ["metric", "errors", "count", "sequences", "sequences_wrong", "errors_sq", "errors_x_count", "count_sq", "set_hash"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rescore")
    words = [f"store={folder / 'runs'}", "train.steps=20", "replicates=2", "device=cpu", "keep=tail(1)"]
    words += ["evaluate.sets.short={p_ignore: 0.9, length: 10, sequences: 30}"]
    assert run(load_study(write_study(folder), words), say=lambda line: None) == 0
    return open_store(folder / "runs", "tiny")


def kept(store):
    return sorted(
        row["key"]
        for row in committed(store).to_pylist()
        if store.filesystem.get_file_info(f"{store.root}/artifacts/{row['key']}/0/20.safetensors").is_file
    )


def test_the_studys_own_set_gives_its_own_counts_for_the_worst_that_were_kept(store, capsys):
    before = files(store.root)
    evaluate(store, "all", "p_ignore=0.95 sequences=100", "--name", "sparse", "--write")
    shown = capsys.readouterr().out
    found = rows_of(store, "sparse")
    keys = kept(store)
    assert len(keys) == 2  # tail(1): one of each condition
    assert sorted({row["key"] for row in found}) == keys
    assert all(key[:12] in shown for key in keys)
    for key in keys:
        wanted = read(store, "evaluations", filter=(pc.field("key") == key) & (pc.field("set") == "sparse")).to_pylist()
        mine = [row for row in found if row["key"] == key]
        assert [{name: row[name] for name in SUMS} for row in mine] == [{name: row[name] for name in SUMS} for row in wanted]
        assert all(row["low"] <= row["errors"] / row["count"] <= row["high"] for row in mine)
    assert files(store.root) == before


def test_another_set_of_a_name_is_refused(store, capsys):
    for name, definition in (("dense", "p_ignore=0.2 sequences=50"), ("dense", "p_ignore=0.1 sequences=50 seed=1")):
        with pytest.raises(SystemExit):
            evaluate(store, "all", definition, "--name", name)
        assert "the study tiny has another set called dense: give another --name" in capsys.readouterr().err
    one, other = kept(store)
    evaluate(store, one, "p_ignore=0.3 sequences=20", "--name", "mine", "--write")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        evaluate(store, one, "p_ignore=0.3 sequences=21", "--name", "mine", "--write")
    shown = capsys.readouterr()
    assert "holds another set called mine" in shown.err
    assert not shown.out  # before anything is scored
    evaluate(store, other[:12], "p_ignore=0.3 sequences=20", "--name", "mine", "--write")
    assert sorted({row["key"] for row in rows_of(store, "mine")}) == [one, other]


def test_the_seed_draws_other_strings(store):
    evaluate(store, "all", "p_ignore=0.5 sequences=50", "--name", "a", "--write")
    evaluate(store, "all", "p_ignore=0.5 sequences=50 seed=1", "--name", "b", "--write")
    one, other = rows_of(store, "a"), rows_of(store, "b")
    assert [row["set_hash"] for row in one] != [row["set_hash"] for row in other]
    assert [row["count"] for row in one] != [row["count"] for row in other]


def test_the_arrays_of_an_experiment_are_no_weights(store, tmp_path, monkeypatch, capsys):
    """Such a replicate is refused by its key, and left out of all; its arrays can be exported, but not as a model."""
    monkeypatch.setattr(custom, "_allowed", {own_functions.__name__})
    (tmp_path / "arrays.yaml").write_text(EXPERIMENT)
    root = str(tmp_path / "runs")
    assert run(load_study(tmp_path / "arrays.yaml", [f"store={root}"]), say=lambda line: None) == 0
    (key,) = committed(open_store(root, "arrays"))["key"].to_pylist()
    one_set = ["--set", "p_ignore=0.5 sequences=5", "--device", "cpu"]
    no_model = f"{key} is an experiment, whose arrays are no weights of a model"
    for words, sentence in (
        (["evaluate", root, "all", *one_set], "no replicate of these studies has weights of a model"),
        (["evaluate", root, key, *one_set], no_model),
        (["export", root, key, "--format", "gpt2", "--out", str(tmp_path / "gpt2")], no_model),
    ):
        with pytest.raises(SystemExit):
            main(words)
        error = capsys.readouterr().err
        assert sentence in error
        assert "Traceback" not in error
    main(["export", root, key, "--format", "safetensors", "--out", str(tmp_path / "plain")])
    with pytest.raises(StudyError, match=no_model):
        load_replicate(tmp_path / "plain")
    shutil.copytree(store.root, root, dirs_exist_ok=True)
    main(["evaluate", root, "all", *one_set])
    assert "arrays: " not in capsys.readouterr().out


def test_an_experiment_without_arrays_is_not_advised_to_keep_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(custom, "_allowed", {own_functions.__name__})
    (tmp_path / "plain.yaml").write_text(EXPERIMENT.replace("array_once", "summarised"))
    root = str(tmp_path / "runs")
    assert run(load_study(tmp_path / "plain.yaml", [f"store={root}"]), say=lambda line: None) == 0
    (key,) = committed(open_store(root, "arrays"))["key"].to_pylist()
    for words, sentence in (
        (
            ["export", root, key, "--format", "safetensors", "--out", str(tmp_path / "out")],
            f"{key} is an experiment: it has no model, and kept no arrays",
        ),
        (["probe", root, "--probe", "attention"], "probes look into trained models, and arrays has experiments alone"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert sentence in capsys.readouterr().err


def test_what_was_not_kept_says_how_to_make_it(store, capsys):
    key = next(row["key"] for row in committed(store).to_pylist() if row["key"] not in kept(store))
    with pytest.raises(SystemExit):
        evaluate(store, key, "p_ignore=0.5 sequences=5")
    assert f"manyseeds rerun {store.shell_word} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p_ignore=0.9", "'p_ignore=0.9' lacks sequences=N"),
        ("p_ignore=0.9 sequences=0", "sequences=0 must be a whole number"),
        ("sequences=5 seed=-1", "seed=-1 must be"),
        ("p_ignore sequences=5", "'p_ignore' must be FIELD=VALUE"),
        ("sequences=5 every=2", "every can't be given"),
        ("p_ignore=[1] sequences=5", "can't name a set"),
        ("p_ignore=[0.5, 0.8] sequences=5", "'p_ignore=[0.5, 0.8]' can't name a set"),
        ("p_ignore=[0.5 sequences=5", "the overrides p_ignore=[0.5 sequences=5 can't be read"),
        ("0.5 sequences=5", "'0.5' must be FIELD=VALUE"),
        ("p_ignore=0.5 p_ignore=0.6 sequences=5", "'p_ignore=0.6' must be FIELD=VALUE, each field once"),
    ],
)
def test_a_wrong_set_is_one_sentence(text, message):
    with pytest.raises(ValueError) as raised:
        parse(text)
    assert message in str(raised.value)


def test_values_are_spelled_as_in_manyseeds_run(store, capsys):
    assert parse("p_ignore=1e-1 sequences=5").set.definition == {"p_ignore": 0.1}
    assert parse("sizes=[3, 4] laws={a: 1} sequences=5", "mine").set.definition == {"sizes": [3, 4], "laws": {"a": 1}}
    evaluate(store, "all", "p_ignore=[0.5, 0.8] sequences=10", "--name", "both")
    assert "tiny: both, 10 strings" in capsys.readouterr().out


def test_a_set_that_the_task_refuses_is_one_sentence(store, capsys):
    for text, message in (
        (
            "p_ignor=0.9 sequences=5",
            "transformer of tiny: p_ignor is not an option of a set of the flipflop; did you mean p_ignore?",
        ),
        ("p_ignore=2 sequences=5", "--set of condition transformer of tiny: task.p_ignore = 2"),
        (
            "length=32 sequences=5",
            "--set asks too much of transformer of tiny: strings of 32 tokens are longer than the 16 positions of this model "
            "(model.positions other than learned have no such limit); write length=16, as in its training",
        ),
    ):
        with pytest.raises(SystemExit):
            evaluate(store, "all", text)
        shown = capsys.readouterr()
        assert message in shown.err
        assert not shown.out  # before anything is scored


def test_strings_of_another_length_are_scored_where_the_model_can_read_them(store):
    """As in a study file: an LSTM reads any, a learned table of positions only shorter ones."""
    evaluate(store, "all", "p_ignore=0.9 length=10 sequences=30", "--name", "short", "--write")
    scored = {row["key"]: {name: row[name] for name in SUMS} for row in rows_of(store, "short")}
    own = read(store, "evaluations", filter=pc.field("set") == "short").to_pylist()
    assert scored == {row["key"]: {name: row[name] for name in SUMS} for row in own if row["key"] in kept(store)}
    lstm = next(row["key"] for row in committed(store).to_pylist() if row["key"] in kept(store) and row["condition"] == "lstm")
    evaluate(store, lstm, "length=32 sequences=30", "--name", "long", "--write")
    assert {row["length"] for row in rows_of(store, "long")} == {32}


def test_the_stages_of_a_condition_are_one_file_however_often_they_are_scored(tmp_path):
    """A later stage may train on longer strings: its set of the same name has another hash."""
    store = open_store(tmp_path, "chain")
    about = {"key": "a", "pack": "fa-1", "step": 5, "weights": "raw", "set": "own", "metric": "read", "sequences": 3}
    about |= {"condition": "warm", "init_seed": 0, "data_seed": 0, "errors": 1, "count": 3}
    stages = [about | {"key": f"key-{stage}", "stage": stage, "set_hash": f"of-{stage}"} for stage in range(3)]
    table = pa.Table.from_pylist(stages, SCHEMA)
    write(store, table)
    write(store, table)
    assert rows_of(store, "own") == table.to_pylist()
    with pytest.raises(StudyError, match="holds another set called own"):
        write(store, table.slice(2, 1).set_column(6, SCHEMA.field(6), pa.array(["changed"])))
