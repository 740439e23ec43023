"""A study of a person's own script: one process per replicate, and whatever a script does, its reason recorded and no other disturbed."""

import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboardX import SummaryWriter

from harness.experiments import supervisor
from harness.experiments.entries import BadResult, entries_of
from harness.experiments.event_files import scalars_of
from harness.experiments.metrics_file import results_in
from harness.experiments.own_wandb_runs import values_of_run
from harness.machine.interrupt import Interrupt
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study.load import load
from models.custom import custom
from results.dashboards import dashboard_rows
from results.errors import StudyError
from results.store.tables import committed, log_path, open_store, read
from tests.harness.experiments.drivers import running
from tests.harness.killed import without_report
from tests.harness.tiny import tables

# what the script does depends on its seed; 0 and every other seed are good
SCRIPT = """
import json, os, subprocess, sys, time
from beside import half

mode, seed, folder = sys.argv[1], int(sys.argv[2]), os.environ["MANYSEEDS_FOLDER"]
if mode == "odd":
    if seed == 1:
        print("three!"); sys.exit(3)
    if seed == 2:
        time.sleep(900)
    if seed == 3:
        chunk = "x" * 2**20
        for _ in range(16):
            print(chunk)
    if seed == 4:
        open(folder + "/metrics.jsonl", "w").write('{"score": 1}\\n{"score": oops}\\n'); sys.exit(0)
    if seed == 5:
        sys.exit(0)
    if seed == 6:
        os.kill(os.getpid(), 9)
    if seed == 7:
        for detached in (False, True):
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=detached)
with open(folder + "/metrics.jsonl", "w") as stream:
    for step in (1, 2):
        stream.write(json.dumps({"step": step, "score": half(seed) + step}) + "\\n")
"""
STUDY = """
name: scripted
question: q
experiment:
  command: [python, -S, work.py, "{mode}", "{seed}"]
  metrics: "{folder}/metrics.jsonl"
  sources: [work.py, beside.py]
  mode: good
  time_limit: 60
replicates: 3
executor: local
wandb: off
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(custom, "_allowed", {"--allow-command"})
    without_report(monkeypatch)
    (tmp_path / "work.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("def half(n):\n    return n / 2\n")
    (tmp_path / "scripted.yaml").write_text(STUDY)

    def started(*overrides, store="runs"):
        started.said = []
        return run(load("scripted.yaml", [f"store={tmp_path / store}", *overrides]), say=started.said.append)

    return started


def test_each_replicate_has_what_its_process_wrote(start, tmp_path):
    assert start() == 0
    store = open_store(tmp_path / "runs", "scripted")
    seeds = {row["key"]: row["init_seed"] for row in committed(store).to_pylist()}
    found = {(seeds[row["key"]], row["step"]): row["value"] for row in read(store, "evaluations").to_pylist()}
    assert found == {(seed, step): seed / 2 + step for seed in range(3) for step in (1, 2)}
    assert {row["steps"] for row in committed(store).to_pylist()} == {2}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["beside.py", "scripted.yaml", "work.py"]


def test_a_folder_and_a_file_in_it_may_both_be_sources_in_any_order(start, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "beside.py").write_text((tmp_path / "beside.py").read_text())
    (tmp_path / "src" / "data.txt").write_text("2")
    work = (tmp_path / "work.py").read_text()
    (tmp_path / "src" / "work.py").write_text("assert open('src/data.txt').read() == '2'\n" + work)
    command = "experiment.command=[python, -S, src/work.py, '{mode}', '{seed}']"
    for number, sources in enumerate(("[src/work.py, src]", "[src, src/work.py]")):
        assert start(command, f"experiment.sources={sources}", "replicates=1", store=f"runs{number}") == 0, start.said


def test_whatever_a_script_does_is_recorded_with_its_reason_and_disturbs_no_other(start, tmp_path, capsys):
    assert start("experiment.mode=odd", "replicates=9", "experiment.time_limit=2") == 1
    store = open_store(tmp_path / "runs", "scripted")
    done = {row["init_seed"] for row in committed(store).to_pylist()}
    assert done == {0, 3, 7, 8}  # a gigabyte of output and children that outlive their parent are no failure
    failures = {row["exception"].partition(": ")[2]: row for row in read(store, "failures").to_pylist()}
    reasons = {
        "the command ended with exit status 3; the last it printed: three!": "raised",
        "the command took more than experiment.time_limit = 2 s and was ended": "hung",
        "line 2 of {folder}/metrics.jsonl is not JSON": "raised",
        "the command ended with exit status 0 and left no {folder}/metrics.jsonl": "raised",
        "the command was ended by the signal SIGKILL, as when a machine runs out of memory": "died",
    }
    for reason, kind in reasons.items():
        row = next(row for said, row in failures.items() if said.startswith(reason))
        assert row["kind"] == kind
        assert len(row["keys"]) == 1
    assert len(failures) == len(reasons)
    three = next(row for said, row in failures.items() if "three!" in said)
    assert "three!" in Path(store.path(log_path(three["pack"], three["attempt"]))).read_text()
    assert not running("time.sleep(600)")
    assert "xxx" not in capsys.readouterr().out  # what scripts print is for the log


def test_a_request_to_stop_ends_the_process_and_the_same_command_goes_on(start, tmp_path, monkeypatch):
    assert start(store="whole") == 0
    since = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "requested", lambda self: time.monotonic() - since > 1.0)
        assert start("experiment.mode=odd", "seeds.from=2", "replicates=1", "experiment.time_limit=600") == 130
    assert time.monotonic() - since < 300  # the script sleeps three times as long
    assert not running("work.py\x00odd\x002")
    assert start(store="runs") == 0
    assert tables(tmp_path / "runs", "scripted") == tables(tmp_path / "whole", "scripted")


def test_a_script_sees_its_sources_one_thread_and_no_other_variables(start, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("ALLOWED", "y")
    (tmp_path / "beside.py").write_text(
        "import os\n\n\ndef half(n):\n    here = sorted(os.listdir('.'))\n"
        "    assert here == ['beside.py', 'metrics.jsonl', 'work.py'], here\n"
        "    assert 'SECRET_TOKEN' not in os.environ and os.environ['ALLOWED'] == 'y'\n"
        "    assert os.environ['CUDA_VISIBLE_DEVICES'] == '2'\n"
        "    assert os.environ['WANDB_RUN_GROUP'] == 'work' and os.environ['WANDB_NAME'] == 'work, seed 0'\n"
        "    assert os.environ['WANDB_DIR'] == os.environ['MANYSEEDS_FOLDER'] == os.getcwd()\n"
        "    return float(os.environ['OMP_NUM_THREADS'])\n"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")  # as of a slot that is a GPU
    for name in ("WANDB_RUN_GROUP", "WANDB_NAME", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert start("experiment.environment=[ALLOWED]", "replicates=1") == 0


LOGS = """
import os, sys, time
from pathlib import Path
mode, seed, given = sys.argv[1], int(sys.argv[2]), Path(os.environ["WANDB_DIR"])
if mode == "real" and seed < 2:
    import wandb
    for place in (None, "logs"):  # where W&B is told to write, and where a script may tell it to
        with wandb.init(mode="offline", dir=place) as run:
            run.log({"score": 1.0})
