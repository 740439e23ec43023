"""Which checkpoint teaches at which step, against the definitions written out as lists; what a study may say of it and what is refused."""

import re
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.planning.manifest import build, plan_of, read, to_bytes
from harness.planning.pack import resolve
from harness.planning.plan import plan, replicates_of, signature
from harness.study import load as study
from harness.study.checkpoint_schedule import Checkpoint, SelectionRule, Teacher, at, kept, spans
from harness.study.identity import describe
from harness.study.stages import link_of, parent_of
from tests.harness.distilled import write_study

COUNT = st.integers(1, 8)


def _taught(teacher, horizon, steps):
    """The teacher's step at each step of the student."""
    plan = spans(teacher, horizon, steps)
    return plan, [plan[at(plan, step)].at for step in range(1, steps + 1)]


def _written_out(parts, horizon, steps):
    """(checkpoint, steps) one after another, then the final one, up to the student's horizon."""
    endless = chain(chain.from_iterable(repeat(step, count) for step, count in parts), repeat(horizon))
    return [step for step, _ in zip(endless, range(steps), strict=False)]


def _agree(teacher, parts, horizon, steps):
    plan, found = _taught(teacher, horizon, steps)
    expected = _written_out(parts, horizon, steps)
    assert found == expected
    assert plan[0].begin == 1
    assert kept(plan, horizon) == {*expected, horizon}  # nothing is kept that is not taught, but the end


@given(shots=st.integers(2, 8), each=COUNT, part=COUNT, more=COUNT)
def test_n_t_progressive_is_definition_22(shots, each, part, more):
    steps, horizon = (shots - 1) * part + more, shots * each
    _agree(Teacher(shots=shots, steps=part), [(i * each, part) for i in range(1, shots + 1)], horizon, steps)


@given(st.lists(st.tuples(st.integers(0, 50), COUNT), min_size=1, max_size=5), COUNT)
def test_c_d_progressive_is_definition_21(parts, more):
    steps = sum(count for _, count in parts) + more
    given_parts = tuple(Checkpoint(step, count) for step, count in parts)
    _agree(Teacher(checkpoints=(*given_parts, Checkpoint())), parts, 50, steps)


@given(shots=COUNT, each=COUNT, part=COUNT)
def test_an_equal_split_divides_the_students_horizon(shots, each, part):
    teacher = Teacher(shots=shots)
    _agree(teacher, [(i * each, part) for i in range(1, shots + 1)], shots * each, shots * part)


@given(st.integers(2, 8), COUNT, st.sampled_from([(1.0, 1), (0.5, 2), (0.25, 4), (0.2, 5), (0.1, 10)]), st.integers(8, 900))
def test_a_split_of_kappa_times_the_teachers_steps_drops_what_does_not_fit(shots, each, kappa, steps):
    horizon, part = shots * each * kappa[1], each  # κ T0 / N student steps for each checkpoint
    parts = [(i * each * kappa[1], part) for i in range(1, shots + 1)]
    _agree(Teacher(shots=shots, kappa=kappa[0]), parts, horizon, max(steps, shots))


