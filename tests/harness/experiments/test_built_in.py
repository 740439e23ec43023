"""A study of built-in experiments: its settings, keys, manifest, rows, report, and what is refused."""

import hashlib
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest

from harness.experiments import built_in
from harness.experiments.generation.verified_sampling import SAMPLERS
from harness.local import run_manifest
from harness.run import run
from harness.study.config import from_dict, to_dict
from harness.study.identity import key
from harness.study.load import from_tree
from results.claims.evidence import gather
from results.errors import StudyError
from results.report.report import write_report
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest
from results.store.manifest_schema import problem
from results.store.tables import committed, open_store, read
from tests.harness.killed import without_report
from tests.harness.tiny import tables

TREE = {
    "name": "walks",
    "question": "Does a walk repair a noisy value?",
    "experiment": {"name": "verified_sampling", "samples": 20, "horizon": 3, "noise": 1},
    "conditions": {"guided": {}, "walk": {"experiment": {"sampler": "vgb_first_leaf"}}},
    "replicates": 6,
    "executor": "local",
    "wandb": "off",
}


def study_of(*overrides, **changes):
    return from_tree(TREE | changes, overrides)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("built_in")
    said = []
    assert run(study_of(f"store={root}"), say=said.append) == 0
    return open_store(root, "walks"), said


def test_what_is_hashed_is_the_name_and_the_settings_that_are_not_defaults():
    config = study_of(experiment={"name": "verified_sampling", "noise": 1, "horizon": 4}).conditions[0].config()
    assert config == {"experiment": {"name": "verified_sampling", "settings": {"noise": 1.0}}}
    text = '{"data_seed":5,"experiment":{"name":"verified_sampling","settings":{"noise":1.0}},"init_seed":5}'
    assert key(config, 0, 5, 5) == hashlib.sha256(text.encode()).hexdigest()[:32] == "e21e17b66eec1869e15f06d6465bff68"


def test_a_revision_is_hashed_and_another_one_is_refused(monkeypatch):
    condition = study_of().conditions[0]
    monkeypatch.setattr(built_in.REGISTRY["verified_sampling"], "rev", 2)
    later = replace(condition)
    assert later.config()["experiment"]["rev"] == 2
    with pytest.raises(StudyError, match="has the revision 1 here and this code has 2"):
        from_dict({"name": "guided", "config": {"experiment": {"name": "verified_sampling", "settings": {}}}})
    assert from_dict(to_dict(later)).config() == later.config()


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (
            {"name": "verified_samplin"},
            "must be MODULE:FUNCTION, such as my_module:measure, or one of .*did you mean verified_sampling",
        ),
        ({"name": "verified_sampling", "horizont": 3}, "experiment.horizont is unknown; did you mean experiment.horizon?"),
        ({"name": "verified_sampling", "horizon": "deep"}, "experiment.horizon = 'deep' must be a whole number"),
        ({"name": "verified_sampling", "samples": 0}, "experiment.samples = 0 must be at least 1"),
        ({"name": "verified_sampling", "sources": ["x.py"]}, "experiment.sources belongs to code of your own"),
    ],
)
def test_a_setting_that_is_none_is_refused_in_one_sentence(experiment, message):
    with pytest.raises(StudyError, match=message):
        study_of(experiment=experiment, conditions={})


def test_claims_of_trainings_and_of_experiments_are_told_apart():
    with pytest.raises(StudyError, match=r"claims\.R2 is about trainings, and this study has experiments: leave it out"):
        study_of(claims={"R2": {"value": 1.0}})


def test_a_study_runs_without_leave_to_import_and_says_that_its_code_is_built_in(store):
    found, said = store
    assert any("verified_sampling: built in" in line for line in said)
    rows = committed(found)
    assert rows.num_rows == 12
    assert rows["own_git"].null_count == 12
    assert set(read(found, "evaluations")["metric"].to_pylist()) >= {"divergence", "distance", "steps", "generator_queries"}


