"""What a plan measures of models that answer with their own words: one pass, counted as often as a free run may take it."""

from dataclasses import replace

import pytest

import harness.planning.throughput
from harness.announce import announce
from harness.machine.device import resolve
from harness.planning.pack import Pack, Replicate, ScoredSet
from harness.planning.throughput import measure
from harness.prepare import executor_of, prepare
from harness.study.load import load
from harness.study.stages import parent_of
from tests.harness.chained import write_study


@pytest.fixture
def passes_of(monkeypatch):
    """passes_of(condition, decode): the forward passes that all evaluations of a training count as, each part timed once."""
    passes = []

    def timed(device, run):
        before = len(passes)
        run()
        return float(len(passes) - before)

    def found(condition, decode):
        make = type(condition.model).make

        def counted(*given):
            model = make(*given)
            model.register_forward_hook(lambda *rest: passes.append(1))
            return model

        one = ScoredSet("eight", replace(condition.task, length=8, decode=decode), 20, None, "0")
        pack = Pack("p", condition.name, (Replicate("r" * 32, condition, 0, 0, (one,)),), 10, {})
        with monkeypatch.context() as patched:
            patched.setattr(harness.planning.throughput, "_timed", timed)
            patched.setattr(type(condition.model), "make", counted)
            return measure(pack, resolve("cpu")).evaluate_s

    return found


def test_a_free_run_is_one_pass_for_each_answer_and_so_are_the_labels_of_a_pool(tmp_path, passes_of):
    student = next(each for each in load(write_study(tmp_path)).conditions if each.name == "cold")
    assert [passes_of(parent_of(student), decode) for decode in ("forced", "greedy")] == [1, 8]
    assert [passes_of(student, decode) for decode in ("forced", "greedy")] == [4 + 1, 4 + 8]  # a pool of one batch of length 4


@pytest.mark.parametrize(("decode", "told"), [("greedy", ["eight"]), ("forced", [])])
def test_a_person_is_told_which_sets_may_take_less_than_is_counted(tmp_path, decode, told):
    words = [f"store={tmp_path / 'runs'}", f"evaluate.sets.eight.decode={decode}", "replicates=1", "pack.size=1"]
    study, said = load(write_study(tmp_path), words), []
    announce(prepare(study, executor_of(study)), said.append)
    lines = [line for line in said if line.startswith("  likely less: ")]
    assert [line.removeprefix("  likely less: on ").partition(",")[0] for line in lines] == told
