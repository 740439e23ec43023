"""The section on P8 says what the rows of its seven studies and the verdicts on them say."""

import re

import numpy as np
import pytest

from results.claims import scoreboard
from results.claims.distillation.parity import TRANSITION, looks_of, reached, said
from results.claims.distillation.students import median
from results.claims.evidence import gather
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

STUDIES = (
    "p8",
    "p8-30-seeds",
    "p8-50-seeds",
    "p8-both-temperatures",
    "p8-two-heads",
    "p8-slow-students",
    "p8-short-first-phase",
)
STUDENTS = {
    "two_shot_1e_4": "one checkpoint in the transition, then the last, temperature 1e-4",
    "two_shot_1": "the same at temperature 1",
    "progressive": "the checkpoints in order",
    "one_shot": "the last, temperature 1",
    "one_shot_cold": "the last, temperature 1e-4",
    "labels": "labels",
}
TEACHERS = {"p8-30-seeds": 30, "p8-50-seeds": 50, "p8-both-temperatures": 40, "p8-two-heads": 14}


def opened(name):
    return open_store(str(ROOT / "docs/studies/distillation"), name)


def conditions_of(name):
    """The conditions of a study by name, and the accuracy of each replicate by step."""
    store = opened(name)
    rows = read_study(store, manifest_of(store))
    evidence = gather(manifest_of(store), rows.replicates, evaluations=rows.evaluations)
    return {condition.name.partition(",")[0]: condition for condition in evidence.conditions}, looks_of(evidence)


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/distillation/README.md").read_text()
    (found,) = re.findall(r"\n## A transformer's checkpoint in the transition.*?(?=\n## )", page, re.DOTALL)
    return " ".join(found.split())


@pytest.fixture(scope="module")
def studies():
    return {name: conditions_of(name) for name in STUDIES}


def test_the_table_has_the_steps_and_the_errors_of_the_rows(studies, section):
    for name, words in STUDENTS.items():
        cells = []
        for conditions, seen in studies.values():
            if name not in conditions:
                cells.append("–")
                continue
            steps, errors = reached(seen, conditions[name], 0.9), conditions[name].wrong("test")
            cells.append(f"{said(median(steps))}; {int((errors == 0).sum())} of {len(errors)}")
        assert f"| {words} | {' | '.join(cells)} |" in section


def test_teachers_without_a_transition_are_counted(studies, section):
    late = [each - len(studies[name][0]["two_shot_1e_4"].ended) for name, each in TEACHERS.items()]
    *most, last = (f"{few} of the {each}" for few, each in zip(late, TEACHERS.values(), strict=True))
    assert f"{', '.join(most)} and {last} teachers never reach an accuracy of 0.75" in section


def test_the_verdicts_and_the_chances_are_those_of_the_claim(section):
    for study in STUDIES:
        (verdict,) = (each for each in scoreboard(opened(study)) if each.claim.id == "PD-P8")
        assert re.search(rf"\| `{study}` \| \d\d[a-z ]* \| {re.escape(verdict.verdict)} \|", section)
        for chance in re.findall(r"P = ([\d.]+ \[[\d.]+, [\d.]+\])", verdict.finding.measured):
            assert re.search(rf"\| `{study}` \|[^`]* {re.escape(chance)} \|", section)


def test_the_gap_is_that_of_the_verdict_and_of_the_study_before(studies, section):
    (verdict,) = scoreboard(opened("p8-both-temperatures"))
    teacher, labels = re.search(r"teacher is at step ([\d,]+), that of labels at ([\d,]+) of", verdict.finding.reason).groups()
    assert teacher == labels
    assert f"made their transition by step {teacher}, and so have half of the students of labels" in section
    conditions, seen = studies["p8-50-seeds"]
    own = {name: said(median(reached(seen, conditions[name], TRANSITION))) for name in ("teacher", "labels")}
    assert f"teachers took {own['teacher']} steps and students of labels {own['labels']}" in section


def times(studies, name):
    """Median steps to the transition by condition, as words, and the steps to 0.9 of each student of a middle checkpoint."""
    conditions, seen = studies[name]
    medians = {own: said(median(reached(seen, condition, TRANSITION))) for own, condition in conditions.items()}
    return medians, list(reached(seen, conditions["two_shot_1e_4"], 0.9).values())


