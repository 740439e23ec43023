"""launch/studies/costs.json: every study has its present price, and `manyseeds studies` is fast because of it."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from launch.families import named_studies
from launch.study_costs import Taken, committed_times, entries, price, table
from tests.page_code import ROOT

STUDIES = named_studies()


def test_every_study_has_a_price_of_its_present_file():
    assert sorted(entries(STUDIES)) == sorted(STUDIES), "python -m launch.study_costs"


@pytest.mark.parametrize("name", ["flipflop/quick", "flipflop/converged", "distillation/p2"])
def test_the_model_is_right_to_a_factor_of_three_where_rows_say_what_a_study_took(name):
    study = entries(STUDIES)[name]["scales"]
    modelled = price(STUDIES[name], {})["scales"]
    assert {scale: each["replicates"] for scale, each in study.items()} == {
        scale: each["replicates"] for scale, each in modelled.items()
    }
    scale = "laptop" if "laptop" in study else "paper"
    assert 1 / 3 < modelled[scale]["seconds"] / study[scale]["seconds"] < 3


def test_larger_sets_of_a_condition_that_was_run_cost_more():
    """The LSTMs of docs/studies were scored on tens of times fewer strings than the paper's."""
    paper, laptop = (entries(STUDIES)["flipflop/lstm"]["scales"][scale]["seconds"] for scale in ("paper", "laptop"))
    assert paper > 5 * laptop


def test_the_time_of_a_gpu_says_nothing_of_a_core(tmp_path):
    (tmp_path / "replicates").mkdir()
    rows = [
        {"config": "lstm", "sets": ["dense"], "train_s": 130.0, "evaluate_s": 450.0, "device": "cpu: some processor"},
        *[{"config": "lstm", "sets": ["dense"], "train_s": 2.0, "evaluate_s": 0.2, "device": "NVIDIA H200"}] * 3,
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "replicates" / "some.parquet")
    assert committed_times(tmp_path) == {"lstm": [Taken(130.0, 450.0, frozenset({"dense"}))]}


def test_the_table_says_what_a_study_asks_and_takes(tmp_path, monkeypatch):
    monkeypatch.setattr("results.cores.cores", lambda: 2)
    changed = tmp_path / "changed.yaml"
    changed.write_text("name: changed\nquestion: Has it changed?\n")
    head, quick, other, last = table({"flipflop/quick": STUDIES["flipflop/quick"], "flipflop/changed": changed})
    seconds = entries(STUDIES)["flipflop/quick"]["scales"]["paper"]["seconds"]
    assert head.split() == ["study", "replicates", "about", "laptop", "question"]
    assert quick.split()[:5] == ["flipflop/quick", "24", f"{seconds / 2:.0f}", "s", "–"]
    assert other.split()[:4] == ["flipflop/changed", "?", "?", "–"]
    assert other.endswith("Has it changed?")
    assert "2 cores" in last


def test_the_table_needs_no_slow_library():
    code = "import sys, launch.study_costs as costs; from launch.families import named_studies; costs.table(named_studies()); "
    code += "print(*{'torch', 'ray', 'omegaconf', 'pyarrow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "\n"
