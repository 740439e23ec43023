"""The studies on automata: points as on the card, every scale plans and names what it reduces, and the reduced A1 is as it was fixed."""

import functools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.planning.plan import plan
from harness.study.identity import canonical
from harness.study.load import load
from launch.cli import main
from launch.families import find_family, find_study
from tasks.automata.named_automata import NINETEEN

SCALES = ("paper", "gpu-hour", "laptop")
POINTS = {  # how many conditions have how many replicates
    "a1": {20: 19 * 16},
    "a2": {10: 4},
    "a3": {10: 1},
    "a4": {25: 16},
    "a5": {25: 20},
    "a6": {25: 4},
    "a7": {25: 12},
    "a8": {25: 4},
    "depth_by_length": {20: 6 * 5 * 8},
    "rates": {3: 19 * 2 * 3},
}
OWN = ("a1_reduced",)  # smaller than the thesis in their file


@functools.cache  # hundreds of conditions take seconds
def _study(name, scale="paper"):
    return load(find_study("length_generalization", name), [f"scale={scale}"])


def test_these_are_the_studies_on_automata():
    family = find_family("length_generalization")
    mine = {path.stem for path in family if "paper: liu" in Path(path).read_text(encoding="utf-8")}
    assert mine == {*POINTS, *OWN}


@pytest.mark.parametrize("name", POINTS)
def test_the_points_are_the_cards(name):
    study = _study(name)
    assert Counter(len(condition.seeds) for condition in study.conditions) == POINTS[name]
    assert study.reductions == ()
    assert study.question
    for each in study.conditions:
        if type(each.model).__name__ == "Transformer":
            assert (each.model.width, each.model.heads, each.model.feed_forward, each.train.batch) == (512, 8, 512, 16)
        else:
            assert (each.model.width, each.train.batch, each.train.weight_decay) == (128, 64, 1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", POINTS)
def test_every_study_can_be_planned_at_every_scale(name, scale):
    study = _study(name, scale)
    few = tuple(replace(each, seeds=each.seeds[:2]) for each in study.conditions)
    planned = plan(replace(study, conditions=few), None, 16, numerics={})
    assert sum(len(pack.replicates) for pack in planned.packs) == len(planned.replicates)
    assert len({each.key for each in planned.replicates}) == len(planned.replicates)
    assert bool(study.reductions) == (scale != "paper")


@pytest.mark.parametrize("scale", SCALES[1:])
@pytest.mark.parametrize("name", POINTS)
def test_a_scale_names_what_it_reduces(name, scale):
    paper, smaller = _study(name), _study(name, scale)
    declared = {re.match(r"[^:]+", each)[0] for each in smaller.reductions}
    assert declared >= {"model.width", "train.steps"}
    lengths = {each.task.length for each in smaller.conditions} - {each.task.length for each in paper.conditions}
    assert not lengths or declared & {"task.length", "grid.task.length"}
    if max(len(each.seeds) for each in smaller.conditions) != max(len(each.seeds) for each in paper.conditions):
        assert "replicates" in declared


def test_a1_is_every_automaton_at_every_depth():
    study = _study("a1")
    assert {(each.task.automaton, each.model.layers) for each in study.conditions} == {
        (name, depth) for name in NINETEEN for depth in range(1, 17)
    }


def test_the_reduced_a1_is_as_it_was_fixed():
    study = _study("a1_reduced")
    machines = {each.task.automaton for each in study.conditions}
    assert len(machines) == 8
    assert machines >= {"S4", "D8"}
    assert {(each.task.automaton, each.model.layers) for each in study.conditions} == {
        (name, depth) for name in machines for depth in (1, 2, 4, 8)
    }
    for each in study.conditions:
        assert (each.task.length, each.model.width, each.train.steps, each.train.lr) == (16, 64, 6000, 1e-3)
        assert len(each.seeds) == 20
    assert study.reductions


def test_the_reduced_a1_prints_its_cost(capsys):
    """97 s a seed for its four depths, 20 seeds of 8 automata: 4.3 hours."""
    main(["estimate", "automata/a1_reduced", "--seconds", str(97 / 4)])
    said = capsys.readouterr().out
    assert "a1-reduced: 640 replicates of 32 conditions" in said
    assert "4.3 hours of one device" in said


def test_learning_rates_are_tried_on_seeds_of_their_own():
    """No replicate by which a rate is chosen is one that is reported elsewhere, and each looks at its monitor set."""
    tried = {seed for each in _study("rates").conditions for seed in each.seeds}
    for name in (*POINTS, *OWN):
        if name != "rates":
            assert not tried & {seed for each in _study(name).conditions for seed in each.seeds}
    assert all(each.train.monitor is not None for each in _study("rates").conditions)
    assert len({canonical(each.config()) for each in _study("rates").conditions}) == 114


def test_the_arms_of_lengths_are_the_thesis_six():
    arms = {each.name.split("_", 1)[1]: each for each in _study("a7").conditions if each.task.automaton == "C2"}
    assert set(arms) == {"sinusoidal", "shifted", "no_positions", "scratchpad", "scratchpad_recency", "lstm"}
    assert arms["shifted"].model.shift == 400
    assert arms["no_positions"].model.causal
    assert [each.definition["length"] for each in _study("a7").sets] == list(range(8, 129, 8))
    assert sorted(each.definition["p_one"] for each in _study("a6").sets if "p_one" in each.definition) == [
        pytest.approx(0.05 * i) for i in range(1, 20)
    ]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "group"), [("lego_c6", "C6"), ("lego_s5", "S5")])
