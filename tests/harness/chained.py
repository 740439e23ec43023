"""A study of three stages that trains in seconds: LEGO's recursive self-training, warm and cold, beside a condition of one stage."""

from pathlib import Path

STUDY = """
name: chained
question: Do labels of a model's own carry a small group to longer chains?
task: {name: lego, group: C3, length: 2, variables: 12}
model: {name: clauses, width: 6, feed_forward: 20}
train: {steps: 30, batch: 8, optimizer: adam, lr: 3.0e-3, weight_decay: 0.0, warmup: 0, schedule: constant}
evaluate:
  sets:
    two: {length: 2, sequences: 40, every: 15}
    eight: {length: 8, decode: greedy, sequences: 20}
conditions:
  warm:
    stages:
      - {task: {length: 4}, train: {steps: 20}, labels: previous, init: previous}
      - {task: {length: 8}, labels: previous, init: previous}
  cold: {stages: [{task: {length: 4}, train: {pool: 24}, labels: previous}]}
replicates: 3
pack: {size: 2}
executor: local
wandb: off
"""


def write_study(folder: Path) -> str:
    path = folder / "chained.yaml"
    path.write_text(STUDY)
    return str(path)
