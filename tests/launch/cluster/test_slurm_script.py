"""launch/cluster/slurm.sh, run by bash with stubs of SLURM, Ray and Python on its way: the commands that it makes, word for word."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "launch" / "cluster" / "slurm.sh"

_NOTE = '#!/bin/bash\necho "$(basename "$0") $* | $RAY_ADDRESS $RAY_AUTH_MODE ${#RAY_AUTH_TOKEN}" >> "$CALLS"\n'
_STUBS = {
    "srun": _NOTE + "exec sleep 60\n",
    "ray": _NOTE,
    "scontrol": _NOTE
    + """case "$1 $2" in
"show hostnames") printf "n1\\nn2\\nn3\\n" ;;
"show job") printf "JobId=%s JobName=manyseeds\\n   JobState=%s Reason=None\\n" "$3" "$STATE" ;;
esac
""",
    "hostname": '#!/bin/bash\necho "10.0.0.1 192.168.0.1"\n',
    # the token; the wait for the nodes; the study, which saves and ends with 130 when it is asked to
    "python": _NOTE
    + """case $1 in
-c) printf %064d 7 ;;
-) cat > /dev/null
   # like the real one, it waits until every node has joined
   for _ in {1..600}; do [[ $(grep -c "^srun" "$CALLS") -ge $2 ]] && break; sleep 0.05; done ;;
*) trap 'exit 130' TERM
   touch "$CALLS.trapped"
   [[ $STUDY == runs ]] || exit "$STUDY"
   for _ in {1..600}; do sleep 0.05; done ;;
esac
""",
}


def _start(folder, study, *words, state="RUNNING"):
    for name, text in _STUBS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "CALLS": str(folder / "calls"),
        "STUDY": study,
        "STATE": state,
        "PYTHON": str(folder / "python"),
        "SLURM_JOB_ID": "120042",
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURM_CPUS_PER_TASK": "8",
        "SLURM_GPUS_ON_NODE": "2",
    }
    return subprocess.Popen(
        [os.environ.get("BASH", "bash"), str(SCRIPT), *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _calls(folder):
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def _started(folder):
    """Wait until the study runs and its trap is set."""
    deadline = time.monotonic() + 120
    while not (folder / "calls.trapped").exists():
        assert time.monotonic() < deadline, _calls(folder)
        time.sleep(0.05)


def test_the_script_is_bash():
    assert subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, check=False).returncode == 0


def test_the_commands_are_a_head_a_worker_a_node_and_the_study(tmp_path):
    process = _start(tmp_path, "0", "mine.yaml", "--allow-import", "mine", "store=/shared/a b")
    output = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 0, output
    step = "srun --nodes=1 --ntasks=1 --cpus-per-task=8 --overlap --nodelist"
    size = "--num-cpus=8 --num-gpus=2 --block | 10.0.0.1:20042 token 64"
    ray = tmp_path / "ray"
    head = "--head --node-ip-address=10.0.0.1 --port=20042 --include-dashboard=false --temp-dir=/tmp/ray-120042"
    calls = _calls(tmp_path)
    assert sorted(call for call in calls if call.startswith("srun")) == [
        f"{step}=n1 {ray} start {head} {size}",
        f"{step}=n2 {ray} start --address=10.0.0.1:20042 {size}",
        f"{step}=n3 {ray} start --address=10.0.0.1:20042 {size}",
    ]
    assert "ray health-check --address 10.0.0.1:20042 | 10.0.0.1:20042 token 64" in calls
    assert "python - 3 | 10.0.0.1:20042 token 64" in calls
    study = "python -m launch run mine.yaml executor=ray wandb=off --allow-import mine store=/shared/a b"
    assert calls[-1] == f"{study} | 10.0.0.1:20042 token 64"
    assert not any("requeue" in call for call in calls)


def test_a_notice_stops_the_study_first_and_then_queues_the_job_again(tmp_path):
    process = _start(tmp_path, "runs", "flipflop/lstm")
    _started(tmp_path)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 130, output
    assert "goes on from the store" in output
    assert _calls(tmp_path)[-1].startswith("scontrol requeue 120042 |")


def test_a_cancelled_job_is_not_queued_again(tmp_path):
    process = _start(tmp_path, "runs", "flipflop/lstm", state="COMPLETING")
    _started(tmp_path)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 130, output
    assert output.endswith("cancelled: the same command goes on from the store\n")
    assert not any("requeue" in call for call in _calls(tmp_path))


def test_a_job_from_another_folder_says_where_to_type_it(tmp_path):
    script = subprocess.run(["bash", SCRIPT, "flipflop/lstm"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert script.returncode == 2
    expected = f"there is no {tmp_path}/.venv/bin/python: type sbatch in the root of the repository"
    assert script.stderr.startswith(expected)


@pytest.mark.parametrize("words", [(), ("store=/shared/runs",), ("--allow-import", "mine", "mine.yaml")])
def test_a_job_that_names_no_study_ends_before_a_cluster_is_started(words, tmp_path):
    process = _start(tmp_path, "0", *words)
    output = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 2
    assert "name the study first" in output
    assert not _calls(tmp_path)


@pytest.mark.parametrize("status", [1, 2])
def test_a_study_that_fails_is_not_queued_again(status, tmp_path):
    process = _start(tmp_path, str(status), "flipflop/lstm")
    process.communicate(timeout=60)
    assert process.returncode == status
    assert not any("requeue" in call for call in _calls(tmp_path))


def test_no_process_is_left_behind(tmp_path):
    process = _start(tmp_path, "0", "flipflop/lstm")
    process.communicate(timeout=60)  # the pipe closes when the last of its writers, the stubs of srun among them, has ended
    assert process.returncode == 0


def test_the_queue_is_asked_for_requeue_and_a_notice():
    asked = [line.split(maxsplit=1)[1] for line in SCRIPT.read_text().splitlines() if line.startswith("#SBATCH")]
    assert {"--requeue", "--signal=B:TERM@180", "--ntasks-per-node=1", "--no-kill"} <= set(asked)