@given(st.integers(1, 9), st.integers(9, 60), st.integers(9, 60), st.sampled_from([None, 1.0, 0.3]))
def test_what_does_not_divide_still_ends_with_the_last(shots, horizon, steps, kappa):
    plan, found = _taught(Teacher(shots=shots, kappa=None if shots == 1 else kappa), horizon, steps)
    assert found == sorted(found)
    assert set(found) <= {(i * horizon) // shots for i in range(1, shots + 1)}
    assert len(plan) == len(set(found))
    if kappa is None:
        assert found[-1] == horizon


def test_a_tiny_kappa_is_one_shot():
    assert _taught(Teacher(shots=5, kappa=1e-9), 100, 50)[1] == [100] * 50


def test_the_card_s_second_experiment_is_written_in_two_checkpoints():
    """P2: the middle of the transition is the first checkpoint with accuracy 0.75; 0.5M before it the beginning."""
    rule = SelectionRule(0.75, every=100_000, plus=-500_000)
    plan = spans(Teacher(checkpoints=(Checkpoint(rule, 1_000_000), Checkpoint())), 20_000_000, 2_000_000)
    assert [(span.begin, span.at) for span in plan] == [(1, rule), (1_000_001, 20_000_000)]
    assert kept(plan, 20_000_000) == set(range(100_000, 20_000_001, 100_000))


def test_a_teacher_has_the_key_that_it_has_alone_and_a_rule_is_hashed(tmp_path):
    loaded = study.load(write_study(tmp_path))
    alone = study.load(write_study(tmp_path), ["conditions=null"])
    teachers = [each.key for each in replicates_of(alone.conditions)]
    found = replicates_of(loaded.conditions)
    assert [each.key for each in found if not each.stage] == teachers
    by_name = {
        name: [each for each in found if each.stage and loaded.conditions[each.condition].name == name]
        for name in ("one_shot", "slower", "risen", "shared")
    }
    assert [each.parent for each in by_name["risen"]] == [each.parent for each in by_name["one_shot"]] == teachers
    assert {each.parent for each in by_name["shared"]} == {teachers[0]}
    assert [each.init_seed for each in by_name["shared"]] == [0, 1, 2]
    assert len({each.key for each in found}) == len(found) == 3 + 12
    students = {each.name: each for each in loaded.conditions if each.stage}
    rule = students["risen"].stages[-1]["teacher"]["checkpoints"]
    assert rule == [{"at": {"accuracy": 0.7, "every": 5, "plus": -5}, "steps": 10}, {}]
    assert describe(link_of(students["risen"])) == students["risen"].stages[-1]
    assert signature(students["one_shot"]) == signature(students["slower"]) != signature(students["shared"])


def test_the_steps_that_a_rule_looks_at_are_said_without_repetition():
    said = {horizon: SelectionRule(every=2).steps_in_words(horizon) for horizon in (3, 4, 6, 9)}
    assert said == {3: "2", 4: "2, 4", 6: "2, 4, 6", 9: "2, 4, … 8"}


def test_a_fixed_teacher_is_trained_although_no_other_replicate_has_its_seed(tmp_path):
    shared = "conditions.one_shot=null conditions.slower=null conditions.risen=null".split()
    words = [*shared, "only=[shared]", "seeds={init: [5, 6], data: [7]}"]
    loaded = study.load(write_study(tmp_path), words)
    seeds = {each.stage: each.seeds for each in loaded.conditions}
    assert seeds == {0: ((0, 0),), 1: ((5, 7), (6, 7))}


def test_a_manifest_carries_students_to_a_bare_machine(tmp_path):
    planned = plan(study.load(write_study(tmp_path)), None, 2, numerics={})
    found = plan_of(read(to_bytes(build(planned, {}, {}))))
    assert found.replicates == planned.replicates
    assert found.packs == planned.packs
    assert resolve(found, {}, {}) == resolve(planned, {}, {})


def test_models_of_a_chain_come_back_from_the_last_stage(tmp_path):
    """Width 64, then 8, then 64 again, then 8: each stage's parent is the stage before, as it was written."""
    words = [
        "{model: {width: 8}, labels: teacher}",
        "{model: {width: 64}, labels: teacher}",
        "{train: {lr: 0.1}, init: previous}",
    ]
    loaded = study.load(write_study(tmp_path), ["conditions=null", f"stages=[{', '.join(words)}]"])
    assert [each.model.width for each in loaded.conditions] == [64, 8, 64, 64]
    for before, after in zip(loaded.conditions, loaded.conditions[1:], strict=False):
        found = parent_of(after)
        assert found is not None
        assert found.config() == before.config()


def _student(words):
    return f"stages=[{{model: {{width: 8}}, train: {{steps: 24}}, labels: teacher, {words}}}]"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("teacher: {checkpoints: [{at: 61}]}", "stages[0]: teacher.checkpoints: at = 61 is beyond the teacher's 60 steps"),
        ("teacher: {checkpoints: [{at: 5, steps: 24}, {at: last}]}", "the last begins at step 25 of a student of 24 steps"),
        ("teacher: {checkpoints: [{at: 5}, {at: last}]}", "each but the last needs its steps"),
        ("teacher: {checkpoints: [{at: 5, steps: 2}]}", "the last stays to the student's end"),
        ("teacher: {checkpoints: [{at: lst}]}", "at = 'lst' must be a step, last, or a rule such as"),
        ("teacher: {checkpoints: [{at: {accuracy: 0.7}}]}", "at.every is missing"),
        ("teacher: {checkpoints: [{at: {accuracy: 75, every: 5}}]}", "at.accuracy = 75 must be a share"),
        ("teacher: {checkpoints: [{at: {acuracy: 0.7, every: 5}}]}", "did you mean"),
        ("teacher: {checkpoints: [{at: {every: 5, plus: 3}}]}", "at.plus = 3 must be a multiple of at.every = 5"),
        ("teacher: {checkpoints: [{at: {every: 61}}]}", "at.every = 61 is beyond the teacher's 60 steps"),
        ("teacher: {checkpoints: [{at: {every: 20, plus: 60}}]}", "at.plus = 60 leads out of the teacher's 60 steps"),
        ("teacher: {checkpoints: [{at: {every: 25, plus: 50}}]}", "at.plus = 50 leads out of the teacher's 60 steps"),
        ("teacher: {checkpoints: [{at: {every: 25, plus: -50}}]}", "from any of the steps 25, 50"),
        ("teacher: {checkpoints: [{at: {every: 5, sequences: 2000000000}}]}", "must be from 1 to 1,000,000,000"),
        ("teacher: {seed: 9999999999999999999}", "must be a whole number from 0 to 2^63 - 1"),
        ("teacher: {checkpoints: [{at: 5}], shots: 2}", "leave out shots, steps and kappa"),
        ("teacher: {shots: 4, steps: 8}", "3 checkpoints for 8 steps each leave no step for the last of a student of 24 steps"),
        ("teacher: {shots: 2, steps: 24}", "1 checkpoint for 24 steps each leaves no step for the last"),
        ("teacher: {shots: 4, steps: 2, kappa: 0.5}", "leave one of them out"),
        ("teacher: {kappa: 0.5}", "write teacher.shots"),
        ("teacher: {shots: 25}", "teacher.shots = 25 is more than the 24 steps"),
        ("teacher: {shots: 4, kappa: 1.5}", "teacher.kappa = 1.5 must be above 0, at most 1"),
        ("teacher: {shot: 4}", "did you mean stages[0].teacher.shots?"),
        ("teacher: {seed: -1}", "teacher.seed = -1"),
        ("temperature: -1", "stages[0]: temperature = -1 must be 0 (the teacher's argmax)"),
        ("temperature: 1e-40", "or at least 1e-30"),
        ("temprature: 1", "did you mean temperature?"),
        ("init: previous", "so its weights don't fit"),
        ("task: {length: 9}", "the teacher has 8 tokens a string and the student 9: give both the same task"),
    ],
)
def test_bad_schedules_are_one_sentence(tmp_path, words, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        study.load(write_study(tmp_path), ["conditions=null", _student(words)])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["stages=[{labels: teachr}]"], "must be task, previous or teacher; did you mean teacher?"),
        (["stages=[{init: previous, temperature: 0.5}]"], "temperature and teacher apply only to labels: teacher"),
        (["stages=[{model: {width: 8}}]"], "takes nothing from the stage before it"),
        (["stages=[{model: {widht: 8}, labels: teacher}]"], "did you mean model.width?"),
        (
            [
                "task={name: hierarchical_parity, length: 20, depth: 2, degree: 2}",
                "stages=[{task: {depth: 1}, labels: teacher}]",
            ],
            "the teacher has 4 classes and the student 2",
        ),
    ],
)
def test_other_slips_are_one_sentence(tmp_path, words, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        study.load(write_study(tmp_path), ["conditions=null", *words])
