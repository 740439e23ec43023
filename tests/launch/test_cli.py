"""The command line: each bad input is one sentence on stderr, exit status 2, and nothing written."""

import contextlib
import itertools
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch.cli import SECTIONS, cli, family, main
from launch.cli.arguments import load_study
from results.errors import StudyError
from results.progress.adaptive_status import TAKEN_AS_FIXED
from results.store.tables import open_store
from tests.harness import chained
from tests.harness.tiny import write_study
from tests.results import synthetic
from tests.results.store.sample_rows import commit_pack

ROOT = Path(__file__).parents[2]


@pytest.fixture
def command(tmp_path, capsys):
    study = write_study(tmp_path)

    def call(*words):
        words = [study if word == "STUDY" else word for word in words]
        try:
            main(words)
            status = 0
        except SystemExit as ended:
            status = ended.code
        output = capsys.readouterr()
        return status, output.out, output.err

    return call


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.laters=2", "model.laters is not an option of the transformer; did you mean model.layers?"),
        ("trian.lr=1", "the command line has no key 'trian'; did you mean train?"),
        ("task.length=17", "task.length = 17 is not an even number of tokens"),
        ("task.p_write=0.7", "must be non-negative and sum to 1"),
        ("replicates=0", "replicates = 0 must be a whole number of at least 1"),
        ("model.width=32", "also set by 1 of 2 conditions (lstm)"),
        ("evaluate.sets.sparse.sequences=-5", "evaluate.sets.sparse.sequences = -5 must be a whole number"),
        ("model.heads=3", "model.heads = 3 does not divide model.width = 16"),
        ("wandb=ofline", "wandb = 'ofline' must be off or offline or online"),
        ("device=cuda", "torch sees no CUDA device"),
        ("scale=huge", "scale = 'huge' is not a scale of"),
        ("store=s4://bucket/x", "s4://bucket/x can't be opened as a store"),
        ("source.author=${oc.env:HOME}", "oc.env"),
    ],
)
def test_bad_overrides_are_refused_in_one_sentence(command, override, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if override == "device=cuda":
        import torch

        if torch.cuda.is_available():
            override = "device=cuda:99"
    status, _, error = command("run", "STUDY", override)
    assert status == 2
    assert sentence in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_override_that_says_what_a_condition_sets_is_no_contradiction(command):
    status, _, error = command(
        "plan", "STUDY", "replicates=1", "conditions.transformer.replicates=1", "conditions.lstm.replicates=1"
    )
    assert (status, "also set by" in error) == (0, False)


def test_a_store_that_cannot_be_written_is_refused(command, tmp_path):
    (tmp_path / "file").write_text("a file where the store should be")
    status, _, error = command("run", "STUDY", f"store={tmp_path / 'file'}")
    assert status == 2
    assert f"{tmp_path / 'file'} is a file, and a store is a folder: give another path" in error


def test_an_unknown_study_is_refused_with_the_nearest(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fflm_replicates.py", "study=quik"])
    with pytest.raises(SystemExit) as ended:
        family("fflm", default="quick")
    assert ended.value.code == 2
    assert "did you mean quick?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "default"),
    [
        ("fflm_replicates", "fflm-quick"),
        ("length_generalization", "a1-reduced"),
        ("progressive_distillation", "parity-reduced"),
    ],
)
def test_the_default_study_is_the_small_one_also_where_there_is_a_gpu(script, default, monkeypatch):
    import torch

    import harness.run

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", [f"{script}.py"])
    started = []
    monkeypatch.setattr(harness.run, "run", lambda study, say: started.append(study.name) or 0)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "launch" / f"{script}.py"), run_name="__main__")
    assert (ended.value.code, started) == (0, [default])


def test_a_missing_file_is_refused(command):
    status, _, error = command("run", "nowhere.yaml")
    assert status == 2
    assert "there is no study file nowhere.yaml: give the path of a YAML file\n" in error


def test_a_file_that_is_called_nearly_so_is_named(command, tmp_path):
    (tmp_path / "tails.yaml").touch()
    (tmp_path / "b.yaml").touch()
    assert command("run", str(tmp_path / "tails.yml"))[2].endswith(f"of a YAML file; did you mean {tmp_path / 'tails.yaml'}?\n")
    assert command("run", str(tmp_path / "depth.yaml"))[2].endswith("give the path of a YAML file\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["--train.lr=3"], "train.lr=…"), (["--replicates", "3"], "replicates=…"), (["--allow-imprt", "m"], None)],
)
def test_a_setting_with_dashes_is_told_how_to_write_it(command, words, meant):
    status, _, error = command("plan", "STUDY", *words)
    assert status == 2
    assert error.endswith(f"If it is a setting of the study, write it without dashes: {meant}\n") == (meant is not None)
    assert ("--allow-import" in error) == (meant is None)


