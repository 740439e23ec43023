"""What is measured before a study, on slots of one kind and of several, with an executor that measures nothing."""

import pyarrow as pa
import pytest
import torch

import harness.planning.pack_sizes as module
from harness.announce import announce
from harness.planning.manifest import build
from harness.planning.pack_sizes import examples, measure, measure_kinds, settled_sizes, sizes_of_begun
from harness.planning.plan import plan, shape
from harness.planning.throughput import Rate
from harness.prepare import executor_of, planned_manifest, prepare
from harness.study.load import load
from harness.study.slot_kinds import Kind
from results.errors import StudyError
from results.store.tables import open_store, write_bytes
from tests.harness.planning.plans import NUMERICS, committed_rows, planned_packs, trial_study
from tests.harness.tiny import write_study

SLOTS = [{"device": "cuda", "accelerator": "A100", "per_gpu": 2}, {"device": "cpu", "resource": "big"}]
GPU, CPU = Kind("cuda", accelerator="A100", per_gpu=2), Kind("cpu", resource="big")


class _Executor:
    """Says of every kind how fast it is, in packs of any size alike, and what a replicate takes there."""

    device = "cpu"

    def __init__(self, seconds, memory=100, rooms=(10_000, 1_000)):
        self.most_slots, self.slots = {GPU.name: 4, CPU.name: 8}, 12
        self.seconds, self.memory, self.rooms = seconds, memory, dict(zip((GPU.name, CPU.name), rooms, strict=True))
        self.said, self.asked, self.placed = [], [], None

    def kinds(self):
        return [GPU, CPU]

    def room(self, kind=None):
        return self.rooms[kind.name] if kind else 10**9

    def measure(self, pack, kind=None):
        size = len(pack.replicates)
        self.asked.append((kind and kind.name, size, pack.numerics.get("device")))
        return Rate(size, self.seconds[kind.device if kind else "cpu"] / 20, 0.0, self.memory * size)

    def say(self, text):
        self.said.append(text)

    def place(self, rates, rooms):
        self.placed = (rates, rooms)


def _measured(executor, study, earlier=()):
    return measure_kinds(study, planned_packs(study, sizes=1), executor, earlier, NUMERICS)


def test_replicates_go_to_kinds_by_what_their_slots_do_in_a_second():
    study, executor = trial_study("replicates=400", slots=SLOTS), _Executor({"cuda": 4.0, "cpu": 2.0})
    rates, parts = _measured(executor, study)
    (name,) = examples(study)
    assert set(rates) == {shape(name, GPU.name), shape(name, CPU.name)}
    # 4 slots · 16 replicates / 4 s, and 8 slots · 4 replicates / 2 s
    assert [(part.kind, part.size, part.rate, part.slots) for part in parts[name]] == [
        (GPU.name, 16, pytest.approx(16.0), 4),
        (CPU.name, 4, pytest.approx(16.0), 8),
    ]
    assert executor.asked == [(GPU.name, size, "cuda") for size in (1, 4, 16)] + [(CPU.name, size, "cpu") for size in (1, 4)]
    assert executor.placed == (rates, executor.rooms)


def test_a_kind_that_does_not_hold_a_pack_takes_none_and_says_so():
    study, executor = trial_study("replicates=40", slots=SLOTS), _Executor({"cuda": 4.0, "cpu": 2.0}, rooms=(10_000, 50))
    _, parts = _measured(executor, study)
    assert [part.kind for part in next(iter(parts.values()))] == [GPU.name]
    assert len(executor.said) == 1
    assert "slots cpu big: a pack of 1 of transformer takes 100 bytes, more than the 50 bytes of a slot" in executor.said[0]
    with pytest.raises(ValueError, match=r"no slot .*condition transformer"):
        _measured(_Executor({"cuda": 4.0, "cpu": 2.0}, rooms=(50, 50)), study)