def late(steps, after):
    return sum(after < step < float("inf") for step in steps)


def test_the_wider_gap_is_that_of_the_rows(studies, section):
    medians, steps = times(studies, "p8-two-heads")
    assert medians["labels"] == "never"
    assert f"by a median of {medians['teacher']} steps; most students of labels never do" in section
    assert f"Of the {len(steps)} students of a middle checkpoint, {late(steps, 4000)} pass 0.9 only after step 4,000" in section


def test_a_short_first_phase_has_the_gap_and_the_late_students_of_the_rows(studies, section):
    medians, steps = times(studies, "p8-short-first-phase")
    assert medians["labels"] == "never"
    assert f"by a median of {medians['teacher']} steps, and most students of labels never do" in section
    assert f"Of the {len(steps)} students, {late(steps, 1500)} pass 0.9 only after step 1,500" in section
    conditions, seen = studies["p8-two-heads"]
    right = reached(seen, conditions["two_shot_1e_4"], 0.7)
    soon = sum(step <= 1000 for step in right.values())
    assert f"{soon} of {len(right)} students had an accuracy of 0.7 by step 1,000" in section


def test_the_gap_and_the_late_students_of_slow_ones_are_those_of_the_rows(studies, section):
    medians, steps = times(studies, "p8-slow-students")
    assert f"their transition by a median of {medians['teacher']} steps and labels by {medians['labels']}" in section
    assert (
        f"an accuracy of 0.75 by a median of {medians['two_shot_1e_4']} steps, but {late(steps, 4000)} of the {len(steps)} pass 0.9"
        in section
    )


def test_students_whose_teacher_has_a_transition_are_counted_apart(studies, section):
    """The other rows of the table keep the seeds of teachers without one, which P leaves out."""
    steps, right = {}, []
    for name in TEACHERS:
        conditions, seen = studies[name]
        middle, alone = (reached(seen, conditions[own], 0.9) for own in ("two_shot_1e_4", "one_shot_cold"))
        steps[name] = {seeds: alone[seeds] for seeds in middle}, middle
        errors = conditions["one_shot_cold"].wrong_by_seeds("test")
        right.append(sum(errors[seeds] == 0 for seeds in middle))
    *some, never = (said(median(alone)) for alone, _ in steps.values())
    assert never == "never"
    assert f"a median of {', '.join(some[:-1])} and {some[-1]} steps, and never in `p8-two-heads`" in section
    assert f"and {', '.join(map(str, right[:-1]))} and {right[-1]} of them end without an error" in section
    both, late = (said(median(each)) for each in steps["p8-both-temperatures"])
    assert f"in `p8-both-temperatures` they are right sooner by the medians, after {both} steps against {late}, but" in section
    lost = sum(step == float("inf") for step in steps["p8-both-temperatures"][0].values())
    assert f"{lost} of these {len(steps['p8-both-temperatures'][0])} never are" in section
    conditions, _ = studies["p8-50-seeds"]
    errors, counted = conditions["one_shot_cold"].wrong_by_seeds("test"), steps["p8-50-seeds"][1]
    wrong = [seeds for seeds, error in errors.items() if error > 0]
    without = sum(seeds not in counted for seeds in wrong)
    assert (
        f"{len(wrong)} of {len(errors)} still err at the end; {without} of these {len(wrong)} have a teacher without" in section
    )


def test_students_of_a_middle_checkpoint_err_least_in_every_study_but_are_not_always_first(studies, section):
    first = 0
    for conditions, seen in studies.values():
        share = {own: np.mean(conditions[own].wrong("test") == 0) for own in STUDENTS if own in conditions}
        assert all(share["two_shot_1e_4"] > share[own] for own in ("one_shot", "one_shot_cold", "labels") if own in share)
        steps = {own: median(reached(seen, conditions[own], 0.9)) for own in ("two_shot_1e_4", "labels")}
        first += steps["labels"] < steps["two_shot_1e_4"]
    assert first == 2
    assert "in two of the seven, students of labels reach an accuracy of 0.9 sooner by the medians" in section
