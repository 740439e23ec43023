"""Every card's study at `scale=laptop`, cut to a few steps and strings: every condition trains, is scored on every set and is reported.

All of them take minutes and are marked slow; two are in the ordinary run.
"""

import subprocess
import sys
from collections import defaultdict
from dataclasses import replace

import pytest

import harness.study.stages as stages
from harness.run import run
from harness.study.load import load
from launch.families import find_family, find_study
from results.claims import scoreboard
from results.store.tables import committed, open_store, read

STUDIES = sorted((family, path.stem) for family in ("fflm", "length_generalization") for path in find_family(family))
FAST = (("fflm", "lstm"), ("length_generalization", "a8"))
STEPS, SEQUENCES = 3, 4


def cut(family, name, store):
    """The laptop scale with 1 replicate a condition, few steps and few strings. Lengths, models, penalties and laws stay."""
    path = find_study(family, name)
    plain = load(path)
    study = load(path, ["scale=laptop"] if not plain.reductions else [])

    def shorter(train):
        pool = {"pool": max(train.batch, SEQUENCES)} if train.pool else {}
        sharpen = {"sharpen": replace(train.sharpen, start=0)} if train.sharpen else {}
        return replace(train, steps=STEPS, warmup=1, **pool, **sharpen)

    def few(condition):
        seeds = condition.seeds
        above, train = stages.parent_of(condition), shorter(condition.train)
        if above is not None:
            condition = stages.after(few(above), stages.link_of(condition), condition.task, condition.model, train, "cut")
        return replace(condition, train=train, seeds=seeds[:1])

    names = {name: f"c{i}" for i, name in enumerate(dict.fromkeys(each.name for each in study.conditions))}
    conditions = tuple(replace(few(each), name=names[each.name]) for each in study.conditions)
    sets = tuple(replace(each, sequences=SEQUENCES, every=each.every and STEPS) for each in study.sets)
    return replace(
        study,
        conditions=conditions,
        sets=sets,
        store=store,
        executor="local",
        wandb="off",
        pack_size=1,
        device="cpu",
        adaptive=None,
        keep="none",
    )


@pytest.mark.parametrize(
    ("family", "name"), [pytest.param(*each, marks=() if each in FAST else pytest.mark.slow) for each in STUDIES]
)
def test_every_condition_is_trained_scored_and_reported(family, name, tmp_path):
    study = cut(family, name, str(tmp_path))
    said = []
    assert run(study, said.append) == 0, said
    store = open_store(str(tmp_path), study.name)
    rows = committed(store).to_pylist()
    keys = {row["key"] for row in rows}
    assert {row["status"] for row in rows} == {"finished"}
    # conditions that a cut makes equal (twice the steps, say) have one key; the stages of a chain share theirs
    assert len({(row["key"], row["stage"]) for row in rows}) == len({str(each.config()) for each in study.conditions})
    scored = defaultdict(set)
    for row in read(store, "evaluations").select(["key", "set"]).to_pylist():
        scored[row["key"]].add(row["set"])
    assert set(scored) == keys
    assert all(names == {each.name for each in study.sets} for names in scored.values())
    assert {each.claim.id for each in scoreboard(store)} == set(study.claims)
    assert (tmp_path / study.name / "report" / "index.html").stat().st_size > 1000


@pytest.mark.slow
def test_a_laptop_study_runs_as_its_file_says(tmp_path):
    """The command itself, whole: nothing cut but the replicates."""
    command = [sys.executable, "launch/fflm_replicates.py", "study=lstm", "scale=laptop", "replicates=2", "pack.size=1"]
    done = subprocess.run([*command, f"store={tmp_path}", "wandb=off"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