def test_plan_says_what_a_study_costs_and_writes_a_manifest(command, tmp_path):
    status, out, _ = command("plan", "STUDY", f"store={tmp_path / 'runs'}", "--write", str(tmp_path / "manifest.yaml"))
    assert status == 0
    assert re.search(r"8 replicates of 2 conditions, 0 committed", out)
    assert re.search(r"to do: 8 replicates in 4 packs, [\d.]+ core-seconds?, about .*, [\d.]+ KB of tables", out)
    assert len(json.loads((tmp_path / "manifest.yaml").read_text())["packs"]) == 4
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", [("--write", "m.yaml"), ("--fresh",), ("--on", "h200")])
def test_the_difference_from_a_store_measures_and_writes_nothing(command, tmp_path, words, monkeypatch):
    """The manifest that was asked for was not written, without a word."""
    monkeypatch.chdir(tmp_path)
    status, out, error = command("plan", "STUDY", "--diff", *words)
    assert (status, out) == (2, "")
    assert f"--diff measures and writes nothing: leave out {words[0]}" in error


def test_the_difference_from_a_store_that_the_study_cannot_go_on_in_is_refused(command, tmp_path):
    """It said “2 held” or “2 lack a set”, and a run of the same study was refused."""
    store = f"store={tmp_path / 'runs'}"
    assert command("run", "STUDY", store, "replicates=1", "only=[lstm]")[0] == 0
    assert command("plan", "STUDY", store, "replicates=2", "--diff")[1].endswith("lstm: 2 planned, 1 held, 1 missing\n")
    redefined = command("plan", "STUDY", store, "evaluate.sets.dense.sequences=7", "--diff")
    assert (redefined[0], redefined[1]) == (2, "")
    assert "give the new set another name, or use another store" in redefined[2]
    study = tmp_path / "renamed.yaml"
    study.write_text((tmp_path / "tiny.yaml").read_text().replace("dense:", "thick:"))
    assert "is committed in this store as 'dense'" in command("plan", str(study), store, "--diff")[2]


def test_the_folder_of_a_study_is_no_store_to_write_into(command, tmp_path):
    """A second store began inside the study's folder, which neither found again."""
    folder, other = tmp_path / "runs" / "mine", tmp_path / "other"
    for at, name in ((tmp_path / "runs", "mine"), (other, "theirs")):
        commit_pack(open_store(at, name), "fd-0", ["a"])
    before = sorted(folder.rglob("*"))
    (tmp_path / "table.csv").write_text("seed,loss\n0,1\n1,2\n")
    for words in (
        ("run", "STUDY", f"store={folder}"),
        ("plan", "STUDY", f"store={folder}"),
        ("plan", "STUDY", f"store={folder}", "--diff"),
        ("merge", str(folder), str(other)),
        ("import", str(tmp_path / "table.csv"), "--seed", "seed", "--metric", "loss=lower", "--store", str(folder)),
        ("language-model", "folder", "--store", str(folder)),
    ):
        status, _, error = command(*words)
        assert status == 2
        assert f"is the folder of the study mine, and no store: give the folder above it, {tmp_path / 'runs'}\n" in error
    assert sorted(folder.rglob("*")) == before


def test_a_store_that_is_called_nearly_so_is_named(command, tmp_path):
    commit_pack(open_store(tmp_path / "runs", "mine"), "fd-0", ["a"])
    (tmp_path / "run-logs").mkdir()
    for name, hint in (("run", "; did you mean runs?"), ("elsewhere", "")):
        assert command("status", str(tmp_path / name))[2] == f"error: there is no study in {tmp_path / name}{hint}\n"


def test_a_folder_of_stores_is_told_from_a_store(command, tmp_path):
    commit_pack(open_store(tmp_path / "stores" / "runs", "mine"), "fd-0", ["a"])
    for name in ("status", "verify", "compact"):
        status, _, error = command(name, str(tmp_path / "stores"))
        assert (status, error) == (
            2,
            f"error: there is no study in {tmp_path / 'stores'}: it is a folder of stores, so give one of them, such as "
            f"{tmp_path / 'stores' / 'runs'}\n",
        )


