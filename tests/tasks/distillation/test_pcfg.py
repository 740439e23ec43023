"""Grammars: lengths against the printed percentiles, strings against a recogniser of its own, trees against strings and rules."""

import itertools

import numpy as np
import pytest
import torch

import tasks
from harness.draw import Draw
from tasks.distillation.derivations import derive, spans
from tasks.distillation.grammars import NAMES, START, grammar, level_of, symbols_of
from tasks.distillation.pcfg import PCFG, level_from_root
from tasks.quantile import quantile

# thesis, section 4.2.8: percentiles 25, 50, 75, 95 of the lengths; of cfg3b with one rule the card's own simulation of 20,000 strings
PRINTED = {
    "cfg3b": (251, 278, 308, 342),
    "cfg3i": (276, 307, 340, 386),
    "cfg3h": (202, 238, 270, 300),
    "cfg3g": (212, 258, 294, 341),
    "cfg3f": (191, 247, 302, 364),
    "cfg3b_onerule": (269, 296, 329, 363),
}
SHARES = (0.25, 0.5, 0.75, 0.95)


def _draw(*seeds, **rest):
    return Draw(torch.tensor(seeds), **rest)


def _recognised(name, root, string):
    """Whether the grammar derives `string` of terminals 1, 2, 3: Cocke-Younger-Kasami, all spans of a symbol as one matrix."""
    rules, size = grammar(name).rules, len(string) + 1
    spans = {symbol: np.zeros((size, size), dtype=np.float32) for symbol in (1, 2, 3)}
    for place, symbol in enumerate(string):
        spans[symbol][place, place + 1] = 1
    for symbol in sorted(rules):  # a symbol's children have smaller numbers
        found = np.zeros((size, size), dtype=bool)
        for side in rules[symbol]:
            whole = spans[side[0]]
            for child in side[1:]:
                whole = (whole @ spans[child] > 0).astype(np.float32)
            found |= whole > 0
        spans[symbol] = found.astype(np.float32)
    return bool(spans[root][0, -1])


@pytest.mark.parametrize("name", NAMES)
def test_lengths_are_those_that_are_printed(name):
    """The exact quantiles lie within 3 tokens of the thesis' samples, of cfg3b within 1."""
    law = grammar(name).lengths()
    exact = [quantile(law, share) for share in SHARES]
    assert max(abs(mine - theirs) for mine, theirs in zip(exact, PRINTED[name], strict=True)) <= (1 if "3b" in name else 3)
    assert abs(law.sum() - 1) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_sampled_lengths_follow_the_exact_law(name):
    lengths = derive(name, START, _draw(7), 4000, 511).lengths[0].numpy()
    law = grammar(name).lengths()
    sampled = np.bincount(lengths, minlength=len(law)).cumsum() / len(lengths)
    # Dvoretzky-Kiefer-Wolfowitz: beyond this with probability 1e-6
    assert np.abs(sampled - law.cumsum()).max() < np.sqrt(np.log(2e6) / 2 / len(lengths))


@pytest.mark.parametrize("name", NAMES)
def test_every_string_is_in_the_language_and_a_random_one_is_not(name):
    trees = derive(name, START, _draw(1, 2), 4, 511)
    strings = [
        [token + 1 for token in row[:length]]
        for row, length in zip(trees.tokens.flatten(0, 1).tolist(), trees.lengths.flatten().tolist(), strict=True)
    ]
    assert all(_recognised(name, START, string) for string in strings)
    other = (_draw(5).integers(3, (8, 250))[0] + 1).tolist()
    assert not any(_recognised(name, START, string) for string in other)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("root", [22, 19, 17, 13, 10, 7])
