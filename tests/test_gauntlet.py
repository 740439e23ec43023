"""docs/guides/gauntlet.md is true: its module, its study and its four commands are run as printed, made smaller by overrides alone."""

import shlex
import subprocess
import sys

from results.store.tables import committed, open_store, read
from tests.page_code import ANYWHERE, blocks

SETS = {"in_distribution", "sparse", "dense"}
CONDITIONS = ("transformer", "transformer_mixture", "lstm", "mingru", "mingru_mixture")
SMALL = ["task.length=16", "train.warmup=1", "replicates=2", "executor=local", "wandb=off", "pack.size=2"]
SMALL += [f"conditions.{name}.train.steps=4" for name in CONDITIONS]
SMALL += [f"evaluate.sets.{name}.sequences=8" for name in sorted(SETS)]


def test_a_new_architecture_runs_the_gauntlet_with_one_file(tmp_path):
    (module,), (study,), (commands,) = (blocks("docs/guides/gauntlet.md", language) for language in ("python", "yaml", "bash"))
    (tmp_path / "my_models.py").write_text(module)
    (tmp_path / "my_gauntlet.yaml").write_text(study)
    said = {}
    for line in commands.splitlines():
        _, name, *words = shlex.split(line)
        small = SMALL if name in ("plan", "run") else []
        command = [sys.executable, "-m", "launch", name, *words, *small]
        done = subprocess.run(command, cwd=tmp_path, env=ANYWHERE, capture_output=True, text=True, timeout=300, check=False)
        # a few steps reproduce nothing, and `claims` says so by its status
        assert done.returncode == (1 if name == "claims" else 0), (line, done.stdout[-2000:], done.stderr[-2000:])
        said[name] = done.stdout
    assert list(said) == ["plan", "run", "claims", "report"]
    assert all(claim in said["claims"] for claim in ("R1", "R2", "R4"))
    store = open_store(tmp_path / "runs", "my-gauntlet")
    rows = committed(store)
    assert rows["status"].to_pylist() == ["finished"] * 10
    assert set(read(store, "evaluations")["set"].to_pylist()) == SETS
    assert sum("MinGRU" in config for config in rows["config"].to_pylist()) == 4
    assert list((tmp_path / "runs" / "my-gauntlet" / "report").glob("*.html"))