@pytest.mark.parametrize("words", ["status", "failures", "watch --once", "compact"])
def test_a_damaged_study_hides_no_other(command, tmp_path, words):
    for study in ("broken", "whole"):
        commit_pack(open_store(tmp_path / "runs", study), "fd-0", ["a"])
    for table in ("replicates", "failures"):
        path = tmp_path / "runs" / "broken" / table / "fe-0.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_text("junk")
    status, out, _ = command(*words.split(), str(tmp_path / "runs"))
    assert status == 1
    assert re.search(r"^broken: .*fe-0\.parquet can't be read", out)
    assert re.search("^[^a-z]*whole: ", out, re.M)


def test_a_study_without_a_manifest_has_no_number_planned(command, tmp_path):
    commit_pack(open_store(tmp_path / "runs", "mine"), "fd-0", ["a"])
    assert command("status", str(tmp_path / "runs"))[1].startswith(
        "mine: 1 replicate committed, and no manifest says how many are planned\n"
    )


def test_a_table_of_markdown_ends_before_what_is_said_of_the_next_study(command, tmp_path):
    """What follows a table without an empty line is a row of it; also where two stores have a study of one name."""
    for part in ("one", "two"):
        synthetic.write(open_store(tmp_path / "stores" / part, "made"), synthetic.manifest(study="made"))
        commit_pack(open_store(tmp_path / "stores" / part, "planless"), "fd-0", ["a"])
    for name in ("spread", "compare"):
        status, out, _ = command(name, str(tmp_path / "stores"))
        lines = out.splitlines()
        assert (status, [line.partition(":")[0] for line in lines if re.match("made:|planless:", line)]) == (
            0,
            ["made", "planless", "made", "planless"],
        )
        assert {after[:1] for line, after in itertools.pairwise(lines) if line.startswith("|")} == {"|", ""}


def test_comparisons_are_printed_as_latex(command, tmp_path):
    for name in ("one", "two"):
        synthetic.write(open_store(tmp_path / "runs", name), synthetic.manifest(study=name))
    for words in (("compare", "--baseline", "transformer"), ("spread",)):
        status, out, _ = command(words[0], str(tmp_path / "runs"), *words[1:], "--latex")
        assert status == 0
        assert [line for line in out.splitlines() if line.startswith("|")] == []
        assert out.count(r"\begin{tabular}") == out.count(r"\bottomrule") == out.count(r"\end{tabular}") == 2


def test_comparisons_say_that_an_adaptive_study_chose_its_numbers_of_replicates(command, tmp_path):
    """They were printed with 95 % intervals and p-values as if the numbers had been fixed."""
    rule = {"minimum": 3, "maximum": 8, "step": 1, "set": "dense", "limit": 0.4}
    synthetic.write(open_store(tmp_path / "runs", "fixed"), synthetic.manifest(study="fixed"))
    synthetic.write(open_store(tmp_path / "runs", "grown"), synthetic.manifest(study="grown") | {"adaptive": rule})
    for words in (["compare"], ["spread"], ["compare", "--latex"]):
        said = {name: command(words[0], str(tmp_path / "runs"), name, *words[1:]) for name in ("fixed", "grown")}
        assert [status for status, *_ in said.values()] == [0, 0]
        assert "Adaptive" not in said["fixed"][1]
        assert said["grown"][1].splitlines()[-1].removeprefix("% ") == TAKEN_AS_FIXED