def test_a_size_that_the_study_gives_is_measured_as_it_is():
    executor, study = _Executor({"cuda": 4.0, "cpu": 2.0}), trial_study("replicates=400", "pack.size=3", slots=SLOTS)
    executor.kinds = lambda: [Kind("cuda", accelerator="A100", per_gpu=2, pack=5), CPU]
    _measured(executor, study)
    assert [size for _, size, _ in executor.asked] == [5, 3]


class _Full(_Executor):
    """Runs out of memory with packs of more than two on a GPU, as `room` can't foresee where a size is given."""

    limits = (2, 10**9)

    def measure(self, pack, kind=None):
        if len(pack.replicates) > self.limits[kind is CPU]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().measure(pack, kind)


@pytest.mark.parametrize("given", ["study", "manifest"])
def test_a_given_size_that_does_not_fit_is_said_in_one_sentence(given):
    executor, earlier = _Full({"cpu": 2.0}), ()
    study = trial_study("replicates=400", *(["pack.size=8"] if given == "study" else []))
    if given == "manifest":  # a larger device settled it
        earlier = [build(planned_packs(study, sizes=8), NUMERICS, {})]
    with pytest.raises(StudyError) as raised:
        measure(study, planned_packs(study, sizes=1), executor, earlier, NUMERICS)
    assert str(raised.value) == "a pack of 8 of transformer does not fit on the device: write a pack.size smaller than 8"
    executor.limits = (0, 0)
    with pytest.raises(StudyError, match="one replicate of transformer does not fit on the device: choose a smaller model or"):
        measure(trial_study("pack.size=1"), planned_packs(study, sizes=1), executor, [], NUMERICS)


def test_a_kind_that_runs_out_of_memory_with_a_given_size_takes_none_and_says_so():
    study, executor = trial_study("replicates=400", "pack.size=8", slots=SLOTS), _Full({"cuda": 4.0, "cpu": 2.0})
    _, parts = _measured(executor, study)
    assert [part.kind for part in next(iter(parts.values()))] == [CPU.name]
    kind = f"slots {GPU.name}: "
    assert executor.said == [f"{kind}a pack of 8 of transformer does not fit, so they take none"]
    executor.limits = (2, 2)
    with pytest.raises(StudyError, match=r"no slot .*condition transformer: .*a smaller pack"):
        _measured(executor, study)


def test_the_same_command_plans_the_same_packs_though_it_measures_otherwise():
    study = trial_study("replicates=100", slots=SLOTS)
    _, parts = _measured(_Executor({"cuda": 4.0, "cpu": 2.0}), study)
    first = plan(study, None, 1, numerics=NUMERICS, parts=parts, slots=12)
    manifest = build(first, NUMERICS, {})
    _, again = _measured(_Executor({"cuda": 1.0, "cpu": 7.0}), study, [manifest])
    assert again == parts
    assert plan(study, None, 1, numerics=NUMERICS, parts=again, slots=12).packs == first.packs
    other = trial_study("replicates=100", slots=[*SLOTS[:1], {"device": "cpu", "resource": "small"}])
    assert _measured(_Executor({"cuda": 1.0, "cpu": 7.0}), other, [manifest])[1] != parts


@pytest.mark.parametrize("several", [False, True])
def test_the_work_grows_in_proportion_to_the_conditions(several, monkeypatch):
    """Every condition has a shape of its own; a signature is found a few times a condition."""
    calls, real = [], module.signature
    monkeypatch.setattr(module, "signature", lambda *arguments: calls.append(1) or real(*arguments))
    found = {}
    for count in (4, 16):
        lengths = list(range(8, 8 + 2 * count, 2))
        study = trial_study("replicates=1", sweeps=[{"each": {"task.length": lengths}}], slots=SLOTS if several else None)
        first, executor = planned_packs(study, sizes=1), _Executor({"cuda": 1.0, "cpu": 1.0}, rooms=(10**9, 10**9))
        calls.clear()
        (measure_kinds if several else measure)(study, first, executor, [], NUMERICS)
        found[count] = len(calls)
    assert found[16] == 4 * found[4] <= 16 * 4


