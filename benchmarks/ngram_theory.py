"""The theory of in-context n-grams in exact weights: k-gram estimators as weights, and the gradient there, against T and c.

python -m benchmarks.ngram_theory [--sequences 8192]       # 2 minutes of one core

Varre et al. 2025, definition 2.1, equations 8, 10 and 36, theorem 4.2. Nothing is trained; float64.
"""

import argparse
import math

import numpy as np
import torch

from benchmarks.theory.ngram_constructions import answer, estimate, gradients, lag_set
from harness.draw import Draw
from harness.experiments.ngrams.constructions import k_gram
from results.markdown_table import markdown_table
from tasks.ngrams.in_context import InContextNgram

LENGTHS = (64, 128, 256, 512)
C = 32.0  # with less, e^-c is not small beside the 1e-8 that the loss adds to a probability


def exactness(length: int = 128, sequences: int = 2000, c: float = 40.0) -> str:
    """The largest difference of a construction from its estimator, on strings with a match and none at the boundary, and on all."""
    task = InContextNgram(alphabet=3, order=3, length=length, alpha=1.0)
    tokens = task.sample(Draw(torch.tensor([0])), sequences).inputs[0]
    lines = []
    for lags in ((), (1,), (1, 2), (2,)):
        contiguous = lags == tuple(range(1, len(lags) + 1))
        made = k_gram(task, len(lags) + 1, c) if contiguous else lag_set(task, lags, c)
        law, clear = estimate(tokens, lags, task.alphabet, itself=not contiguous)
        with torch.no_grad():
            apart = (answer(made, tokens) - law).abs().amax(-1)
        name = f"{len(lags) + 1}-gram" if contiguous else f"lags {{{', '.join(map(str, lags))}}}"
        lines.append(
            [name, f"{int(clear.sum())} of {sequences}", f"{float(apart[clear].max()):.1e}", f"{float(apart.max()):.2f}"]
        )
    return markdown_table(["estimator", "clear strings", "largest difference on these", "on all"], lines)


def stationarity(sequences: int) -> tuple[str, dict[int, list[tuple[int, float, float]]]]:
    """Norms at θ*_k by k and T, c = C, with the floor; and the same as (T, norm, floor) by k."""
    lines, norms = [], {}
    for k in (1, 2, 3):
        for length in LENGTHS:
            task = InContextNgram(alphabet=3, order=3, length=length, alpha=1.0)
            blocks = gradients(k_gram(task, k, C), task, sequences)
            others = math.hypot(*(norm for name, (norm, _) in blocks.items() if name != "key"))
            norm, floor = blocks["key"]
            norms.setdefault(k, []).append((length, norm, floor))
            lines.append([k, length, f"{norm:.2e}", f"{floor:.1e}", f"{others:.1e}"])
    return markdown_table(
        ["k", "T", "norm of the gradient of K", "Monte-Carlo floor", "norm of all other blocks"], lines
    ), norms


def roots(sequences: int, length: int = 128) -> str:
    """The K block at c and 2 c, which theorem 4.2 has in the ratio √2."""
    task, lines = InContextNgram(alphabet=3, order=3, length=length, alpha=1.0), []
    for k in (2, 3):
        norms = [gradients(k_gram(task, k, c), task, sequences)["key"][0] for c in (C, 2 * C)]
        lines.append([k, f"{norms[0]:.3e}", f"{norms[1]:.3e}", f"{norms[1] / norms[0]:.4f}"])
    return markdown_table(["k", f"c = {C:g}", f"c = {2 * C:g}", f"ratio (√2 = {math.sqrt(2):.4f})"], lines)


def exponent(points: list[tuple[int, float, float]]) -> float:
    """b of norm ∝ T^b, of the norms with the floor taken off, least squares in logarithms; NaN where fewer than two are above it."""
    above = [(length, math.sqrt(norm**2 - floor**2)) for length, norm, floor in points if norm > 1.5 * floor]
    if len(above) < 2:
        return math.nan
    x, y = np.log(np.array(above)).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=8192, help="strings of a gradient")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print("## Constructions\n\n" + exactness() + "\n")
    text, norms = stationarity(chosen.sequences)
    print(f"## The gradient at the constructions, c = {C:g}, {chosen.sequences:,} strings\n\n" + text + "\n")
    print("\n".join(f"k = {k}: the norm falls like T^{exponent(points):.2f}" for k, points in norms.items() if k > 1) + "\n")
    print("## In proportion to √c\n\n" + roots(chosen.sequences))


if __name__ == "__main__":
    main()
