"""The probe of generation with a verifier, on small untrained models and on values worked out by hand."""

import pytest
import torch

import models
from harness.draw import Draw
from harness.experiments.generation import samplers
from harness.probes import run as probes
from harness.probes.generation import backtracking, verifier
from harness.probes.generation.backtracking import Backtracking, generation, prompts
from harness.probes.generation.generator import TrainedGenerator
from harness.probes.generation.verifier import ExactVerifier, Examples, RandomVerifier, Recorded, examples, trained
from results.errors import StudyError
from results.rows.probe_values import parts
from tasks.generation.bracket_errors import first_errors, valid
from tasks.generation.bracket_strings import END, START, BracketStrings
from tests.rounding import rounded, rounded_single

TASK = BracketStrings(length=8, depth=3)
DRAW = Draw(torch.tensor([5]), "evaluate")
SETTINGS = Backtracking(left=4, verifiers=2, errors=60)


@pytest.fixture(scope="module", autouse=True)
def few_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifier, "_STEPS", 100)
        yield


def model(seed=0, **options):
    config = models.configure("transformer", **({"layers": 1, "width": 8, "heads": 2, "positions": "rotary"} | options))
    return config.make(Draw(torch.tensor([seed]), "init"), TASK.vocabulary, TASK.tokens, TASK.outputs)


class Rule(TrainedGenerator):
    """Opens "[" where nothing is open, and else closes the innermost bracket, with a chance of 1/5 by the wrong type."""

    errs = 0.2

    def __init__(self):
        super().__init__(model(), TASK)

    def _said(self, strings, lengths):
        laws, features = torch.zeros(len(strings), 5, dtype=torch.float64), torch.ones(len(strings), 8)
        for row, (string, length) in enumerate(zip(strings.tolist(), lengths.tolist(), strict=True)):
            stack, features[row, 1] = [], length
            for token in string[: min(length, TASK.length)]:
                if token % 2 == 0:
                    stack.append(min(token, 2) + 1)
                elif not stack or stack.pop() != token:
                    features[row, 0] = -1  # what a verifier can read
            if length >= TASK.length:
                laws[row, END] = 1
            elif stack:
                laws[row, stack[-1]], laws[row, 4 - stack[-1]] = 1 - self.errs, self.errs
            else:
                laws[row, 0] = 1
        return laws, features


@pytest.mark.parametrize("options", [{}, {"positions": "learned"}, {"head_bias": False}])
def test_a_trained_model_says_of_a_prefix_what_it_says_in_training(options):
    net = model(**options)
    generator = TrainedGenerator(net, TASK)
    strings, lengths = prompts(TASK, Backtracking(left=6), 0, 0, 12)
    law = generator.law(strings, lengths, torch.arange(12))
    read = torch.cat([torch.full((12, 1), START), strings[:, : TASK.length]], dim=1)
    with torch.no_grad():
        wanted = net(read[None])[0].double().softmax(-1)[torch.arange(12), lengths]
    assert law.numpy() == rounded_single(wanted.numpy())
    assert (generator.law(strings, lengths, torch.arange(12)) == law).all()
    other = torch.where(torch.arange(strings.shape[1]) < lengths[:, None], strings, 3)  # what comes after a prefix is not read
    assert TrainedGenerator(net, TASK).law(other, lengths, torch.arange(12)).numpy() == rounded_single(law.numpy())


def test_prompts_are_beginnings_of_valid_strings_and_lack_up_to_so_many_brackets():
    strings, lengths = prompts(TASK, Backtracking(left=3, first_type=1.0), 0, 0, 400)
    assert lengths.unique().tolist() == [5, 6, 7]
    assert valid(TASK, torch.cat([strings[:, :8], torch.full((400, 1), END)], dim=1), torch.full((400,), 9)).all()
    assert (strings[:, :8] < 2).all()  # "[" and "]" alone
    later = prompts(TASK, Backtracking(left=3, first_type=1.0), 0, 100, 50)
    assert (later[0] == strings[100:150]).all()
    assert (later[1] == lengths[100:150]).all()


def test_examples_are_first_errors_beside_right_prefixes_of_the_same_lengths():
    generator = Rule()
    strings, lengths = prompts(TASK, Backtracking(left=4), 0, 0, 300)
    samples = samplers.plain(generator, DRAW, strings, lengths)
    found = examples(generator, samples, lengths, 40)
    assert len(found.right) == 80
    assert (found.features[:, 0] == torch.where(found.right, 1.0, -1.0)).all()
    assert (found.features[:40, 1] == found.features[40:, 1]).all()


