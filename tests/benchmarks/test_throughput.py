"""The runner of the benchmark: real worker processes at tiny times, its arithmetic, and what it does with what can't run.

The command and its tables are in test_first_gpu.py, which runs it.
"""

import pytest

from benchmarks import report, throughput, xtransformers
from benchmarks.cases import CASES, bytes_of
from benchmarks.throughput import Group, groups, variants_of
from benchmarks.variants import KINDS, Variant
from benchmarks.worker import Failed, Worker, job_of


def test_ratios_are_medians_of_the_rounds():
    full, packed = Variant("plain", False), Variant("packed", True, 4)
    rows = {full: {"rates": [1.0, 2.0, 4.0]}, packed: {"rates": [3.0, 2.0, 8.0]}}
    throughput._compare(rows)
    assert rows[packed]["of_full"] == 2.0
    assert rows[packed]["of_best"] == 2.0
    assert "of_needed" not in rows[packed]


def test_a_study_counts_every_start():
    row = {"variant": "plain full", "rate": 10.0, "size": 1, "processes": 2, "startup_s": 7.0, "build_s": 2.0}
    assert report.study_hours(row, 100) * 3600 == pytest.approx(50 * (7 + 100 / 5))
    row |= {"variant": "packed needed", "size": 16}
    assert report.study_hours(row, 100) * 3600 == pytest.approx(7 + 3 * 2 + 4 * 100 * 16 / 5)
    assert report.study_hours(row | {"size": 256}, 100) is None


def test_memory_decides_what_runs_together():
    case = CASES["L1-d64-T512"]
    variants = variants_of(case, (1, 16, 64), KINDS, 2, 0)
    alone = 2 * bytes_of(case, 1, "plain", "cpu")
    largest = 2 * bytes_of(case, 64, "packed", "cpu")
    together, refused = groups(case, variants, "cpu", 10**12)
    assert together == [Group(tuple(variants))]
    assert not refused
    together, refused = groups(case, variants, "cpu", largest + 2 * alone)
    assert len(together) > 1
    assert all(
        group.resident and [each.name for each in group.variants[:2]] == ["plain full", "plain needed"] for group in together
    )
    assert {each.kind for each in refused} == {"vmap"}
    together, refused = groups(case, variants, "cpu", largest)
    assert not together[-1].resident
    assert together[-1].variants[2:] == tuple(each for each in variants if each.size == 64 and each.kind == "packed")
    every = [each for group in together for each in group.variants[2:]]
    assert sorted(map(str, [*every, *refused])) == sorted(map(str, variants[2:]))


def test_what_can_not_run_is_named(monkeypatch):
    monkeypatch.setattr(xtransformers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(throughput, "measure", lambda case, group, *rest: [])
    options = throughput.options_of(
        "--cases tiny --sizes 1 64 --kinds x-transformers vmap --no-auto --memory 3000000000".split()
    )
    rows = throughput.run(options, lambda text: None)
    assert {row["variant"]: row["note"] for row in rows}["x-transformers"] == "x-transformers is not installed"
    text = report.text(report.complete(rows, None, 100), "here", 100)
    assert "tiny: x-transformers is not installed: x-transformers (R = 1, 2 processes)" in text


def test_a_case_that_was_measured_is_not_measured_again(monkeypatch, tmp_path):
    measured = []

    def stopped_at_the_second(case, group, *rest):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(case.name)
        return [throughput._row(case, each, "cpu", "fp32") | {"rate": 5.0, "rates": [5.0]} for each in group.variants]

    monkeypatch.setattr(throughput, "measure", stopped_at_the_second)
    words = ["--cases", "tiny", "L1-d64-T128", "--sizes", "2", "--kinds", "packed", "--no-auto"]
    words += ["--memory", "3000000000", "--work", str(tmp_path / "work.jsonl")]
    with pytest.raises(KeyboardInterrupt):
        throughput.run(throughput.options_of(words), str)
    measured[:] = ["tiny", "so that nothing stops it"]
    rows = throughput.run(throughput.options_of(words), str)
    assert measured[2:] == ["L1-d64-T128"]
    assert {(row["case"], row["rate"]) for row in rows} == {("tiny", 5.0), ("L1-d64-T128", 5.0)}
    assert throughput.run(throughput.options_of(words), str) == rows
    assert measured[3:] == []
    throughput.run(throughput.options_of([*words, "--rounds", "7"]), str)
    assert measured[3:] == ["tiny", "L1-d64-T128"], "other options are other numbers"
    monkeypatch.setattr(throughput, "code_state", lambda: ("f00d", False))
    throughput.run(throughput.options_of(words), str)
    assert measured[5:] == ["tiny", "L1-d64-T128"], "so is other code"


def test_a_file_for_measured_cases_in_no_folder_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        throughput.options_of(["--work", str(tmp_path / "none" / "work.jsonl")])
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err


@pytest.mark.slow
def test_blocks_without_residence_and_what_was_warned_of():
    variants = (Variant("plain", False), Variant("vmap", True, 2))
    rows = throughput.measure(CASES["tiny"], Group(variants, resident=False), "cpu", "fp32", 0.01, 1, lambda text: None)
    assert all(row["rate"] > 0 and row["of_full"] > 0 for row in rows)
    assert rows[0]["warnings"] == []
    assert "performance drop" in rows[1]["warnings"][0]


def test_a_worker_that_fails_says_why():
    worker = Worker(job_of(Variant("nonsense", True), "tiny", "cpu", "fp32"))
    with pytest.raises(Failed, match="variant 'nonsense' is not plain or"):
        worker.answer()
    worker.end()


def test_auto_is_a_size_that_was_tried():
    assert throughput.auto_size(CASES["tiny"], "cpu", "fp32", 4, 2) in (1, 4)


@pytest.mark.parametrize("wrong", ["--seconds 0", "--rounds -1", "--sizes 0", "--several -1", "--study-steps 0"])
def test_refused_options(wrong, capsys):
    with pytest.raises(SystemExit):
        throughput.options_of(wrong.split())
    assert "must be" in capsys.readouterr().err
