import copy
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from results.report.downloads import TABLES
from results.report.methods import methods_text
from results.report.report import write_report
from results.rows.plural import ranges
from results.rows.summary import replicates_of, summarise
from results.store.tables import Store, committed, open_store, read
from tests.results.claims.planned_rows import planned
from tests.results.synthetic import failure, manifest, write

HOSTILE = "<script>alert('x')</script>\nand “more” & {{ 7*7 }}"


def text_of(plan: dict[str, Any], store: Store | None) -> str:
    if store is None:
        store = open_store("/nowhere/at/all", "none")
    replicates = committed(store)
    known = replicates_of(plan, replicates, read(store, "evaluations"), read(store, "failures"))
    return methods_text(plan, known, replicates, summarise(plan, known))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_store(str(tmp_path_factory.mktemp("store")), "synthetic")
    write(store, manifest(12))
    return store


def test_every_value_is_that_of_the_study(study: Store) -> None:
    text = text_of(manifest(12), study)
    for part in (
        "24 replicates of 2 conditions",
        "Task: flipflop, length 512 tokens, p_ignore = 0.8, mode = deterministic.",
        "transformer (transformer, layers = 2, width = 64, 133,381 parameters); lstm (lstm, width = 128, 133,381 parameters)",
        "a batch of 16 strings, optimiser AdamW, learning rate 0.0003, betas [0.9, 0.999]",
        "transformer (1,000 steps); lstm (500 steps)",
        "sparse (p_ignore = 0.98; 1,000 sequences, 3,540 reads, seed 0)",
        "3,567 reads, seed 0, scored every 100 steps and at the end",
        "transformer: 12 replicates (initialisation seeds 0 to 11, data seeds 0 to 11, paired; 11 finished, 1 diverged)",
        "lstm: 12 replicates (initialisation seeds 0 to 11, data seeds 0 to 11, paired; 12 finished)",
        "scale: laptop; train.steps: 10000 → 1000; train.lr=0.0003.",
        "Trained on cpu, with torch 2.13.0, python 3.12.3, from git commit 0123456789abcdef.",
    ):
        assert part in text
    assert "a b" in text_of(manifest(12, study="a\x00\r\n\x1bb"), None)
    assert "fp32" not in text  # the manifest does not state a precision
    assert "\n" not in text


def test_an_option_that_is_on_with_its_defaults_has_their_values() -> None:
    plan = manifest(2)
    for condition in plan["conditions"]:
        condition["config"]["train"]["consistency"] = {}
        condition["settings"] = {"train": condition["config"]["train"] | {"consistency": {"weight": 0.3}}}
    text = text_of(plan, None)
    assert "consistency.weight = 0.3" in text
    assert "{}" not in text


def test_a_condition_that_was_renamed_keeps_its_size(study: Store) -> None:
    renamed = manifest(12)
    for each in renamed["conditions"]:
        each["name"] = f"new {each['name']}"
    text = text_of(renamed, study)
    assert (
        "new transformer (transformer, layers = 2, width = 64, 133,381 parameters); new lstm (lstm, width = 128, 133,381"
        in text
    )


def test_conditions_of_equal_options_are_named_together() -> None:
    plan = manifest(1, names=("one", "two", "three"))
    for each, reach in zip(plan["conditions"], (3, 4, 3), strict=True):
        each["config"]["model"] = {"name": "my_models:Mixer", "reach": reach}
    assert "differing between conditions: one and three (reach = 3); two (reach = 4)." in text_of(plan, None)


