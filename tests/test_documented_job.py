"""The Ray jobs of README.md and docs/guides/cluster.md, on the cluster of the page."""

import re
import subprocess
import time

import pytest

from results.store.tables import committed, open_store
from tests.documented import smaller
from tests.environments import ROOT
from tests.page_cluster import command_of


def _tiny(words):
    """Overrides that make the study of a script tiny, on Ray and with its W&B run."""
    study = next(word.removeprefix("study=") for word in words if word.startswith("study="))
    return [word for word in smaller([f"fflm/{study}"]) if word not in ("executor=local", "wandb=off")]


def _submit(cluster, words, more):
    environment, python, _, dashboard = cluster
    command = [python.parent / "ray", *words[1:], *more]
    until = time.monotonic() + 120
    while True:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment | {"RAY_API_SERVER_ADDRESS": dashboard},
            capture_output=True,
            text=True,
            timeout=300,
        )
        starting = re.search(
            "No available agent to submit job|Failed to connect to Ray|Connection refused", done.stdout + done.stderr
        )
        if not starting or time.monotonic() > until:
            return done
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("page", "study"),
    [pytest.param("docs/guides/cluster.md", "fflm-quick", marks=pytest.mark.slow), ("README.md", "fflm-baseline")],
)
def test_the_job_of_a_page_succeeds_with_its_report_and_wandb_files(page_cluster, tmp_path, page, study):
    words = _elsewhere(command_of(page, "^ray job submit .*fflm_replicates.py"), tmp_path)
    done = _submit(page_cluster, words, _tiny(words))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    assert re.search(r"Job 'raysubmit_\w+' succeeded", said)
    folder = tmp_path / "runs" / study
    assert (folder / "report" / "index.html").is_file()
    assert list((folder / "wandb").glob("offline-run-*/run-*.wandb"))
    assert committed(open_store(tmp_path / "runs", study))["status"].to_pylist() == ["finished"]


def _elsewhere(words, folder):
    """A page's command without the address, which is that of the page's own port, and with a store in the folder."""
    if "--address" in words:
        at = words.index("--address")
        words = [*words[:at], *words[at + 2 :]]
    return [f"store={folder / 'runs'}" if word.startswith("store=") else word for word in words]


@pytest.mark.slow
def test_the_job_of_the_page_trains_a_model_of_ones_own(page_cluster, tmp_path):
    """The model and the study of docs/guides/own-model.md, in the folder of a checkout that the job uploads."""
    page = (ROOT / "docs" / "guides" / "own-model.md").read_text()
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("harness", "launch", "models", "results", "tasks"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "my_models.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    (folder / "my_study.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    words = _elsewhere(command_of("docs/guides/cluster.md", "my_study.yaml"), tmp_path)
    words = [str(folder) if word == "." else word for word in words]
    done = _submit(page_cluster, words, ["replicates=1", "train.steps=20", "wandb=off"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (study,) = (tmp_path / "runs").iterdir()
    assert set(committed(open_store(tmp_path / "runs", study.name))["status"].to_pylist()) == {"finished"}


def _job(*words, folder="."):
    """The README's command with a study, its words and a working folder of the test's."""
    start = command_of("README.md", "^ray job submit")
    start = [folder if word == "." else word for word in start[: start.index("--") + 3]]
    return [*start, "study=quick", "wandb=off", *words]


def test_a_submitted_job_refuses_a_relative_store(page_cluster):
    refused = _submit(page_cluster, _job("store=runs"), [])
    assert refused.returncode != 0
    assert "store=runs is relative, and a Ray job runs in a temporary folder" in refused.stdout + refused.stderr


@pytest.mark.slow
def test_a_job_whose_folder_has_its_own_models_uses_ours(page_cluster, tmp_path):
    folder = tmp_path / "theirs"
    for name in ("models", "tasks", "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise ImportError('the package of the job, not of manyseeds')\n")
    (folder / "launch").mkdir()
    (folder / "launch" / "fflm_replicates.py").write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\nimport harness\nfrom launch.cli import family\nfamily('fflm', 'quick')\n"
    )
    words = _job(f"store={tmp_path / 'runs'}", folder=str(folder))
    done = _submit(page_cluster, words, _tiny(words))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_script_in_another_folder_uses_the_cluster(page_cluster, tmp_path):
    """The workers find the packages beside the script."""
    environment, python, port, _ = page_cluster
    command = [python, ROOT / "launch" / "fflm_replicates.py", "store=runs", "wandb=off", *_tiny(["study=quick"])]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment | {"RAY_ADDRESS": f"127.0.0.1:{port}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "runs" / "fflm-quick" / "report" / "index.html").is_file()


def test_a_cluster_that_was_started_with_a_token_refuses_who_has_none(page_cluster, tmp_path):
    environment, python, _, dashboard = page_cluster
    stranger = environment | {"HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled"}
    words = [python.parent / "ray", "job", "list", "--address", dashboard]
    for _ in range(30):  # a dashboard on a busy machine may be slow to answer anybody
        done = subprocess.run(words, env=stranger, capture_output=True, text=True, timeout=60)
        if "Failed to connect" not in done.stderr:
            break
        time.sleep(1)
    assert done.returncode != 0
    assert "Missing authentication token" in done.stdout + done.stderr
