"""Samplers and walks against their exact laws.

χ² tests are of seeded draws, so they give the same answer every time. With other seeds each would raise a false alarm with a chance of
ALARM.
"""

import itertools

import pytest
import scipy.stats
import torch

from harness.draw import Draw
from harness.experiments.generation import samplers
from harness.experiments.generation.oracles import Judged, Written
from harness.experiments.generation.verified_sampling import SAMPLERS, VerifiedSampling
from harness.experiments.generation.walk import uniform_time, until_leaf
from tasks.generation import processes

ALARM = 1e-5
SEEDS = (4, 9)
DRAW = Draw(torch.tensor(SEEDS), "experiment")
COUNTS = (4_000, pytest.param(100_000, marks=pytest.mark.slow))
HORIZON = 4


@pytest.fixture(scope="module")
def tree():
    return processes.tree(DRAW, HORIZON, 2)


@pytest.fixture(scope="module")
def answers(tree):
    """A verifier that is wrong about a fifth of the prefixes of a process in which a third of the leaves have no reward."""
    exact = processes.accepted(processes.values(tree))
    return processes.flipped(exact, DRAW, 0.2)


def empty(count, width=HORIZON):
    return torch.zeros(len(SEEDS) * count, width, dtype=torch.int64), torch.zeros(len(SEEDS) * count, dtype=torch.int64)


def fits(strings, law, tokens=2):
    """Does every seed's samples pass the χ² test of its exact law?"""
    number = torch.zeros(len(strings), dtype=torch.int64)
    for place in range(strings.shape[1]):
        number = number * tokens + strings[:, place]
    for own, wanted in zip(number.view(len(SEEDS), -1), law.expand(len(SEEDS), -1), strict=True):
        seen = torch.bincount(own, minlength=len(wanted)).double()
        possible = wanted > 0
        if seen[~possible].sum():
            return False
        expected = wanted[possible] * len(own)
        frequent = expected >= 5
        cells = [torch.cat([each[frequent], each[~frequent].sum()[None]]) for each in (seen[possible], expected)]
        if frequent.all():
            cells = [each[:-1] for each in cells]
        if scipy.stats.chisquare(*(each.numpy() for each in cells)).pvalue < ALARM:
            return False
    return True


@pytest.mark.parametrize("count", COUNTS)
def test_strings_of_a_process_follow_its_law(tree, count):
    found = samplers.plain(Written(tree, count), DRAW, *empty(count))
    assert fits(found.strings, processes.leaf_law(tree, tree.law))
    assert not fits(found.strings, processes.leaf_law(tree, processes.target(tree)))
    assert (found.queries == HORIZON).all()
    assert (found.checks == 0).all()


@pytest.mark.parametrize("count", COUNTS)
def test_rejection_draws_from_the_target_and_costs_what_is_stated(count):
    process = processes.some_zero(3)
    verifier = Judged(process, processes.extendable(process), count)
    found = samplers.rejection(Written(process, count), verifier, DRAW, *empty(count, 3))
    assert fits(found.strings, processes.leaf_law(process, processes.target(process)))
    # whole strings: three tokens each, and the number of strings is geometric with a chance of 7/8
    assert costs_about(found.queries / 3, 8 / 7, (1 / 8) ** 0.5 / (7 / 8))
    assert (found.checks * 3 == found.queries).all()


@pytest.mark.parametrize("count", COUNTS)
def test_tokenwise_rejection_has_the_law_and_the_cost_that_are_stated(count):
    process = processes.some_zero(3)
    value = processes.extendable(process)
    found = samplers.tokenwise(Written(process, count), Judged(process, value, count), DRAW, *empty(count, 3))
    assert fits(found.strings, processes.leaf_law(process, processes.guided(process, value)))
    assert not fits(found.strings, processes.leaf_law(process, processes.target(process)))
    # the last token of 1 1 x, a quarter of the strings, is drawn twice on average, with a variance of 2
    assert costs_about(found.queries, 3.25, (0.25 * 2 + 0.25 * 0.75) ** 0.5)
    assert (found.checks == found.queries).all()


