"""A corpus of a user's own through the whole harness: keys, sets of other parts, teachers and students, probes, the paper's study."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from harness.run import run
from harness.study.config import build
from harness.study.identity import key
from harness.study.load import from_tree, load
from launch import planning
from launch.cli import main
from results.errors import StudyError
from results.store.tables import committed, open_store, read
from tasks.text.corpus import Corpus
from tests.harness.killed import without_report

ROOT = Path(__file__).parents[2]
P17 = ROOT / "launch" / "studies" / "distillation" / "p17.yaml"
FIELDS = {"vocabulary": 40, "length": 12, "mask": 3, "begin": 1, "special": [0, 1, 2, 3]}


def write(folder, vocabulary=40, sizes=(400, 200), seed=0):
    """Each id is mostly one more than the one before it, so that there is something to learn."""
    steps = np.random.default_rng(seed).choice([1, 2], sum(sizes), p=[0.9, 0.1])
    ids = 4 + np.cumsum(steps) % (vocabulary - 4)
    for part, part_ids in zip(("train", "test"), np.split(ids, [sizes[0]]), strict=True):
        (folder / part).mkdir(parents=True, exist_ok=True)
        np.save(folder / part / "a.npy", part_ids.astype(np.uint16))
    return str(folder)


def tree(folder, store, **task):
    return {
        "name": "text",
        "task": {"name": "corpus", "folder": folder, **FIELDS, **task},
        "model": {"name": "transformer", "layers": 1, "width": 16, "heads": 2, "causal": False},
        "train": {"steps": 12, "batch": 4, "lr": 1e-2, "warmup": 2},
        "evaluate": {"sets": {"test": {"part": "test", "sequences": 30}, "seen": {"sequences": 30, "every": 6}}},
        "conditions": {
            "labels": {},
            "taught": {
                "stages": [
                    {"model": {"width": 8}, "labels": "teacher", "temperature": 1e-20, "teacher": {"shots": 3, "kappa": 1.0}}
                ]
            },
        },
        "replicates": 2,
        "keep": "all",
        "pack": {"size": 2},
        "executor": "local",
        "wandb": "off",
        "store": str(store),
    }


def keys(root):
    return {
        (row["condition"], row["stage"], row["init_seed"]): row["key"]
        for row in committed(open_store(root, "text")).to_pylist()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study of a teacher and its student on a corpus."""
    root = tmp_path_factory.mktemp("whole")
    started(write(root / "corpus"), root / "runs")
    return root


def started(folder, store):
    study = from_tree(tree(folder, store))
    with pytest.MonkeyPatch.context() as patched:
        without_report(patched)
        assert run(study, say=lambda line: None) == 0
    return study


def test_teachers_and_students_are_trained_and_scored_on_another_part(whole):
    store = open_store(whole / "runs", "text")
    rows = committed(store).to_pylist()
    assert [row["status"] for row in rows] == ["finished"] * 4
    assert {row["parent_step"] for row in rows if row["stage"]} == {4}
    scored = {(row["key"], row["set"]) for row in read(store, "evaluations").to_pylist() if row["metric"] == "read"}
    assert scored == {(row["key"], name) for row in rows for name in ("test", "seen")}
    config = json.loads(rows[0]["config"])["task"]
    assert config["folder"] == str(whole / "corpus")
    assert len(config["content"]) == 32


def test_keys_follow_the_text_and_not_its_place(whole, tmp_path):
    before = keys(whole / "runs")
    same = write(tmp_path / "moved" / "here")
    study = started(same, tmp_path / "runs")
    assert keys(tmp_path / "runs") == before
    rows = [
        [(row["key"], row["set"], row["set_hash"], row["step"], row["errors"]) for row in table.sort_by("key").to_pylist()]
        for table in (read(open_store(root, "text"), "evaluations") for root in (whole / "runs", tmp_path / "runs"))
    ]
    assert sorted(rows[0]) == sorted(rows[1])
    other = from_tree(tree(write(tmp_path / "other", seed=1), tmp_path / "runs"))
    plain, changed = (each.conditions[0] for each in (study, other))
    assert plain.task.content != changed.task.content
    assert study.set_hashes(plain) != other.set_hashes(changed)


