"""The summary of a log of chaos, on records made by hand."""

import json

import pytest

from benchmarks.chaos.summary import consecutive, main


def _record(seed, passed=True, **more):
    events = [{"t": 1.0, "kind": "worker", "done": True}, {"t": 2.0, "kind": "raylet", "done": False}]
    return {"seed": seed, "passed": passed, "store": "folder", "commit": "a" * 40, "events": events, "seconds": 1800} | more


@pytest.mark.parametrize(
    ("seeds", "longest"),
    [([], 0), ([4], 1), ([0, 1, 2], 3), ([0, 2, 3], 2), ([0, 1, -2, 3, 4, 5], 3), ([5, 4], 1), ([0, -1], 1), ([3, 3], 1)],
)
def test_only_seeds_one_after_another_are_consecutive(seeds, longest):
    """A negative seed is one that failed."""
    assert consecutive([_record(abs(seed), seed >= 0) for seed in seeds]) == longest


def test_a_row_a_commit_and_store(tmp_path, capsys):
    spoiled = {"none": 900, "cut": 3, "slow": 4}
    records = [_record(0), _record(1), _record(7, False, store="s3", faults=spoiled), _record(8, store="s3", faults=spoiled)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    assert main([str(path)]) == 0
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()[2:]]
    assert lines == [
        ["aaaaaaa", "folder", "2", "2", "2", "2w", "–", "1.0"],
        ["aaaaaaa", "s3", "2", "1 (not 7)", "1", "2w", "14", "1.0"],
    ]