def test_one_string_of_many_costs_tokenwise_rejection_two_tokens_each():
    process = processes.only_zeros(6, 2)
    verifier = Judged(process, processes.extendable(process), 2_000)
    found = samplers.tokenwise(Written(process, 2_000), verifier, DRAW, *empty(2_000, 6))
    assert (found.strings == 0).all()
    assert costs_about(found.queries, 12, (6 * 2) ** 0.5)


def test_a_string_that_is_never_accepted_is_given_up_and_said_to_be_unfinished():
    process = processes.hidden_parity(4)
    written, verifier = Written(process, 50), Judged(process, processes.extendable(process), 50)
    found = samplers.tokenwise(written, verifier, DRAW, *empty(50, 4), most=200)
    hidden = (found.strings[:, :3] == 0).all(1)
    assert (found.finished == hidden).all()
    assert 0 < hidden.sum() < len(hidden)
    assert (found.queries[~hidden] == 200).all()


def costs_about(queries, mean, deviation):
    """The mean cost of a string, within as many standard errors as make an alarm of chance ALARM."""
    error = deviation / len(queries) ** 0.5
    return abs(float(queries.double().mean()) - mean) < scipy.stats.norm.isf(ALARM / 2) * error


def law_of_backtracking(process, answers, slot, quota, stride, mode, greedy):
    """P(string) of algorithm 1, from its words: a sum over all courses, one token at a time."""
    found = {}

    def state(word):
        at = 0
        for token in word:
            at = int(process.successor[at, token])
        return at

    def law(word):
        return process.law[slot, len(word), state(word)].tolist()

    def accepts(word):
        return bool(answers[slot, len(word), state(word)] > 0)

    def thesis(word, left, chance, forced=0):
        if len(word) == process.horizon:
            found[word] = found.get(word, 0.0) + chance
            return
        own = law(word)
        if forced:
            thesis((*word, own.index(max(own))), left, chance, forced - 1)
            return
        for token, share in enumerate(own):
            longer = (*word, token)
            if left and not accepts(longer):
                thesis(longer[: max(0, len(longer) - stride)], left - 1, chance * share, stride if greedy else 0)
            else:
                thesis(longer, left, chance * share)

    def released(word, left, chance, erased=0, refused=frozenset()):
        if len(word) == process.horizon:
            found[word] = found.get(word, 0.0) + chance
            return
        if left and word and word not in refused and not accepts(word):
            refused, left = refused | {word}, left - 1
            shorter = word[: max(0, len(word) - stride)]
            erased, word = erased + len(word) - len(shorter), shorter
        own = law(word)
        if greedy and len(word) < erased:
            released((*word, own.index(max(own))), left, chance, erased, refused)
            return
        for token, share in enumerate(own):
            released((*word, token), left, chance * share, erased, refused)

    {"thesis": thesis, "released": released}[mode]((), quota, 1.0)
    words = itertools.product(range(process.tokens), repeat=process.horizon)
    return torch.tensor([found.get(word, 0.0) for word in words], dtype=torch.float64)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mode", samplers.MODES)
@pytest.mark.parametrize(("quota", "stride", "greedy"), [(3, 2, True), (2, 6, True), (3, 1, False)])
def test_backtracking_has_the_law_of_algorithm_1(tree, answers, count, mode, quota, stride, greedy):
    verifier = Judged(tree, answers, count)
    found = samplers.backtracking(Written(tree, count), verifier, DRAW, *empty(count), quota, stride, mode=mode, greedy=greedy)
    wanted = [law_of_backtracking(tree, answers, slot, quota, stride, mode, greedy) for slot in range(len(SEEDS))]
    assert all(float(each.sum()) == pytest.approx(1, rel=1e-9) for each in wanted)
    assert fits(found.strings, torch.stack(wanted))
    other = [law_of_backtracking(tree, answers, slot, quota, stride, mode, not greedy) for slot in range(len(SEEDS))]
    assert not fits(found.strings, torch.stack(other))
    assert (found.backtracks <= quota).all()
    assert (found.backtracks > 0).any()


