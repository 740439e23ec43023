"""The theory of subsequence associations in exact weights and numbers: the tables of docs/explanation/tracing.md.

python -m benchmarks.subsequence_theory       # 7 seconds of one core

Sun et al. 2025, section 2 and appendix A. Nothing is trained; strings are enumerated where no number of draws is named.
"""

import itertools
import math

import torch
from torch import Tensor

from benchmarks.tables import number
from benchmarks.theory.subsequence_constructions import Piece, Split, detector, embed, halves, last, latest_start, layers
from benchmarks.theory.subsequence_theory import (
    Linear,
    Pressure,
    cap_bound,
    capacity,
    ends,
    exceeding,
    gold_vectors,
    needed,
    pressure,
    summed,
)
from results.markdown_table import markdown_table


def inside(piece: Piece, strings: Tensor) -> Tensor:
    """Whether the piece is a subsequence of each string, by reading from left to right, bool [B]."""
    read = torch.zeros(len(strings), dtype=torch.int64)
    wanted = torch.tensor([*piece, -1])
    for tokens in strings.T:
        read = read + (wanted[read] == tokens).long()
    return read == len(piece)


def apart(piece: Piece, strings: Tensor) -> Tensor:
    """What the printed weights find: each half up to where the other ends, as if `halves` could not interleave, bool [B]."""

    def at(piece: Piece) -> Tensor:
        if len(piece) == 1:
            return strings == piece[0]
        left, right = map(at, halves(piece))
        return right & (left.long().cumsum(-1) > 0)

    return at(piece).any(-1)


def every(alphabet: int, length: int) -> Tensor:
    return torch.cartesian_prod(*[torch.arange(alphabet)] * length)


