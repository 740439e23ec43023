"""docs/start/tutorial.md is true: its commands and its code are run line by line, in order, in one folder."""

import re
import shlex

from launch.cli import main
from results.store.tables import committed, open_store
from tests.harness.killed import without_report
from tests.page_code import ROOT

PAGE = ROOT / "docs" / "start" / "tutorial.md"
SETS_UP = ("python3 -m venv", ".venv/bin/pip", "source ")  # the environment, which a test has
FEWER = "executor=local wandb=off pack.size=4 train.warmup=1"
TINY = {  # what makes the study of a command tiny; its replicates stay those of the page, but for quick's
    "flipflop/quick": "replicates=1 conditions.transformer.train.steps=2 conditions.lstm.train.steps=2 "
    "evaluate.sets.in_distribution.sequences=2 evaluate.sets.sparse.sequences=2 evaluate.sets.dense.sequences=2 "
    "evaluate.sets.sparse_online.sequences=2",
    "depth.yaml": "train.steps=2 evaluate.sets.same.sequences=20 evaluate.sets.dense.sequences=20",
}


def _run(line):
    """One line of the page, as the command `manyseeds` runs it."""
    words = shlex.split(line)[1:]
    if words[0] in ("plan", "run"):
        words += f"{FEWER} {TINY[words[1]]}".split()
    status = 0
    try:
        main(words)
    except SystemExit as ended:
        status = ended.code
    assert not status, line


def test_the_tutorial_runs_line_by_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    without_report(monkeypatch)
    replicates, printed = [], ""
    for language, text in re.findall(r"^```(bash|yaml|python)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if language == "yaml":
            (tmp_path / "depth.yaml").write_text(text)
        elif language == "python":
            exec(text, {})
            printed = capsys.readouterr().out
        else:
            for line in text.splitlines():
                if not line.startswith(SETS_UP):
                    _run(line)
                if line.startswith("manyseeds run depth.yaml"):
                    replicates.append(committed(open_store("runs", "depth")).num_rows)
    assert replicates == [12, 20]
    assert re.search(r"dense +1\.0", printed)