def test_without_a_quota_backtracking_is_the_plain_sampler(tree, answers):
    plain = samplers.plain(Written(tree, 100), DRAW, *empty(100))
    found = samplers.backtracking(Written(tree, 100), Judged(tree, answers, 100), DRAW, *empty(100), 0, 2)
    assert torch.equal(found.strings, plain.strings)
    assert torch.equal(found.queries, plain.queries)
    assert (found.checks == 0).all()


def test_backtracking_counts_every_token_and_every_question():
    """A verifier that always refuses: of H = 4 tokens with quota 2 and stride 2, each refusal takes back two and writes two."""
    process = processes.tree(DRAW, 4, 2)
    no = Judged(process, torch.zeros(1, 5, process.states), 1)
    found = samplers.backtracking(Written(process, 1), no, DRAW, *empty(1), 2, 2)
    # token 1 refused → empty, tokens 1 and 2 greedy; token 3 refused → token 1, tokens 2 and 3 greedy; token 4
    assert found.queries.tolist() == [1 + 2 + 1 + 2 + 1] * 2
    assert found.checks.tolist() == [2, 2]
    assert found.backtracks.tolist() == [2, 2]
    assert (found.lengths == 4).all()


def test_a_prompt_is_cut_only_where_it_may_be():
    process = processes.tree(DRAW, 4, 2)
    no = Judged(process, torch.zeros(1, 5, process.states), 1)
    prompt = torch.tensor([[1, 0, 1, 0]] * 2)
    for mode in samplers.MODES:
        for reach in (0, 2):
            found = samplers.backtracking(
                Written(process, 1), no, DRAW, prompt, torch.tensor([3, 3]), 1, 4, mode=mode, reach=reach
            )
            assert torch.equal(found.strings[:, : 3 - reach], prompt[:, : 3 - reach])
            assert (found.lengths == 4).all()
    # released, and the prompt itself is judged: cut by two before the first token, which makes three queries
    assert found.queries.tolist() == [3, 3]


def test_a_nucleus_keeps_the_token_that_crosses_its_mass():
    law = torch.tensor([[0.5, 0.2, 0.25, 0.05], [0.9, 0.05, 0.05, 0.0]], dtype=torch.float64)
    kept = samplers.nucleus(law, 0.7)
    assert kept.tolist() == [[0.5, 0.0, 0.25, 0.0], [0.9, 0.0, 0.0, 0.0]]
    assert samplers.nucleus(law, 1.0) is law
    tokens = samplers.chosen(kept[:1].expand(4, -1), torch.tensor([0.0, 0.66, 0.67, 0.999], dtype=torch.float64))
    assert tokens.tolist() == [0, 0, 2, 2]


@pytest.fixture(scope="module")
def value(tree):
    return processes.mistaken(processes.values(tree), DRAW, 1.0, 0.0)