def test_another_task_and_model_are_described_by_their_options() -> None:
    plan = manifest(2, names=("one", "two"))
    for width, each in enumerate(plan["conditions"], 3):
        each["config"] = {
            "task": {"name": "my_tasks:Maze", "rooms": 7, "doors": {"open": True, "kinds": ["a", "b"]}},
            "model": {"name": "my_models:Mixer", "reach": width},
            "train": {"steps": 10, "lookahead": 0.5},
            "stages": [{"train": {"steps": 5}}, {"labels": "previous"}],
        }
    text = text_of(plan, None)
    assert 'Task: my_tasks:Maze, rooms = 7, doors.open = true, doors.kinds = ["a", "b"].' in text
    assert (
        "Model: my_models:Mixer; differing between conditions: “one, stage 1” (reach = 3); “two, stage 1” (reach = 4)." in text
    )
    assert "Training: 10 steps, lookahead = 0.5." in text
    # the last stage has the condition's own task, model and training
    own = 'my_tasks:Maze, rooms = 7, doors.open = true, doors.kinds = ["a", "b"], my_models:Mixer'
    order = (
        "Stages in their order, the first training included, and of a later one what it does not share with the one before: "
    )
    assert f"{order}stage 0 of every chain (5 steps); one: stage 1 ({own}, reach = 3, 10 steps, " in text
    assert "reach = 4, 10 steps, lookahead = 0.5, labels = previous)." in text
    assert "No replicate has been trained yet." in text
    assert "parameters" not in text
    assert "each condition: 2 replicates" in text
    assert "2 missing" in text


def test_a_teacher_that_chains_share_is_told_once_and_a_later_stage_by_its_changes() -> None:
    """Each chain repeated its teacher, and the student what it has in common with it: 4,700 characters for ten students."""
    plan = manifest(2, names=("one", "two", "alone", "labels"))
    teacher = {"task": {"name": "maze", "rooms": 7}, "model": {"name": "wide", "width": 64}, "train": {"steps": 9, "lr": 0.1}}
    for width, each in zip((8, 16, 8), plan["conditions"], strict=False):
        each["config"] = {
            "task": {"name": "maze", "rooms": 7},
            "model": {"name": "wide", "width": width},
            "train": {"steps": 5, "lr": 0.1},
            "stages": [teacher, {"labels": "teacher"}],
        }
    plan["conditions"][2]["config"]["stages"][0] = teacher | {"model": {"name": "deep", "depth": 3}}
    text = text_of(plan, None)
    stages = text[text.index("Stages in their order") :]
    shared = "stage 0 of one and two (maze, rooms = 7, wide, width = 64, 9 steps, learning rate 0.1); "
    one, two = (f"{name}: stage 1 (width = {width}, 5 steps, labels = teacher); " for name, width in (("one", 8), ("two", 16)))
    alone = "alone: stage 0 (maze, rooms = 7, deep, depth = 3, 9 steps, learning rate 0.1), stage 1 (wide, width = 8, 5 steps, labels"
    assert f": {shared}{one}{two}{alone}" in stages
    plan["conditions"][2]["config"]["stages"][0] = teacher
    assert "one before: stage 0 of every chain (maze, " in text_of(plan, None)
    for condition in plan["conditions"][:3]:
        del condition["config"]["train"]["lr"]  # a default, which is not the teacher's
        condition["config"]["train"]["steps"] = 9
    assert ": stage 1 (width = 8, 9 steps, labels = teacher)" in text_of(plan, None)


def test_many_conditions_are_counted_and_their_values_listed() -> None:
    plan = manifest(1, names=tuple(f"c{i}" for i in range(12)))
    for i, each in enumerate(plan["conditions"]):
        each["config"]["train"] |= {"lr": i % 3 + 1.5, "decay_of_mine": i}
    text = text_of(plan, None)
    assert "differing between the 12 conditions: lr (1.5 | 2.5 | 3.5); decay_of_mine (12 values)" in text
    assert "c11" not in text


def test_seeds_that_are_not_paired_and_replicates_that_failed_are_told(study: Store, tmp_path: Path) -> None:
    plan = manifest(12)
    plan["replicates"] = [[key, i, init, 3] for key, i, init, _ in plan["replicates"] if init != 5]
    assert "(initialisation seeds 0 to 4, 6 to 11, data seeds 3; 10 finished, 1 diverged)" in text_of(plan, study)
    known = replicates_of(plan, committed(study).slice(0, 0), read(study, "evaluations"), failed(plan["replicates"][0][0]))
    text = methods_text(plan, known, committed(study).slice(0, 0), summarise(plan, known))
    assert "1 failed, 10 missing" in text
    assert "failed or are missing are bounded" in text


