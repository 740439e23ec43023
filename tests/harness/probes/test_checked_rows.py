"""Rows that a probe of one's own returns: written as they are meant, or refused in one sentence."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import models
import tasks
from harness.probes import registry
from harness.probes import run as probes
from harness.probes.checked_rows import checked_rows
from harness.probes.probe import PairProbe, Probe
from harness.study.config import Condition
from harness.study.training_options import Train
from harness.training.train import train
from results.errors import StudyError
from results.store.tables import commit, open_store, read
from tests.harness.packs import pack

CPU = torch.device("cpu")


def row(value=1.0, **given):
    return {"layer": None, "head": None, "item": "m", "value": value} | given


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (row(), r"the probe mine returned a dict .*: it must return a list of rows, each with layer, head, item, value$"),
        (None, "the probe mine returned None: it must return a list of rows"),
        (torch.ones(3), r"the probe mine returned a tensor of shape \[3\]: it must return a list of rows"),
        (
            [row(), ("m", 1.0)],
            r"row 2 of the probe mine is a tuple \(\('m', 1.0\)\): it must be a dict with layer, head, item, value$",
        ),
        ([{"value": 1.0}], "row 1 of the probe mine has value: it must have layer, head, item, value, and no other column"),
        ([{}], "row 1 of the probe mine has no columns: it must have layer, head, item, value"),
        ([row(extra=3)], "row 1 of the probe mine has layer, head, item, value, extra: it must have .*, and no other column"),
        (
            [row(layer="x")],
            "row 1 of the probe mine has layer = 'x': it must be a whole number, or None where there is no layer",
        ),
        ([row(layer=1.5)], "has layer = 1.5: it must be a whole number"),
        ([row(layer=True)], "has layer = True: it must be a whole number"),
        ([row(layer=2**40)], "has layer = 1099511627776: it must be a whole number"),
        ([row(head=torch.tensor(1))], r"has head = tensor\(1\): it must be a whole number, or None where there is no head"),
        ([row(item=3)], "row 1 of the probe mine has item = 3: it must be text, or None"),
        ([row(torch.ones(3))], r"row 1 of the probe mine has as value a tensor of shape \[3\]: it must be one number"),
        ([row(np.ones(1))], r"has as value an array of shape \[1\]: it must be one number"),
        ([row(None)], "has as value None: it must be one number"),
        ([row("1")], r"has as value a str \('1'\): it must be one number"),
        ([row(1j)], r"has as value a complex \(1j\): it must be one number"),
        (
            [row(1.0), row(3.0, layer=0), row(2.0)],
            r"rows 1 and 3 of the probe mine have the same place \(layer None, head None, item 'm'\)",
        ),
    ],
)
def test_rows_that_mean_nothing_are_refused_in_a_sentence(returned, reason):
    with pytest.raises(StudyError, match=reason):
        checked_rows("mine", returned)


@pytest.mark.parametrize("value", [1, True, np.float64(0.1), torch.tensor(0.1), torch.tensor(3), np.array(2), 0.1, math.inf])
def test_a_value_is_any_one_number_rounded_to_float32(value):
    (checked,) = checked_rows("mine", [row(value, layer=np.int64(2), head=0)])
    assert checked == {"layer": 2, "head": 0, "item": "m", "value": float(np.float32(float(value)))}
    assert type(checked["value"]) is float


def test_rows_of_several_places_and_undefined_values_stay():
    rows = [row(layer=layer, head=head, item=item) for layer in (None, 0) for head in (None, 1) for item in (None, "a", "b")]
    assert checked_rows("mine", rows) == rows
    assert checked_rows("mine", []) == []
    assert math.isnan(checked_rows("mine", [row(math.nan)])[0]["value"])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three replicates with their weights."""
    condition = Condition(
        "c", tasks.build("flipflop", length=6), models.configure("lstm", width=4), Train(steps=1, batch=2, warmup=0)
    )
    members = replace(pack(condition, [(1, 0), (2, 0), (3, 0)], sets=()), keep=True)
    store = open_store(str(tmp_path_factory.mktemp("runs")), "s")
    commit(store, members.id, train(members, store, CPU))
    return store


def said_by(store, monkeypatch, name, probe):
    monkeypatch.setitem(registry.PROBES, name, f"{__name__}:{name}")
    monkeypatch.setitem(globals(), name, probe)
    said = []
    probes.run([store], name, None, None, said.append)
    return said[0], [each for each in read(store, "probes").to_pylist() if each["probe"] == name]


def test_replicates_without_rows_are_not_counted_as_added(store, monkeypatch):
    answers = iter([[], [row()], []])
    first, rows = said_by(store, monkeypatch, "some", Probe(lambda *given: next(answers), lambda *given: True, "all"))
    assert first == "s: some of 1 replicate added, 0 had it, 2 gave no rows"
    assert len(rows) == 1
    first, rows = said_by(store, monkeypatch, "some", Probe(lambda *given: [], lambda *given: True, "all"))
    assert first == "s: some of 0 replicates added, 1 had it, 2 gave no rows"
    assert len(rows) == 1


def test_comparisons_without_rows_are_not_counted_as_added(store, monkeypatch):
    answers = iter([[row()], [], []])
    probe = PairProbe(lambda *given: None, lambda one, other: next(answers), lambda *given: True, "all")
    first, rows = said_by(store, monkeypatch, "pairs", probe)
    assert first == "s: pairs of 1 replicate added, 1 had it, 1 gave no rows"
    assert len(rows) == 1


@pytest.mark.parametrize(
    "probe",
    [
        Probe(lambda *given: None, lambda *given: True, "all"),
        Probe(lambda *given: [], lambda *given: True, "all", beside=lambda model, task: {"bad_beside": None}),
        PairProbe(lambda *given: None, lambda one, other: None, lambda *given: True, "all"),
    ],
    ids=["run", "beside", "compare"],
)
def test_the_command_checks_every_kind_of_row(store, monkeypatch, probe):
    with pytest.raises(StudyError, match=r"the probe bad(_beside)? returned None"):
        said_by(store, monkeypatch, "bad", probe)
