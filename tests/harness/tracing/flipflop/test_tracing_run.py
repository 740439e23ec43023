"""`manyseeds trace` on a tiny study: rows of every method, the same again, and one sentence for what cannot be."""

import datetime
import shutil

import numpy as np
import pyarrow.compute as pc
import pytest
import torch

from harness.probes.flipflop.language_rows import Answers, write
from harness.run import run as run_study
from harness.study.load import load
from harness.tracing.flipflop.glitches import glitches
from harness.tracing.flipflop.replicate import loaded, rows_of
from launch.cli import main
from results.store.tables import open_store, read
from tests.harness.tiny import write_study
from tests.rounding import rounded

CPU = torch.device("cpu")
QUICK = ["--strings", "256", "--replays", "64", "--device", "cpu"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    study = load(write_study(folder), [f"store={folder}/runs", "keep=all", "replicates=2", "task.length=32", "pack.size=2"])
    assert run_study(study, say=lambda text: None) == 0
    return open_store(folder / "runs", "tiny")


def key_of(store, condition):
    rows = read(store, "replicates").to_pylist()
    return min(row["key"] for row in rows if row["condition"] == condition)


def rows_by_probe(store, key):
    found = {}
    for row in read(store, "probes", filter=pc.field("key") == key).to_pylist():
        found.setdefault(row["probe"], {})[row["item"]] = row["value"]
    return found


def test_glitches_are_the_wrong_reads_of_the_rows(store):
    ((_, row),) = rows_of([store], key_of(store, "transformer"))
    one = loaded(store, row, (), CPU)
    assert [each.name for each in one.sets] == ["sparse", "dense"]
    assert [each.name for each in loaded(store, row, ("online",), CPU).sets] == ["online"]
    found = glitches(one.model, one.sets[1], 10**6, CPU)
    counted = read(store, "evaluations", filter=pc.field("key") == row["key"]).to_pylist()
    (dense,) = [each for each in counted if each["set"] == "dense" and each["metric"] == "read_restricted"]
    assert len({each.string for each in found}) == len(found)
    assert 0 < len(found) <= dense["sequences_wrong"]
    few = glitches(one.model, one.sets[1], 3, CPU)
    assert [each.name for each in few] == [each.name for each in found[:3]]
    for glitch in found[:10]:
        with torch.no_grad():
            logits = one.model(glitch.prompt.tokens[None, None, :-1])[0, 0, -1]
        assert int(logits[3:].argmax()) != glitch.prompt.truth
        assert len(glitch.prompt.tokens) == glitch.position + 2


def test_rows_of_every_method_and_the_same_again(store, capsys):
    key = key_of(store, "transformer")
    words = ["trace", str(store.root).removesuffix("/tiny"), key[:10], "--glitches", "2", "--events", "2", *QUICK]
    main(words)
    said = capsys.readouterr().out
    assert "4 glitches on sparse, dense" in said
    assert "4 of 4: set dense" in said
    first = rows_by_probe(store, key)
    methods = {"", "-random", "-last-write", "-leave-one-out", "-lime", "-attention", "-rollout"}
    assert {f"trace{method}" for method in methods} <= set(first)
    for items in first.values():
        glitch = next(item for item in items if item.endswith(" srep")).removesuffix(" srep")
        assert items[f"{glitch} events"] == 2
        families = [items[f"{glitch} srep_{family}"] for family in ("type", "gen", "iid") if f"{glitch} srep_{family}" in items]
        moved = [items[name] for name in (f"{glitch} srep_shift",) if name in items]
        assert items[f"{glitch} srep"] == rounded(sum(families + moved) / len(families + moved))
        assert 0 <= items["low srep"] <= items["median srep"] <= 1
    assert any(item.endswith(" psi") for item in first["trace"])
    assert sum(item.endswith(" r2") for item in first["trace"]) == 4
    assert all(value <= 1 for item, value in first["trace"].items() if item.endswith((" r2", " interaction")))
    assert not any(item.endswith((" r2", " interaction")) for item in first["trace-lime"])
    main([*words, "--method", "lime"])
    again = rows_by_probe(store, key)
    assert again["trace"] == first["trace"]
    assert again["trace-lime"] == first["trace-lime"]
    main([*words, "--method", "lime", "--seed", "1"])
    assert rows_by_probe(store, key)["trace"] != first["trace"]


def test_stability_is_how_alike_the_events_of_other_corpora_are(store, capsys):
    key = key_of(store, "transformer")
    words = [
        "trace",
        str(store.root).removesuffix("/tiny"),
        key[:10],
        "--glitches",
        "2",
        "--events",
        "3",
        *QUICK,
        "--method",
        "random",
    ]
    sets = {}
    for seed in ("1", "2", "0"):
        main([*words, "--seed", seed])
        items = rows_by_probe(store, key)["trace"]
        assert not any(item.endswith(" jaccard") for item in items)
        for item, value in items.items():
            name, found, _ = item.rpartition(" event ")
            if found:
                sets.setdefault((name, seed), set()).add(value)
    main([*words, "--seed", "0", "--corpora", "3"])
    assert "events on other corpora: Jaccard" in capsys.readouterr().out
    again = rows_by_probe(store, key)["trace"]
    assert {item: value for item, value in again.items() if not item.endswith(" jaccard")} == items
    for name, seed in sets:
        if seed == "0":
            shares = [len(sets[name, "0"] & sets[name, other]) / len(sets[name, "0"] | sets[name, other]) for other in "12"]
            assert again[f"{name} jaccard"] == rounded(sum(shares) / 2)
    assert len({name for name, _ in sets}) == 4


def test_all_replicates_and_models_without_attention(store, capsys):
    main(["trace", str(store.root).removesuffix("/tiny"), "all", "--glitches", "1", "--events", "1", "--set", "dense", *QUICK])
    said = capsys.readouterr().out
    assert "attention is left out: it looks into causal transformers" in said
    assert ", too few for an interval (median of 1 glitch)" in said
    assert ", too few for an interval (4 replicates)" in said
    assert "[0.000, 1]" not in said
    assert "median S_rep over replicates" in said
    assert "(4 replicates)" in said
    assert "(2 replicates)" in said  # of attention
    lines = [line for line in said.splitlines() if not line.startswith("  ") or " 1 of 1: " in line]
    for place, line in enumerate(lines):  # each traced read stands below its replicate
        if " 1 of 1: " in line:
            assert lines[place - 1] in [
                f"{row['key'][:12]} ({row['condition']})" for row in read(store, "replicates").to_pylist()
            ]
    assert "trace-attention" not in rows_by_probe(store, key_of(store, "lstm"))


def fails(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_traced_is_one_sentence(store, tmp_path, capsys):
    root, key = str(store.root).removesuffix("/tiny"), key_of(store, "lstm")
    assert "--method shap must be one of random, last-write, " in (
        line := fails(["trace", root, key, "--method", "shap", *QUICK], capsys)
    )
    assert line.endswith("gradient-input, gradient-shap, or trace for the trace alone")
    assert "--method attention: it looks into causal" in fails(["trace", root, key, "--method", "attention", *QUICK], capsys)
    assert "--set far is no set of tiny: write sparse or dense or online" in fails(
        ["trace", root, key, "--set", "far", *QUICK], capsys
    )
    assert "--glitches 0 must be at least 1" in fails(["trace", root, key, "--glitches", "0"], capsys)
    assert "--corpora 0 must be at least 1" in fails(["trace", root, key, "--corpora", "0"], capsys)
    assert f"--seed {2**63 - 1} must be " in fails(["trace", root, key, "--seed", str(2**63 - 1), "--corpora", "2"], capsys)
    assert "--strings 31 must be at least 32" in fails(["trace", root, key, "--strings", "31"], capsys)
    assert "strings = 0 must be at least 1" in fails(["trace", root, key, "--strings", "0"], capsys)
    assert "no key of the 4 replicates" in fails(["trace", root, "zz", *QUICK], capsys)


SIMULATION = """
name: other
question: Where does it look?
task: {name: flipflop_simulation, length: 10}
model: {name: lstm, width: 4}
train: {steps: 2, batch: 2}
evaluate: {sets: {own: {sequences: 4}}}
replicates: 1
executor: local
wandb: off
keep: all
"""


def test_no_weights_and_another_task_are_one_sentence(store, tmp_path, capsys):
    root, key = str(store.root).removesuffix("/tiny"), key_of(store, "lstm")
    shutil.copytree(root, tmp_path / "bare", ignore=shutil.ignore_patterns("artifacts"))
    assert f"the weights of {key} were not kept: manyseeds rerun" in fails(["trace", f"{tmp_path}/bare", key[:8]], capsys)
    assert "no replicate of tiny is a finished one of the task flipflop" in fails(["trace", f"{tmp_path}/bare", "all"], capsys)
    (tmp_path / "other.yaml").write_text(SIMULATION)
    study = load(str(tmp_path / "other.yaml"), [f"store={tmp_path}/runs"])
    assert run_study(study, say=lambda text: None) == 0
    (key,) = read(open_store(tmp_path / "runs", "other"), "replicates")["key"].to_pylist()
    said = fails(["trace", f"{tmp_path}/runs", key], capsys)
    assert f"is for the task flipflop, and {key} was trained on flipflop_simulation" in said
    assert "no replicate of other is a finished one of the task flipflop" in fails(["trace", f"{tmp_path}/runs", "all"], capsys)


def test_a_model_that_makes_no_error_has_nothing_to_trace(store, monkeypatch, capsys):
    import harness.tracing.flipflop.run as runs

    monkeypatch.setattr(runs, "glitches", lambda *rest: [])
    root, key = str(store.root).removesuffix("/tiny"), key_of(store, "lstm")
    assert f"no read of {key} on sparse, dense is wrong: there is no glitch to trace" in fails(["trace", root, key], capsys)


CORPUS = """
name: texts
question: Which token follows?
task: {name: corpus, folder: "FOLDER", vocabulary: 50, length: 8, objective: next}
model: {name: lstm, width: 4}
train: {steps: 2, batch: 2}
evaluate: {sets: {own: {sequences: 4}}}
replicates: 1
executor: local
wandb: off
keep: all
"""


def test_the_text_of_another_study_may_be_gone(store, tmp_path, capsys):
    root, texts = tmp_path / "runs", tmp_path / "corpus" / "train"
    shutil.copytree(str(store.root).removesuffix("/tiny"), root)
    texts.mkdir(parents=True)
    np.save(texts / "1.npy", np.arange(400) % 50)
    (tmp_path / "texts.yaml").write_text(CORPUS.replace("FOLDER", str(texts.parent)))
    assert run_study(load(str(tmp_path / "texts.yaml"), [f"store={root}"]), say=lambda text: None) == 0
    shutil.rmtree(texts.parent)
    main(["trace", str(root), "all", "--glitches", "1", "--events", "1", "--set", "dense", "--method", "random", *QUICK])
    assert "(4 replicates)" in capsys.readouterr().out


def test_language_models_in_the_store_are_left_out_or_named(store, tmp_path, capsys):
    root = tmp_path / "runs"
    shutil.copytree(str(store.root).removesuffix("/tiny"), root)
    answers = Answers("llm", "0" * 32, 1000, "float32", 5, 0, {16: 2})
    write(open_store(root, "language-models"), answers, CPU, datetime.datetime.now(datetime.UTC))
    main(["trace", str(root), "all", "--glitches", "1", "--events", "1", "--set", "dense", "--method", "random", *QUICK])
    assert "(4 replicates)" in capsys.readouterr().out
    (key,) = read(open_store(root, "language-models"), "replicates")["key"].to_pylist()
    evaluate = ["evaluate", str(root), key, "--set", "p_ignore=0.5 sequences=5"]
    export = ["export", str(root), key, "--format", "safetensors", "--out", str(tmp_path / "out")]
    for words in (["trace", str(root), key], ["glitches", str(root), key], ["rerun", str(root), key], evaluate, export):
        assert f"{key} is a pretrained language model" in fails(words, capsys)