def test_a_store_in_which_the_study_has_not_begun_is_announced_as_that(tmp_path):
    """A mount that is away looks the same: the person can tell."""
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "only=[lstm]"])
    prepared, said = prepare(study, executor_of(study)), []
    announce(prepared, said.append)
    assert any(line.endswith("runs, where this study has not begun") for line in said)
    write_bytes(open_store(tmp_path / "runs", "tiny"), "manifests/a.yaml", b"{}")
    said.clear()
    announce(prepared, said.append)
    assert any(line.endswith("0 committed in " + str(tmp_path / "runs")) for line in said)


@pytest.mark.parametrize("words", [[], ["pack.size=3"]])
@pytest.mark.parametrize("folder", ["checkpoints/{}/100.safetensors", "leases/{}.json"])
def test_packs_that_have_begun_keep_their_members_whatever_the_slots(tmp_path, monkeypatch, words, folder):
    """On another number of slots they were other packs, so the same command began all of them anew."""
    monkeypatch.setenv("MANYSEEDS_CACHE", str(tmp_path / "cache"))
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "executor=local", "replicates=8", *words])
    store = open_store(tmp_path / "runs", study.name)

    def packs(slots):
        executor = executor_of(study)
        executor.slots = slots
        prepared = prepare(study, executor)
        return prepared, [pack.id for pack in prepared.plan.packs]

    before, ids = packs(3)
    write_bytes(store, "manifests/00.yaml", planned_manifest(before))
    assert packs(8)[1] != ids  # nothing has begun, so no slot is left idle
    write_bytes(store, folder.format(ids[-1]), b"")
    of_last = before.plan.packs[-1].signature
    for slots in (1, 2, 8):
        assert [pack.id for pack in packs(slots)[0].plan.packs if pack.signature == of_last] == [
            pack.id for pack in before.plan.packs if pack.signature == of_last
        ]


def test_a_smaller_size_that_is_given_wins_over_that_of_packs_that_have_begun():
    study = trial_study("replicates=8")
    (name,) = examples(study)
    earlier = [build(planned_packs(study, sizes=4), NUMERICS, {})]
    (one, other) = (pack["id"] for pack in earlier[0]["packs"])
    assert settled_sizes(earlier, NUMERICS, {one}) == settled_sizes(earlier, NUMERICS, {other}) == {name: 4}
    assert settled_sizes(earlier, NUMERICS, {"fd-0"}) == settled_sizes(earlier, {**NUMERICS, "threads": 2}) == {}
    assert settled_sizes(earlier, NUMERICS) == {name: 4}
    nothing = committed_rows()
    assert sizes_of_begun(trial_study("pack.size=2"), earlier, NUMERICS, {one}, nothing) == {name: 2}
    assert sizes_of_begun(trial_study("pack.size=6"), earlier, NUMERICS, {one}, nothing) == {name: 4}


def test_a_lease_of_a_pack_that_is_committed_holds_no_size():
    """A driver that was killed leaves it behind."""
    study = trial_study("replicates=8")
    (name,) = examples(study)
    planned = planned_packs(study, sizes=4)
    earlier = [build(planned, NUMERICS, {})]
    first, second = planned.packs
    rows = committed_rows((planned, first))
    assert sizes_of_begun(study, earlier, NUMERICS, {first.id}, rows) == {}
    assert sizes_of_begun(study, earlier, NUMERICS, {first.id}, rows.slice(0, 3)) == {name: 4}
    assert sizes_of_begun(study, earlier, NUMERICS, {first.id, second.id}, rows) == {name: 4}
    one_set = rows.set_column(
        rows.column_names.index("sets"), "sets", pa.array([sets[:1] for sets in rows["sets"].to_pylist()])
    )
    assert sizes_of_begun(study, earlier, NUMERICS, {first.id}, one_set) == {name: 4}  # it scores two
