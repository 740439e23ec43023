"""The examples, each run from its folder to its report, and the page that shows them."""

import csv
import re
import shutil
import sys
from pathlib import Path

import pytest

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


def test_the_study_for_those_who_come_from_another_tool_is_one(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "guides" / "coming-from.md").read_text()
    (tmp_path / "rates.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(custom, "_allowed", {"--allow-command"})
    study = load("rates.yaml")
    assert [len(each.seeds) for each in study.conditions] == [100, 100]
    words = study.conditions[1].experiment.command_for(7, "f")
    assert words == ["python", "train.py", "--lr", "0.1", "--seed", "7", "--out", "f/metrics.jsonl"]
