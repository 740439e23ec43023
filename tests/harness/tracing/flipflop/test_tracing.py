"""Corpora are what the card says of them, and the search equals brute force over all sets and all strings."""

import itertools
import math

import pytest
import torch

from harness.draw import Draw
from harness.tracing.flipflop.corpus import FAMILIES, conditioned, perturbed
from harness.tracing.flipflop.prompt import Prompt, prompt_of
from harness.tracing.search import Search, chosen, lower_bound, search
from tasks.flipflop.flipflop import IGNORE, READ, SYMBOL, WRITE, FlipFlop
from tests.rounding import rounded

TASK = FlipFlop(48)


def a_prompt(seed=0, events=20, task=TASK):
    tokens = task.sample(Draw(torch.tensor([seed])), 1).inputs[0, 0]
    tokens[2 * events - 2] = READ
    written = [int(tokens[2 * j + 1]) for j in range(events) if tokens[2 * j] == WRITE]
    tokens[2 * events - 1] = written[-1]
    return prompt_of(task, tokens, 2 * events - 2)


def strings(corpus):
    """Each string up to its read as events."""
    return [row[: query + 2].view(-1, 2).tolist() for row, query in zip(corpus.tokens, corpus.query.tolist(), strict=True)]


def check_grammar(corpus):
    for events, truth in zip(strings(corpus), corpus.truth.tolist(), strict=True):
        assert events[0][0] == WRITE
        assert events[-1][0] == READ
        memory = None
        for instruction, symbol in events:
            memory = symbol if instruction == WRITE else memory
            assert instruction in (WRITE, READ, IGNORE)
            assert symbol >= SYMBOL
            assert instruction != READ or symbol == memory
        assert memory == truth + SYMBOL


@pytest.mark.parametrize("anchors", ["position", "offset"])
@pytest.mark.parametrize("family", FAMILIES)
def test_perturbed_strings(family, anchors):
    prompt = a_prompt()
    mine = prompt.tokens.view(-1, 2).tolist()
    corpus = perturbed(prompt, family, 300, 0.5, prompt.draw(0), anchors)
    if family != "iid":
        check_grammar(corpus)
    moved = anchors == "offset" or family == "shift"
    lengths = {len(events) for events in strings(corpus)}
    assert (lengths == set(range(11, 25))) if moved else (lengths == {20})
    for events, same in zip(strings(corpus), corpus.same.tolist(), strict=True):
        ahead = len(events) - 20
        for j in range(19):
            at = j + ahead if anchors == "offset" else j
            expected = 0 <= at < len(events) - 1 and events[at] == mine[j]
            assert same[j] == expected
    if not moved:
        changed = (~corpus.same[:, :-1]).sum(-1)
        assert int(changed.max()) <= 9 + sum(each[0] == READ for each in mine)  # a read changes with its write
        assert int((corpus.same[:, :-1].sum(-1) >= 10).sum()) > 250
    again = perturbed(prompt, family, 300, 0.5, prompt.draw(0), anchors)
    assert torch.equal(again.tokens, corpus.tokens)
    assert not torch.equal(perturbed(prompt, family, 300, 0.5, prompt.draw(1), anchors).tokens, corpus.tokens)


def test_a_set_of_k_events_survives_as_often_as_the_card_says():
    """The table of section 3 at n = 64: E_M[C(n - k, M) / C(n, M)], times 512; a replaced event is the same again 1 time in 128."""
    task = FlipFlop(130, p_ignore=1.0, symbols=128)
    prompt = a_prompt(events=65, task=task)
    corpus = perturbed(prompt, "type", 4096, 0.5, prompt.draw(3))
    for k, card in ((1, 380), (2, 291), (4, 187), (8, 100), (16, 45)):
        exact = sum(math.comb(64 - k, m) / math.comb(64, m) for m in range(1, 33)) / 32
        assert 512 * exact == pytest.approx(card, abs=0.6)  # the card has 100 for 99.45
        found = corpus.same[:, 1 : k + 1].all(-1).double().mean()
        assert float(found) == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 4096) ** 0.5 + 0.004)


@pytest.mark.parametrize("family", FAMILIES)
def test_conditioned_strings_hold_the_events_and_nothing_else(family):
    for seed in range(12):
        prompt = a_prompt(seed)
        mine = prompt.tokens.view(-1, 2).tolist()
        reads = [j for j in range(19) if mine[j][0] == READ]
        events = sorted({*reads[:2], 4 + seed % 9, 18})
        corpus = conditioned(prompt, events, family, 200, prompt.draw(seed))
        assert bool(corpus.same[:, events].all())
        if family != "iid":
            check_grammar(corpus)
        others = [j for j in range(2, 19) if j not in events]
        assert float(corpus.same[:, others].double().mean()) < 0.6  # mostly ignores, in gen
        lengths = {len(each) for each in strings(corpus)}
        if family == "shift":
            assert lengths == set(range(20 - max(0, events[0] - 1), 25)) - {20}
        else:
            assert lengths == {20}
    everything = list(range(20 - 1))
    if family == "shift":
        assert conditioned(prompt, everything, family, 5, prompt.draw(0)) is None
    else:
        corpus = conditioned(prompt, everything, family, 5, prompt.draw(0))
        assert torch.equal(corpus.tokens, prompt.tokens.expand(5, -1))


