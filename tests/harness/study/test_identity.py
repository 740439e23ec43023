import dataclasses
import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import models
import tasks
from harness.study.config import Condition, build, from_dict, to_dict
from harness.study.identity import canonical, describe, key, set_hash, typed
from harness.study.training_options import SCHEDULES, Monitor, Train
from models.lstm import LSTM
from models.transformer.transformer import Transformer
from tasks.flipflop.flipflop import FlipFlop

SMALL = {"name": "transformer", "layers": 2, "width": 64, "heads": 4}
BASELINE = {"name": "transformer"}

# task, model, train, init_seed, data_seed, key: part of every committed result, never to be edited
GOLDEN = [
    ({}, BASELINE, {}, 0, 0, "710b4dc59db92d90cbce3067919e5a0d"),
    ({}, BASELINE, {}, 1, 1, "444cbbe1a50e7e526aaf009d885586ff"),
    ({}, BASELINE, {}, 0, 1, "1db9f0b74e522f8990376465510426d3"),
    ({}, BASELINE, {}, 1, 0, "7a3bc4bb13bfd66e9ec617e322d8b678"),
    ({}, BASELINE, {}, 499, 499, "0a5feaeb9b4d5e8642173fbc067b0c6c"),
    ({}, BASELINE, {}, 2**63 - 1, 0, "0b0c3add00c9fde21ce3e2636c31e81e"),
    ({}, {"name": "lstm"}, {"steps": 500}, 0, 0, "d97537fa2ae0cf664ef702921a871eed"),
    ({}, {"name": "lstm"}, {"steps": 500}, 99, 99, "5e1bb6fd3ec3e17adadb0e53d923763a"),
    ({}, {"name": "lstm", "width": 64}, {"steps": 500}, 0, 0, "be15c750f1c05c387c6110980e53ecfa"),
    ({"length": 64}, SMALL, {"steps": 4000, "lr": 0.001}, 0, 0, "30036ccc15c3a8735490904790f0f503"),
    ({"length": 64}, {"name": "lstm"}, {"steps": 500}, 0, 0, "1294639dfc046f7fe4da803823804ba6"),
    ({"p_ignore": [0.9, 0.98, 0.1]}, BASELINE, {}, 0, 0, "7e7dfb901b9814a2704089bb93e8bed5"),
    ({"p_ignore": 1, "p_write": 0, "p_read": 0}, BASELINE, {}, 0, 0, "0da08130bad0b12892e807fa45fbe001"),
    ({"mode": "generative"}, BASELINE, {}, 0, 0, "9d1d0a58cef4459121aaddf4c46256e5"),
    ({"symbols": 4, "p_write": 0.15}, {"name": "transformer", "head_dim": 32}, {}, 0, 0, "24eb5e23b751305afdee65d14b85cb05"),
    ({}, {"name": "transformer", "positions": "none"}, {}, 0, 0, "8f6524ff081ac244aa8e3033d1108789"),
    ({}, {"name": "transformer", "activation": "relu", "norm": "none"}, {}, 0, 0, "65effd85da244031ebfa76b8b8a650e8"),
    ({}, BASELINE, {"betas": [0.85, 0.95], "weight_decay": 0}, 0, 0, "dab0f6f48d3f4729ae15da44a2ff0121"),
    ({}, BASELINE, {"schedule": "constant", "warmup": 0, "batch": 64}, 0, 0, "efb77b305de0488997cb5e1edfed50ea"),
    ({}, BASELINE, {"precision": "bf16", "lr": 0.003}, 5, 7, "6f2b62ed1d797f990f454bc414c5d9cb"),
]


def _condition(task, model, train):
    return Condition("any name", build("task", {"name": "flipflop"} | task), build("model", model), build("train", train))


def _key(task, model, train, init=0, data=0):
    return key(_condition(task, model, train).config(), 0, init, data)


@pytest.mark.parametrize(("task", "model", "train", "init", "data", "expected"), GOLDEN)
def test_the_golden_keys(task, model, train, init, data, expected):
    assert _key(task, model, train, init, data) == expected


def test_there_are_twenty_golden_keys_and_they_differ():
    assert len({golden[-1] for golden in GOLDEN}) == 20


def test_the_key_of_an_experiment_hashes_its_function_settings_code_and_seed():
    code = "0123456789abcdef0123456789abcdef"
    config = {"experiment": {"name": "my_module:measure", "settings": {"temperature": 0.7}}, "code": code}
    text = (
        f'{{"code":"{code}","data_seed":3,"experiment":{{"name":"my_module:measure","settings":{{"temperature":0.7}}}},'
        '"init_seed":3}'
    )
    expected = hashlib.sha256(text.encode()).hexdigest()[:32]
    assert key(config, 0, 3, 3) == expected == "7d39edc5d6126507a32cd258ac5994a7"


def test_a_key_is_the_hash_of_json_that_anyone_can_write():
    text = '{"data_seed":1,"init_seed":0,"model":{"name":"lstm"},"task":{"length":64,"name":"flipflop"},"train":{"lr":0.001,"steps":500}}'
    expected = hashlib.sha256(text.encode()).hexdigest()[:32]
    assert _key({"length": 64, "p_ignore": 0.8}, {"name": "lstm"}, {"lr": 1e-3, "steps": 500}, 0, 1) == expected


