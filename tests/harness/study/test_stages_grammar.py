"""What a study may say of stages, what is refused in one sentence, and the keys that follow."""

import re
from pathlib import Path

import pytest

from harness.planning.plan import replicates_of, signature
from harness.study import load as study
from tests.harness.chained import write_study


def test_a_first_stage_is_the_training_without_stages(tmp_path):
    with_stages = study.load(write_study(tmp_path))
    alone = study.load(write_study(tmp_path), ["conditions=null"])
    keys = [each.key for each in replicates_of(with_stages.conditions)]
    assert [each.key for each in replicates_of(alone.conditions)] == keys[:3]
    assert len(set(keys)) == 12
    assert signature(alone.conditions[0]) == signature(with_stages.conditions[0])


STAGE = "{task: {length: 4}, labels: previous}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("stages=[{task: {length: 12}, labels: previous}]", "task.length = 12 needs 13 different variables"),
        (
            "stages=[{labels: previos}]",
            "stages[0].labels = 'previos' must be task, previous or teacher; did you mean previous?",
        ),
        ("stages=[{labels: previous, begin: fresh}]", "stages[0] has no key 'begin'"),
        ("stages=[{task: {length: 4}}]", "stages[0] takes nothing from the stage before it"),
        ("stages={labels: previous}", "must be a list of mappings"),
        (f"stages=[{STAGE}, {{train: {{stepz: 3}}, init: previous}}]", "stages[1]: train.stepz is not an option"),
        ("stages=[{task: {variables: 14}, init: previous}]", "its weights don't fit"),
        ("stages=[{model: {heads: 1}, labels: previous}]", "the labels would come from another model"),
        (
            f"stages=[{STAGE}] model={{name: lego_transformer, width: 20, heads: 5, positions: learned}}",
            "has no rows for lengths",
        ),
    ],
)
def test_bad_stages_are_one_sentence(tmp_path, words, sentence):
    overrides = ["conditions=null", *re.split(r" (?=model)", words)]
    with pytest.raises(ValueError, match=re.escape(sentence)):
        study.load(write_study(tmp_path), overrides)


def test_stages_stand_beside_a_number_of_replicates(tmp_path):
    words = ["replicates={min: 2, max: 4, until: {zero_error: {set: two, half_width: 0.1}}}"]
    with pytest.raises(ValueError, match=r"adaptive .*: give replicates a number"):
        study.load(write_study(tmp_path), words)


def test_no_condition_is_called_like_a_stage_of_another(tmp_path):
    path = Path(write_study(tmp_path))
    path.write_text(path.read_text().replace("  warm:", '  "warm, stage 1": {train.lr: 0.5}\n  warm:'))
    with pytest.raises(ValueError, match="two different conditions are called 'warm, stage 1': rename"):
        study.load(path)
