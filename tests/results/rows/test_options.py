"""Nested options as one flat mapping."""

from harness.run import run
from harness.study.load import from_tree
from results import load
from results.report.report import write_report
from results.rows.options import flatten
from results.store.tables import open_store

MODULE = """
from torch import nn


class Net(nn.Module):
    def __init__(self, vocabulary, length, width=8):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.embed(tokens))
"""


def test_fields_of_a_persons_own_class_are_options_like_others():
    settings = {"name": "mine:Net", "options": [["width", 32], ["sizes", [1, 2]]], "rev": 1}
    flat = {"model.name": "mine:Net", "model.width": 32, "model.sizes": [1, 2], "model.rev": 1}
    assert flatten({"model": settings}) == flat
    assert flatten(settings, "model.") == flat
    for value in ([], [1, 2], [["a", 1], ["b"]], "words"):
        assert flatten({"model": {"options": value}}) == {"model.options": value}
    # a setting of an experiment may have this name too
    assert flatten({"experiment": {"options": [["a", 1]]}}) == {"experiment.options": [["a", 1]]}


def test_options_of_a_persons_own_model_stand_in_the_report_and_in_rows(tmp_path, monkeypatch):
    (tmp_path / "optional_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    from models.custom.custom import allow

    allow("optional_models")
    study = {
        **{"name": "mine", "task": {"name": "flipflop", "length": 8, "p_ignore": 0.5}},
        **{"model": {"name": "lstm", "width": 4}, "train": {"steps": 2, "warmup": 0, "batch": 2}},
        **{"evaluate": {"sets": {"sparse": {"p_ignore": 0.9, "sequences": 2}}}, "replicates": 1, "pack": {"size": 1}},
        "conditions": {"lstm": {}, "own": {"model": {"name": "optional_models:Net", "width": 6}}},
        **{"store": str(tmp_path / "runs"), "executor": "local", "wandb": "off"},
    }
    assert run(from_tree(study), say=lambda text: None) == 0
    rows = load(str(tmp_path / "runs"), "mine", "replicates", config=["model.width"])
    widths = {row["condition"]: row["model.width"] for row in rows.to_pylist()}
    assert widths == {"lstm": 4, "own": 6}
    page = write_report(open_store(tmp_path / "runs", "mine")).read_text()
    assert "model.options" not in page
