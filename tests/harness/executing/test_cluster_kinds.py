"""Several kinds of slots on a real Ray cluster: nodes named by custom resources, with packs of their own size (docs/guides/cluster.md)."""

import json
import select
import subprocess
import sys

import pytest

from results.store.tables import committed, open_store
from tests.harness.executing.clusters import (
    ROOT,
    environment_without_ray,
    nodes,
    run_study,
    start_study,
    wait_for,
)
from tests.harness.tiny import tables, write_study

pytestmark = pytest.mark.slow
SLOTS = "slots=[{device: cpu, resource: big, pack: 3, memory: 900MB}, {device: cpu, resource: small, pack: 1, memory: 600MB}]"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head without cores, two cores called big that say they have a GPU, and one core called small."""
    big, small = (f"--resources={json.dumps({name: 1})}" for name in ("big", "small"))
    two = (2, big, "--memory=2000000000", "--num-gpus=1"), (1, small, "--memory=700000000")
    with nodes(tmp_path_factory.mktemp("cluster"), (0,), *two) as environment:
        yield {name: value for name, value in environment.items() if name.startswith("RAY_")}


def test_two_kinds_of_slots_share_a_study_and_change_no_row(cluster, tmp_path):
    study = write_study(tmp_path)
    done = run_study(study, tmp_path / "far", SLOTS, **cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    (manifest,) = (json.loads(path.read_text()) for path in (tmp_path / "far" / "tiny" / "manifests").glob("*.yaml"))
    sizes = {kind: {len(pack["replicates"]) for pack in manifest["packs"] if pack["kind"] == kind} for kind in _names(manifest)}
    assert set(sizes) == {"cpu big 0.9GB", "cpu small 0.6GB"}
    assert max(sizes["cpu big 0.9GB"]) > 1
    assert sizes["cpu small 0.6GB"] == {1}
    assert all(f"  {kind}: " in done.stdout for kind in sizes)
    assert "8 replicates in" in done.stdout
    # the same command again plans nothing anew
    again = run_study(study, tmp_path / "far", SLOTS, **cluster)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "8 committed" in again.stdout
    near = subprocess.run(
        [sys.executable, "-m", "launch", "run", study, f"store={tmp_path / 'near'}"],
        cwd=ROOT,
        env=environment_without_ray(),
    )
    assert near.returncode == 0
    assert tables(tmp_path / "far") == tables(tmp_path / "near")


def test_half_of_a_gpu_is_found_and_asks_torch_for_it(cluster, tmp_path):
    """As far as it goes without CUDA: Ray gives the worker its half, and torch says what this machine has."""
    study = write_study(tmp_path)
    done = run_study(study, tmp_path / "runs", "slots=[{device: cuda, resource: big, per_gpu: 2, pack: 2}]", **cluster)
    assert done.returncode == 2, done.stdout
    assert "torch sees no CUDA device" in done.stderr
    done = run_study(study, tmp_path / "runs", "slots=[{device: cuda, accelerator: T4}]", **cluster)
    assert done.returncode == 2
    assert "no node of the Ray cluster has any of the study's slots (cuda T4)" in done.stderr


def _names(manifest):
    return {pack["kind"] for pack in manifest["packs"]}


def test_a_second_driver_says_that_it_waits_for_a_core_and_ends_at_once_when_asked(cluster, tmp_path):
    """The first holds every core for as long as it lives; the second has not even measured its packs."""
    words = ("train.steps=200000", "replicates=2", "pack.size=1", "slots=[{device: cpu, resource: small}]", "only=[lstm]")
    study = write_study(tmp_path)
    first = start_study(study, tmp_path / "first", *words, **cluster)
    second = None
    try:
        wait_for(lambda: list((tmp_path / "first" / "tiny").glob("manifests/*")))
        second = start_study(study, tmp_path / "second", *words, **cluster)
        assert select.select([second.stdout], [], [], 120)[0]
        assert (
            "waiting for a free CPU (cpu small) of the Ray cluster: others hold the 1 that it has" in second.stdout.readline()
        )
        second.send_signal(2)
        second.communicate(timeout=60)
        assert second.returncode == 130
        assert not (tmp_path / "second" / "tiny" / "manifests").exists()
    finally:
        for driver in (first, second):
            if driver is not None and driver.poll() is None:
                driver.kill()
                driver.wait()
    assert committed(open_store(tmp_path / "first", "tiny")).num_rows == 0