def test_the_n_gram_probe_measures_them(whole):
    main(["probe", str(whole / "runs"), "--probe", "ngrams", "--strings", "16", "--option", "every=4", "--option", "largest=3"])
    rows = read(open_store(whole / "runs", "text"), "probes").to_pylist()
    names = {row["item"] for row in rows}
    assert names == {"predictions"} | {
        f"{what} n={n} {kind}" for what in ("robust", "close") for n in (2, 3) for kind in ("tv", "l1")
    }
    assert all(0 <= row["value"] <= 1 for row in rows if row["item"].endswith("tv"))
    assert {row["value"] for row in rows if row["item"] == "predictions"} == {32.0}
    with pytest.raises(SystemExit):
        main(["probe", str(whole / "runs"), "--probe", "nonterminals"])


def test_a_manifest_whose_text_has_changed_is_refused(tmp_path):
    folder = write(tmp_path / "corpus")
    node = build("task", {"name": "corpus", "folder": folder, **FIELDS})
    write(tmp_path / "corpus", seed=2)
    with pytest.raises(ValueError, match=r"the files in .*task\.content = "):
        build("task", {"name": "corpus", "folder": folder, "content": node.content, **FIELDS})


@pytest.mark.parametrize("scale", ["paper", "gpu-hour", "laptop"])
def test_the_papers_study_is_planned_on_any_corpus(tmp_path, scale):
    folder = write(tmp_path / "corpus", vocabulary=300, sizes=(3000, 900))
    study = load(P17, [f"task.folder={folder}", f"scale={scale}"])
    by = {(each.name, each.stage): each for each in study.conditions}
    teacher = by["teacher", 0]
    students = [each for each in study.conditions if each.stage]
    assert {each.train.steps for each in students} <= {teacher.train.steps // 5, teacher.train.steps // 2, teacher.train.steps}
    if scale == "paper":
        assert study.reductions == ()
        assert (teacher.model.layers, teacher.model.heads, teacher.model.width) == (12, 12, 768)
        assert {(each.model.layers, each.model.heads, each.model.width) for each in students} == {(12, 4, 256)}
        assert (teacher.train.steps, teacher.train.batch, teacher.train.lr) == (120000, 512, 1e-4)
        assert len(students) == 6
    assert all(len(each.seeds) == 3 for each in students)


def test_the_papers_study_without_a_corpus_says_what_to_give(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["plan", str(P17), "task.folder=nowhere"])
    assert "task.folder = 'nowhere' is no folder here: give the folder" in capsys.readouterr().err


def test_an_estimate_of_a_family_reads_the_folder_that_the_command_line_gives(tmp_path, monkeypatch):
    folder = write(tmp_path / "corpus", vocabulary=300, sizes=(3000, 900))
    monkeypatch.setattr(planning, "find_family", lambda family: [P17])
    assert [study.name for study in planning.campaign("distillation", [f"task.folder={folder}"])] == ["p17"]
    with pytest.raises(StudyError, match=r"^distillation/p17: task\.folder = 'corpus' is no folder here"):
        planning.campaign("distillation", [])


def test_the_page_on_it_is_true(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "guides" / "own-corpus.md").read_text(encoding="utf-8")
    (code,), (text,) = (re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE) for kind in ("python", "yaml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the quick brown fox jumps over the lazy dog – " * 60, encoding="utf-8")
    exec(code, {})
    study = yaml.safe_load(text) | {"executor": "local", "wandb": "off", "pack": {"size": 1}, "store": str(tmp_path / "runs")}
    short = study["train"] | {"steps": 16, "warmup": 2}
    sets = {"online": {"part": "test", "sequences": 4, "every": 8}, "test": {"part": "test", "sequences": 8}}
    without_report(monkeypatch)
    whole = from_tree(study | {"train": short, "evaluate": {"sets": sets}, "replicates": 1})
    assert [each.name for each in whole.conditions if each.stage] == ["one_shot", "progressive"]
    assert whole.conditions[0].task.vocabulary == 261
    assert run(replace(whole, conditions=whole.conditions[:1]), say=lambda line: None) == 0
    assert committed(open_store(tmp_path / "runs", "own-text")).num_rows == 1
    defaults = {each.name: each.default for each in fields(Corpus)}
    table = dict(re.findall(r"^\| `(\w+)` \| .* \| (\S+) \|$", page, re.MULTILINE))
    assert {name: str(defaults[name]) for name in ("part", "vocabulary", "length", "objective")}.items() <= table.items()
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    assert set(defaults) == {name for row in rows for name in re.findall(r"\w+", row)}


def test_a_folder_is_left_out_of_a_key_only_beside_the_hash_of_its_files():
    def hashed(**task):
        return key({"task": {"name": "own", **task}, "model": {}, "train": {}}, 0, 0, 0)

    assert hashed(folder="a") != hashed(folder="b")
    assert hashed(folder="a", content="1") == hashed(folder="b", content="1") != hashed(folder="a", content="2")