elif seed != 2:
    for number, folder in enumerate((given, Path("logs"))):
        run = folder / "wandb" / f"offline-run-20260101_000000-of{seed}n{number}"
        run.mkdir(parents=True)
        (run / f"run-of{seed}n{number}.wandb").write_bytes(b":W&B")
begun = Path(__file__).resolve().with_name("begun")
if seed == 2 and not begun.exists():
    begun.touch()
    time.sleep(900)
Path("metrics.jsonl").write_text('{"score": 1.0}')
sys.exit(3 if mode == "fails" else 0)
"""


@pytest.mark.parametrize("mode", ["good", pytest.param("real", marks=pytest.mark.slow)])
def test_a_replicate_whose_script_makes_its_own_wandb_run_gets_no_second_one(start, tmp_path, monkeypatch, mode):
    """Nor where the study is stopped before the pack is committed. real: by W&B itself, which takes seconds to start."""
    monkeypatch.delenv("WANDB_DIR", raising=False)
    monkeypatch.setattr(dashboard_rows, "draw_values", lambda *arguments: [])
    (tmp_path / "work.py").write_text(LOGS)
    overrides = (
        f"experiment.mode={mode}",
        "experiment.sources=[work.py]",
        "experiment.command=[python, work.py, '{mode}', '{seed}']",
    )
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "requested", lambda self: (tmp_path / "begun").exists())
        assert start(*overrides, "experiment.time_limit=600") == 130
    assert start(*overrides, "experiment.time_limit=600") == 0
    ids = {file.name[4:-6] for file in tmp_path.glob("wandb/offline-run-*/run-*.wandb")}
    assert len(ids) == 4
    store = open_store(tmp_path / "runs", "scripted")
    rows = {row["init_seed"]: row for row in committed(store).to_pylist()}
    assert {own for seed in (0, 1) for own in rows[seed]["own_wandb"].split(", ")} == ids
    assert rows[2]["own_wandb"] is None
    made = [
        run.id for run in dashboard_rows.runs_of(store, "replicate", dashboard_rows.rows_of(store)) if run.kind == "replicate"
    ]
    assert made == [f"scripted-{rows[2]['key'][:16]}-s0"]
    if mode == "real":
        assert all(values_of_run(run) == [{"step": 0, "score": 1.0}] for run in tmp_path.glob("wandb/*/"))


def test_the_wandb_runs_of_a_script_that_fails_are_kept(start, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_DIR", "mine")
    (tmp_path / "work.py").write_text(LOGS)
    assert start("experiment.mode=fails", "seeds.from=3", "replicates=1", "experiment.sources=[work.py]") == 1
    assert len(list(tmp_path.glob("mine/wandb/offline-run-*-of3n?/run-*.wandb"))) == 2


def test_local_files_that_a_script_imports_need_not_be_named_and_are_part_of_its_code(start, tmp_path):
    assert start("experiment.sources=[work.py]", "replicates=1") == 0
    (tmp_path / "beside.py").write_text("def half(n):\n    return n / 3\n")
    with pytest.raises(StudyError, match="has committed replicates that ran with the code"):
        start("experiment.sources=[work.py]", "replicates=1")


def test_a_script_that_is_edited_while_its_study_runs_is_not_run_as_the_old_one(start, tmp_path):
    (tmp_path / "work.py").write_text(
        SCRIPT + "from pathlib import Path\nPath(work := __file__).resolve().write_text(open(work).read() + '# edited')\n"
    )
    assert start() == 1
    store = open_store(tmp_path / "runs", "scripted")
    assert [row["init_seed"] for row in committed(store).to_pylist()] == [0]
    failures = [row["exception"] for row in read(store, "failures").to_pylist()]
    assert all("was planned with the code" in text for text in failures)
    assert all(
        text.endswith("a command that writes into experiment.sources changes its own code: let it write into {folder}")
        for text in failures
    )


def test_a_file_that_the_study_does_not_name_is_said_to_belong_to_its_sources(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("a")
    (tmp_path / "work.py").write_text("open('data/words.txt')")
    assert start("replicates=1") == 1
    (row,) = read(open_store(tmp_path / "runs", "scripted"), "failures").to_pylist()
    assert re.fullmatch("1 replicate failed: manyseeds failures .* says why; manyseeds retry runs it again", start.said[-1])
    assert (
        "exit status 1; data/words.txt is in the study's folder: add it to experiment.sources; the last it printed: "
        in row["exception"]
    )
    assert row["exception"].endswith("No such file or directory: 'data/words.txt'")
    start("replicates=1")
    assert "  1 failed before and is left out: manyseeds retry plans it again" in start.said


def test_metrics_may_be_csv_or_one_json_file(start, tmp_path):
    for suffix, text, metrics in (
        ("csv", "step,set,score\n1,test,0.25\n2,test,0.5\n", "'{folder}/m.csv'"),
        ("csv", "epoch,set,score\n1,test,0.25\n2,test,0.5\n", "{file: '{folder}/m.csv', step: epoch}"),
        ("json", '[{"step": 2, "set": "test", "score": 0.5}]', "'{folder}/m.json'"),
    ):
        (tmp_path / "work.py").write_text(f"import sys\nopen('m.{suffix}', 'w').write({text!r})  # {{seed}}\n")
        name = f"{suffix}{len(metrics)}"
        assert start(f"experiment.metrics={metrics}", "replicates=1", store=name) == 0
        assert start(f"experiment.metrics={metrics}", "replicates=1", store=name) == 0  # planned again from what is written
        rows = read(open_store(tmp_path / name, "scripted"), "evaluations").to_pylist()
        assert [(row["step"], row["set"], row["value"]) for row in rows][-1] == (2, "test", 0.5)


def test_a_script_may_leave_event_files_and_a_last_value_that_is_not_finite_is_diverged(start, tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("score", 0.5, 1)
        writer.add_scalar("score", float("nan"), 2)
    (events,) = (path.name for path in tmp_path.glob("events*"))
    (tmp_path / "work.py").write_text(f"import os, shutil\nos.mkdir('tb')\nshutil.copy({events!r}, 'tb')\n")
    assert start("experiment.metrics='{folder}/tb/'", f"experiment.sources=[work.py, {events}]", "replicates=1") == 0
    store = open_store(tmp_path / "runs", "scripted")
    assert [(row["step"], row["value"]) for row in read(store, "evaluations").to_pylist()] == [(1, 0.5), (2, None)]
    assert [(row["status"], row["diverged_at"]) for row in committed(store).to_pylist()] == [("diverged", 2)]


def test_metrics_may_be_event_files_of_tensorboard(tmp_path):
    with SummaryWriter(str(tmp_path / "tb")) as writer:
        writer.add_text("note", "no scalar", 1)
        for step in (1, 2):
            writer.add_scalar("loss/train", 1 / step, step)
    (path,) = (tmp_path / "tb").iterdir()
    expected = [{"step": 1, "loss/train": 1.0}, {"step": 2, "loss/train": 0.5}]
    assert list(scalars_of(tmp_path)) == expected
    path.write_bytes(path.read_bytes()[:-5])  # the last record is cut off
    assert list(scalars_of(tmp_path)) == expected[:1]
    path.write_bytes((4).to_bytes(8, "little") + b"\xff" * 12)
    with pytest.raises(BadResult, match="no event file"):
        list(scalars_of(tmp_path))


@pytest.mark.parametrize("text", ["9" * 400, "1e400", "1.1e150", "-1e308", "NaN"])
def test_a_number_that_no_axis_can_show_is_diverged(tmp_path, text):
    (tmp_path / "m.jsonl").write_text('{"score": ' + text + "}\n")
    (entry,) = entries_of(results_in(tmp_path / "m.jsonl", "m.jsonl"), {})
    assert not math.isfinite(entry.values["score"][0])


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nothing")])
def test_what_is_no_file_is_no_event_file(tmp_path, make):
    make(tmp_path / "events.out.tfevents.1")
    with pytest.raises(BadResult, match=r"events\.out\.tfevents\.1 is no file"):
        list(scalars_of(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("m.csv", "score,score\n1,2\n", "m.csv has two columns of the same name"),
        ("m.csv", "score\n" + "1" * 200_000 + "\n", "line 1 of m.csv can't be read: field larger than field limit"),
        ("m.jsonl", '{"score": 1, "score": 2}\n', "it has the name 'score' twice in one mapping"),
    ],
)
def test_a_file_of_metrics_that_would_mislead_is_refused(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadResult) as refused:
        list(entries_of(results_in(tmp_path / name, name), {}))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("experiment.command=[python, work.py, '{mode}']", 'experiment.command does not name "{seed}"'),
        ("experiment.command=[python, work.py, '{seed}']", "experiment.mode is not used by the command"),
        ("experiment.source=[work.py]", "experiment.source is not used by the command; did you mean experiment.sources?"),
        ("experiment.command=[python, work.py, '{seed}', '{mode}', '{lr}']", "names {lr}, and there is no such setting"),
        ("experiment.metrics=metrics.jsonl", 'must be a file that the script writes, such as "{folder}/metrics.jsonl"'),
        ("experiment.metrics={file: '{folder}/m.csv'}", "must be a file, or a file and the name of the steps in it, such as"),
        ("experiment.sources=[]", "experiment.sources is missing"),
        ("experiment.sources=[gone.py]", "there is no 'gone.py'"),
        ("experiment.sources=[work.py, .]", "is in '.' of experiment.sources, which all replicates share: name only the files"),
        (
            "experiment={metrics: '{folder}/proj/out/m.csv', sources: [proj]}",
            "experiment.metrics = '{folder}/proj/out/m.csv' is in 'proj' of experiment.sources, which all replicates share",
        ),
        ("experiment.sources=[../work.py]", "'../work.py' must be a file or folder in the current one"),
        ("experiment.metrics='{folder}/../m.csv'", 'must be a file that the script writes, such as "{folder}/metrics.jsonl"'),
        ("experiment.metrics='{folder}/m_{seed}.jsonl'", "has {seed}, and only {folder} is filled in"),
        ("experiment.time_limit=0", "must be a number of seconds above 0"),
    ],
)
def test_a_command_that_can_not_work_is_refused_in_a_sentence(start, override, sentence):
    with pytest.raises(StudyError) as refused:
        start(override)
    assert sentence in str(refused.value)


def test_a_command_is_started_only_where_the_person_allows_it(start, tmp_path, monkeypatch):
    """Also by a store that somebody else filled: its rows and manifests hold commands."""
    assert start("replicates=1") == 0
    key = committed(open_store(tmp_path / "runs", "scripted"))["key"][0].as_py()
    monkeypatch.setattr(custom, "_allowed", set())
    for refused in (start, lambda: rerun(open_store(tmp_path / "runs", "scripted"), key)):
        with pytest.raises(StudyError, match=r"would start `python -S work\.py .*pass --allow-command"):
            refused()


def test_a_script_ends_with_the_driver_that_started_it(tmp_path):
    """The supervisor's input is closed when its parent is gone, however that ended."""
    (tmp_path / "run").mkdir()
    words = [
        sys.executable,
        "-I",
        "-S",
        supervisor.__file__,
        str(tmp_path / "run" / "log"),
        "1000",
        "0",
        "sh",
        "-c",
        "sleep 611 & sleep 612",
    ]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    until = time.monotonic() + 120
    while not (running("sleep\x00611") and running("sleep\x00612")) and time.monotonic() < until:
        time.sleep(0.02)
    process.stdin.close()
    assert json.loads(process.stdout.read())["reason"] == "stopped"
    process.wait()
    process.stdout.close()
    assert not running("sleep\x0061")
    assert not (tmp_path / "run").exists()


def test_of_what_a_script_prints_the_first_and_the_last_are_kept(tmp_path):
    log = supervisor.Log(tmp_path / "log", 20)
    for _ in range(1000):
        log.add(b"0123456789" * 10)
    log.add(b"the end")
    log.close()
    assert (tmp_path / "log").read_text() == "0123456789\n… 99987 bytes are left out …\n789the end"
