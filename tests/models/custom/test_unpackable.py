"""Users' modules that a pack can't run: the sentence has the line, what it does, and what to write instead."""

import pytest
import torch

from harness.draw import Draw
from models.custom.custom import allow, configure

HERE = "tests.models.custom.unpackable_modules"
LINE = r"line \d+ of unpackable_modules.py"
TENSORS = f"{LINE} takes a value out of a tensor; compute with tensors alone"
BRANCH = f"{LINE} branches on a value, of which each replicate has its own; choose with torch.where"
SHAPED = f"{LINE} makes a tensor whose shape depends on values; keep the shape, and choose with torch.where"
SHARED = f"{LINE} writes what differs between replicates into a tensor that all of them share; make that tensor from one with weights"
allow(HERE)


def make(name):
    return configure(f"{HERE}:{name}").make(Draw(torch.tensor([3, 1]), "init"), 5, 12)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Item", TENSORS),
        ("Listed", TENSORS),
        ("Stored", TENSORS),
        ("Branching", BRANCH),
        ("Compared", BRANCH),
        ("Chosen", SHAPED),
        ("Selected", SHAPED),
        ("Shifted", SHARED),
        ("Summed", SHARED),
        ("OwnFunction", f"{LINE} calls a torch.autograd.Function .*; give it a staticmethod setup_context"),
        ("Checkpointed", ".* calls torch.utils.checkpoint; leave that out"),
        ("Exchanged", rf"{LINE} fails there \(.+\); use operations that torch.func supports"),
        ("Autocast", "turns on autocast in forward: leave torch.autocast out, since train.precision is a setting of the study"),
        ("Capped", "writes into its tokens, which others read too: begin forward with tokens.clone()"),
    ],
)
def test_what_a_pack_can_not_run_is_one_sentence_with_the_line_and_the_remedy(name, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        make(name)
    assert "\n" not in str(refused.value)
    assert "file a bug" not in str(refused.value)


def test_autocast_may_be_turned_off():
    assert make("WithoutAutocast")(torch.zeros(2, 3, 12, dtype=torch.long)).dtype == torch.float32
