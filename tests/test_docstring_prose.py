"""The style check of the test command reads docstrings and messages, and says where a finding is."""

import importlib.util

from tests.page_code import ROOT

SOURCE = '''"""A module."""
def f(x):
    """Do it."""
    if not x:
        raise StudyError(f"x = {x} is \\
a very odd number")
    say("all is well", err=True)
'''


def loaded():
    spec = importlib.util.spec_from_file_location("docstring_prose", ROOT / "docs" / "docstring_prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_docstrings_and_messages_are_found_with_their_lines():
    texts = loaded().texts
    told = {(1, "A module."), (3, "Do it.")}
    assert set(texts(SOURCE, messages=False)) == told
    assert set(texts(SOURCE, messages=True)) == told | {(5, "x = X is a very odd number"), (7, "all is well")}


def test_a_finding_names_its_file_and_fails(tmp_path, monkeypatch, capsys):
    module = loaded()
    for folder in module.FOLDERS:
        (tmp_path / folder).mkdir()
    (tmp_path / "tasks" / "odd.py").write_text(SOURCE)
    (tmp_path / "tasks" / "plain.py").write_text('"""Nothing."""')
    (tmp_path / "docs" / "prose.json").write_text((ROOT / "docs" / "prose.json").read_text())
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module.main() == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("tasks/odd.py:5: weasel_words.very")