def test_a_verifier_learns_what_tells_errors_and_is_scored_on_examples_that_it_was_not_trained_on():
    generator = Rule()
    right = torch.arange(120) >= 60
    noise = Draw(torch.tensor([2])).normal((120, 8))[0]
    features = torch.cat([torch.where(right, 3.0, -3.0)[:, None], noise[:, 1:]], dim=1)
    verifiers = trained(generator, Examples(features, right), DRAW, 3)
    assert [each.accuracy for each in verifiers] == [1.0] * 3
    assert len({float(each.weight[1]) for each in verifiers}) == 3
    (alone,) = trained(generator, Examples(features, right), DRAW, 1)
    assert torch.allclose(alone.weight, verifiers[0].weight, atol=1e-5)
    # 64 features that tell nothing fit the examples they are trained on, and no others
    untold = trained(generator, Examples(Draw(torch.tensor([2])).normal((120, 64))[0], right), DRAW, 10)
    assert sum(each.accuracy for each in untold) / 10 < 0.65


def test_a_random_verifier_refuses_its_share():
    random = RandomVerifier(DRAW, 4000, 0.3)
    strings, lengths, rows = torch.zeros(4000, 9, dtype=torch.int64), torch.ones(4000, dtype=torch.int64), torch.arange(4000)
    first, second = (random.accepts(strings, lengths, rows) for _ in range(2))
    assert first.double().mean() == pytest.approx(0.7, abs=0.03)
    assert (first != second).double().mean() == pytest.approx(0.42, abs=0.03)
    assert RandomVerifier(DRAW, 4000, 0.0).accepts(strings, lengths, rows).all()


def test_the_prefixes_that_a_verifier_refused_are_kept():
    generator = Rule()
    strings, lengths = prompts(TASK, Backtracking(left=4), 0, 0, 200)
    recorded = Recorded(ExactVerifier(generator))
    found = samplers.backtracking(generator, recorded, DRAW, strings, lengths, 4, 2)
    refused, at = recorded.refused()
    assert len(at) == int(found.backtracks.sum()) > 20
    assert (first_errors(TASK, refused, at).place < at).all()


@pytest.fixture(scope="module")
def rows():
    return _rows(Rule, 200)


def _rows(kind, count):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtracking, "TrainedGenerator", lambda model, task: kind())
        patch.setattr(backtracking, "_PART", count)
        patch.setattr(backtracking, "_PARTS", 1)
        patch.setattr(backtracking, "DIVERSE", 10)
        found = generation(model(), TASK, count, SETTINGS)
    return {row["item"]: row["value"] for row in found}


def test_a_generator_that_errs_at_every_fifth_bracket_errs_less_with_a_verifier(rows):
    strings, lengths = prompts(TASK, SETTINGS, 0, 0, 200)
    closing = (torch.where(torch.arange(9) < lengths[:, None], 2 * (strings % 2) - 1, 0).sum(1) * -1 + 8 - lengths) / 2
    assert rows["fresh top=1 plain wrong"] == pytest.approx(1 - float((0.8**closing).mean()), abs=0.1)
    assert rows["fresh top=1 rejection exact wrong"] == rows["fresh top=1 tokenwise exact wrong"] == 0
    assert rows["fresh top=1 thesis Q=4 B=4 verifier=0 wrong"] < 0.5 * rows["fresh top=1 plain wrong"]
    assert rows["verifier=0 accuracy"] == rows["verifier=1 accuracy"] == 1
    assert rows["verifier examples"] > 40
    # every refused prefix has an error already, and few that are refused at random have one
    assert rows["fresh top=1 thesis Q=4 B=4 verifier=1 flagged_nucleus_right"] == 0
    assert rows["fresh top=1 thesis Q=4 B=4 random=1 flagged_nucleus_right"] > 0.2


def test_the_most_probable_tokens_after_a_cut_are_right(rows):
    # all eight tokens are written anew, greedily and so without an error
    assert rows["error greedy right"] == rows["error once B=8 right"] == 1
    assert rows["error plain right"] < 1
    assert rows["error thesis Q=4 B=4 verifier=0 right"] > rows["error plain right"]


def test_mistakes_are_counted_by_kind(rows):
    where = "fresh top=1 thesis Q=4 B=4 verifier=0"
    kinds = sum(
        value for item, value in rows.items() if parts(item, f"{where} {{word}}") and item.split()[-1] in backtracking.KINDS
    )
    assert kinds == rounded(200 * rows[f"{where} wrong"])


def test_strings_of_one_prompt_are_distinct_where_they_differ(rows):
    assert 1 < rows["diverse top=1 plain distinct"] <= 10
    assert rows["diverse top=1 thesis Q=4 B=4 verifier=0 distinct"] < rows["diverse top=1 plain distinct"]


def test_a_generator_without_errors_has_no_verifier_and_still_rows():
    class Flawless(Rule):
        errs = 0.0

    found = _rows(Flawless, 20)
    assert found["fresh top=1 plain wrong"] == found["verifier examples"] == found["error prompts"] == 0
    assert not [item for item in found if "verifier=" in item]


@pytest.mark.parametrize("option", ["errors=0", "left=0", "verifiers=-1", "first_type=2"])
def test_an_option_that_cannot_be_is_one_sentence(option):
    with pytest.raises(StudyError, match=f"--option {option} must be "):
        probes.run([], "backtracking", None, None, print, [option])
