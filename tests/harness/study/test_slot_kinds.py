"""What a study's `slots` says, what Ray is asked for it, and which pack suits which kind of slot."""

import math

import pytest
import torch

from harness.executing.placement import Placement, time_left
from harness.machine.device import prepare
from harness.planning.manifest import build, plan_of
from harness.planning.pack import resolve
from harness.planning.plan import Part, pack_id, plan, shape
from harness.planning.throughput import Rate, room
from harness.study.slot_kinds import Kind, parse
from tests.harness.packs import condition, pack
from tests.harness.planning.plans import NUMERICS, planned_keys, planned_packs, trial_study

HALF = Kind("cuda", accelerator="A100", per_gpu=2)
BIG = Kind("cpu", resource="big", memory=8 * 10**9)
SMALL = Kind("cpu", resource="small")


def test_the_key_reads_back_and_is_no_part_of_what_a_replicate_is():
    given = [
        {"device": "cuda", "accelerator": "A100", "per_gpu": 2},
        {"device": "cpu", "resource": "big", "memory": "8GB", "pack": 4},
    ]
    study = trial_study(slots=given)
    assert study.slots == (HALF, Kind("cpu", resource="big", memory=8 * 10**9, pack=4))
    assert parse([kind.as_dict() for kind in study.slots]) == study.slots
    assert [each.config() for each in study.conditions] == [each.config() for each in trial_study().conditions]
    assert parse([{"device": "cpu", "memory": "1.5 GiB"}])[0].memory == 3 * 2**29


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "must be a list"),
        ("cuda", "must be a list"),
        (["cuda"], r"slots\[0\] = 'cuda' must be a mapping"),
        ([{"device": "cpu", "memry": "1GB"}], "did you mean memory"),
        ([{"device": "tpu"}], "must be cpu or cuda"),
        ([{"device": "cpu", "per_gpu": 2}], "applies only to device cuda: leave it out"),
        ([{"device": "cuda", "memory": "8GB"}], "applies only to device cpu: leave it out"),
        ([{"device": "cuda", "per_gpu": 0}], "per_gpu = 0 must be a whole number of at least 1"),
        ([{"device": "cuda", "per_gpu": 1000}], "at most 100"),
        ([{"device": "cuda", "count": -1}], "count = -1 must be a whole number of at least 1$"),
        ([{"device": "cuda", "pack": 2.5}], "pack = 2.5 must be a whole number of at least 1 or auto"),
        ([{"device": "cpu", "memory": "much"}], "must be an amount such as 8GB"),
        ([{"device": "cpu", "resource": "CPU"}], "is Ray's own"),
        ([{"device": "cpu", "resource": "a b"}], "must be a word"),
        ([{"device": "cpu"}, {"device": "cpu", "resource": "big"}], "could be of the same nodes"),
        ([{"device": "cuda", "accelerator": "T4"}, {"device": "cuda", "resource": "big"}], "could be of the same nodes"),
    ],
)
def test_a_kind_that_can_not_be_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(given)


@pytest.mark.parametrize("word", ["device=cpu", "executor=local"])
def test_slots_are_rays_and_have_their_own_devices(word):
    with pytest.raises(ValueError, match="beside slots: leave one of them out"):
        trial_study(word, slots=[{"device": "cpu"}])


def test_what_ray_is_asked_for_a_worker():
    assert HALF.options() == {"num_gpus": 0.5, "num_cpus": 0, "accelerator_type": "A100"}
    assert Kind("cuda").options() == {"num_gpus": 1, "num_cpus": 0}
    assert BIG.options() == {"num_cpus": 1, "resources": {"big": 0.001}, "memory": 8 * 10**9}
    assert Kind("cpu").options() == {"num_cpus": 1}
    for slots in range(1, 101):  # all slots of a GPU find a place, at the four digits that Ray counts
        assert slots * round(Kind("cuda", per_gpu=slots).options()["num_gpus"] * 10_000) <= 10_000


@pytest.mark.parametrize(("share", "asked"), [(1, []), (4, [0.25])])
def test_a_slot_that_shares_its_gpu_is_held_to_its_part_of_the_memory(share, asked, monkeypatch):
    found = []
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name in ("init", "set_device", "current_device"):
        monkeypatch.setattr(torch.cuda, name, lambda *given: 0)
    for name in ("use_deterministic_algorithms", "backends.cuda.enable_cudnn_sdp"):
        monkeypatch.setattr(f"torch.{name}", lambda *given, **more: None)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", found.append)
    prepare(torch.device("cuda"), share)
    assert found == asked


