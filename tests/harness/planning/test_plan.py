import dataclasses
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.planning import manifest
from harness.planning.plan import pack_id, replicates_of, signature
from results.errors import DamagedFile, StudyError
from tests.harness.planning.plans import NUMERICS, committed_rows, planned_keys, planned_packs, trial_study


def _all(planned):
    return committed_rows(*((planned, pack) for pack in planned.packs))


def _sizes(planned):
    return [len(pack.replicates) for pack in planned.packs]


def _manifest(planned):
    return manifest.build(planned, NUMERICS, {"torch": "2.13.0"})


def test_a_plan_larger_than_readers_take_is_refused_and_one_that_is_written_is_read(monkeypatch):
    planned = planned_packs(trial_study("replicates=30"), sizes=1)
    size = len(manifest.to_bytes(_manifest(planned)))
    monkeypatch.setattr(manifest, "MOST_BYTES", size // 2)
    with pytest.raises(
        StudyError, match=r"30 replicates in 30 packs, takes about .* write a larger pack.size, or several studies"
    ):
        _manifest(planned)
    monkeypatch.setattr(manifest, "MOST_BYTES", 2 * size)
    _manifest(planned)


# ---- packs


@settings(max_examples=40, deadline=None)
@given(
    replicates=st.integers(1, 30),
    size=st.integers(1, 9),
    slots=st.integers(1, 5),
    done=st.sets(st.integers(0, 40)),
    failed=st.sets(st.integers(0, 40)),
)
def test_packs_hold_every_missing_replicate_once(replicates, size, slots, done, failed):
    study = trial_study(f"replicates={replicates}", conditions={"a": {}, "b": {"model": {"layers": 2}}})
    first = planned_packs(study, sizes=size, slots=slots)
    committed = committed_rows(*((first, pack) for index, pack in enumerate(first.packs) if index in done))
    names = {first.replicates[index].key for index in failed if index < len(first.replicates)}
    again = planned_packs(study, committed, sizes=size, slots=slots, failed=names)
    have = set(committed["key"].to_pylist())
    assert again.done == have
    assert again.failed == names - have
    assert planned_keys(again) == sorted({each.key for each in first.replicates} - have - names)
    assert max(_sizes(again), default=0) <= size
    undisturbed = {pack.id for pack in first.packs}
    if len(again.packs) < slots:
        assert all(len(pack.replicates) == 1 or pack.id in undisturbed for pack in again.packs)


@pytest.mark.parametrize("committed", [(), (0,), (1,), (0, 2)])
def test_undisturbed_packs_keep_their_ids(committed):
    study = trial_study("replicates=12")
    first = planned_packs(study)
    again = planned_packs(study, committed_rows(*((first, first.packs[index]) for index in committed)))
    assert [pack.id for pack in again.packs] == [pack.id for index, pack in enumerate(first.packs) if index not in committed]


def test_raising_replicates_trains_only_the_new_ones():
    first = planned_packs(trial_study("replicates=8"))
    again = planned_packs(trial_study("replicates=12"), _all(first))
    assert _sizes(again) == [4]
    assert [again.replicates[index].init_seed for index in again.packs[0].replicates] == [8, 9, 10, 11]


def test_new_conditions_leave_committed_ones_alone():
    first = planned_packs(trial_study())
    again = planned_packs(trial_study(conditions={"transformer": {}, "lstm": {"model": {"name": "lstm"}}}), _all(first))
    assert {again.study.conditions[again.replicates[index].condition].name for p in again.packs for index in p.replicates} == {
        "lstm"
    }


def test_conditions_that_differ_in_vectors_share_packs():
    vectors = {"train.lr": [1e-3, 1e-2], "train.betas": [[0.9, 0.95]], "train.schedule": ["constant"], "train.warmup": [1, 2]}
    shared = trial_study("replicates=1", sweeps=[{"each": vectors | {"train.weight_decay": [0.0]}}])
    assert _sizes(planned_packs(shared, sizes=7)) == [7]
    shapes = {
        "train.steps": [5],
        "train.batch": [4],
        "task.length": [8],
        "task.p_ignore": [0.5],
        "model.width": [4],
        "train.precision": ["bf16"],
    }
    assert _sizes(planned_packs(trial_study("replicates=1", sweeps=[{"each": shapes}]), sizes=7)) == [1] * 6


def test_no_slot_is_left_idle_while_a_pack_can_be_smaller():
    assert _sizes(planned_packs(trial_study(), sizes=64, slots=2)) == [4, 4]
    assert _sizes(planned_packs(trial_study(), sizes=64, slots=3)) == [3, 3, 2]
    assert _sizes(planned_packs(trial_study("replicates=2"), sizes=64, slots=5)) == [1, 1]


def test_what_is_left_of_a_pack_is_split_over_the_slots_unless_it_has_a_checkpoint():
    first = planned_packs(trial_study("replicates=9"), sizes=9)
    committed = committed_rows((first, first.packs[0])).slice(0, 5)
    split = planned_packs(trial_study("replicates=9"), committed, sizes=9, slots=1)
    assert _sizes(split) == [4]
    larger = trial_study("replicates=18")
    assert _sizes(planned_packs(larger, _all(first), sizes=18, slots=1)) == [9]
    disturbed = planned_packs(larger, committed_rows((first, first.packs[0])).slice(0, 8), sizes=9, slots=2)
    assert _sizes(disturbed) == [1, 9]
    remains = committed_rows(*((p, pack) for p in [planned_packs(larger, sizes=9)] for pack in p.packs)).slice(0, 12)
    halves = planned_packs(larger, remains, sizes=9, slots=2)
    assert _sizes(halves) == [3, 3]
    whole = planned_packs(larger, remains, sizes=9, slots=1).packs[0]
    assert _sizes(planned_packs(larger, remains, sizes=9, slots=2, checkpoints={whole.id})) == [6]


def test_the_largest_remainder_is_split_and_packs_stay_in_study_order():
    study = trial_study("replicates=18")
    table = _all(planned_packs(study, sizes=6))
    left = pa.concat_tables(
        [table.slice(0, 3), table.slice(6, 1), table.slice(12)]
    )  # of three packs of 6, 3 and 5 and 0 remain
    assert _sizes(planned_packs(study, left, sizes=6, slots=2)) == [3, 5]
    assert _sizes(planned_packs(study, left, sizes=6, slots=3)) == [3, 3, 2]
    assert _sizes(planned_packs(study, table.slice(6, 1), sizes=6, slots=3)) == [6, 5, 6]


def test_sizes_go_by_signature_and_the_study_decides_over_them():
    study = trial_study(conditions={"a": {}, "b": {"model": {"name": "lstm"}}})
    sizes = {signature(study.conditions[0], study.sets): 8, signature(study.conditions[1], study.sets): 2}
    assert _sizes(planned_packs(study, sizes=sizes)) == [8, 2, 2, 2, 2]
    assert _sizes(planned_packs(trial_study("pack.size=5"), sizes=sizes)) == [5, 3]
    with pytest.raises(ValueError, match="no pack size is known"):
        planned_packs(study, sizes={})


def test_targets_take_the_first_seeds_of_a_condition():
    study = trial_study(conditions={"a": {}, "b": {"model": {"layers": 2}}})
    assert _sizes(planned_packs(study, sizes=8, targets={"a": 3})) == [3, 8]
    with pytest.raises(ValueError, match="a target names the condition 'c'"):
        planned_packs(study, targets={"c": 3})


def test_failed_replicates_are_planned_again_only_on_retry():
    study = trial_study("replicates=3")
    failed = {replicates_of(study.conditions)[1].key}
    assert _sizes(planned_packs(study, failed=failed)) == [2]
    assert _sizes(planned_packs(study, failed=failed, retry=True)) == [3]


def test_pack_ids_follow_from_keys_and_numerics_and_more_sets_sort_first():
    one = pack_id(["b", "a"], 2, NUMERICS)
    assert one == pack_id(["a", "b"], 2, dict(reversed(NUMERICS.items()))) == "fd-3bd15a4f920cf9bd"
    assert re.fullmatch(r"[0-9a-f]{2}-[0-9a-f]{16}", one)
    assert pack_id(["a", "b"], 3, NUMERICS) < one < pack_id(["a", "b"], 1, NUMERICS)
    assert len({one, pack_id(["a"], 2, NUMERICS), pack_id(["a", "b"], 2, NUMERICS | {"threads": 2})}) == 3
    with pytest.raises(ValueError, match="256 evaluation sets"):
        pack_id(["a"], 256, NUMERICS)


# ---- evaluation sets


def test_an_added_set_is_scored_for_every_key_again():
    first = planned_packs(trial_study())
    again = planned_packs(trial_study("evaluate.sets.more={sequences: 10}"), _all(first), manifests=[_manifest(first)])
    assert _sizes(again) == _sizes(first)
    assert all(new.id < old.id for new, old in zip(again.packs, first.packs, strict=True))


def test_a_removed_set_leaves_its_keys_done():
    first = planned_packs(trial_study("evaluate.sets.more={sequences: 10}"))
    assert planned_packs(trial_study(), _all(first), manifests=[_manifest(first)]).packs == ()


@pytest.mark.parametrize(
    "override",
    [
        "evaluate.sets.sparse.sequences=101",
        "evaluate.sets.sparse.p_ignore=0.97",
        "evaluate.seed=1",
        "evaluate.sets.sparse.every=5",
    ],
)
def test_a_set_redefined_under_its_name_is_refused(override):
    first = planned_packs(trial_study())
    with pytest.raises(ValueError, match=r"'sparse' .* another name, or use another store"):
        planned_packs(trial_study(override), _all(first), manifests=[_manifest(first)])
    assert planned_packs(trial_study(override), None, manifests=[_manifest(first)]).packs


def test_a_set_may_differ_for_another_task():
    first = planned_packs(trial_study())
    assert planned_packs(
        trial_study("task.length=32", "evaluate.sets.sparse.sequences=7"), _all(first), manifests=[_manifest(first)]
    ).packs


def _with_sets(**sets):
    return trial_study(evaluate={"sets": sets})


def test_a_renamed_set_is_refused():
    first = planned_packs(_with_sets(dense={"p_ignore": 0.1, "sequences": 50}))
    renamed = _with_sets(crowded={"p_ignore": 0.1, "sequences": 50})
    with pytest.raises(ValueError, match=r"'crowded' .*trial .* 'dense'"):
        planned_packs(renamed, _all(first), manifests=[_manifest(first)])


def test_a_set_exchanged_for_another_is_refused():
    first = planned_packs(_with_sets(dense={"p_ignore": 0.1, "sequences": 50}))
    other = _with_sets(sparse={"p_ignore": 0.98, "sequences": 50})
    with pytest.raises(ValueError, match=r"\bdense\b.* sparse"):
        planned_packs(other, _all(first), manifests=[_manifest(first)])


# ---- manifest


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("task.p_ignore=[0.9,0.98]", "train.betas=[0.9,0.95]", "keep=tail(3)", "pack.size=3"),
        ("evaluate.watch.every=5",),  # its lags are -1, none, unless they are given
    ],
)
def test_a_manifest_reads_back_as_the_same_plan(overrides):
    planned = planned_packs(
        trial_study(*overrides, source={"paper": "fflm"}, conditions={"a": {}, "b": {"model": {"name": "lstm"}}})
    )
    content = manifest.to_bytes(_manifest(planned))
    assert manifest.plan_of(manifest.read(content)) == planned
    assert content == manifest.to_bytes(manifest.read(content))
    lines = content.decode().splitlines()
    assert sum(line.startswith('  {"id": ') for line in lines) == len(planned.packs)  # one a pack
    assert max(map(len, (line for line in lines if '"config"' not in line))) < 1000


