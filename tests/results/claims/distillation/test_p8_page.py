"""The section on forty fresh seeds of P8 says what its rows and its verdict say."""

import re

import pytest

from results.claims import scoreboard
from results.claims.distillation.parity import TRANSITION, looks_of, reached, said
from results.claims.distillation.students import median
from results.claims.evidence import gather
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

STUDENTS = {
    "two_shot_1e_4": "one checkpoint in the transition, then the last, temperature 1e-4",
    "one_shot": "the last, temperature 1",
    "one_shot_cold": "the last, temperature 1e-4",
    "labels": "labels",
}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/distillation"), "p8-both-temperatures")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/distillation/README.md").read_text()
    (found,) = re.findall(r"\n### Forty fresh seeds, both temperatures .*?(?=\n##|\Z)", page, re.DOTALL)
    return " ".join(found.split())


def test_the_table_has_the_steps_and_the_errors_of_the_rows(store, section):
    manifest = manifest_of(store)
    rows = read_study(store, manifest)
    evidence = gather(manifest, rows.replicates, evaluations=rows.evaluations)
    seen = looks_of(evidence)
    by_name = {condition.name.partition(",")[0]: condition for condition in evidence.conditions}
    for name, words in STUDENTS.items():
        steps, errors = reached(seen, by_name[name], 0.9), by_name[name].wrong("test")
        assert f"| {words} | {said(median(steps))} | {int((errors == 0).sum())} of {len(errors)} |" in section
    late = 40 - len(by_name["two_shot_1e_4"].ended)
    assert f"{late} of the 40 teachers never reach an accuracy of 0.75" in section


def test_the_sentences_have_the_medians_of_the_verdicts(store, section):
    (verdict,) = scoreboard(store)
    assert f"**PD-P8**: *{verdict.verdict}*" in section
    teacher, labels = re.search(r"teacher is at step ([\d,]+), that of labels at ([\d,]+) of", verdict.finding.reason).groups()
    assert teacher == labels
    assert f"made their transition by step {teacher}, and so have half of the students of labels" in section
    before = open_store(str(ROOT / "docs/studies/distillation"), "p8-50-seeds")
    rows = read_study(before, manifest_of(before))
    evidence = gather(manifest_of(before), rows.replicates, evaluations=rows.evaluations)
    seen = looks_of(evidence)
    own = {condition.name: said(median(reached(seen, condition, TRANSITION))) for condition in evidence.conditions}
    assert f"teachers took {own['teacher']} steps and students of labels {own['labels']}" in section