def test_trees_agree_with_strings_and_rules(name, root):
    """From tokens upwards: the spans of every level, cut by `ends`, are the right-hand sides of the symbols over them."""
    rules, top = grammar(name).rules, level_of(root)
    trees = derive(name, root, _draw(4), 12, 729 if root == 22 else 243, ancestors=True)
    assert trees.ancestors.shape == (*trees.tokens.shape, 7)
    for index in range(12):
        length = int(trees.lengths[0, index])
        tokens, ends = trees.tokens[0, index].tolist(), trees.ends[0, index].tolist()
        above = trees.ancestors[0, index].tolist()
        assert not any(tokens[length:])
        assert not any(ends[length:])
        assert min(ends[:length]) >= 1
        below = [(token + 1, place, place + 1) for place, token in enumerate(tokens[:length])]
        assert [symbol for symbol, _, _ in below] == [row[0] for row in above[:length]]
        for level in range(2, top + 1):
            spans, first = [], 0
            for place in range(length):
                if ends[place] >= level:
                    (symbol,) = {row[level - 1] for row in above[first : place + 1]}
                    children = tuple(each for each, start, stop in below if first <= start and stop <= place + 1)
                    assert symbol in symbols_of(level)
                    assert children in rules[symbol]
                    spans.append((symbol, first, place + 1))
                    first = place + 1
            assert sum(stop - start for _, start, stop in spans) == length
            below = spans
        assert below == [(root, 0, length)]
        assert max(ends) == ends[length - 1] == top


