"""The studies of the flip-flop paper: their points are the card's, they share their baseline, and each scale declares what it reduces."""

import dataclasses
import re
from collections import Counter

import pytest

from harness.planning.plan import plan, replicates_of
from harness.study.identity import canonical
from harness.study.load import load
from launch.cli import main
from launch.families import find_family, find_study
from launch.planning import campaign

SCALES = ("paper", "gpu-hour", "laptop")
# conditions, and replicates by condition: how many conditions have how many
POINTS = {
    "alphabet": {25: 3},
    "baseline": {500: 1},
    "choices": {25: 1 + 44},
    "context": {10: 4},
    "generative": {25: 2},
    "lstm": {100: 1},
    "mixture": {25: 6},
    "optimizer": {25: 36 + 6},
    "positions": {25: 8},
    "regularisers": {25: 1 + 17},
    "resources": {25: 1 + 4 + 2},
    "seeds": {25: 1},
    "sharpen": {25: 1 + 144},
    "simulation": {25: 9, 8: 3},
    "size": {3: 54, 25: 10},
    "verdicts": {25: 5, 100: 1},
}
WITH_BASELINE = [name for name in POINTS if name not in ("context", "lstm", "simulation")]


def _study(name, scale="paper"):
    return load(find_study("fflm", name), [f"scale={scale}"])


def test_the_campaign_is_every_study_at_the_papers_own_settings():
    assert [study.name for study in campaign("fflm", [])] == [f"fflm-{name}" for name in sorted(POINTS)]
    assert {path.stem for path in find_family("fflm")} >= set(POINTS)


@pytest.mark.parametrize("name", POINTS)
def test_the_points_are_the_cards(name):
    study = _study(name)
    assert Counter(len(condition.seeds) for condition in study.conditions) == POINTS[name]
    assert study.reductions == ()
    assert study.source["paper"] == "fflm"
    assert study.question


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", POINTS)
def test_every_study_can_be_planned_at_every_scale(name, scale):
    study = _study(name, scale)
    planned = plan(study, None, 16, numerics={})
    assert sum(len(pack.replicates) for pack in planned.packs) == len(planned.replicates)
    assert len(planned.replicates) == len({each.key for each in planned.replicates})


@pytest.mark.parametrize("scale", SCALES)
def test_all_studies_have_the_baseline_with_the_same_keys_and_sets(scale):
    baseline = _study("baseline", scale)
    (condition,) = baseline.conditions
    keys = {each.key for each in replicates_of(baseline.conditions)}
    sets = baseline.set_hashes(condition)
    for name in WITH_BASELINE:
        study = _study(name, scale)
        (same,) = [each for each in study.conditions if canonical(each.config()) == canonical(condition.config())]
        found = {each.key for each in replicates_of([same])}
        assert found - keys == set() or (name == "seeds" and len(found & keys) == 5)
        assert sets.items() <= study.set_hashes(same).items()


def test_sizes_and_penalties_are_whole_products():
    sizes = {(each.model.layers, each.model.width, each.model.heads) for each in _study("size").conditions}
    assert sizes == {(x, y, z) for x in (2, 4, 6, 8) for y in (128, 256, 512, 1024) for z in (2, 4, 8, 16)}
    penalties = [each.train.sharpen for each in _study("sharpen").conditions if each.train.sharpen]
    assert {each.kind for each in penalties} == {"entropy", "l2", "linf"}
    assert len({(each.kind, each.weight, each.schedule, each.start) for each in penalties}) == 3 * 8 * 2 * 3
    optima = {(each.train.lr, each.train.betas) for each in _study("optimizer").conditions if each.train.batch == 16}
    assert len(optima) == 36
    assert set(_study("seeds").conditions[0].seeds) == {(init, data) for init in range(5) for data in range(5)}


@pytest.mark.parametrize("scale", SCALES[1:])
@pytest.mark.parametrize("name", POINTS)
def test_a_scale_declares_all_that_it_reduces(name, scale):
    paper, smaller = _study(name), _study(name, scale)
    declared = {re.match(r"[^:]+", each)[0] for each in smaller.reductions}
    named = {each.name: each for each in paper.conditions}
    if set(named) != {each.name for each in smaller.conditions}:
        assert declared & {"sweeps", "conditions"}
    for condition in smaller.conditions:
        other = named.get(condition.name)
        if other is None:
            continue
        changed = {path for path, value in _leaves(condition) if value != dict(_leaves(other))[path]}
        changed |= {"replicates"} if len(condition.seeds) != len(other.seeds) else set()
        own = {path for path in changed if f"conditions.{condition.name}.{path}" in declared}
        assert changed - own - declared <= ({"replicates"} if "sweeps" in declared else set())
    for mine, theirs in zip(smaller.sets, paper.sets, strict=True):
        assert mine.name == theirs.name
        for field in ("sequences", "every", "definition"):
            if getattr(mine, field) != getattr(theirs, field):
                assert any(path.startswith(f"evaluate.sets.{mine.name}.") for path in declared)


@pytest.mark.parametrize("name", [name for name in POINTS if name != "lstm"])
def test_a_laptop_trains_no_more_than_110_small_baselines(name):
    def tokens(condition):
        return condition.train.steps * condition.train.batch * condition.task.length * getattr(condition.model, "layers", 1)

    study = _study(name, "laptop")
    one = tokens(_study("baseline", "laptop").conditions[0])
    assert sum(tokens(each) * len(each.seeds) for each in study.conditions) <= 110 * one


def test_estimate_counts_shared_replicates_once(capsys):
    assert _main("estimate", "flipflop/baseline", "flipflop/seeds", "flipflop/resources", "--seconds", "600") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "fflm-seeds: 25 replicates of 1 condition, 20 of them new"
    assert lines[2] == "fflm-resources: 175 replicates of 7 conditions, 150 of them new"
    # 520 baselines, 25 mixtures, 25 larger, and 25 each of 3, 10, 3 and 10 times as long: 1220 times 600 s
    assert "together: 670 replicates of 7 conditions; 203 hours of one device at 600 s for" in lines[3]


def test_estimate_rounds_no_hours_to_none(capsys):
    assert _main("estimate", "flipflop/seeds", "--seconds", "1") == 0
    assert "together: 25 replicates of 1 condition; 0.0069 hours of one device" in capsys.readouterr().out


def test_estimate_takes_a_scale_and_refuses_what_it_cannot_count(capsys):
    assert _main("estimate", "flipflop/all", "scale=laptop", "--seconds", "50") == 0
    assert "fflm-sharpen: 57 replicates of 19 conditions" in capsys.readouterr().out
    for words, sentence in (
        (("scale=laptop", "--seconds", "50"), "names no study"),
        (("nothing/all", "--seconds", "50"), "there is no family of studies 'nothing'"),
        (("flipflop/lstm", "--seconds", "0"), "--seconds 0 must be above 0"),
        (("flipflop/lstm", "--seconds", "inf"), "--seconds inf must be above 0, and finite"),
    ):
        assert _main("estimate", *words) == 2
        assert sentence in capsys.readouterr().err


def _main(*words):
    try:
        main(list(words))
    except SystemExit as ended:
        return ended.code
    return 0


def _leaves(condition):
    """(path, value) of every field of a condition's task, model and train."""
    for section in ("task", "model", "train"):
        for field, value in dataclasses.asdict(getattr(condition, section)).items():
            yield f"{section}.{field}", value
