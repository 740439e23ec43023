"""Invented glitches of a replicate, as many and with as many heads as a test asks for."""

from typing import Any

import numpy as np

from results.report.flipflop.glitches import About


def about(**changes: Any) -> About:
    """Of a language model with 6 layers of 8 heads, 512 tokens, 12 kept steps and 25 sisters."""
    given = {
        **{"study": "glitchy", "key": "0123456789abcdef" * 2, "stage": 0, "condition": "transformer", "init_seed": 3},
        **{"data_seed": 4, "set": "dense", "set_hash": "h", "step": 1200, "limit": 1000, "looked": 400, "sequences": 4000},
        **{"errors": 9876, "reads": 470000, "length": 512, "layers": 6, "heads": 8, "kept": 16, "causal": True},
        **{"unit": "instructions", "tokens": ["w", "r", "i", "0", "1"], "answers": ["w", "r", "i", "0", "1"]},
        **{"steps": list(range(100, 1300, 100)), "sisters_known": 40},
        "sisters": [{"key": f"{n:032x}", "init": n, "data": n + 1} for n in range(25)],
    }
    return About(**(given | changes))  # type: ignore[arg-type]


def rows(told: About, count: int) -> list[dict[str, Any]]:
    """`count` glitches of the language, a few of each string; the attention of half of the heads is on the last write."""
    draw = np.random.default_rng(0)
    heads, found = told.layers * told.heads, []
    for n in range(count):
        if n % 3 == 0:
            kinds = draw.choice(3, told.length // 2, p=(0.45, 0.45, 0.1))
            kinds[0], bits = 0, draw.integers(2, size=told.length // 2)
            for pair in range(1, len(kinds)):
                if kinds[pair] == 1:
                    bits[pair] = bits[np.flatnonzero(kinds[:pair] == 0)[-1]]
            reads = np.flatnonzero(kinds == 1)
        pair = int(reads[(7 * (n % 3) + 5) % len(reads)]) if n % 2 else int(reads[-1 - n % 3])
        write = int(np.flatnonzero(kinds[:pair] == 0)[-1])
        prompt = np.stack([kinds, bits + 3], -1).ravel()[: 2 * pair + 1]
        others = (
            np.stack([draw.permutation(2 * pair + 1)[: told.kept - 1] for _ in range(heads)]) if pair >= told.kept else None
        )
        if others is None:
            others = np.tile(np.arange(told.kept - 1) % (2 * pair + 1), (heads, 1))
        keys = np.concatenate([np.full((heads, 1), 2 * write + 1), others], 1)
        weights = draw.dirichlet(np.full(told.kept, 0.2), heads) * 0.99
        weights[::2] = np.concatenate([weights[::2].max(1, keepdims=True), -np.sort(-weights[::2], 1)[:, 1:]], 1)
        norms, right = weights * draw.uniform(0.5, 2, weights.shape), int(bits[write])
        rank = np.maximum(weights, norms / norms.sum(1, keepdims=True))
        rank[:, 0] = 2  # the last write, then what counts most
        order = np.argsort(-rank, 1)
        keys, weights, norms = (np.take_along_axis(each, order, 1) for each in (keys, weights, norms))
        found.append(
            {"string": n // 3, "position": 2 * pair, "prompt": prompt.tolist(), "answer": 4 - right, "right": right + 3}
            | {"margin": float(draw.exponential(2)), "write": 2 * write + 1, "since_write": pair - write, "since_event": 1}
            | {"margins": draw.normal(0, 2, len(told.steps)).tolist(), "keys": keys.ravel().tolist()}
            | {"sister_margins": draw.normal(-1, 2, len(told.sisters)).tolist(), "weights": weights.ravel().tolist()}
            | {"sister_wrong": (draw.random(len(told.sisters)) < 0.3).tolist(), "norms": norms.ravel().tolist()}
            | {"totals": norms.sum(1).tolist()}
        )
    return found