@pytest.mark.parametrize("name", NAMES)
def test_rules_of_a_symbol_are_equally_probable(name):
    """Counts of the rules of every symbol of whole strings: chi-square of each within its 1e-6 quantile."""
    from scipy.stats import chi2

    trees = derive(name, START, _draw(11), 300, 511, ancestors=True)
    rules, counts = grammar(name).rules, {}
    inside = torch.arange(511) < trees.lengths[0][:, None]
    ends, above = trees.ends[0][inside].tolist(), trees.ancestors[0][inside].tolist()
    for level in range(2, 8):
        children = []
        for end, row in zip(ends, above, strict=True):
            if end >= level - 1:
                children.append(row[level - 2])
            if end >= level:
                key = (row[level - 1], tuple(children))
                counts[key] = counts.get(key, 0) + 1
                children = []
    for symbol, sides in rules.items():
        seen = np.array([counts.get((symbol, side), 0) for side in sides])
        if seen.sum() >= 50:
            expected = seen.sum() / len(sides)
            assert ((seen - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, max(1, len(sides) - 1))
    assert {symbol for symbol, _ in counts} == set(rules)


def test_the_rules_are_those_of_the_figure():
    sizes = {name: {len(sides) for symbol, sides in grammar(name).rules.items()} for name in NAMES}
    assert sizes["cfg3b"] == sizes["cfg3i"] == {2}
    assert (sizes["cfg3h"], sizes["cfg3g"], sizes["cfg3f"]) == ({2, 3}, {3}, {3, 4})
    assert sizes["cfg3b_onerule"] == {1, 2}
    for name in NAMES:
        for symbol, sides in grammar(name).rules.items():
            assert all({level_of(child) for child in side} == {level_of(symbol) - 1} for side in sides)
    # cfg3b: adjacent symbols of a rule are distinct
    sides = [side for each in grammar("cfg3b").rules.values() for side in each]
    assert all(one != other for side in sides for one, other in itertools.pairwise(side))


def test_a_string_is_a_function_of_its_row():
    whole = derive("cfg3f", START, _draw(3, 8), 20, 511, ancestors=True)
    part = derive("cfg3f", START, _draw(8).rows(13), 2, 511)
    picked = derive("cfg3f", START, _draw(8).pick(torch.tensor([[14, 14, 3]])), 3, 511)
    assert torch.equal(part.tokens[0], whole.tokens[1, 13:15])
    assert torch.equal(picked.tokens[0], whole.tokens[1, [14, 14, 3]])
    assert torch.equal(picked.ends[0], whole.ends[1, [14, 14, 3]])


def test_a_string_that_does_not_fit_is_drawn_again():
    law = grammar("cfg3b").lengths(16)
    room = quantile(law, 0.5)
    free = derive("cfg3b", 16, _draw(0), 2000, len(law), ancestors=True)
    trees = derive("cfg3b", 16, _draw(0), 2000, room, ancestors=True)
    fits = free.lengths[0] <= room
    assert 0 < fits.sum() < 2000
    assert torch.equal(trees.tokens[0, fits], free.tokens[0, fits, :room])
    assert torch.equal(trees.ancestors[0, fits], free.ancestors[0, fits, :room])
    sampled = np.bincount(trees.lengths[0].numpy(), minlength=room + 1).cumsum() / 2000
    assert np.abs(sampled - (law[: room + 1] / law[: room + 1].sum()).cumsum()).max() < np.sqrt(np.log(2e6) / 4000)
    for row, length in zip(trees.tokens[0, :100].tolist(), trees.lengths[0].tolist(), strict=False):
        assert _recognised("cfg3b", 16, [token + 1 for token in row[:length]])
    rows = torch.arange(2000)[~fits][:3]
    again = derive("cfg3b", 16, _draw(0).pick(rows[None]), 3, room)
    assert torch.equal(again.tokens[0], trees.tokens[0, rows])


def test_masked_prediction_reads_what_the_definition_says():
    """Shares over some 700,000 positions within 6 standard deviations; what is not selected is read as it is."""
    task = PCFG(root=19, length=200)
    batch = task.sample(_draw(1, 2), 4000)
    inside = batch.targets != 5
    selected = batch.weights > 0
    assert not (selected & ~inside).any()
    assert torch.equal(batch.inputs[~selected], batch.targets[~selected])
    assert (batch.targets[..., 0] == 3).all()

    def near(part, whole, share):
        count = int(whole.sum())
        assert abs(float((part & whole).sum()) / count - share) < 6 * (share * (1 - share) / count) ** 0.5

    near(selected, inside, 0.3)
    near(selected[..., :1], inside[..., :1], 0.3)
    near(batch.inputs == 6, selected, 0.8)
    terminal = selected & (batch.targets < 3)
    for token in range(3):  # a random terminal, or the token itself
        near(batch.inputs == token, terminal & (batch.targets != token), 0.1 / 3)
        near(batch.inputs == token, terminal & (batch.targets == token), 0.1 + 0.1 / 3)
    sums = batch.weights.sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    without = PCFG(root=19, length=200, mask_start=False).sample(_draw(1, 2), 50)
    assert not (without.weights[..., 0] > 0).any()
    assert torch.equal(without.inputs[..., 1:], batch.inputs[:, :50, 1:])


def test_a_rate_of_one_selects_every_position():
    batch = PCFG(root=16, length=80, mask_rate=1.0).sample(_draw(1), 50)
    assert torch.equal(batch.weights > 0, batch.targets != 5)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_next_tokens_at_the_ends_of_spans(level):
    task = PCFG("cfg3f", objective="next", level=level)
    batch, trees = task.sample(_draw(5), 30), task.trees(_draw(5), 30)
    assert torch.equal(batch.inputs[0, :, 1:][batch.inputs[0, :, 1:] != 5], trees.tokens[0][trees.ends[0] > 0])
    assert torch.equal(batch.weights[..., :-1] > 0, trees.ends >= level)
    assert not batch.weights[..., -1].any()
    assert torch.equal(batch.targets[..., :-1], batch.inputs[..., 1:])
    assert torch.equal(batch.about["level"][..., :-1], trees.ends.long())


@pytest.mark.parametrize("name", NAMES)
def test_one_token_throughout_is_right_on_at_most_55_5_percent(name):
    """The claims take a teacher that is right on more than 60 % for one that has learned (results/claims/distillation/students.py)."""
    tasks_of = [PCFG(name), *(PCFG(name, objective="next", level=level) for level in (1, 2, 3, 4))]
    for task in tasks_of:
        batch = task.sample(_draw(9), 2000)
        frequent = torch.bincount(batch.targets[0].flatten(), weights=batch.weights[0].flatten().double())
        assert float(frequent.max() / frequent.sum()) < 0.57  # 0.555 at most, give and take a sample of 2,000 strings


def test_boundaries_of_a_higher_level_are_boundaries_of_a_lower_one():
    sizes = [
        int((PCFG("cfg3f", objective="next", level=level).sample(_draw(5), 30).weights > 0).sum()) for level in range(1, 8)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 30
    assert [level_from_root(level) for level in (1, 4, 7)] == [6, 3, 0]


@pytest.mark.parametrize(
    "task",
    [PCFG(), PCFG("cfg3f", mask_rate=0.15), PCFG(root=16, length=80), PCFG("cfg3i", objective="next", level=4)],
)
def test_most_strings_fit_into_one_block_of_scored_positions(task):
    scored = (task.sample(_draw(2), 2000).weights > 0).sum(-1)
    over = float((scored > task.scored_positions()).float().mean())
    assert over <= 0.001 + 6 * (0.001 / 2000) ** 0.5
    assert float((scored > task.scored_positions() - 40).float().mean()) > 0.001


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"grammar": "cfg3"}, "task.grammar = 'cfg3' must be cfg3b or cfg3i"),
        ({"root": 3}, "task.root = 3 must be a non-terminal, 7 … 22"),
        ({"root": 23}, "task.root = 23 must be a non-terminal, 7 … 22"),
        ({"objective": "causal"}, "task.objective = 'causal' must be masked or next"),
        ({"mask_rate": 0.0}, "task.mask_rate = 0 must be a probability of at least"),
        ({"mask_rate": 1.5}, "task.mask_rate = 1.5 must be a probability of at least"),
        ({"objective": "next", "level": 8}, "task.level = 8 must be from 1, every token, to 7"),
        ({"level": 3}, "task.level = 3 applies only to objective: next"),
        ({"objective": "next", "mask_rate": 0.2}, "apply only to objective: masked: leave them out"),
        ({"length": 256}, "holds only 31.2% of the strings of cfg3b from 22: write at least 362"),
        ({"length": -3}, "task.length = -3 holds only 0.0%"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks.build("pcfg", **fields)


def test_draws_never_change():
    """Frozen: the sites and the order of the draws are part of every committed result."""
    batch = PCFG(root=10, length=20).sample(_draw(0, step=5), 3)
    assert batch.inputs[0, :, :10].tolist() == [
        [3, 1, 0, 2, 1, 2, 0, 5, 5, 5],
        [3, 0, 6, 6, 1, 6, 2, 1, 5, 5],
        [6, 6, 6, 6, 0, 2, 0, 1, 5, 5],
    ]
    string = PCFG("cfg3f", root=13, length=64).sample(_draw(1), 1).targets[0, 0, :18].tolist()
    assert string == [3, 2, 0, 0, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0, 1, 0, 1, 5]


@pytest.mark.parametrize("level", range(1, 8))
def test_spans_are_the_constituents_of_their_strings(level):
    """Each is derived from its symbol, by the recogniser, and together they cover every string without a gap."""
    trees = derive("cfg3h", START, _draw(2, 6), 2, 511, ancestors=True)
    found = spans(trees, level)
    where = zip(
        *(each.tolist() for each in (found.replicate, found.string, found.first, found.last, found.symbol)), strict=True
    )
    covered: dict = {}
    for number, (replicate, string, first, last, symbol) in enumerate(where):
        assert level_of(symbol) == level
        if number % 7 == 0 or level > 5:
            words = [token + 1 for token in trees.tokens[replicate, string, first : last + 1].tolist()]
            assert words == [symbol] if level == 1 else _recognised("cfg3h", symbol, words)
        covered.setdefault((replicate, string), []).extend(range(first, last + 1))
    assert covered == {(r, b): list(range(int(trees.lengths[r, b]))) for r in range(2) for b in range(2)}


def test_spans_need_trees_and_a_level_that_they_have():
    with pytest.raises(ValueError, match="draw them with ancestors = True"):
        spans(derive("cfg3b", 13, _draw(0), 2, 40), 2)
    for level in (0, 5):
        with pytest.raises(ValueError, match=rf"level = {level} .*1, .*4"):
            spans(derive("cfg3b", 13, _draw(0), 2, 40, ancestors=True), level)
