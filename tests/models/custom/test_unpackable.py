"""Users' modules that a pack can't run: the sentence has the line, what it does, and what to write instead."""

import pytest
import torch

from harness.draw import Draw
from models.custom.custom import allow, configure

HERE = "tests.models.custom.unpackable_modules"
LINE = r"line \d+ of unpackable_modules.py"
TENSORS = f"{LINE} takes a value out of a tensor; compute with tensors alone"
BRANCH = f"{LINE} branches on a value, of which each replicate has its own; choose with torch.where, and drop asserts on values"
SHAPED = f"{LINE} makes a tensor whose shape depends on values; keep the shape, and choose with torch.where"
SHARED = f"{LINE} writes what differs between replicates into a tensor that all of them share; make that tensor from one with weights"
FUNCTION = f"{LINE} calls a torch.autograd.Function .*; give it a staticmethod setup_context .* generate_vmap_rule = True"
DATA = f"{LINE} uses .data; write x.detach\\(\\) for the values without their gradient"
SPARSE = f"{LINE} uses a sparse tensor; make it dense"
GRADIENT = f"{LINE} takes a gradient inside forward; write torch.func.grad instead of torch.autograd or backward"
OUT = f"{LINE} writes with out=; leave it out, and use what the function returns"
AUTOCAST = r"line \d+ of \w+.py computes under torch.autocast"
PRECISION = "leave that out, and write train.precision: bf16 in the study for half precision"
WRITING = f"{LINE} writes into the tokens, which others read too; begin forward with tokens = tokens.clone\\(\\)"
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
        ("Masked", SHAPED),
        ("Repeated", SHAPED),
        ("Asserting", BRANCH),
        ("Encoded", SHARED),
        ("Counted", SHARED),
        ("Placed", SHARED),
        ("OneHot", f"{LINE} calls one_hot without num_classes; give it the number of classes"),
        (
            "Generated",
            f"{LINE} draws random numbers; leave them out, or draw them in __init__ and keep them with register_buffer",
        ),
        ("OwnFunction", FUNCTION),
        ("RulelessFunction", FUNCTION),
        ("DataRead", DATA),
        ("DataSet", DATA),
        ("Sparse", SPARSE),
        ("SparseMade", SPARSE),
        ("Adapting", GRADIENT),
        ("AdaptingCopy", GRADIENT),
        ("AdaptingAlways", r"raised RuntimeError in forward under torch.no_grad for int64 tokens .*\(\w+.py, line \d+\)"),
        ("Outside", r"line 5 of unpackable_layers.py takes a value out of a tensor"),
        ("Checkpointed", ".* calls torch.utils.checkpoint; leave that out"),
        ("Exchanged", OUT),
        ("Joined", OUT),
        ("Exported", rf"{LINE} fails there \(.+\); use operations that torch.func supports"),
        ("Autocast", f"{AUTOCAST}; {PRECISION}"),
        ("AutocastDecorator", f"{AUTOCAST}; {PRECISION}"),
        ("Capped", WRITING),
        ("Hiding", WRITING),
        ("HidingCarefully", WRITING),
    ],
)
def test_what_a_pack_can_not_run_is_one_sentence_with_the_line_and_the_remedy(name, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        make(name)
    assert "\n" not in str(refused.value)
    assert "file a bug" not in str(refused.value)


def test_autocast_may_be_turned_off():
    assert make("WithoutAutocast")(torch.zeros(2, 3, 12, dtype=torch.long)).dtype == torch.float32
