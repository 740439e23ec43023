"""Tiny studies of teachers and students: a perceptron on sparse parity, a transformer on masked strings of a grammar."""

from pathlib import Path

PARITY = """
name: distilled
question: Does a narrow perceptron learn from the checkpoints of a wide one?
task: {name: sparse_parity, length: 8, degree: 2}
model: {name: mlp, width: 64}
train: {steps: 60, batch: 16, optimizer: sgd, lr: 0.5, schedule: constant, warmup: 0, weight_decay: 0.0}
evaluate: {sets: {test: {sequences: 200, every: 30}}}
conditions:
  one_shot:
    stages: [{model: {width: 8}, train: {steps: 24}, labels: teacher}]
  slower:
    stages: [{model: {width: 8}, train: {steps: 24, lr: 0.2}, labels: teacher}]
  risen:
    stages:
      - model: {width: 8}
        train: {steps: 24}
        labels: teacher
        temperature: 1.0e-4
        teacher: {checkpoints: [{at: {accuracy: 0.7, every: 5, plus: -5}, steps: 10}, {at: last}]}
  shared:
    stages: [{model: {width: 8}, train: {steps: 24}, labels: teacher, temperature: 0, teacher: {seed: 0, shots: 4}}]
replicates: 3
pack: {size: 2}
executor: local
wandb: off
"""

GRAMMAR = """
name: grammar
question: Does a small masked model learn from the checkpoints of a larger one?
task: {name: pcfg, root: 12, length: 16}
model: {name: transformer, layers: 1, width: 16, heads: 2, causal: false}
train: {steps: 12, batch: 4, optimizer: adam, lr: 1.0e-3, warmup: 2, weight_decay: 0.0}
evaluate: {sets: {test: {sequences: 20}}}
conditions:
  progressive:
    stages:
      - model: {width: 8, heads: 1}
        train: {steps: 10, monitor: {sequences: 6, every: 5}}
        labels: teacher
        temperature: 0.5
        teacher: {shots: 3, steps: 2}
replicates: 2
pack: {size: 2}
executor: local
wandb: off
"""


def write_study(folder: Path, text: str = PARITY) -> str:
    path = folder / "distilled.yaml"
    path.write_text(text)
    return str(path)
