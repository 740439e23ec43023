"""`models`, `tasks` and `results` are names that a person's own folder may have too."""

import importlib
import subprocess
import sys
import types

import pytest

import models  # noqa: F401  ours is loaded
from harness import own_packages
from results.errors import StudyError
from results.store.tables import committed, open_store
from tests.environments import ROOT, environment_of, make_environment

MODULE = """
from torch import nn

from models.mine_parts import embedding


class Net(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.embed, self.head = embedding(vocabulary), nn.Linear(4, vocabulary)

    def forward(self, tokens):
        return self.head(self.embed(tokens))
"""
STUDY = """
name: mine
task: {name: flipflop, length: 8, p_ignore: 0.5}
model: {name: "models.mine:Net"}
train: {steps: 2, warmup: 0, batch: 2}
evaluate: {sets: {sparse: {p_ignore: 0.9, sequences: 2}}}
replicates: 2
pack: {size: 2}
executor: local
wandb: off
"""


def _folder(path):
    """A project with a model beside its study, and folders of the same names as our packages."""
    for name in ("models", "tasks", "launch"):
        (path / name).mkdir(parents=True)
    (path / "models" / "mine.py").write_text(MODULE)
    (path / "models" / "mine_parts.py").write_text(
        "from torch import nn\n\n\ndef embedding(size):\n    return nn.Embedding(size, 4)\n"
    )
    (path / "tasks" / "__init__.py").write_text("raise ImportError('the package of another project')\n")
    (path / "results").mkdir()  # of figures: no package, but a folder that Python takes for one
    (path / "study.yaml").write_text(STUDY)
    return path


@pytest.mark.parametrize("installed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_model_in_a_folder_called_models_is_trained(installed, tmp_path):
    python = make_environment(tmp_path / "venv", installed)
    folder = _folder(tmp_path / "project")
    command = ["manyseeds"] if installed else [python, "-m", "launch"]
    environment = environment_of(python, **({} if installed else {"PYTHONPATH": str(ROOT)}))
    for words in (["run", "study.yaml", "--allow-import", "models.mine"], ["status", "runs"]):
        done = subprocess.run([*command, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "mine: 2 of 2 replicates" in done.stdout
    assert committed(open_store(folder / "runs", "mine")).num_rows == 2


def test_python_m_launch_uses_our_packages_where_they_are_installed(tmp_path):
    """`python -m` searches the current folder first, and an editable installation last."""
    python = make_environment(tmp_path / "venv", installed=True)
    folder = _folder(tmp_path / "project")
    (folder / "launch").rmdir()
    words = [python, "-m", "launch", "status", "none"]
    done = subprocess.run(words, cwd=folder, env=environment_of(python), capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (2, "error: there is no study in none\n")


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """The search path with another project's folder after ours."""
    monkeypatch.setattr(sys, "path", [str(ROOT), str(tmp_path), *sys.path])
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def test_a_folder_that_shares_a_module_with_ours_is_refused(beside):
    """Its `from models.linear import …` would silently be ours."""
    (beside / "mine.py").write_text("")
    (beside / "linear.py").write_text("")
    with pytest.raises(ImportError) as refused:
        importlib.import_module("models.mine")
    assert str(refused.value) == (
        f"{beside} is hidden by the package 'models' of manyseeds, and both have linear: give models another name, such as my_models"
    )


def test_a_module_that_neither_has_is_not_found(beside):
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'models\.mine'$"):
        importlib.import_module("models.mine")


def test_a_package_that_was_loaded_before_ours_is_named(tmp_path, monkeypatch):
    other = types.ModuleType("results")
    other.__spec__ = importlib.machinery.ModuleSpec("results", None, origin=str(tmp_path / "results.py"))
    monkeypatch.setitem(sys.modules, "results", other)
    with pytest.raises(ImportError, match=rf"^{tmp_path}/results.py .*: rename it"):
        own_packages.put_first()


def test_a_folder_that_hides_harness_from_rays_workers_is_named(tmp_path, monkeypatch):
    from harness.executing.ray_connection import connect

    own_packages.refuse_hidden_from_workers(str(tmp_path))
    (tmp_path / "harness").mkdir()
    own_packages.refuse_hidden_from_workers(str(tmp_path))  # without __init__.py Python prefers ours
    (tmp_path / "harness" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match=rf"^{tmp_path}/harness .*workers"):
        connect(print)
