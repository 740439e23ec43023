"""The accuracy of an ideal observer on masked strings of a small grammar: no model can be right more often.

    python -m benchmarks.theory.pcfg_ideal

All strings of the root are listed, with their probabilities. A position shows its token, the mask or a random token, each with a known
probability; the ideal answer at a predicted position is the likeliest token given all that is shown. The share of right answers is
over drawn strings, as the task draws and scores them. What is printed is `results.claims.distillation.ideal.IDEAL`.
"""

import itertools
import math

import numpy as np
import torch

from harness.draw import Draw
from tasks.distillation.grammars import TERMINALS, grammar
from tasks.distillation.pcfg import BEGIN, KINDS, MASK, PADDING, PCFG
from tasks.text.masking import MASKED, RANDOM

CASES = (("cfg3b", 13, 19, 20_000), ("cfg3b", 14, 28, 10_000))  # grammar, root, length, drawn strings


def strings(name: str, symbol: int) -> dict[tuple[int, ...], float]:
    """The strings of a symbol with their probabilities."""
    if symbol in TERMINALS:
        return {(symbol - 1,): 1.0}
    rules, chances = grammar(name).rules[symbol], {}
    for rule in rules:
        for parts in itertools.product(*(strings(name, part).items() for part in rule)):
            whole = tuple(itertools.chain.from_iterable(part for part, _ in parts))
            chances[whole] = chances.get(whole, 0.0) + math.prod(chance for _, chance in parts) / len(rules)
    return chances


def ideal(task: PCFG, count: int, seed: int = 0) -> float:
    """The share of predicted positions of `count` strings at which the likeliest token is the true one."""
    chances = strings(task.grammar, task.root)
    texts = np.full((len(chances), task.length), PADDING)
    for row, text in zip(texts, chances, strict=True):
        row[: len(text) + 1] = BEGIN, *text
    likely = np.log(list(chances.values()))
    likely = np.where((texts != PADDING).sum(1) <= task.length, likely, -np.inf)
    batch = task.sample(Draw(torch.tensor([seed]), "evaluate"), count)
    shown, truth, asked = (x[0].numpy() for x in (batch.inputs, batch.targets, batch.weights > 0))
    right = total = 0
    mixed, predicted = _shows(task.mask_rate), _shows(1.0)
    for row, true, scored in zip(shown, truth, asked, strict=True):
        logs = likely + sum(mixed[texts[:, place], token] for place, token in enumerate(row))
        for place in np.flatnonzero(scored):
            # that this position is predicted is known; of the others it is not
            own = logs - mixed[texts[:, place], row[place]] + predicted[texts[:, place], row[place]]
            votes = np.bincount(texts[:, place], np.exp(own - own.max()), minlength=MASK + 1)
            right += int(votes.argmax() == true[place])
            total += 1
    return right / total


def _shows(rate: float) -> np.ndarray:
    """Log of P(a position shows a token | its true token), [true, shown], where a share `rate` is selected; padding never is."""
    chance = np.eye(MASK + 1) * (1 - rate * (MASKED + RANDOM))
    chance[:, :KINDS] += rate * RANDOM / KINDS
    chance[:, MASK] = rate * MASKED
    chance[PADDING] = np.eye(MASK + 1)[PADDING]
    return np.log(np.maximum(chance, 1e-300))


if __name__ == "__main__":
    for name, root, length, count in CASES:
        share = ideal(PCFG(name, root=root, length=length), count)
        print(f'("{name}", {root}, {length}): {share:.3f},')
