"""Options in a manifest have the kinds that tasks, models and trainings declare, whichever of them the study has."""

import copy
import json
from pathlib import Path

import pytest

from harness.planning.manifest import build, to_bytes
from harness.planning.plan import plan
from harness.study.load import from_tree
from harness.study.option_kinds import option_kinds
from results.store import manifest_schema
from results.store.manifest import manifest_of
from results.store.tables import open_store

ROOT = Path(__file__).parents[3]
WRONG = {"x": {"y": []}}  # of no kind that an option has, but for mappings of other names


def committed(study):
    folder = next(path.parent for path in (ROOT / "docs/studies").rglob("newest_manifest") if path.parent.name == study)
    return manifest_of(open_store(folder.parent, study))


def test_readers_have_the_kinds_that_the_annotations_say():
    held = json.loads((ROOT / "results/store/option_kinds.json").read_text())
    assert held == option_kinds(), "python -m harness.study.option_kinds > results/store/option_kinds.json"


@pytest.mark.parametrize("study", ["a5", "fflm-quick", "lego-self-training", "alignment", "p9"])
def test_an_option_of_another_kind_is_refused_wherever_it_stands(study):
    content = committed(study)
    for section in ("settings", "config"):
        for part in ("task", "model", "train"):
            for option in content["conditions"][0][section][part]:
                made = copy.deepcopy(content)
                made["conditions"][0][section][part][option] = [WRONG]
                assert option in manifest_schema.problem(made), (section, part, option)
    name = next(iter(content["conditions"][0]["sets"]))
    made = copy.deepcopy(content)
    made["conditions"][0]["sets"][name]["task"]["length"] = [7]
    assert "length" in manifest_schema.problem(made)


def test_the_options_of_earlier_stages_and_of_the_link_to_them_are_checked():
    content = committed("p1")
    place, later = next((i, each) for i, each in enumerate(content["conditions"]) if len(each["config"].get("stages", [])) > 1)
    for part, option in (("task", "length"), ("model", "width"), ("train", "lr")):
        made = copy.deepcopy(content)
        made["conditions"][place]["config"]["stages"][0][part][option] = [WRONG]
        assert option in manifest_schema.problem(made)
    for option in later["settings"]["stage"]:
        made = copy.deepcopy(content)
        made["conditions"][place]["settings"]["stage"][option] = [[WRONG]]
        assert option in manifest_schema.problem(made)


def test_a_list_of_heads_a_layer_is_no_wrong_kind():
    tree = {
        **{"name": "heads", "question": "?", "replicates": 1, "train": {"steps": 1}},
        **{"task": {"name": "associations"}, "model": {"name": "attn_only", "heads": [1, 1]}},
        "evaluate": {"sets": {"test": {"sequences": 4}}},
    }
    planned = plan(from_tree(tree), None, 16, numerics={})
    assert manifest_schema.problem(json.loads(to_bytes(build(planned, {}, {})))) == ""
