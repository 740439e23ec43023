"""The section `claims` of a study: checked on reading, kept in the manifest, part of no key; and the command that reads it."""

import json

import pytest
import yaml

from harness.planning import manifest
from harness.planning.plan import plan
from harness.study.load import from_tree
from launch.cli import main
from results.store.tables import open_store
from tests.harness.tiny import STUDY
from tests.results.claims.claim_rows import condition, write

CLAIMS = {"R2": {"value": 1.0, "of": 100}}
LSTM = {"model__name": "lstm", "model__layers": 1, "model__width": 128, "train__steps": 500}


def _study(claims=None, overrides=()):
    return from_tree(yaml.safe_load(STUDY) | ({"claims": claims} if claims else {}), overrides)


def _manifest(study):
    planned = plan(study, None, 2, numerics={"device": "cpu"})
    return planned, manifest.build(planned, {"device": "cpu"}, {"torch": "2.13.0"})


def test_claims_are_in_the_manifest_and_in_no_key():
    (planned, written), (plain, _) = _manifest(_study(CLAIMS)), _manifest(_study())
    assert written["claims"] == CLAIMS
    assert planned.replicates == plain.replicates
    assert [each.id for each in planned.packs] == [each.id for each in plain.packs]
    assert manifest.plan_of(manifest.read(manifest.to_bytes(written))).study.claims == CLAIMS


def test_a_manifest_from_before_claims_reads_still():
    planned, written = _manifest(_study())
    del written["claims"]
    assert manifest.plan_of(manifest.read(json.dumps(written).encode())) == planned


def test_claims_can_be_changed_on_the_command_line():
    assert _study(CLAIMS, ["claims.R2.replicates=50"]).claims == {"R2": {"value": 1.0, "of": 100, "replicates": 50}}


def test_a_claim_that_is_null_is_left_out():
    assert _study(CLAIMS | {"R1": {"value": 0.5}}, ["claims.R2=null"]).claims == {"R1": {"value": 0.5}}
    with pytest.raises(ValueError, match="claims has no key 'R22'; did you mean R2"):
        _study(CLAIMS, ["claims.R22=null"])


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"R22": {"value": 1.0}}, "claims has no key 'R22'; did you mean R2?"),
        ({"R2": {"valeu": 1.0}}, "claims.R2 has no key 'valeu'; did you mean value?"),
        ({"R2": {"of": 100}}, "claims.R2 = {'of': 100} must be a mapping with the paper's value"),
        ({"R2": 1.0}, "claims.R2 = 1.0 must be a mapping"),
        ({"R2": None}, "claims.R2 has no value: write one, such as {value: 0.5}, or leave the line out"),
        ({"R2": {"value": 1.0, "replicates": 2}}, "claims.R2.replicates = 2 must be at least 15"),
        (["R2"], "claims = ['R2'] must be a mapping"),
    ],
)
def test_a_wrong_section_is_one_sentence(claims, sentence):
    with pytest.raises(ValueError) as raised:
        _study(claims)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def _status(*words):
    try:
        main([*words])
    except SystemExit as ended:
        return ended.code
    return 0


def test_the_commands_status_is_that_of_the_verdicts(tmp_path, capsys):
    root = str(tmp_path)
    write(open_store(root, "good"), CLAIMS, [condition(100, **LSTM)])
    assert _status("claims", root) == 0
    assert "R2  reproduced\n" in capsys.readouterr().out
    write(open_store(root, "bad"), CLAIMS, [condition(20, 0.1, **LSTM)])
    assert _status("claims", root) == 1
    assert "R2  not reproduced\n" in capsys.readouterr().out
    assert _status("claims", root, "--study", "good") == 0
    write(open_store(root, "silent"), {}, [condition(2)])
    capsys.readouterr()
    for study, sentence in (("silent", "silent states no claim"), ("nowhere", "there is no study 'nowhere'")):
        assert _status("claims", root, "--study", study) == 2
        assert sentence in capsys.readouterr().err