def test_a_condition_that_shares_its_first_stage_has_the_replicates_of_its_last() -> None:
    """Warm and cold chains begin with one training, which is the first condition's."""
    text = text_of(planned("length_generalization", "lego_self_training", overrides=["replicates=3"]), None)
    several = "3 replicates (initialisation seeds 220 to 222, data seeds 220 to 222, paired; over all stages {} missing)"
    assert text.startswith(
        "The study “lego-self-training” has 33 trainings in 4 stages, of 4 conditions; a replicate is a chain of such trainings, with "
    )
    assert f"warm: {several.format(12)}; cold and longer each: {several.format(9)}; cyclic: {several.format(3)}." in text


def failed(key: str) -> Any:
    from results.store.schema import SCHEMAS

    return pyarrow.Table.from_pylist([failure(key)], schema=SCHEMAS["failures"])


def test_defaults_that_a_manifest_has_are_named_where_a_reader_asks_for_them() -> None:
    plan = manifest(1, names=("one",))
    config = plan["conditions"][0]["config"]
    settings = copy.deepcopy(config)
    settings["train"] |= {"precision": "bf16", "warmup": 50, "schedule": "linear", "pool": 0, "eps": 1e-8}
    settings["task"] |= {"p_write": None, "p_read": None}
    plan["conditions"][0]["settings"] = settings
    text = text_of(plan, None)
    for part in ("precision bf16", "50 steps of linear warm-up", "linear decay to 0", "fresh strings", "equally likely"):
        assert part in text
    assert "eps =" not in text


def test_of_a_task_of_ones_own_all_options_are_named() -> None:
    """A reader can't look up its defaults. Options that a study states are named once."""
    plan = manifest(1, names=("one",))
    plan["conditions"][0]["config"]["task"] = {"name": "my_tasks:Maze", "rooms": 7}
    settings = copy.deepcopy(plan["conditions"][0]["config"])
    settings["task"] = {"name": "my_tasks:Maze", "doors": 2, "rooms": 7, "keys": None}
    plan["conditions"][0]["settings"] = settings
    assert "Task: my_tasks:Maze, doors = 2, rooms = 7." in text_of(plan, None)


def test_ranges_of_seeds() -> None:
    assert ranges([4, 0, 1, 2, 7]) == "0 to 2, 4, 7"
    assert ranges([]) == ""
    assert ranges([0, 1], " … ") == "0 … 1"


def test_hostile_names_are_text_of_one_line_and_the_links_resolve(tmp_path: Path) -> None:
    plan = manifest(3, names=(HOSTILE, "lstm"))
    plan["study"], plan["source"] = "synthetic", {"paper": HOSTILE}
    plan["sets"][HOSTILE] = plan["sets"].pop("sparse")
    store = open_store(str(tmp_path / "store"), "synthetic")
    write(store, plan)
    page = write_report(store, tmp_path / "out").read_text(encoding="utf-8")
    paragraph = page.split('<p id="methods-text">')[1].split("</p>")[0]
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; and “more” &amp; {{ 7*7 }}" in paragraph
    assert "<" not in paragraph
    assert "<script>alert" not in page
    assert "liu2023exposing" not in page  # the paper is unknown
    for _, names in TABLES:
        for name in names:
            assert f'href="{name}"' in page
    linked = set(re.findall(r'href="([^"#:]+)"', page))
    assert all((tmp_path / "out" / name).is_file() for name in linked)
    shutil.rmtree(tmp_path / "store")
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "evaluations.parquet")
    assert set(rows["step"].to_pylist()) == {1000, 500}
    assert pyarrow.parquet.read_table(tmp_path / "out" / "replicates.parquet").num_rows == 6
    assert all(f'data-copy="{each}"' in page for each in ("methods-text", "bibtex-1"))