def test_events_of_the_task_have_its_law():
    prompt = a_prompt(events=24)
    corpus = conditioned(prompt, [], "gen", 2000, prompt.draw(0))
    events = corpus.tokens.view(2000, -1, 2)[:, 1:-1]
    shares = [float((events[..., 0] == kind).double().mean()) for kind in (WRITE, READ, IGNORE)]
    assert shares == pytest.approx([0.1, 0.1, 0.8], abs=0.01)
    corpus = conditioned(prompt, [], "type", 2000, prompt.draw(0))
    assert float((corpus.tokens[:, 2:-2:2] == READ).double().mean()) == pytest.approx(1 / 3, abs=0.01)
    assert float(corpus.truth.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_ungrammatical_strings_know_their_truth_where_there_is_one():
    prompt = a_prompt(events=3)
    corpus = conditioned(prompt, [], "iid", 500, prompt.draw(0))
    for events, truth, known in zip(strings(corpus), corpus.truth.tolist(), corpus.known.tolist(), strict=True):
        written = [second for first, second in events if first == WRITE and second >= SYMBOL]
        assert known == bool(written)
        assert not written or truth == written[-1] - SYMBOL
    assert 0 < int((~corpus.known).sum()) < 500


def exhaustive(same, hit, size, support, z):
    """Every set of events, by loops."""
    found = {}
    for each in itertools.combinations(range(same.shape[1]), size):
        rows = [float(h) for h, row in zip(hit, same, strict=True) if all(row[j] for j in each)]
        if len(rows) < support:
            continue
        mean = sum(rows) / len(rows)
        variance = sum((h - mean) ** 2 for h in rows) / (len(rows) - 1)
        found[each] = mean - z * (variance / len(rows)) ** 0.5, mean, len(rows)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_an_endless_beam_is_an_exhaustive_search(seed):
    draw = Draw(torch.tensor([seed]))
    same = draw.uniform((200, 7), 0)[0] < 0.7
    hit = draw.uniform((200,), 1)[0].double()
    found = search(same, hit, list(range(7)), Search(beam=None, size=4, support=20, z=1.5))
    for size, best in enumerate(found, 1):
        scores = exhaustive(same, hit, size, 20, 1.5)
        top = max(scores, key=lambda each: scores[each][0])
        assert best.events == top
        assert (best.bound, best.mean, best.support) == rounded(scores[top])
        assert best.base == rounded(float(hit.mean()))
        assert best.psi == rounded(math.log(best.mean / best.base))
    assert len(found) == 4
    narrow = search(same, hit, list(range(7)), Search(beam=1, size=4, support=20, z=1.5))
    assert narrow[0] == found[0]
    assert all(one.bound <= other.bound + 1e-12 for one, other in zip(narrow, found, strict=True))


def test_the_association_is_that_of_all_strings():
    """Ψ by its definition, from the probabilities of all strings of a tiny language under a model, beside a corpus that holds each once."""
    strings = torch.tensor(list(itertools.product(range(3), repeat=5)))
    prompt = torch.tensor([0, 1, 2, 0, 1])
    p = ((strings[:, 1] == 1) & (strings[:, 3] == 0)).double() * 0.6 + 0.05 * strings.sum(-1).double() / 10 + 0.1
    both, alone = p[(strings[:, 1] == 1) & (strings[:, 3] == 0)].mean(), p.mean()
    found = search(strings == prompt, p, list(range(5)), Search(beam=5, size=2, support=2, z=0))
    assert found[1].events == (1, 3)
    assert found[1].psi == pytest.approx(math.log(both / alone), abs=1e-12)
    assert (found[1].support, chosen(search(strings == prompt, p, [1, 3], Search(size=2, support=2)))) == (27, 2)


def test_a_search_without_patience_stops_where_the_bound_falls():
    draw = Draw(torch.tensor([4]))
    same = draw.uniform((500, 6), 0)[0] < 0.7
    hit = same[:, 2].double() * 0.5 + 0.1 * draw.uniform((500,), 1)[0]
    whole = search(same, hit, list(range(6)), Search())
    size = chosen(whole)
    assert size < len(whole) == 6
    assert all(whole[n].bound > whole[n - 1].bound for n in range(1, size))
    assert search(same, hit, list(range(6)), Search(patience=0)) == whole[: size + 1]


def test_bounds_of_zeros_and_ones_are_wilsons():
    from scipy.stats import binomtest

    for successes, trials in ((0, 40), (7, 40), (40, 40)):
        expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson").low
        count, total = torch.tensor(float(trials)), torch.tensor(float(successes))
        assert float(lower_bound(count, total, total, 1.959964, True)) == pytest.approx(expected, abs=1e-6)
    hit = torch.tensor([1.0, 0, 1, 1]).double()
    same = torch.tensor([[1], [0], [1], [1]], dtype=torch.bool)
    assert search(same, hit, [0], Search(support=1, z=0))[0].mean == 1
    assert search(same, hit, [0], Search(support=4)) == []


def test_a_prompt_is_a_read_of_a_flip_flop_string():
    prompt = a_prompt()
    assert isinstance(prompt, Prompt)
    assert (prompt.query, prompt.room) == (19, 4)
    assert int(prompt.instructions[prompt.last_write]) == WRITE
    assert int(prompt.symbols[prompt.last_write]) == prompt.truth
    with pytest.raises(ValueError, match=r"position 1 .*read .*two events"):
        prompt_of(TASK, prompt.tokens, 1)
    with pytest.raises(ValueError, match="a beam, a size and a support of at least 1"):
        Search(beam=0)
