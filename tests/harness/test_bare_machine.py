"""A machine with four packages: what `python -m harness.local` needs to train a resolved manifest there."""

import subprocess
import sys

from launch.cli import main
from results.store.tables import committed, open_store
from tests.environments import without
from tests.harness.tiny import write_study

CODE = without("ray wandb omegaconf yaml scipy matplotlib jinja2 click rich".split(), "harness.local")


def test_torch_numpy_pyarrow_and_safetensors_train_a_manifest(tmp_path):
    manifest, runs = str(tmp_path / "study.json"), str(tmp_path / "runs")
    main(["plan", write_study(tmp_path), "replicates=1", "only=[lstm]", f"store={runs}", "--write", manifest])
    done = subprocess.run(
        [sys.executable, "-c", CODE, manifest, runs, "--device", "cpu"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert committed(open_store(runs, "tiny"))["status"].to_pylist() == ["finished"]