def test_its_manifest_has_every_setting_and_a_schema_that_looks_at_them(store):
    manifest = newest_manifest(store[0])[1]
    settings = manifest["conditions"][1]["settings"]["experiment"]
    assert (settings["sampler"], settings["horizon"], settings["noise"], settings["mode"]) == (
        "vgb_first_leaf",
        3,
        1.0,
        "thesis",
    )
    assert manifest["metrics"]["leaf_mass"]["better"] == "higher"
    assert problem(manifest) == ""
    for name, value, wrong in (("horizon", "deep", "must be a whole number"), ("noise", 2.0, "another value than")):
        conditions = [dict(each) for each in manifest["conditions"]]
        conditions[1]["settings"] = {"experiment": settings | {name: value}}
        assert wrong in problem(manifest | {"conditions": conditions})
    trained = [each | {"config": {}} for each in manifest["conditions"]]
    assert "of one kind" in problem(manifest | {"conditions": trained})


def test_claims_read_values_by_their_own_names_and_whatever_way_is_better(store):
    found, manifest = store[0], newest_manifest(store[0])[1]
    rows = read(found, "evaluations")
    for better in ("lower", "higher"):
        stated = manifest | {"metrics": manifest["metrics"] | {"distance": {"better": better, "kind": "number"}}}
        evidence = gather(stated, replicates_of(stated, committed(found), rows, read(found, "failures")), evaluations=rows)
        assert evidence.conditions[0].settings["experiment.sampler"] == "guided"
        values = evidence.values(evidence.conditions[0], "distance")
        assert len(values) == 6
        assert ((values > 0) & (values < 1)).all()
    assert len(evidence.values(evidence.conditions[0], "steps")) == 0


def test_its_report_names_all_settings_and_no_foreign_code(store):
    page = write_report(store[0]).read_text()
    assert "<code>quota=4</code>" in page
    assert "The code of the experiment is part" not in page
    assert "Their code" not in page


def test_rows_do_not_depend_on_how_seeds_are_packed(store, tmp_path):
    assert run(study_of(f"store={tmp_path}", "pack={size: 1}"), say=lambda text: None) == 0
    assert tables(tmp_path, "walks") == tables(store[0].root, "walks")


def test_every_experiment_that_dies_again_and_again_ends_as_one_that_was_left_alone(tmp_path, monkeypatch):
    """All samplers and the weights of a k-gram, in packs of two and of one; a death is between packs or after a measurement."""
    settings = {"samples": 9, "horizon": 3, "steps": 20, "most": 200}
    made = {name: {"experiment": settings | {"name": "verified_sampling", "sampler": name}} for name in SAMPLERS}
    made["weights"] = {"experiment": {"name": "ngram_stationarity", "length": 8, "sequences": 128}}
    assert {each["experiment"]["name"] for each in made.values()} == built_in.REGISTRY.keys()
    without_report(monkeypatch)
    study = TREE | {"conditions": made, "replicates": 2, "pack": {"size": 2}}
    study.pop("experiment")
    assert run(from_tree(study, [f"store={tmp_path / 'whole'}"]), say=lambda text: None) == 0
    counted, deaths = [], [3, 8, 13]

    def dying(self, measure, draw):
        counted.append(draw.replicates)
        found = list(measure(self, draw))
        if len(counted) in deaths:
            raise KeyboardInterrupt
        return iter(found)

    for experiment in built_in.REGISTRY.values():
        monkeypatch.setattr(experiment, "measure", partialmethod(dying, experiment.measure))
    again = from_tree(study, [f"store={tmp_path / 'cut'}", "pack={size: 1}"])
    for _ in deaths:
        with pytest.raises(KeyboardInterrupt):
            run(again, say=lambda text: None)
    assert run(again, say=lambda text: None) == 0
    lost = sum(counted[death - 1] for death in deaths)
    assert sum(counted) == 2 * len(made) + lost  # what was measured is not measured again
    assert tables(tmp_path / "cut", "walks") == tables(tmp_path / "whole", "walks")


def test_a_manifest_alone_runs_it(store, tmp_path):
    manifest = max((Path(store[0].root) / "walks" / "manifests").iterdir(), key=lambda path: path.stat().st_mtime)
    assert run_manifest(manifest, str(tmp_path), "cpu") == 0
    assert set(tables(tmp_path, "walks")["evaluations"]) <= set(tables(store[0].root, "walks")["evaluations"])
