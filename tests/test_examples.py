"""The examples, each run from its folder to its report, and the page that shows them."""

import csv
import re
import shutil
import sys
from pathlib import Path

import pytest
from yaml import safe_load

from benchmarks.coming_from import TOOLS, lines_of
from harness.exchange.finished_runs import Columns, import_runs
from harness.run import run
from harness.study.load import load
from models.custom import custom
from results.dashboards.dashboard_rows import rows_of, runs_of
from results.report.contrasts import show_contrasts
from results.report.report import write_report
from results.store.tables import committed, open_store

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "guides" / "experiments.md").read_text()


@pytest.fixture
def enter(tmp_path, monkeypatch):
    """enter(example): a copy of its folder, which is then the current one."""

    def entered(name):
        folder = Path(shutil.copytree(EXAMPLES / name, tmp_path / name))
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return entered


def test_a_classifier_is_run_by_its_function(enter, monkeypatch):
    folder, said = enter("classifier"), []
    monkeypatch.setattr(custom, "_allowed", {"classifier"})
    assert run(load("study.yaml", ["replicates=6", "experiment.trees=3", "wandb=off"]), say=said.append) == 0
    sys.modules.pop("classifier")
    assert not any("starting Ray" in line for line in said)
    assert "higher is better" in (folder / "runs" / "forest" / "report" / "index.html").read_text()
    store = open_store(folder / "runs", "forest")
    show_contrasts(store, None, said.append)
    assert "6 pairs" in said[-1]
    assert any("for the one comparison of this table" in line for line in said)
    study, *replicates = runs_of(store, "replicate", rows_of(store))
    assert [len(study.tables[name][1]) for name in ("summary", "replicates")] == [2, 12]
    assert {name for each in replicates for name in each.summary} == {"accuracy", "status"}


def test_a_script_is_run_by_its_command(enter, monkeypatch):
    folder = enter("digits")
    monkeypatch.setattr(custom, "_allowed", {"--allow-command"})
    overrides = ["replicates=1", "experiment.epochs=2", "grid.experiment.width=[8]", "wandb=off"]
    assert run(load("study.yaml", overrides), say=lambda text: None) == 0
    assert "accuracy by step" in (folder / "runs" / "digits" / "report" / "index.html").read_text().lower()
    assert len((folder / "train.py").read_text().splitlines()) <= 42


def test_published_scores_become_a_study(enter):
    """The spread over 100 seeds that their paper reports: MNLI within 1 point, lexical overlap from about 5 % to 55 %."""
    folder = enter("published")
    store, columns = open_store(folder / "runs", "berts"), Columns("run", ("cases",), {"accuracy": "higher"})
    assert import_runs(store, folder / "berts_of_a_feather.csv", columns, "", lambda text: None) == 400
    assert committed(store).num_rows == 400
    write_report(store)
    with (folder / "runs" / "berts" / "report" / "summary.csv").open() as stream:
        rows = {row["condition"]: row for row in csv.DictReader(stream)}
    mnli, lexical = rows["cases=MNLI development"], rows["cases=lexical overlap"]
    assert float(mnli["max"]) - float(mnli["min"]) < 0.015
    assert float(lexical["min"]) < 0.06
    assert float(lexical["max"]) > 0.5


def test_the_page_shows_what_the_examples_hold():
    study = (EXAMPLES / "classifier" / "study.yaml").read_text()
    shown = re.search(r"```yaml\n(name: forest\n.*?)```", PAGE, re.DOTALL)[1]
    assert [re.sub(r" +#.*", "", line) for line in shown.splitlines()] == study.splitlines()
    command = next(line for line in (EXAMPLES / "digits" / "study.yaml").read_text().splitlines() if "command:" in line)
    assert command in PAGE


def test_those_who_come_from_another_tool_find_the_same_study_as_a_script_and_as_a_function(enter, monkeypatch):
    folder = enter("coming_from")
    text = (ROOT / "docs" / "guides" / "coming-from.md").read_text()
    for path in folder.iterdir():
        shown = path.read_text().rstrip()
        if path.suffix == ".py":
            compile(shown, path.name, "exec")
        if path.name == "train.py":
            shown = shown[shown.index("def accuracy") : shown.index("\n\n\nif __name__")]
        assert f"\n{shown}\n```" in text, path.name
    monkeypatch.setattr(custom, "_allowed", {"--allow-command", "measured"})
    study = load("study.yaml")
    words = study.conditions[1].experiment.command_for(7, "f")
    assert words == ["python", "train.py", "--lr", "0.1", "--seed", "7", "--out", "f/metrics.jsonl"]
    sweep = safe_load((folder / "sweep.yaml").read_text())["parameters"]
    assert [each.experiment.settings["lr"] for each in study.conditions] == sweep["lr"]["values"]
    assert all([seeds[0] for seeds in each.seeds] == sweep["seed"]["values"] for each in study.conditions)
    assert run(load("function.yaml", ["replicates=2", "wandb=off"]), say=lambda text: None) == 0
    expected = sys.modules["train"].accuracy(0.1, 1)
    for name in ("measured", "train"):
        sys.modules.pop(name)
    with open(folder / "runs" / "rates-function" / "report" / "replicates.csv") as stream:
        found = {(row["condition"], row["seed"]): float(row["accuracy"]) for row in csv.DictReader(stream)}
    assert found["lr=0.1", "1"] == pytest.approx(expected)


def test_the_page_counts_the_lines_of_each_tool():
    text = (ROOT / "docs" / "guides" / "coming-from.md").read_text()
    for tool in TOOLS:
        assert f"| {tool.name} | {lines_of(*tool.files)} |" in text
    assert f"| W&B sweep | {lines_of('sweep.yaml', 'train_wandb.py')} |" in text
