"""What the driver tells Prometheus: the arithmetic with classes that only remember, and a real cluster's endpoint."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.executing.metrics import DEFINITIONS, Metrics
from harness.executing.run_pack import Outcome
from tests.harness.tiny import write_study

ROOT = Path(__file__).parents[3]


class Recorder:
    """The interface of ray.util.metrics; `sent` is {(name, labels): value or list of values}."""

    def __init__(self, sent, kind, name, description, tag_keys, **more):
        assert description
        self.sent, self.kind, self.name, self.keys = sent, kind, name, tag_keys
        if kind == "histogram":
            assert list(more["boundaries"]) == sorted(more["boundaries"])

    def set_default_tags(self, tags):
        assert tags == {"study": "tiny"}

    def _at(self, tags):
        assert set(tags or {}) | {"study"} == set(self.keys)
        return (self.name.removeprefix("manyseeds_"), *(tags or {}).values())

    def inc(self, value=1.0, tags=None):
        assert self.kind == "counter"
        assert value > 0  # Ray refuses anything else
        at = self._at(tags)
        self.sent[at] = self.sent.get(at, 0) + value

    def set(self, value, tags=None):
        assert self.kind == "gauge"
        self.sent[self._at(tags)] = value

    def observe(self, value, tags=None):
        assert self.kind == "histogram"
        self.sent.setdefault(self._at(tags), []).append(value)


@pytest.fixture
def told():
    """(metrics, what they sent, the clock as a list of one)"""
    sent, now = {}, [100.0]

    def kind(name):
        return lambda *arguments, **more: Recorder(sent, name, *arguments, **more)

    return Metrics(kind("counter"), kind("gauge"), kind("histogram"), "tiny", lambda: now[0]), sent, now


def test_steps_are_counted_once_each_and_not_those_of_a_checkpoint(told):
    metrics, sent, _ = told
    metrics.poll({"a": 3, "b": 2}, {"a": 500}, queued=4)  # a may have been resumed at 490
    assert ("replicate_steps",) not in sent
    metrics.poll({"a": 3, "b": 2}, {"a": 510, "b": 7}, queued=4)
    assert sent["replicate_steps",] == 30
    metrics.poll({"a": 3, "b": 2}, {"a": 490, "b": 9}, queued=4)  # a died, and is back at its checkpoint
    assert sent["replicate_steps",] == 30 + 4
    metrics.ended(Outcome("b", "committed", 2, step=10))
    assert sent["replicate_steps",] == 34 + 2
    metrics.ended(Outcome("c", "committed", 2, step=10))  # too fast to be seen
    assert sent["replicate_steps",] == 36 + 20


def test_the_rate_is_of_the_last_window(told):
    metrics, sent, now = told
    metrics.poll({"a": 4}, {"a": 1}, 0)
    now[0] += 20
    metrics.poll({"a": 4}, {"a": 101}, 0)
    assert sent["replicate_steps_per_second",] == 20
    now[0] += 5
    metrics.poll({"a": 4}, {"a": 151}, 0)
    assert sent["replicate_steps_per_second",] == 20, "not before the window has passed"
    now[0] += 5
    metrics.poll({"a": 4}, {}, 0)
    assert sent["replicate_steps_per_second",] == 20
    now[0] += 10
    metrics.poll({"a": 4}, {}, 0)
    assert sent["replicate_steps_per_second",] == 0, "a pack that hangs is seen"


def test_a_slot_shows_its_pack_and_goes_to_the_next(told):
    metrics, sent, now = told
    metrics.poll({"a": 1, "b": 1}, {"a": 5, "b": 6}, queued=2)
    assert (sent["pack_step", "0"], sent["pack_step", "1"]) == (5, 6)
    assert (sent["packs_queued",], sent["packs_running",]) == (2, 2)
    now[0] += 33
    metrics.ended(Outcome("a", "committed", 1, diverged=1, step=9))
    assert sent["pack_step", "0"] == 0
    assert sent["pack_seconds",] == [33]
    metrics.poll({"b": 1, "c": 1}, {"c": 3}, queued=1)
    assert (sent["pack_step", "0"], sent["pack_step", "1"]) == (3, 6)
    metrics.poll({"c": 1}, {}, queued=1)  # b was split: it has no end
    assert sent["pack_step", "1"] == 0


def test_ends_are_counted_by_how(told):
    metrics, sent, _ = told
    for index, status in enumerate(("committed", "failed", "committed", "unstored", "stopped")):
        metrics.ended(Outcome(str(index), status, 2, diverged=int(index == 2)))
    found = {labels[1]: value for labels, value in sent.items() if labels[0] == "packs_ended"}
    assert found == {"committed": 2, "failed": 1, "unstored": 1, "stopped": 1}
    assert (sent["replicates_committed",], sent["replicates_diverged",]) == (4, 1)


def test_names_are_as_prometheus_wants_them_and_documented():
    page = (ROOT / "docs" / "guides" / "watching.md").read_text()
    for each in DEFINITIONS:
        assert re.fullmatch(r"manyseeds_[a-z_]+", each.name)
        assert f"ray_{each.name}{'_total' if each.kind == 'counter' else ''}`" in page
        assert "pack" not in each.labels


_SCRAPE = """
import sys, time, urllib.request
import harness.executing.cluster as cluster
cluster.ray.init(
    address="local", include_dashboard=False, num_cpus=1, log_to_driver=False, object_store_memory=100 * 2**20,
    _system_config={"metrics_report_interval_ms": 500},
)
from harness.machine.interrupt import Interrupt
from harness.prepare import executor_of, prepare
from harness.run import train_all
from harness.study.load import load
study = load(sys.argv[1], sys.argv[2:])
executor = executor_of(study)
prepared = prepare(study, executor)
with Interrupt() as interrupt:
    outcomes = train_all(prepared, executor, interrupt)
assert [each.status for each in outcomes] == ["committed"] * 4, outcomes
port = cluster.ray.nodes()[0]["MetricsExportPort"]
until = time.monotonic() + 60
text = ""
while "ray_manyseeds_packs_ended_total" not in text and time.monotonic() < until:
    time.sleep(0.5)
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
time.sleep(2)
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode())
executor.close()
"""


@pytest.mark.slow
def test_the_endpoint_of_a_cluster_shows_what_a_study_did(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment = kept | {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
    ran = subprocess.run(
        [sys.executable, "-c", _SCRAPE, write_study(tmp_path), f"store={tmp_path / 'runs'}", "executor=ray"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = {}
    for line in ran.stdout.splitlines():
        match = re.fullmatch(r"ray_manyseeds_(\w+)\{(.*)\} (\S+)", line)
        if match:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            assert labels["study"] == "tiny"
            found[match[1], *(labels[name] for name in ("status", "le") if name in labels)] = float(match[3])
    assert found["packs_ended_total", "committed"] == 4
    assert found["replicates_committed_total",] == 8
    assert 0 < found["replicate_steps_total",] <= 8 * 40
    assert found["packs_queued",] == 0
    assert found["pack_seconds_bucket", "+Inf"] == found["pack_seconds_count",] <= 4
    assert ("pack_step",) in found
