"""Every command takes STORE STUDY KEY in this order, the study only where there are several; and the shell completes them."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from launch.cli import cli, main
from launch.cli.arguments import one_study, store_study, store_study_key
from results.errors import StudyError
from results.store.tables import open_store
from tests.results.store.sample_rows import commit_pack

ROOT = Path(__file__).parents[2]
OLDER = ("claims", "rerun", "evaluate", "glitches", "trace", "export")  # their study was an option


@pytest.fixture
def stores(tmp_path):
    commit_pack(open_store(tmp_path / "runs", "first"), "fa-1", ["aa11", "ab22"])
    commit_pack(open_store(tmp_path / "runs", "second"), "fa-2", ["ba33"], condition="lstm")
    return str(tmp_path / "runs")


def words_of(words, older_store=False):
    """What a command of STORE [STUDY] KEY makes of its words."""

    @click.command()
    @store_study_key(older_store=older_store)
    @click.option("--device", default="auto")
    def command(store, study, key, device):
        return store, study, key

    return command.main(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("runs", "4e1f"), ("runs", None, "4e1f")),
        (("runs", "quick", "4e1f"), ("runs", "quick", "4e1f")),
        (("runs", "--device", "cpu", "quick", "4e1f"), ("runs", "quick", "4e1f")),
        (("runs", "4e1f", "--study", "quick"), ("runs", "quick", "4e1f")),
        (("--study", "quick", "runs", "4e1f"), ("runs", "quick", "4e1f")),
    ],
)
def test_the_key_is_the_last_word_and_the_study_may_stand_before_it(words, meant):
    assert words_of(words) == meant


def test_the_store_may_still_be_an_option_of_export():
    assert words_of(("4e1f", "--store", "runs"), older_store=True) == ("runs", None, "4e1f")
    assert words_of(("--store", "runs", "4e1f", "--study", "quick"), older_store=True) == ("runs", "quick", "4e1f")
    assert words_of(("runs", "quick", "4e1f"), older_store=True) == ("runs", "quick", "4e1f")


def test_too_few_and_too_many_words_are_refused():
    with pytest.raises(click.MissingParameter):
        words_of(("runs",))
    with pytest.raises(click.UsageError, match="unexpected extra argument"):
        words_of(("runs", "quick", "4e1f", "5"))
    with pytest.raises(click.UsageError, match="unexpected extra argument"):
        words_of(("runs", "4e1f", "5", "--store", "others"), older_store=True)


def test_every_command_that_reads_a_store_takes_it_first_then_the_study_then_the_key():
    orders = {}
    for name, command in cli.commands.items():
        words = [each.name for each in command.params if isinstance(each, click.Argument)]
        if "store" in words:
            orders[name] = words
    assert len(orders) > 15
    assert {tuple(words) for words in orders.values()} == {("store", "study"), ("store", "study", "key")}
    for name in OLDER:
        assert any("--study" in each.opts and each.hidden for each in cli.commands[name].params), name
    for command in cli.commands.values():
        studies = [each for each in command.params if isinstance(each, click.Argument) and each.name == "study"]
        assert not any(each.required for each in studies if "store" in orders.get(command.name, ()))


def test_a_study_is_left_out_only_where_there_is_one(stores, tmp_path):
    with pytest.raises(StudyError, match="has several studies: name one of first, second"):
        one_study(stores, None)
    assert one_study(stores, "second") == "second"
    commit_pack(open_store(tmp_path / "alone", "only"), "fa-1", ["aa11"])
    assert one_study(str(tmp_path / "alone"), None) == "only"

    @click.command()
    @store_study
    def command(store, study):
        return store, study

    assert command.main([stores, "--study", "first"], standalone_mode=False) == (stores, "first")


def completed(*words):
    *before, incomplete = words
    return [
        each.value for each in ShellComplete(cli, {}, "manyseeds", "_MANYSEEDS_COMPLETE").get_completions(before, incomplete)
    ]


def test_names_complete(stores):
    assert completed("sho") == ["show"]
    assert {"quick", "flipflop/quick"} <= set(completed("run", ""))
    assert completed("plan", "flipflop/qui") == ["flipflop/quick", "flipflop/qui"]  # the last: or a file of such a name
    assert completed("status", stores, "") == ["first", "second"]
    assert completed("rerun", stores, "a") == ["aa11", "ab22"]
    assert completed("rerun", stores, "") == ["first", "second", "aa11", "ab22", "ba33"]
    assert completed("rerun", stores, "second", "") == ["ba33"]
    assert completed("report", stores + "-none", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell, capsys):
    with contextlib.suppress(SystemExit):
        main(["completion", shell])
    script = capsys.readouterr().out
    assert "_MANYSEEDS_COMPLETE=" in script
    assert f"{shell}_complete" in script


def test_bash_takes_the_script_and_asks_the_command(stores, tmp_path):
    """The script in a real bash, with a `manyseeds` that is this checkout."""
    command = tmp_path / "bin" / "manyseeds"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m launch "$@"\n')
    command.chmod(0o755)
    script = (
        "source <(manyseeds completion bash) && COMP_WORDS=(manyseeds status "
        f"{stores} sec) COMP_CWORD=3 && _manyseeds_completion manyseeds && echo ${{COMPREPLY[@]}}"
    )
    environment = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("second\n", 0), done.stderr
