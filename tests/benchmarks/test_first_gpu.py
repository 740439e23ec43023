"""A rehearsal on a CPU of the first hour on a GPU, in a process that has torch, numpy, pyarrow and safetensors alone."""

import json
import subprocess
import sys
import tarfile

import pyarrow.parquet as pq
import pytest

from benchmarks.first_gpu import correctness
from benchmarks.first_gpu.__main__ import PARTS, main
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store
from tests.environments import environment_without

ABSENT = "ray wandb omegaconf yaml jinja2 click rich x_transformers pandas polars duckdb antlr4 jsonschema aiohttp".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a rehearsal of every part."""
    folder = tmp_path_factory.mktemp("first_gpu")
    assert main(["manifests", "--tiny", "--manifests", str(folder / "manifests")]) == 0
    places = [f"--{name}={folder / name}" for name in ("manifests", "work", "out")]
    bare = environment_without(folder / "absent", ABSENT)
    for part in PARTS:
        command = [sys.executable, "-m", "benchmarks.first_gpu", part, "--device", "cpu", "--tiny", *places]
        done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{part}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        (folder / f"{part}.txt").write_text(done.stdout)
    return folder


def test_every_check_is_made_and_none_breaks(folder):
    rows = [json.loads(line) for line in (folder / "out" / "correctness.jsonl").read_text().splitlines()]
    assert len(rows) > 15
    assert not [row for row in rows if "error" in row["found"]]
    packs = next(row["found"] for row in rows if row["check"] == "packs fp32")
    assert all(packs[way]["bitwise"] for way in ("again", "another place", "another size"))


def test_a_check_that_was_made_is_not_made_again(folder, capsys):
    places = [f"--{name}={folder / name}" for name in ("work", "out")]
    before = (folder / "work" / "correctness.jsonl").read_text()
    assert main(["correctness", "--device", "cpu", "--tiny", *places]) == 0
    assert (folder / "work" / "correctness.jsonl").read_text() == before


def test_a_check_that_broke_is_made_again_and_shows_in_the_exit_status(tmp_path, monkeypatch):
    works = {"on": False}

    def check():
        if not works["on"]:
            raise RuntimeError("the kernel is missing")
        return {"holds": True}

    monkeypatch.setattr(correctness, "_checks", lambda device, tiny: [("one", lambda: {}), ("other", check)])
    arguments = ["--device", "cpu", f"--work={tmp_path}", f"--out={tmp_path / 'out'}"]
    assert correctness.main(arguments) == 1
    works["on"] = True
    assert correctness.main(arguments) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "correctness.jsonl").read_text().splitlines()]
    assert [(row["check"], row["found"]) for row in rows] == [("one", {}), ("other", {"holds": True})]


@pytest.mark.parametrize(  # two parts train conditions of one study: what the later one brings has both
    ("part", "study", "count"), [("path", "fflm-quick", 4), ("lstm", "fflm-verdicts", 2), ("baseline", "fflm-verdicts", 4)]
)
def test_trainings_come_back_as_one_archive(folder, tmp_path, part, study, count):
    with tarfile.open(folder / "out" / f"{part}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    store = open_store(str(tmp_path / "runs"), study)
    assert committed(store)["status"].to_pylist() == ["finished"] * count
    assert newest_manifest(store) is not None  # a study like any other, where it is brought back


def test_a_peer_that_is_not_installed_is_said_to_be(folder):
    """In the processes inside as well, nothing is there but what the first hour asks for."""
    said = (folder / "out" / "peers" / "throughput.md").read_text()
    assert "x-transformers is not installed" in said
    assert any(row.startswith("|") and "packed" in row for row in said.splitlines())


def test_the_throughput_is_printed_and_written_as_a_page_and_a_table(folder):
    out = folder / "out" / "throughput"
    text = (out / "throughput.md").read_text()
    assert text.strip() in (folder / "throughput.txt").read_text()
    rows = {row["variant"]: row for row in pq.read_table(out / "throughput.parquet").to_pylist()}
    assert set(rows) == {"plain full", "plain needed", "packed full", "packed needed"}
    for row in rows.values():
        assert row["rate"] > 0
        assert len(row["rates"]) == 2
        assert row["startup_s"] > row["build_s"] > 0
        assert row["memory"] > 10**8
        assert row["us"] == pytest.approx(1e6 / row["rate"])
        assert row["utilisation"] is None  # a CPU's peak is nobody's guess
    assert rows["plain full"]["of_full"] == 1
    assert "| tiny | 2 |" in text


def test_memory_is_measured_of_every_size(folder):
    assert (folder / "out" / "memory" / "memory.md").read_text().count("| tiny |") == 2


def test_what_comes_back_is_little(folder):
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    assert len(files) <= 10
    assert {path.name for path in files} >= {"throughput.md", "memory.md", "correctness.jsonl"}
