"""The study that is disturbed: real trainings of a second, with a user's own model that can be told to run out of memory."""

import subprocess
import sys
from pathlib import Path

from benchmarks.chaos.machines import environment

NAME = "chaos"
STUDY = """
name: chaos
question: Does a study notice what happens to its machines?
task: {{name: flipflop, length: 16}}
model: {{name: transformer, layers: 1, width: 16, heads: 2}}
train: {{steps: {steps}, batch: 4, lr: 1.0e-3, warmup: 5}}
evaluate:
  sets:
    sparse: {{p_ignore: 0.95, sequences: 100}}
    online: {{p_ignore: 0.95, sequences: 20, every: {every}}}
conditions:
  pairs: {{model: {{name: "chaos_models:Pairs"}}}}
  transformer: {{}}
  lstm: {{model: {{name: lstm, width: 8}}}}
replicates: {replicates}
wandb: off
"""

# elementwise and by look-up alone, so that vmap changes no bit of it whatever the pack
MODULE = '''
"""A model that runs out of memory in packs of more than `memory` says, a file beside this one; without the file it never does."""

from pathlib import Path

import torch
from torch import nn
from torch._C import _functorch

LIMIT = Path(__file__).with_name("memory")
PATIENCE = 90  # forward passes of a pack before it notices: the probe of its speed makes fewer
calls = 0


class Pairs(nn.Module):
    """Logits by the token alone: tokens [B, T] → [B, T, V]."""

    def __init__(self, vocabulary, length):
        super().__init__()
        global calls
        calls = 0
        self.table = nn.Embedding(vocabulary, vocabulary)

    def forward(self, tokens):
        global calls
        calls += 1
        weight = self.table.weight
        size = len(_functorch.get_unwrapped(weight)) if _functorch.is_batchedtensor(weight) else 1
        if calls > PATIENCE and LIMIT.exists() and size > int(LIMIT.read_text()):
            raise torch.OutOfMemoryError(f"a pack of {size} replicates does not fit")
        return self.table(tokens)
'''


def write(folder: Path, steps: int, replicates: int) -> str:
    """The study file, and the module beside it. Three conditions of `replicates` each."""
    (folder / "chaos_models.py").write_text(MODULE)
    path = folder / "chaos.yaml"
    path.write_text(STUDY.format(steps=steps, every=max(1, steps // 4), replicates=replicates))
    return str(path)


def command(verb: str, study: str, store: str, *overrides: str) -> list[str]:
    """`manyseeds run` or `retry` as a user types it."""
    return [sys.executable, "-m", "launch", verb, study, f"store={store}", "--allow-import", "chaos_models", *overrides]


def undisturbed(study: str, folder: Path) -> Path:
    """A store with the study run in one local process, with a pack size that no disturbed run has."""
    store = folder / "undisturbed"
    code = "import sys; from benchmarks.chaos.study import train_alone; train_alone(*sys.argv[1:])"
    words = [sys.executable, "-c", code, study, str(store)]
    done = subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the undisturbed run failed: {done.stdout}{done.stderr}")
    return store


def train_alone(study: str, store: str) -> None:
    """Train and commit all of it in this process."""
    from harness.local import Local
    from harness.machine.interrupt import Interrupt
    from harness.prepare import prepare
    from harness.run import train_all
    from harness.study.load import load
    from models.custom.custom import allow

    allow("chaos_models")
    executor = Local("cpu")
    with Interrupt() as interrupt:
        prepared = prepare(load(study, [f"store={store}", "executor=local", "pack.size=5"]), executor)
        outcomes = train_all(prepared, executor, interrupt)
    if any(outcome.status != "committed" for outcome in outcomes):
        raise RuntimeError(f"not all was committed: {outcomes}")