# a changed default would give old keys a new meaning without changing them
@pytest.mark.parametrize(
    ("config", "defaults"),
    [
        (
            FlipFlop(),
            {"length": 512, "p_ignore": 0.8, "p_write": None, "p_read": None, "mode": "deterministic", "symbols": 2},
        ),
        (
            Transformer(),
            {
                "layers": 6,
                "width": 512,
                "heads": 8,
                "head_dim": None,
                "positions": "learned",
                "activation": "gelu",
                "norm": "pre",
            },
        ),
        (LSTM(), {"width": 128}),
        (
            Train(),
            {
                "steps": 10000,
                "batch": 16,
                "optimizer": "adamw",
                "lr": 3e-4,
                "betas": (0.9, 0.999),
                "weight_decay": 0.1,
                "warmup": 50,
                "schedule": "linear",
                "precision": "fp32",
            },
        ),
    ],
)
def test_defaults_never_change(config, defaults):
    assert {name: getattr(config, name) for name in defaults} == defaults


def _extended(kind):
    """The same dataclass with one more option."""
    return dataclasses.make_dataclass(kind.__name__, [("new_option", float, 0.5)], bases=(kind,), frozen=True)


def test_a_new_option_with_a_default_changes_no_key(monkeypatch):
    monkeypatch.setitem(tasks.REGISTRY, "flipflop", _extended(FlipFlop))
    monkeypatch.setitem(models.REGISTRY, "transformer", _extended(Transformer))
    monkeypatch.setitem(models.REGISTRY, "lstm", _extended(LSTM))
    monkeypatch.setattr("harness.study.config.Train", _extended(Train))
    for task, model, train, init, data, expected in GOLDEN:
        assert _key(task, model, train, init, data) == expected
    assert _key({"new_option": 0.25}, BASELINE, {}) != GOLDEN[0][-1]


def test_a_new_revision_changes_the_key(monkeypatch):
    before = _key({}, BASELINE, {})
    monkeypatch.setattr(Transformer, "rev", 2)
    assert _key({}, BASELINE, {}) != before


def test_only_trainings_with_a_plateau_have_a_new_revision():
    plateau = Train(schedule="plateau", monitor=Monitor(512, 100))
    assert describe(plateau)["rev"] == 2
    assert all("rev" not in describe(Train(schedule=schedule)) for schedule in SCHEDULES if schedule != "plateau")


def test_a_condition_of_another_revision_is_refused(monkeypatch):
    written = to_dict(_condition({}, BASELINE, {}))
    monkeypatch.setattr(Transformer, "rev", 2)
    with pytest.raises(ValueError, match=r"revision 1 .*transformer .*2"):
        from_dict(written)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _reversed(tree):
    if isinstance(tree, dict):
        return {name: _reversed(tree[name]) for name in reversed(tree)}
    return [_reversed(each) for each in tree] if isinstance(tree, list) else tree


@given(TREES)
def test_canonical_json_knows_no_order_of_keys_and_reads_back(tree):
    assert canonical(tree) == canonical(_reversed(tree))
    assert json.loads(canonical(tree)) == tree


@given(lr=st.integers(1, 5), decay=st.integers(0, 5), steps=st.integers(1, 10**6), task=st.permutations(["length", "symbols"]))
def test_the_spelling_of_numbers_and_the_order_of_options_change_no_key(lr, decay, steps, task):
    values = {"length": 64, "symbols": 3}
    one = _key({name: values[name] for name in task}, SMALL, {"lr": lr, "weight_decay": decay, "steps": steps})
    other = _key(values, _reversed(SMALL), {"steps": float(steps), "weight_decay": float(decay), "lr": float(lr)})
    assert one == other
    direct = Condition("c", FlipFlop(64, symbols=3), Transformer(2, 64, 4), Train(steps=steps, lr=lr, weight_decay=decay))
    assert key(direct.config(), 0, 0, 0) == one


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"deep": [math.nan]}])
def test_numbers_without_json_are_refused(value):
    with pytest.raises(ValueError, match="canonical JSON"):
        canonical(value)


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", {1: "one"}, {"deep": (1, {2})}, FlipFlop(), 1j])
def test_what_json_cannot_represent_is_refused(value):
    with pytest.raises(TypeError):
        canonical(value)


def test_minus_zero_is_zero():
    assert canonical(typed(float, -0.0, "x")) == "0.0"


@pytest.mark.parametrize(
    ("kind", "value"), [(int, 1.5), (int, True), (float, "1"), (float, math.nan), (str, 1), (tuple[float, float], [1])]
)
def test_values_of_another_type_are_refused(kind, value):
    with pytest.raises(ValueError, match=r"train\.option = "):
        typed(kind, value, "train.option")


def test_a_later_stage_hashes_its_parent():
    config = _condition({}, BASELINE, {}).config()
    first = key(config, 0, 0, 0)
    assert len({first, key(config, 1, 0, 0, first), key(config, 1, 0, 0, "0" * 32), key(config, 2, 0, 0, first)}) == 4
    for stage, parent in ((1, None), (0, first)):
        with pytest.raises(ValueError, match="stage"):
            key(config, stage, 0, 0, parent)


def test_a_set_hash_follows_from_task_size_seed_and_cadence():
    sparse, dense = (describe(FlipFlop(p_ignore=p), "flipflop") for p in (0.98, 0.1))
    hashes = [
        set_hash(sparse, 1000, 0),
        set_hash(dense, 1000, 0),
        set_hash(sparse, 1001, 0),
        set_hash(sparse, 1000, 1),
        set_hash(sparse, 1000, 0, 100),
    ]
    assert len(set(hashes)) == 5
    assert hashes[0] == "6ffcb84784a21c0d"