def test_manifests_that_had_a_signature_in_every_pack_are_read_and_one_without_any_is_refused():
    planned = planned_packs(trial_study(), sizes=2)
    older = _manifest(planned)
    for pack, of_plan in zip(older["packs"], planned.packs, strict=True):
        pack["signature"] = of_plan.signature
    names = [entry.pop("signature") for entry in older["conditions"]]
    assert manifest.plan_of(manifest.read(manifest.to_bytes(older))).packs == planned.packs
    assert {pack["signature"] for pack in older["packs"]} == set(names)
    del older["packs"][0]["signature"]
    with pytest.raises(DamagedFile, match=f"lacks the signature of {re.escape(planned.study.conditions[0].name)}"):
        manifest.read(manifest.to_bytes(older))


def test_a_manifest_without_the_fields_that_may_be_absent_is_the_same_plan():
    for overrides in ({}, {"stages": [{"init": "previous"}]}):
        planned = planned_packs(trial_study(**overrides), sizes=2)
        written = _manifest(planned)
        for pack in written["packs"]:
            del pack["stage"]
        for scored in written["sets"].values():
            del scored["every"], scored["seed"]
        assert manifest.plan_of(manifest.read(manifest.to_bytes(written))) == planned


def test_a_manifest_says_what_each_condition_is_scored_on():
    study = trial_study()
    written = _manifest(planned_packs(study, targets={"transformer": 3}))
    (condition,) = written["conditions"]
    assert condition["replicates"] == len(written["replicates"]) == 3
    assert {name: each["hash"] for name, each in condition["sets"].items()} == study.set_hashes(study.conditions[0])
    assert condition["sets"]["sparse"]["task"] == {"name": "flipflop", "length": 16, "p_ignore": 0.98}
    assert written["sets"]["sparse"] == {"definition": {"p_ignore": 0.98}, "sequences": 100, "every": None, "seed": 0}


def test_a_manifest_whose_keys_are_not_this_codes_is_refused():
    written = _manifest(planned_packs(trial_study()))
    written["replicates"][0][0] = "0" * 32
    with pytest.raises(ValueError, match=r"use the version .*wrote the manifest"):
        manifest.plan_of(written)


@pytest.mark.parametrize("content", [b"", b"name: trial", b"[]", b"{}", b'{"studdy": 1}', b"\xff"])
def test_a_file_that_is_no_manifest_is_refused(content):
    with pytest.raises(ValueError, match=r"x\.yaml"):
        manifest.read(content, "x.yaml")


def test_a_plan_is_a_pure_function_of_data():
    study = trial_study()
    assert planned_packs(study) == planned_packs(dataclasses.replace(study))
