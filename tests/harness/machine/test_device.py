"""MKL taking another maker's processor for Intel's: rows say so, and packs change no bits then either."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.machine.device import numerics

CPU = torch.device("cpu")
ASK = """
import json, torch
from harness.machine.device import numerics, prepare
from models.aligned import product
prepare(torch.device("cpu"))
make = torch.Generator().manual_seed(0)
same = []
for rows, inputs, outputs in ((256, 64, 64), (37, 5, 3), (640, 160, 1065)):
    x, weight = (torch.randn(5, *shape, generator=make, requires_grad=True) for shape in ((rows, inputs), (inputs, outputs)))
    alone = [(x[i : i + 1].detach().clone().requires_grad_(), weight[i : i + 1].detach().clone().requires_grad_()) for i in range(5)]
    for one, (a, b) in zip(product(x, weight), alone):
        out = product(a, b)[0]
        same.append(torch.equal(one, out))
        out.square().sum().backward()
    product(x, weight).square().sum().backward()
    same += [torch.equal(x.grad[i], a.grad[0]) and torch.equal(weight.grad[i], b.grad[0]) for i, (a, b) in enumerate(alone)]
print(json.dumps([json.loads(numerics(torch.device("cpu"), "fp32")).get("mkl"), all(same)]))
"""


def _another_makers() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return torch.backends.mkl.is_available() and cpuinfo.exists() and "GenuineIntel" not in cpuinfo.read_text()


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_forced_kernels_are_named_and_do_not_depend_on_the_pack(tmp_path):
    command = re.search("^echo 'int mkl_serv_intel_cpu_true.*$", Path("docs/reference/training.md").read_text(), re.MULTILINE)
    assert command is not None
    subprocess.run(command[0], shell=True, cwd=tmp_path, check=True)
    told = []
    for preloaded in ({}, {"LD_PRELOAD": str(tmp_path / "mkl.so")}):
        done = subprocess.run(
            [sys.executable, "-c", ASK], env=os.environ | preloaded, capture_output=True, text=True, check=True
        )
        told.append(json.loads(done.stdout))
    assert told == [[None, True], ["Intel's kernels, forced" if _another_makers() else None, True]]


def test_numerics_without_it_are_as_they_were():
    assert "mkl" not in json.loads(numerics(CPU, "fp32"))