def test_chains_are_scored_by_free_runs_at_the_cards_lengths(name, group, scale):
    """Section 6 of the paper, and what the card adds; no scale trains on another length or on other names."""
    study = _study(name, scale)
    arms = {each.name: each.model for each in study.conditions}
    both = name == "lego_s5" and scale == "paper"  # there C6 stands beside S5 in the study that decides L5
    assert set(arms) == {"practical", "no_residual", "transformer"} | ({"cyclic_no_residual"} if both else set())
    for arm, residual, norm in (("practical", True, "pre"), ("no_residual", False, "none")):
        model = arms[arm]
        shape = (model.width, model.heads, model.feed_forward, model.activation, model.residual, model.norm)
        assert shape == (32, 2, 640, "relu", residual, norm)
    assert (arms["transformer"].layers, arms["transformer"].positions) == (2, "none")
    for each in study.conditions:
        own = "C6" if each.name == "cyclic_no_residual" else group
        assert (each.task.group, each.task.length, each.task.variables, each.task.decode) == (own, 5, 200, "forced")
        assert (each.train.optimizer, each.train.pool, each.train.batch, each.train.weight_decay) == ("adam", 10000, 128, 0)
        assert len(each.seeds) == (20 if scale == "paper" else 10)
        if scale == "paper":
            assert (each.train.lr, each.train.steps) == (1e-4, -(-300 * 10000 // 128))
    assert study.keep == "all"
    final = [each for each in study.sets if not each.every]
    assert [each.definition.get("length", 5) for each in final] == [5, 10, 20, 40, 80, 160]
    assert all(each.definition["decode"] == "greedy" for each in final)
    assert bool(study.reductions) == (scale != "paper")
    planned = plan(
        replace(study, conditions=tuple(replace(c, seeds=c.seeds[:2]) for c in study.conditions)), None, 16, numerics={}
    )
    assert len({each.key for each in planned.replicates}) == 2 * len(arms)


def test_the_script_of_the_family_names_its_studies():
    script = Path(__file__).parents[4] / "launch" / "length_generalization.py"
    done = subprocess.run([sys.executable, script, "study=a1_reducd"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "a1_reduced" in done.stderr