def directions(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Random unit vectors, float64 [count, dimension]."""
    return torch.nn.functional.normalize(torch.randn(count, dimension, generator=generator, dtype=torch.float64), dim=-1)


def pair_strings(generator: torch.Generator) -> Tensor:
    """400 strings of 20 of 50 tokens: 200 with 0 before 1, 100 with only 1 before 0, 100 at random."""
    strings = torch.randint(50, (400, 20), generator=generator)
    strings[200:300] = torch.randint(2, 50, (100, 20), generator=generator)
    for row in range(300):
        early, late = sorted(torch.randperm(20, generator=generator)[:2].tolist())
        strings[row, early], strings[row, late] = (0, 1) if row < 200 else (1, 0)
    return strings


def detected(sharpness: float, copy: float | None, draws: int = 5) -> tuple[float, float, float]:
    """Mean and least indicator of strings with the pair, greatest of those without, over draws of vectors in 256 dimensions."""
    with_it, without = [], []
    for seed in range(draws):
        generator = torch.Generator().manual_seed(seed)
        vectors, strings = directions(50, 256, generator), pair_strings(generator)
        outputs = detector(vectors[strings], vectors[0], vectors[1], sharpness, copy)
        there = inside((0, 1), strings)
        with_it.append(outputs[there])
        without.append(outputs[~there])
    present, absent = torch.cat(with_it), torch.cat(without)
    return float(present.mean()), float(present.min()), float(absent.max())


def readout(
    strings: Tensor, wanted: list[Piece], split: Split, printed: bool, sharpness: float = 40.0, rows: Tensor | None = None
) -> Tensor:
    """Of the features that `embed` makes, the greatest part of each wanted piece, [B, len(wanted)]; rows: vectors, None: orthonormal."""
    pieces = [(token,) for token in range(int(strings.max()) + 1)]
    pieces += itertools.chain.from_iterable(layers(wanted, split))
    rows = torch.eye(len(pieces), dtype=torch.float64) if rows is None else rows[: len(pieces)]
    vectors = dict(zip(pieces, rows, strict=True))
    tokens = torch.stack([vectors[(token,)] for token in range(int(strings.max()) + 1)])
    out = embed(tokens[strings], vectors, wanted, sharpness, split, printed)
    return (out @ torch.stack([vectors[piece] for piece in wanted]).T).amax(1)


def driven_out(sharpness: float, printed: bool) -> float:
    """How much of abc (0, 1, 2) is read from feadbc, where fec is looked for too and b ends both ab and db, half of each."""
    string, wanted = torch.tensor([[5, 4, 0, 3, 1, 2]]), [(0, 1, 2), (5, 4, 2), (3, 1, 0)]
    return float(readout(string, wanted, halves, printed, sharpness)[0, 0])


def planted(piece: Piece, alphabet: int, length: int, count: int, generator: torch.Generator) -> Tensor:
    """Random strings; the first half has the piece at random places, the next quarter with two neighbours of it exchanged."""
    strings = torch.randint(alphabet, (count, length), generator=generator)
    for row in range(3 * count // 4):
        word = list(piece)
        if row >= count // 2:
            at = int(torch.randint(len(piece) - 1, (1,), generator=generator))
            word[at], word[at + 1] = word[at + 1], word[at]
        places = torch.randperm(length, generator=generator)[: len(piece)].sort().values
        strings[row, places] = torch.tensor(word)
    return strings


def first_clash(cosine: float, dimension: int, generator: torch.Generator, most: int = 1000) -> int:
    """Random vectors until two have |cosine| >= `cosine`."""
    vectors = directions(most, dimension, generator)
    clashes = ((vectors @ vectors.T).abs().triu(1) >= cosine).any(0).nonzero()
    return int(clashes[0])


def corpus(repeats: bool, seed: int) -> tuple[Linear, Tensor, Pressure]:
    """A random linear model on a random corpus, of all strings of 4 of 3 tokens or of 3 different ones of 5: model, `ends`, terms."""
    generator = torch.Generator().manual_seed(seed)
    symbols = range(3 if repeats else 5)
    strings = every(3, 4) if repeats else torch.tensor(list(itertools.permutations(symbols, 3)))
    pairs = itertools.product(symbols, repeat=2) if repeats else itertools.permutations(symbols, 2)
    pieces = [(token,) for token in symbols] + list(pairs)
    vectors, outputs = directions(len(pieces) + 1, 12, generator), directions(4, 12, generator)
    values, scores = torch.randn(2, 12, 12, generator=generator, dtype=torch.float64)
    shares = torch.rand(len(strings), generator=generator, dtype=torch.float64)
    answers = (2 * torch.randn(len(strings), 4, generator=generator, dtype=torch.float64)).softmax(-1)
    model, ended = Linear(vectors, outputs, values, scores), ends(strings, pieces)
    return model, ended, pressure(model, ended, shares / shares.sum(), answers)


def worst(model: Linear, terms: Pressure) -> tuple[float, float]:
    """The greatest ratio of |psi| + |omega| to the printed bound and to the one with the absolute value inside."""
    norms = sum(float(torch.linalg.matrix_norm(matrix, 2)) for matrix in (model.values, model.scores))
    size = terms.psi.abs() + terms.omega.abs()
    return float((size / (norms * terms.printed)).max()), float((size / (norms * terms.absolute)).max())


def product_generator() -> tuple[Tensor, Tensor, Tensor]:
    """Two tokens, 0 or 1 and 2 or 3, all strings alike; P(o | s) a product of a factor each: strings, shares, P(o | s)."""
    strings = torch.tensor([(0, 2), (0, 3), (1, 2), (1, 3)])
    factors = torch.tensor([0.9, 0.3, 0.8, 0.2], dtype=torch.float64)
    return strings, torch.full((4,), 0.25, dtype=torch.float64), factors[strings].prod(-1)


def of_pair(both: float, one: float, none: float) -> Tensor:
    """P(o | s) for the strings of `product_generator` that have both of 0 and 2, one, none."""
    return torch.tensor([both, one, one, none], dtype=torch.float64)


def table_of_lengths() -> str:
    rows = []
    for alphabet, length, piece in (
        (4, 6, (0, 1, 2)),
        (4, 6, (0, 0, 1)),
        (4, 6, (0, 1, 2, 3)),
        (2, 10, (0, 1, 1, 0, 1, 0, 0, 1)),
    ):
        strings = every(alphabet, length)
        there = inside(piece, strings)
        cells = []
        for split, printed in ((halves, True), (halves, False), (last, False)):
            starts = readout(strings, [piece], split, printed)[:, 0] > 0.5
            cells.append(f"{int((starts & ~there).sum())}, {int((there & ~starts).sum())} ({len(layers([piece], split))})")
        starts = latest_start(strings, piece)[:, -1] > 0
        cells.append(f"{int((starts & ~there).sum())}, {int((there & ~starts).sum())} ({1 + math.ceil(math.log2(len(piece)))})")
        rows.append(("".join("abcd"[token] for token in piece), len(strings), int(there.sum()), *cells))
    return markdown_table(
        ("piece", "strings", "with it", "printed", "halves, own heads", "last token split off", "pointers"), rows
    )


def main() -> None:
    print("Lemma A.2, indicator: sharpness, copy, mean and least with the pair, greatest without")
    for sharpness, copy in ((10.0, 1.0), (40.0, 1.0), (5.0, None), (10.0, None), (20.0, None), (40.0, None)):
        print(f"  {sharpness:g}, {copy or sharpness:g}: " + ", ".join(f"{value:.3f}" for value in detected(sharpness, copy)))
    mu = readout(torch.tensor([[0, 0, 2, 1]]), [(0, 1), (2, 1)], halves, True)[0].tolist()
    print(f"Lemma A.3, string aacb, pairs ab and cb: weights {mu[0]:.3f}, {mu[1]:.3f}; printed: 1, 0")
    print("Theorem A.4, orthonormal vectors: strings in which the piece is found wrongly, missed (layers)")
    print(table_of_lengths())
    for sharpness in (10.0, 20.0, 40.0):
        print(
            f"  string feadbc, pieces fec, abc and dba, one head, sharpness {sharpness:g}: abc {driven_out(sharpness, True):.1e}"
        )
    generator = torch.Generator().manual_seed(0)
    for piece in (tuple(range(3)), tuple(range(4)), tuple(range(8))):
        strings = planted(piece, 10, 24, 400, generator)
        there = inside(piece, strings)
        outputs = readout(strings, [piece], last, False, 40.0, directions(40, 1024, generator))[:, 0]
        margins = f"least with {outputs[there].min():.3f}, greatest without {outputs[~there].max():.3f}"
        print(f"  length {len(piece)}, random vectors in 1,024 dimensions: {margins}")
    print("Theorem A.6")
    for dimension, cosine in ((64, 0.4), (128, 0.3), (256, 0.25)):
        clash = sum(first_clash(cosine, dimension, generator) for _ in range(20)) / 20
        birthday = math.sqrt(math.pi / 2 / exceeding(cosine, dimension))
        formula = number(capacity(cosine, dimension))
        print(f"  d {dimension} e {cosine}: formula {formula}, random vectors {clash:.0f} (birthday {birthday:.0f})")
    print(f"  50 vectors, e 0.22: d {needed(50, 0.22):.0f}")
    for degree in (3, 5, 7):
        count, dimension = gold_vectors(degree).shape
        cosine = (1 + 2 ** ((degree + 1) // 2)) / dimension
        said = f"formula {capacity(cosine, dimension):.0f}, bound {cap_bound(cosine, dimension):.0f}"
        print(f"  Gold d {dimension} e {cosine:.3f}: {count}, {said}")
    print(f"  orthonormal d 64, e 0.01: 64, formula {capacity(0.01, 64):.2f}, bound {cap_bound(0.01, 64):.1f}")
    print("Proposition A.1, 50 random corpora: greatest ratio to the printed bound, corpora above 1; to the absolute one")
    for repeats in (False, True):
        ratios = [worst(*((terms := corpus(repeats, seed))[0], terms[2])) for seed in range(50)]
        printed, absolute = (list(of_corpora) for of_corpora in zip(*ratios, strict=True))
        print(f"  repeats {repeats}: {max(printed):.3g}, {sum(ratio > 1 for ratio in printed)}; {max(absolute):.3f}")
    strings, shares, outcome = product_generator()
    events = ends(strings, [(0,), (1,), (2,), (3,), (0, 2), (0, 3), (1, 2), (1, 3)]).any(1)
    print("Proposition 2.3: log P(o|s), sum over tokens, sum over tokens and the pair")
    for name, chance in (("product", outcome), ("and", of_pair(0.9, 0.1, 0.1)), ("exclusive or", of_pair(0.9, 0.1, 0.9))):
        tokens, whole = (summed(shares, chance, events[:, :most], 0) for most in (4, 8))
        print(f"  {name}: {tokens[0]:.4f}, {tokens[1]:.4f}, {whole[1]:.4f}")


if __name__ == "__main__":
    main()
