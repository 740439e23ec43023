"""The probes of progressive distillation on kept weights: rows by step in a store, options, and what is refused."""

import pytest

from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.rows.plural import counted
from results.store.tables import open_store, read

STUDY = """
name: tiny
question: What does it rest on?
task: {name: sparse_parity, length: 8, degree: 2}
model: {name: transformer, layers: 2, width: 8, heads: 2}
train: {steps: 2, batch: 2, warmup: 0}
evaluate: {sets: {own: {sequences: 4}}}
conditions:
  parity: {}
  mlp: {model: {name: mlp, width: 4}}
  masked: {task: {name: pcfg, root: 13, length: 28}, model: {causal: false}}
  next: {task: {name: pcfg, root: 13, length: 28, objective: next}}
replicates: 1
executor: local
wandb: off
keep: steps(0, 1)
pack: {size: 1}
"""
CALLS = {
    "monomials": (2, ["--strings", "64", "--option", "outside=4"], "degree=2 x0 x1"),
    "support_attention": (1, ["--strings", "4"], "sum"),
    "ngrams": (2, ["--strings", "4", "--option", "every=5", "--option", "largest=2"], "close n=2 tv"),
    "nonterminals": (
        2,
        ["--strings", "4", "--option", "heads=2", "--option", "width=4", "--option", "validation=4", "--option", "epochs=1"],
        "level=4 boundary",
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distillation")
    path = folder / "study.yaml"
    path.write_text(STUDY)
    assert run_study(load(path, [f"store={folder}/runs"]), lambda text: None) == 0
    return str(folder / "runs")


@pytest.mark.parametrize("probe", CALLS)
def test_rows_reach_the_store_by_step(probe, runs, capsys):
    count, options, item = CALLS[probe]
    main(["probe", runs, "--probe", probe, *options])
    assert f"{probe} of {counted(count, 'replicate')} added" in capsys.readouterr().out
    rows = [row for row in read(open_store(runs, "tiny"), "probes").to_pylist() if row["probe"].partition("-")[0] == probe]
    assert len({row["key"] for row in rows}) == count
    assert {row["step"] for row in rows} == {0, 1, 2}
    assert len([row for row in rows if row["item"] == item]) == 3 * count
    name = {row["probe"] for row in rows}
    words = [word for word in options if "=" in word]
    assert name == {"-".join([probe, *sorted(word.replace("=", "-") for word in words)])}, "what is set is not in the name"
    main(["probe", runs, "--probe", probe, *options])
    assert f"0 replicates added, {count} had it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("probe", "options", "word"),
    [
        ("ngrams", ["--option", "evry=5"], "did you mean ngrams.every"),
        ("ngrams", ["--option", "every=often"], "ngrams.every = 'often' must be a whole number"),
        ("ngrams", ["--option", "every"], "must be NAME=VALUE"),
        ("ngrams", ["--option", "=5"], "--option =5 must be NAME=VALUE"),
        ("ngrams", ["--option", "every=5", "--option", "every=6"], "--option every is given twice: keep one"),
        ("ngrams", [], "reaches position 30"),
        ("heads", ["--option", "every=5"], "nothing can be set of the heads probe"),
        ("boundaries", [], "the boundaries probe is for"),
    ],
)
def test_what_is_wrong_is_said(probe, options, word, runs, capsys):
    with pytest.raises(SystemExit) as found:
        main(["probe", runs, "--probe", probe, "--strings", "4", *options])
    assert found.value.code == 2
    assert word in capsys.readouterr().err
