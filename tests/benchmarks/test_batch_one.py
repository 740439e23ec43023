"""The batch-1 benchmark in small: its ways train alike, and its table has a row for each."""

import shutil

import pytest

import harness.training.sgd_loop as sequential
from benchmarks import batch_one


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of vmap, which is measured
def test_a_small_run_has_a_rate_and_equal_losses_for_every_way():
    rows = batch_one.measure(size=3, width=20, rounds=1, seconds=0.02, steps=50)
    names = ["plain PyTorch loop", "vmap", "batched by hand", *["packed"] * 3, "students"]
    assert [row["way"].partition(",")[0] for row in rows] == names
    for row in rows:
        assert row["rate"] > 0
        assert row["ratio"] == pytest.approx(row["rate"] / rows[0]["rate"])
        assert row["apart"] < 1e-5
    text = batch_one.table(rows)
    assert all(row["way"] in text for row in rows)


def test_without_a_compiler_there_is_nothing_to_measure(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    sequential._built.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"no C compiler `no-such-compiler`"):
            batch_one.compiled(batch_one.pack(1, 4))
    finally:
        sequential._built.cache_clear()