def test_windows_is_refused_in_one_sentence(capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        with pytest.raises(SystemExit, match=r"^2$"):
            main(["studies"])
    assert capsys.readouterr().err == "error: manyseeds runs on Linux and macOS: use WSL on Windows\n"


def test_a_new_study_in_a_folder_with_a_space_has_commands_to_copy(command, tmp_path):
    (tmp_path / "my studies").mkdir()
    path = tmp_path / "my studies" / "new.yaml"
    status, out, _ = command("init", str(path))
    assert status == 0
    assert f"`manyseeds run '{path}'`" in out
    assert f"#   manyseeds run '{path}'  " in path.read_text()


@pytest.mark.parametrize("name", ["status", "watch", "failures", "report"])
def test_a_study_file_in_the_place_of_a_store_is_told_from_one(command, tmp_path, name):
    (tmp_path / "study.yaml").write_text("name: a\n")
    status, _, error = command(name, str(tmp_path / "study.yaml"))
    assert status == 2
    assert "study.yaml is a file, and a store is a folder: give the folder, such as runs" in error


def test_plan_tells_the_stages_of_a_condition_apart(command, tmp_path):
    status, out, _ = command("plan", chained.write_study(tmp_path), f"store={tmp_path / 'runs'}", "replicates=1")
    assert status == 0
    assert "  4 replicates of 2 conditions in 3 stages, 0 committed" in out
    costs = [line.partition(":")[0].strip() for line in out.splitlines() if "s a replicate" in line]
    assert sorted(costs) == ["cold, stage 1", "warm", "warm, stage 1", "warm, stage 2"]


def test_the_life_of_a_study_on_the_command_line(command, tmp_path):
    store = str(tmp_path / "runs")
    status, out, _ = command("run", "STUDY", f"store={store}", "replicates=2")
    assert status == 0
    assert "4/4 replicates" in out
    assert not set("\r\x1b") & set(out)  # it reads well in a log file and in a notebook too
    *_, heading, one, two, three, four, answer = out.splitlines()
    assert heading.split() == "condition set finished diverged zero error min median max".split()
    assert [line.split()[:3] for line in (one, two, three, four)] == [
        [name, each, "2/2"] for name in ("transformer", "lstm") for each in ("sparse", "dense")
    ]
    assert answer.endswith(".")
    assert "replicates" in answer or "median error" in answer
    status, out, _ = command("plan", "STUDY", f"store={store}", "--diff")
    assert "transformer: 4 planned, 2 held, 2 missing" in out
    status, out, _ = command("status", store)
    assert "tiny: 4 of 4 replicates committed" in out
    status, out, _ = command("report", store, "tiny", "--out", str(tmp_path / "page"))
    assert Path(out.strip()).is_file()
    status, out, _ = command("merge", str(tmp_path / "united"), store)
    assert status == 0
    assert "tiny: 4 of 4 replicates committed" in command("status", str(tmp_path / "united"))[1]
    status, _, error = command("status", store, "tinny")
    assert status == 2
    assert "there is no study 'tinny'" in error


@pytest.mark.slow
def test_the_script_of_a_family_runs_from_any_folder(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quick = [f"conditions.{name}.train.steps=5" for name in ("transformer", "lstm")]
    quick += [f"evaluate.sets.{name}.sequences=20" for name in ("in_distribution", "sparse", "dense", "sparse_online")]
    words = ["study=quick", "executor=local", "wandb=offline", "replicates=1", "store=here", "task.length=32", *quick]
    done = subprocess.run(
        [sys.executable, ROOT / "launch" / "fflm_replicates.py", *words],
        cwd=tmp_path,
        env=environment | {"WANDB_MODE": "offline"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "lr 2e-3 (3e-4) for transformer, 1e-3 (LSTM)" in done.stdout
    assert (tmp_path / "here" / "fflm-quick" / "report" / "index.html").is_file()
    assert len(list((tmp_path / "here" / "fflm-quick" / "wandb").glob("offline-run-*"))) == 1


def test_the_package_is_the_command(tmp_path):
    """`python -m launch`, where the script is not in PATH."""
    command = [sys.executable, "-m", "launch", "status", tmp_path / "none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def main_exits(words):
    with contextlib.suppress(SystemExit):
        main(words)


def test_every_command_stands_in_one_section_of_the_help(capsys):
    assert sorted(command.name for commands in SECTIONS.values() for command in commands) == sorted(cli.commands)
    main_exits(["--help"])
    said = capsys.readouterr().out
    assert [line[:-1] for line in said.splitlines() if line.endswith(":") and line[:-1] in SECTIONS] == list(SECTIONS)


def test_the_help_is_there_at_once():
    code = "import sys, launch.cli; print(*{'torch', 'ray', 'matplotlib', 'omegaconf', 'pandas'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "\n"


def test_studies_are_listed_and_found_by_their_name_alone(capsys):
    main_exits(["studies", "flipflop"])
    assert "flipflop/quick " in capsys.readouterr().out
    assert load_study("quick", ()).name == "fflm-quick"
    with pytest.raises(StudyError, match="did you mean quick"):
        load_study("quik", ())


def test_a_folder_hides_no_study_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "quick").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_study("quick", ()).name == "fflm-quick"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["runs", "typo-runs"], "error: there is no study in typo-runs; did you mean runs?\n"),
        (["runs", "--study", "tny"], "error: there is no study 'tny' in runs; studies: fflm-lstm\n"),
    ],
)
def test_merge_refuses_a_store_and_a_study_that_are_not_there_before_it_copies_anything(
    command, tmp_path, monkeypatch, words, sentence
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "docs/studies/flipflop/fflm-lstm", tmp_path / "runs" / "fflm-lstm")
    assert command("merge", "into", *words) == (2, "", sentence)
    assert not (tmp_path / "into").exists()


def test_reports_of_two_stores_whose_studies_share_a_name_are_both_kept(command, tmp_path):
    for store in ("one", "two"):
        shutil.copytree(ROOT / "docs/studies/flipflop/fflm-lstm", tmp_path / "stores" / store / "fflm-lstm")
    status, said, _ = command("report", str(tmp_path / "stores"), "--out", str(tmp_path / "pages"))
    assert status == 0
    pages = [Path(line) for line in said.splitlines()]
    assert pages == [tmp_path / "pages" / store / "fflm-lstm" / "index.html" for store in ("one", "two")]
    assert all(page.is_file() for page in pages)


def test_columns_of_an_imported_table_may_be_named_one_by_one(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text("seed,lr,width,host,id,acc\n0,1,2,a,x,0.5\n0,1,4,b,y,0.6\n0,2,4,c,z,0.7\n")
    options = ["--config", "lr", "--config", "width", "--ignore", "host", "--ignore", "id", "--metric", "acc"]
    status, said, problem = command("import", "runs.csv", "--seed", "seed", *options)
    assert (status, problem, said.partition("\n")[0]) == (0, "", "runs: 3 runs added; runs.csv has 3 conditions")
    status, _, problem = command("import", "runs.csv", "--seed", "seed", *options, "--metric", "acc=lower")
    assert (status, problem) == (2, "error: --metric names acc twice: name it once, as acc=higher or acc=lower\n")
    status, _, problem = command("import", "run.csv", "--seed", "seed", *options)
    assert (status, problem) == (
        2,
        "error: there is no file or folder run.csv: name the file that holds the runs, or the folder\n",
    )


def test_a_study_is_found_in_a_folder_of_stores(command, tmp_path):
    for study in ("fflm-lstm", "fflm-two-layer"):
        shutil.copytree(ROOT / "docs/studies/flipflop" / study, tmp_path / "stores" / study[5:] / study)
    status, said, _ = command("report", str(tmp_path / "stores"), "fflm-lstm", "--out", str(tmp_path / "page"))
    assert (status, said) == (0, f"{tmp_path / 'page' / 'index.html'}\n")
    _, _, problem = command("report", str(tmp_path / "stores"), "fflm-lstn")
    expected = f"there is no study 'fflm-lstn' in the stores of {tmp_path / 'stores'}; studies: fflm-lstm, fflm-two-layer"
    assert problem == f"error: {expected}; did you mean fflm-lstm?\n"


@pytest.mark.parametrize("study", ["flipflop/lstm", str(ROOT / "launch/studies/flipflop/lstm.yaml")])
def test_the_name_of_a_study_file_is_answered_with_the_name_in_the_store(command, study):
    store = ROOT / "docs/studies/flipflop/fflm-lstm"
    _, _, problem = command("status", str(store.parent), study)
    expected = f"there is no study {study!r} in {store.parent}; studies: "
    assert problem.startswith(f"error: {expected}")
    assert problem.endswith(f"; the study of {study} is stored as fflm-lstm\n")


def test_fields_of_a_set_without_quotes_are_said_to_need_them(command, tmp_path):
    status, _, problem = command("evaluate", str(tmp_path), "all", "--set", "p_ignore=0.99", "sequences=2000")
    assert (status, problem) == (
        2,
        "error: 'sequences=2000' is not a key: put the fields of --set into quotes, as in --set 'p_ignore=0.99 "
        "sequences=2000'\n",
    )


def test_claims_of_a_folder_of_stores_are_those_of_its_stores(tmp_path, capsys):
    """`test_the_scoreboard_is_current` reads all of docs/studies so."""
    for name in ("lego", "flipflop"):
        shutil.copytree(ROOT / "docs" / "studies" / name, tmp_path / name)
    main_exits(["claims", str(tmp_path)])
    whole = capsys.readouterr().out
    main_exits(["claims", str(tmp_path / "lego")])
    part = capsys.readouterr().out
    lines = [line for line in part.splitlines() if line and "Open at the paper" not in line]
    assert lines
    assert all(line in whole for line in lines)
