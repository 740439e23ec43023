"""The digest of a person's own code: which files belong to it, and that a change of any of them is another condition."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

import results
from harness.machine.provenance import checkout_state
from harness.run import run
from harness.study.foreign_code import code_of_modules, code_of_sources
from harness.study.load import load
from models.custom import custom
from results.errors import StudyError
from results.store.tables import committed, open_store
from tests.harness.killed import without_report

FILES = {
    "mine.py": (
        "import json\nimport numpy\nimport near\nfrom package import inner\n\n\n"
        "def measure(seed, settings):\n    return {'x': seed}\n"
    ),
    "near.py": "def late():\n    import lazily\n",
    "lazily.py": "",
    "unused.py": "",
    "package/__init__.py": "",
    "package/inner.py": "from . import beside\n",
    "package/beside.py": "",
    "package/other.py": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a person's own with FILES, where Python is started; `mine` is imported anew."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(custom, "_allowed", {"mine"})
    _forget()
    yield tmp_path
    _forget()


def _forget():
    for name in ("mine", "near", "package", "package.inner", "package.beside"):
        sys.modules.pop(name, None)


def digest(change=None):
    """Of `mine` as a new process would have it."""
    _forget()
    if change:
        path, text = change
        path.write_text(text)
    __import__("mine")
    return code_of_modules(["mine"]).digest


def test_the_files_that_a_module_leads_to_are_its_code_and_no_others(folder):
    __import__("mine")
    code = code_of_modules(["mine"])
    assert code.files == ("lazily.py", "mine.py", "near.py", "package/__init__.py", "package/beside.py", "package/inner.py")
    assert code.folder == folder


def test_packages_that_are_installed_into_a_folder_of_any_name_are_not_a_persons_own_code(folder):
    """As by `pip install --target .`, beside the files of one's own."""
    (folder / "near-1.0.dist-info").mkdir()
    (folder / "near-1.0.dist-info" / "RECORD").write_text(
        "near.py,sha256=x,1\npackage/inner.py,,\n/etc/near.conf,,\n\nnear-1.0.dist-info/RECORD,,\n"
    )
    __import__("mine")
    assert code_of_modules(["mine"]).files == ("mine.py",)


def test_a_change_of_any_of_them_is_other_code_and_a_change_elsewhere_is_not(folder):
    before = digest()
    assert digest((folder / "unused.py", "1")) == before
    assert digest((folder / "package" / "other.py", "1")) == before
    changed = [digest((folder / name, FILES[name] + "# 1\n")) for name in ("mine.py", "lazily.py", "package/beside.py")]
    assert len({before, *changed}) == 4


def test_line_ends_and_the_place_of_the_folder_are_no_change(folder):
    before = digest()
    (folder / "near.py").write_bytes(FILES["near.py"].replace("\n", "\r\n").encode())
    assert digest() == before
    assert before == "046b924ed5a96b71f630dc50ca42eb0f"  # on every machine, forever


def test_files_that_changed_since_they_were_imported_are_refused(folder):
    digest()
    (folder / "near.py").write_text("late = 2\n")
    with pytest.raises(StudyError, match="files of mine have changed since this process imported them"):
        code_of_modules(["mine"])


def test_sources_are_the_files_named_and_what_python_files_among_them_import(folder):
    assert code_of_sources(["near.py"]).files == ("lazily.py", "near.py")
    assert set(code_of_sources(["package"]).files) >= {"package/__init__.py", "package/inner.py", "package/other.py"}
    with pytest.raises(StudyError, match=r"there is no 'absent\.py'"):
        code_of_sources(["absent.py"])


def test_sources_are_files_or_folders_of_few_files(folder, monkeypatch):
    os.mkfifo(folder / "pipe.py")
    (folder / "far").symlink_to("/", target_is_directory=True)
    monkeypatch.setattr("harness.study.foreign_code.MOST_FILES", 5)
    for source, sentence in (
        ("pipe.py", "is neither a file nor a folder"),
        ("", "there is no ''"),
        ("far", "'far' holds more than 5 files"),
    ):
        with pytest.raises(StudyError, match=sentence):
            code_of_sources([source])


def test_the_checkout_of_a_folder_says_its_commit_and_whether_it_is_changed(folder):
    assert checkout_state(folder / "package") == (None, None)
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "mine.py"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], check=True, env=env)
    commit, dirty = checkout_state(folder)
    assert len(commit) == 40
    assert dirty is False
    assert checkout_state(folder, "mine.py") == (commit, False)


def test_an_environment_inside_a_checkout_is_not_taken_for_a_part_of_it(folder):
    """Rows of an installed manyseeds named the commit of the project whose .venv it was in."""
    for words in (
        ["init", "-q"],
        ["add", "mine.py"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one"],
    ):
        subprocess.run(["git", *words], check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
    installed = folder / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "provenance.py").write_text("")
    assert checkout_state(installed, "provenance.py") == (None, None)


STUDY = "name: coded\nquestion: q\nexperiment: {name: 'mine:measure', shift: 3}\nreplicates: 3\nexecutor: local\nwandb: off\n"


def test_a_store_that_would_mix_two_versions_is_refused_with_both_unless_the_new_one_is_meant(folder, monkeypatch):
    without_report(monkeypatch)
    (folder / "coded.yaml").write_text(STUDY)
    assert run(load("coded.yaml", [f"store={folder / 'runs'}"]), say=lambda text: None) == 0
    before = digest()
    after = digest((folder / "near.py", "x = 2\n"))
    changed = load("coded.yaml", [f"store={folder / 'runs'}"])
    with pytest.raises(StudyError) as refused:
        run(changed, say=lambda text: None)
    assert f"ran with the code {before[:12]}, and the code is now {after[:12]}" in str(refused.value)
    for _ in range(2):  # once it was said, the next command need not say it again
        assert run(replace(changed, new_code=True), say=lambda text: None) == 0
    assert run(changed, say=lambda text: None) == 0
    rows = committed(open_store(folder / "runs", "coded")).to_pylist()
    assert len(rows) == 6
    assert {before in row["config"] for row in rows} == {True, False}
    loaded = results.load(folder / "runs", "coded", config=["code", "experiment.shift"], planned=False).to_pylist()
    assert {(row["code"], row["experiment.shift"]) for row in loaded} == {(before, 3), (after, 3)}
