"""`manyseeds show` and `init`: the settings as they will be used with who set them, and a new study that runs as it stands."""

import re

import pytest
import yaml

from harness.planning.origins import condition_settings, show, study_settings
from harness.study.load import from_tree, load, sources_of
from launch.cli import main
from launch.new_study import TEMPLATE
from launch.planning import show_diff
from results.store.tables import KEPT
from tests.harness.tiny import STUDY

TREE = yaml.safe_load(STUDY) | {
    "conditions": {"deep": {"model": {"layers": 2}}, "lstm": {"model": {"name": "lstm", "width": 8}}},
    "scales": {"small": {"replicates": 2, "conditions": {"deep": {"train.steps": 7}}, "evaluate": {"curve_every": 5}}},
    "wandb": "off",
}
WORDS = ["scale=small", "train.batch=3", "store=elsewhere"]


def settings(tree=TREE, words=WORDS):
    study, sources = from_tree(tree, words), sources_of(tree, words)
    found = {condition.name: condition_settings(condition, sources) for condition in study.conditions}
    found["study"] = study_settings(study, sources)
    return {name: {each.path: (each.value, each.origin) for each in rows} for name, rows in found.items()}


def test_each_setting_has_the_value_that_is_used_and_who_set_it_last():
    found = settings()
    assert found["study"]["store"] == ("elsewhere", "command line")
    assert found["study"]["replicates"] == (2, "scale small")
    assert found["study"]["evaluate.curve_every"] == (5, "scale small")
    assert found["study"]["wandb.mode"] == ("off", "study")
    assert found["study"]["pack.compile"] == (False, "default")
    deep = found["deep"]
    assert deep["train.batch"] == (3, "command line")
    assert deep["train.steps"] == (7, "scale small")
    assert deep["model.layers"] == (2, "condition")
    assert deep["model.width"] == (TREE["model"]["width"], "study")
    assert deep["train.eps"] == (1e-8, "default")


def test_a_condition_of_another_model_does_not_show_the_settings_of_the_first():
    lstm = settings()["lstm"]
    assert lstm["model.name"] == ("lstm", "condition")
    assert "model.heads" not in lstm
    assert lstm["model.layers"] == (1, "default")  # TREE's transformer has layers too


def test_a_swept_value_is_of_its_condition_and_a_later_stage_of_its_stage():
    tree = TREE | {"grid": {"train.lr": [0.1, 0.2]}}
    found = settings(tree)
    assert {rows["train.lr"] for name, rows in found.items() if name.startswith("deep")} == {
        (0.1, "condition"),
        (0.2, "condition"),
    }
    tree = TREE | {"conditions": {}, "stages": [{"labels": "teacher", "train": {"steps": 5}}]}
    study, sources = from_tree(tree, []), sources_of(tree, [])
    last = {each.path: (each.value, each.origin) for each in condition_settings(study.conditions[-1], sources)}
    assert last["train.steps"] == (5, "stage 1")
    assert last["stage.labels"] == ("teacher", "stage 1")
    assert last["train.batch"] == (TREE["train"]["batch"], "study")


def test_what_conditions_share_is_said_once(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(TREE))
    lines = list(show(path, WORDS, changed=False))
    assert lines[0] == f"{TREE['name']} (scale small), from {path}"
    assert sum("train.batch" in line for line in lines) == 1
    assert sum("train.steps" in line for line in lines) == 2
    assert [line for line in lines if not line.startswith("  ")][1:] == [
        "every condition (2)",
        "condition deep: 2 replicates",
        "condition lstm: 2 replicates",
    ]
    assert not any(line.endswith(" default") for line in show(path, WORDS, changed=True))


def command(*words):
    try:
        main(list(words))
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_replicates_of_an_adaptive_study_are_a_range(tmp_path):
    """The maximum was shown as their number."""
    (tmp_path / "study.yaml").write_text(STUDY)
    rule = "replicates={min: 3, max: 9, until: {zero_error: {set: sparse, half_width: 0.1}}}"
    lines = list(show(tmp_path / "study.yaml", [rule, "only=[lstm]"], True))
    assert "condition lstm: 3 to 9 replicates" in lines
    said = []
    show_diff(load(tmp_path / "study.yaml", [rule, "only=[lstm]", f"store={tmp_path / 'runs'}"]), said.append)
    assert said == ["lstm: 3 to 9 planned, 9 more at most"]


def test_init_writes_a_study_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("init") == 0
    assert "study.yaml is written" in capsys.readouterr().out
    assert load("study.yaml").name == "study"
    (tmp_path / "study.yaml").write_text("mine")
    assert command("init") == 2
    assert capsys.readouterr().err == "error: study.yaml exists and is left as it is: name another file, or remove it first\n"
    assert (tmp_path / "study.yaml").read_text() == "mine"
    for name, sentence in (
        ("study", "end it in .yaml"),
        ("-x y.yaml", "can't name a study"),
        ("none/a.yaml", "can't be written"),
    ):
        assert command("init", "--", name) == 2
        assert sentence in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.yaml"]


@pytest.mark.parametrize("name", ["PROFILE", "NAME", "123", "1e3", "true", "2026-11-28"])
def test_a_new_study_has_the_name_of_its_file_whatever_it_is(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("init", f"{name}.yaml") == 0
    assert load(f"{name}.yaml").name == name
    assert f"manyseeds plan {name}.yaml  " in (tmp_path / f"{name}.yaml").read_text()


def test_a_new_study_is_not_called_as_a_store_calls_its_kept_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("init", f"{KEPT}.yaml") == 2
    assert "can't name a study" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_the_new_study_explains_in_comments_is_valid_too():
    text = TEMPLATE.read_text().replace("NAME", "mine")
    study = from_tree(yaml.safe_load(text))
    assert {condition.name: len(condition.seeds) for condition in study.conditions} == {"one_layer": 12, "two_layers": 12}
    options = re.findall(r"^# (\w+: .*)$", text, re.MULTILINE)
    assert len(options) > 5
    whole = yaml.safe_load(re.sub(r"^# (?=\w+: )", "", text, flags=re.MULTILINE))
    assert len(from_tree(whole).conditions) == 4
    assert len(from_tree(whole, ["scale=quick"]).conditions[0].seeds) == 2


def test_a_study_of_experiments_shows_no_setting_that_it_would_refuse():
    tree = {"name": "e", "experiment": {"name": "verified_sampling"}, "evaluate": {"metrics": {"wrong": "lower"}}}
    found = [path for path in settings(tree, [])["study"] if path.startswith("evaluate.")]
    assert found == ["evaluate.metrics.wrong"]
