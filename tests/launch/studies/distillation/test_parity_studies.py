"""The studies of distilled parities: points as on the card, and every scale plans and names what it reduces."""

import functools
import runpy
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import harness.training.sgd_loop as sequential
from harness.planning.plan import plan
from harness.probes.run import run as probe
from harness.run import run
from harness.study.load import from_tree, load
from harness.study.stages import parent_of, spans_of
from launch.families import find_study
from results.claims import scoreboard
from results.claims.claim import NOT_RUN
from results.store.tables import committed, open_store
from tests.harness.killed import without_report

ROOT = Path(__file__).parents[4]
SCALES = ("paper", "gpu-hour", "laptop")
POINTS = {  # teachers and students of labels, and students of a teacher
    "p1": (3, 6),
    "p2": (3, 10),
    "p3": (2, 5),
    "p4": (4, 0),
    "p10": (3, 6),
    "p11": (1, 0),
    "p12": (2, 22),
}


@functools.cache
def study(name, scale="paper"):
    return load(find_study("progressive_distillation", name), [f"scale={scale}"])


def widths(name, scale="paper"):
    return [each.model.width for each in study(name, scale).conditions if not each.stages]


@pytest.mark.parametrize("name", POINTS)
def test_the_points_are_the_cards(name):
    found = study(name)
    students = [each for each in found.conditions if each.stages]
    assert (len(found.conditions) - len(students), len(students)) == POINTS[name]
    assert found.reductions == ()
    assert (found.source["paper"], found.source["card"]) == ("progressive_distillation", name.upper())
    tree = name in ("p10", "p11", "p12")
    for each in found.conditions:
        task = each.task
        shape = (task.length, task.degree, getattr(task, "depth", None))
        assert shape == ((100, 5, 3) if tree else (100, 6, None))
        train = each.train
        assert (train.batch, train.optimizer, train.schedule, train.final_lr, train.weight_decay) == (
            1,
            "sgd",
            "cosine",
            0.1,
            0,
        )
        assert train.lr == (1e-2 if tree or (name == "p3" and each.model.width == 50_000) else 5e-3)
    for each in students:
        teacher = parent_of(each)
        assert (teacher.model.width, teacher.train.steps) == (50_000, 8_000_000 if tree else 20_000_000)
        assert each.model.width in (100, 1000)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", POINTS)
def test_every_study_can_be_planned_at_every_scale_and_takes_the_loop(name, scale):
    found = study(name, scale)
    few = tuple(replace(each, seeds=each.seeds[:2]) for each in found.conditions)
    planned = plan(replace(found, conditions=few), None, 16, numerics={})
    assert len({each.key for each in planned.replicates}) == len(planned.replicates)
    assert bool(found.reductions) == (scale != "paper")
    assert all(sequential.fits(each) for each in found.conditions)
    # one teacher for all, which is a condition of its own
    teachers = {str(parent_of(each).config()) for each in found.conditions if each.stages}
    assert len(teachers) == (name in ("p1", "p2", "p3", "p10", "p12"))
    assert all(any(str(each.config()) == one for each in found.conditions) for one in teachers)


def test_students_in_order_are_in_lockstep_with_200_checkpoints():
    found = {each.name: each for each in study("p1").conditions}
    for name in ("progressive", "progressive_wider"):
        spans = spans_of(found[name])
        assert [(each.begin, each.at) for each in spans] == [(k * 100_000 + 1, (k + 1) * 100_000) for k in range(200)]
    assert [spans_of(found[name])[0].at for name in ("one_shot", "one_shot_cold")] == [20_000_000] * 2
    kept = Counter(len(spans_of(each)) for each in study("p1", "laptop").conditions)
    assert kept == {0: 3, 1: 4, 40: 2}


@pytest.mark.parametrize(("name", "steps"), [("p2", 1_000_000), ("p3", 100_000)])
def test_candidates_stand_where_the_thesis_has_them(name, steps):
    found = {each.name: each for each in study(name).conditions}
    for place, plus in (("begin", -500_000), ("middle", 0), ("end", 600_000)):
        first, last = spans_of(found[place])
        assert (first.at.accuracy, first.at.every, first.at.plus) == (0.75, 100_000, plus)
        assert (last.begin, last.at) == (steps + 1, 20_000_000)
        assert found[place].train.steps == 2_000_000


def test_every_pair_of_six_checkpoints_is_there():
    names = [each.name for each in study("p12").conditions if each.stages and each.name != "one_shot"]
    assert Counter(len(name.split("_")) for name in names) == {1: 6, 2: 15}
    for each in study("p12").conditions:
        if len(each.name.split("_")) == 2 and each.name != "one_shot":
            assert [span.begin for span in spans_of(each)] == [1, 2_000_001, 4_000_001]


def test_a_teacher_of_levels_keeps_what_is_probed():
    assert study("p11").keep.count(",") == 14
    assert "4500000" in study("p11").keep


def test_the_widths_of_p4_and_its_seeds():
    assert widths("p4") == [100, 1000, 10_000, 50_000]
    assert widths("p4", "laptop") == [50, 100, 300, 1000, 3000]


def test_no_reported_study_has_a_seed_that_was_tried():
    for name in (*POINTS, "parity_reduced"):
        assert all(max(seeds) < 1000 for scale in ("paper",) for each in study(name, scale).conditions for seeds in each.seeds)


def test_the_script_of_the_family_runs_the_reduced_study(tmp_path, monkeypatch, capsys):
    """Its default, of which one condition at two seeds for 400 steps."""
    words = ["only=[teacher]", "train.steps=400", "evaluate.sets.curve.every=100", "claims=null", "replicates=2"]
    words += ["executor=local", "wandb=off", f"store={tmp_path}", "pack.size=2", "device=cpu"]
    without_report(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["progressive_distillation.py", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "launch" / "progressive_distillation.py"), run_name="__main__")
    assert not ended.value.code
    assert "parity-reduced" in capsys.readouterr().out
    assert committed(open_store(tmp_path, "parity-reduced")).num_rows == 2


def _hundredth(node):
    """A tree with every number of steps divided by 100."""
    if isinstance(node, dict):
        return {key: _hundredth(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_hundredth(value) for value in node]
    return node // 100 if isinstance(node, int) and abs(node) >= 10_000 else node


def test_the_reduced_study_runs_to_its_verdicts(tmp_path, monkeypatch):
    """A hundredth of its steps, on a parity that is as much easier: every student of a rule finds its checkpoint, and claims are judged."""
    tree = _hundredth(yaml.safe_load(find_study("progressive_distillation", "parity_reduced").read_text()))
    tree |= {"task": {"name": "sparse_parity", "length": 8, "degree": 3}, "model": {"name": "mlp", "width": 200}}
    tree |= {"executor": "local", "wandb": "off", "device": "cpu", "pack": {"size": 2}, "store": str(tmp_path), "replicates": 2}
    tree["train"] |= {"lr": 0.03}
    said = []
    without_report(monkeypatch)
    assert run(from_tree(tree), said.append) == 0, said
    store = open_store(str(tmp_path), "parity-reduced")
    assert {row["status"] for row in committed(store).to_pylist()} == {"finished"}
    probe([store], "monomials", 200, None, said.append, ["outside=20"])
    found = {each.claim.id: each for each in scoreboard(store)}
    assert set(found) == {"PD-R1-low", "PD-R2", "PD-R3"}
    assert NOT_RUN not in {each.verdict for each in found.values()}