def test_what_tensors_may_take_of_a_slot(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (30 * 10**9, 80 * 10**9))
    for name in ("memory_reserved", "memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda device: 0)
    assert room(torch.device("cuda"), 1) == int(0.85 * 30 * 10**9)  # what is free
    assert room(torch.device("cuda"), 2) == int(0.85 * 80 * 10**9) // 2  # what others take now is theirs
    assert 0 < room(torch.device("cpu"), 4) <= room(torch.device("cpu"), 1)


@pytest.mark.parametrize(
    ("kind", "node", "slots"),
    [
        (HALF, {"GPU": 4.0, "accelerator_type:A100": 1.0, "CPU": 8.0}, 8),
        (HALF, {"GPU": 4.0, "accelerator_type:T4": 1.0}, 0),
        (Kind("cuda"), {"GPU": 4.0}, 4),
        (BIG, {"CPU": 16.0, "big": 1.0, "memory": 33e9}, 4),
        (BIG, {"CPU": 2.0, "big": 1.0, "memory": 33e9}, 2),
        (BIG, {"CPU": 16.0, "memory": 33e9}, 0),
        (Kind("cpu"), {"CPU": 16.0, "big": 1.0}, 16),
    ],
)
def test_the_slots_of_a_node(kind, node, slots):
    assert kind.slots(node) == slots


# ---- plans of several kinds


def _parts(planned, big=6, small=2, rates=(3.0, 1.0)):
    (name,) = {each.signature for each in planned.packs}
    return {name: (Part(HALF.name, big, rates[0], 2), Part(SMALL.name, small, rates[1], 3))}


def test_replicates_are_shared_out_by_the_rates_in_packs_of_each_kinds_size():
    study = trial_study("replicates=24")
    one = planned_packs(study, sizes=24)
    planned = planned_packs(study, parts=_parts(one))
    shares = {kind: [len(each.replicates) for each in planned.packs if each.kind == kind] for kind in (HALF.name, SMALL.name)}
    assert shares == {HALF.name: [6, 6, 6], SMALL.name: [2, 2, 2]}
    assert planned_keys(planned) == planned_keys(one)
    for each in planned.packs:
        numerics = NUMERICS | {"device": "cuda" if each.kind == HALF.name else "cpu"}
        assert each.id == pack_id([planned.replicates[index].key for index in each.replicates], 2, numerics)


@pytest.mark.parametrize("replicates", range(1, 12))
def test_no_replicate_is_lost_where_the_shares_are_no_whole_numbers(replicates):
    study = trial_study(f"replicates={replicates}")
    one = planned_packs(study)
    planned = planned_packs(study, parts=_parts(one, rates=(math.e, 1.0)))
    assert planned_keys(planned) == planned_keys(one)
    shared = sum(len(each.replicates) for each in planned.packs if each.kind == HALF.name)
    assert shared == round(replicates * math.e / (1 + math.e))  # of two shares, the larger remainder is the one above a half


def test_one_kind_plans_what_no_kind_plans():
    study = trial_study("replicates=7")
    one = planned_packs(study, sizes=3, slots=2)
    (name,) = {each.signature for each in one.packs}
    same = planned_packs(study, slots=2, parts={name: (Part("cpu big", 3, 5.0, 2),)})
    assert [(each.id, each.replicates) for each in same.packs] == [(each.id, each.replicates) for each in one.packs]


def test_a_manifest_keeps_the_kinds_and_what_each_takes():
    study = trial_study(
        "replicates=24", slots=[{"device": "cuda", "accelerator": "A100", "per_gpu": 2}, {"device": "cpu", "resource": "small"}]
    )
    planned = plan(study, None, 1, numerics=NUMERICS, parts=_parts(planned_packs(study)))
    again = plan_of(build(planned, NUMERICS, {}))
    assert (again.packs, again.parts, again.study.slots) == (planned.packs, planned.parts, study.slots)
    packs = resolve(again, NUMERICS, {})
    assert {each.numerics["device"] for each in packs if each.kind == HALF.name} == {"cuda"}
    assert {each.numerics["device"] for each in packs if each.kind == SMALL.name} == {"cpu"}
    half = packs[0].part(packs[0].replicates[:1])
    assert (half.kind, half.numerics) == (packs[0].kind, packs[0].numerics)


# ---- placement


def _placed(kind, replicates=4):
    """A pack of ten steps that was sized for a kind."""
    from dataclasses import replace

    return replace(pack(condition("lstm"), list(range(replicates))), kind=kind.name)


def _placement(**rates):
    one = _placed(HALF)
    known = {"half": HALF, "big": BIG, "small": SMALL}
    measured = {shape(one.signature, known[name].name): rate for name, rate in rates.items()}
    return Placement((HALF, BIG, SMALL), measured, {HALF.name: 4000, BIG.name: 1000, SMALL.name: 300})


def test_an_idle_slot_takes_its_own_pack_first_then_what_fits_and_ends_sooner_there():
    placement = _placement(half=Rate(4, 0.1, 0.0, 400), big=Rate(2, 1.0, 0.0, 200), small=Rate(1, 1.0, 0.0, 100))
    gpus, mine = _placed(HALF), _placed(BIG)
    late = {HALF.name: 100.0, BIG.name: 100.0, SMALL.name: 100.0}
    assert placement.rank(mine, BIG, late) == 0
    assert placement.rank(mine, HALF, late) == 1  # a GPU helps the cores
    assert placement.rank(gpus, BIG, late) == 2  # a core takes what is a GPU's last of all: 20 s here
    assert placement.rank(gpus, BIG, late | {HALF.name: 20.0}) is None
    assert placement.rank(gpus, BIG, late | {HALF.name: math.inf}) == 2  # the GPUs are gone
    assert placement.rank(mine, SMALL, late) is None  # 400 bytes of the 300 that it has
    assert placement.rank(_placed(BIG, 3), SMALL, late) == 1


def test_a_shape_that_a_kind_could_not_measure_never_runs_there():
    placement = _placement(half=Rate(4, 0.1, 0.0, 400))
    assert placement.rank(_placed(HALF), BIG, {HALF.name: math.inf}) is None
    assert placement.rank(_placed(HALF), BIG, {HALF.name: 1e9}) is None


def test_with_one_kind_every_pack_is_its_own():
    assert Placement((SMALL,)).rank(pack(condition("lstm"), [0]), SMALL, {}) == 0


def test_the_time_that_is_left_is_the_work_over_the_slots_there_are():
    placement = _placement(half=Rate(4, 0.1, 2.0), big=Rate(2, 1.0, 0.0))
    left = time_left(placement, [_placed(HALF), _placed(HALF), _placed(BIG)], {HALF.name: 4.0}, {HALF.name: 2, BIG.name: 0})
    assert left == {HALF.name: pytest.approx((3.0 + 3.0 + 4.0) / 2), BIG.name: math.inf, SMALL.name: math.inf}