@pytest.mark.parametrize("count", COUNTS)
def test_the_first_leaf_of_a_walk_has_the_law_of_the_network(tree, value, count):
    found, steps = until_leaf(tree, value, DRAW, count)
    assert fits(found.strings, processes.leaf_law(tree, processes.guided(tree, processes.first_leaf(tree, value))))
    if count > 10_000:
        assert not fits(found.strings, processes.leaf_law(tree, processes.target(tree)))
    wanted = processes.first_leaf_steps(tree, value)
    for own, mean in zip(steps.view(len(SEEDS), -1).double(), wanted, strict=True):
        assert costs_about(own, float(mean), float(own.std()))
    assert (found.queries <= steps).all()
    # a move asks about both children and, but at the root, about the prefix itself
    assert (found.checks <= 3 * found.queries).all()
    assert (found.checks >= 2 * found.queries).all()


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_walk_at_a_uniform_time_is_where_the_powers_of_its_matrix_say(count):
    """In the long run that is the target; after 40 steps it is not yet."""
    steps, horizon = 40, 3
    process = processes.tree(DRAW, horizon, 2)
    value = processes.mistaken(processes.values(process), DRAW, 1.0, 0.0)
    found, runs = uniform_time(process, value, DRAW, count, steps, 200)
    assert found.finished.all()
    leaves, laws, chances = slice(2**horizon - 1, None), [], []
    for slot in range(len(SEEDS)):  # a state of a tree is a prefix
        heights = [h for h in range(horizon + 1) for _ in range(2**h)]
        judged = [float(value[slot, height, state]) for state, height in enumerate(heights)]
        weights = torch.zeros(len(heights), len(heights), dtype=torch.float64)
        for state, height in enumerate(heights[: 2**horizon - 1]):
            for token in range(2):
                child = 2 * state + 1 + token
                weights[state, child] = process.law[slot, height, state, token] * judged[child]
                weights[child, state] = judged[child]
        chain = 0.5 * torch.eye(len(heights), dtype=torch.float64) + 0.5 * weights / weights.sum(1, keepdim=True)
        now = torch.zeros(len(heights), dtype=torch.float64)
        now[0], mean = 1.0, torch.zeros(len(heights), dtype=torch.float64)
        for _ in range(steps):
            now = now @ chain
            mean += now / steps
        chances.append(float(mean[leaves].sum()))
        laws.append(mean[leaves] / mean[leaves].sum())
    assert fits(found.strings, torch.stack(laws))
    assert not fits(found.strings, processes.leaf_law(process, processes.guided(process, value)))
    for own, chance in zip(runs.view(len(SEEDS), -1), chances, strict=True):
        assert costs_about(own, 1 / chance, (1 - chance) ** 0.5 / chance)
    longer = processes.stationary(process, value)[:, -1].sum(1)
    assert chances == pytest.approx(longer.tolist(), rel=0.4)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_replicate_does_not_depend_on_what_is_measured_beside_it(sampler):
    experiment = VerifiedSampling(process="tree", horizon=3, sampler=sampler, samples=20, steps=20)
    together = next(experiment.measure(DRAW))
    for slot, seed in enumerate(SEEDS):
        alone = next(experiment.measure(Draw(torch.tensor([seed]), "experiment")))
        assert {name: float(own[0]) for name, own in alone.items() if name != "count"} == {
            name: float(own[slot]) for name, own in together.items() if name != "count"
        }


def test_long_walks_do_not_need_memory_for_all_strings():
    """64 levels: the laws are exact where no string could be counted one by one."""
    experiment = VerifiedSampling(process="brackets", horizon=64, depth=3, sampler="vgb_first_leaf", samples=1, noise=1.0)
    guided = next(
        VerifiedSampling(process="brackets", horizon=64, depth=3, sampler="guided", samples=1, noise=1.0).measure(DRAW)
    )
    process = experiment.built(DRAW)
    exact = processes.values(process).expand(2, -1, -1)
    value = processes.mistaken(exact, DRAW, 1.0, 0.0)
    walked = processes.divergence(process, processes.guided(process, processes.first_leaf(process, value)))
    assert (walked > 0).all()
    assert (walked < guided["divergence"]).all()
    assert "distance" not in guided


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process": "forest"}, "experiment.process = 'forest' must be tree or brackets"),
        ({"process": "brackets", "horizon": 5}, "must be even"),
        ({"flips": 0.1}, "experiment.flips belongs to rejection, tokenwise and backtracking"),
        ({"sampler": "plain", "noise": 1.0}, "experiment.noise belongs to guided"),
        ({"horizon": 30}, "makes a table of over"),
        ({"process": "brackets", "horizon": 4, "depth": 40}, "makes a table of over"),
        ({"samples": 0}, "experiment.samples = 0 must be at least 1"),
        ({"wrong": 1.5}, "must be from 0 to 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        VerifiedSampling(**options)
