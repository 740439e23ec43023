"""docs/guides/gauntlet.md is true: its module, its study and its four commands are run as printed, made smaller by overrides alone."""

import json
import shlex
import subprocess
import sys

import pytest

from results.store.tables import committed, open_store, read
from tests.page_code import ANYWHERE, blocks

SETS = {"in_distribution", "sparse", "ignore_90", "dense"}
CONDITIONS = ("transformer", "transformer_mixture", "lstm", "mingru", "mingru_mixture")
SMALL = ["task.length=16", "train.warmup=1", "replicates=2", "executor=local", "wandb=off", "pack.size=2"]
SMALL += [f"conditions.{name}.train.steps=4" for name in CONDITIONS]
SMALL += [f"evaluate.sets.{name}.sequences=8" for name in sorted(SETS)]

# the commands of the page one after another, in one process; before what each prints its status, after a form feed
IN_TURN = """
import contextlib, io, json, sys
import harness.planning.throughput
from launch.cli import main
harness.planning.throughput._BUDGET_S = 0.0  # a few steps of each model are timed, instead of half a second of them
for words in json.loads(sys.argv[1]):
    status, said = 0, io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            main(words)
    except SystemExit as ended:
        status = ended.code or 0
    print(f"\\f{status}\\n{said.getvalue()}")
"""


@pytest.mark.slow
def test_a_new_architecture_runs_the_gauntlet_with_one_file(tmp_path):
    (module,), (study,), (commands,) = (blocks("docs/guides/gauntlet.md", language) for language in ("python", "yaml", "bash"))
    (tmp_path / "my_models.py").write_text(module)
    (tmp_path / "my_gauntlet.yaml").write_text(study)
    lines = [shlex.split(line)[1:] for line in commands.splitlines()]
    words = json.dumps([[*line, *(SMALL if line[0] in ("plan", "run") else [])] for line in lines])
    command = [sys.executable, "-c", IN_TURN, words]
    done = subprocess.run(command, cwd=tmp_path, env=ANYWHERE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    said = {}
    for line, text in zip(lines, done.stdout.split("\f")[1:], strict=True):
        status, said[line[0]] = text.split("\n", 1)
        assert status == "0", (line, text[-2000:], done.stderr[-2000:])
    assert list(said) == ["plan", "run", "claims", "report"]
    assert all(claim in said["claims"] for claim in ("R1", "R4"))
    assert "R2  precondition not met" in said["claims"]  # a few steps teach nothing, so they refute nothing
    store = open_store(tmp_path / "runs", "my-gauntlet")
    rows = committed(store)
    assert rows["status"].to_pylist() == ["finished"] * 10
    assert set(read(store, "evaluations")["set"].to_pylist()) == SETS
    assert sum("MinGRU" in config for config in rows["config"].to_pylist()) == 4
    assert list((tmp_path / "runs" / "my-gauntlet" / "report").glob("*.html"))
