"""The numbers that the committed studies of in-context n-grams have to meet: levels of plateaus, losses at the end, and the first lag.

They are read off figures 3, 4, 6 and 7 of Varre et al. 2025 and off a run of our own in another framework.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from results.claims.evidence import gather
from results.claims.ngrams.courses import courses
from results.claims.ngrams.plateaus import band, leaves
from results.rows.looks import averages, series, watched
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read

# level of the bigram's plateau and how far the median may be from it, and the median loss at the end of those that have left it
LEVELS = {"ngram-stages": (1.634, 0.01, 1.62), "ngram-gradients": (1.50, 0.02, 1.31)}


def _conditions(name):
    """By condition, courses of the replicates of a study, and the loss of each on the set that is scored at the end."""
    store = open_store("docs/studies/ngrams", name)
    manifest, finished = newest_manifest(store)[1], committed(store)
    replicates = replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures"))
    means = averages(store, finished)
    evidence = gather(manifest, replicates, averages=means, watched=watched(store, finished))
    last = series(means, ("loss",), "test")
    return {
        condition.name: (courses(evidence, condition), [last[each.key]["loss"].values[-1] for each in condition.replicates])
        for condition in evidence.conditions
    }


def _opened(name):
    """Courses and losses of a study of one condition."""
    (opened,) = _conditions(name).values()
    return opened


@pytest.fixture(scope="module", params=LEVELS)
def study(request):
    return request.param, *_opened(request.param)


def test_plateaus_and_last_losses_are_those_of_the_figures(study):
    name, own, last = study
    level, margin, end = LEVELS[name]
    assert len(own) == 25
    assert abs(np.median([course.plateau(2) for course in own]) - level) <= margin
    left = [loss for loss, course in zip(last, own, strict=True) if course.escape(2) is not None]
    assert len(left) >= 18
    assert np.median(left) <= end
    assert np.mean(np.array(left) <= end) >= 0.94


def test_lag_1_is_learned_first_by_19_seeds_in_20(study):
    _, own, _ = study
    assert np.mean([next(iter(course.learned)) == 1 for course in own]) >= 0.95


def test_attention_alone_comes_by_way_of_the_bigram_below_the_last_level_of_figure_4():
    own, last = _conditions("ngram-attention-only")["one_hot"]
    assert len(own) == 25
    for course in own:
        assert course.loss[0] < np.log(3)  # where it starts exactly: tests/models/ngrams
        assert course.plateau(2) == pytest.approx(1.03, abs=0.02)
    ends = [end for end, course in zip(last, own, strict=True) if course.escape(2) is not None]
    assert len(ends) == 23
    assert max(ends) < 0.98


def test_the_page_tells_when_models_of_attention_alone_leave_the_bigram_and_where_they_end():
    """docs/studies/ngrams/README.md, "Attention alone" and "Numbers of the paper beside ours"."""
    page = " ".join(Path("docs/studies/ngrams/README.md").read_text().split())
    conditions = _conditions("ngram-attention-only")
    left, ends, others = {}, {}, []
    for name, (own, last) in conditions.items():
        steps = [course.escape(2) for course in own]
        left[name] = [step for step in steps if step is not None]
        ends[name] = [end for end, step in zip(last, steps, strict=True) if step is not None]
        others += [end for end, step in zip(last, steps, strict=True) if step is None]
    first, half = left["one_hot"], np.median(left["one_hot"])
    assert f"between steps {min(first):,.0f} and {max(first):,.0f}, half of those that do by step {half:,.0f};" in page
    learned = left["learned"]
    assert f"{len(learned)} of 25 seeds leave the bigram, half of these by step {np.median(learned):,.0f}" in page
    assert sum(course.plateau(2) is None for course in conditions["learned"][0]) == 3  # "three do not leave the unigram"
    told = [f"{min(ends[name]):.3f} to {max(ends[name]):.3f}" for name in ("one_hot", "learned")]
    assert f"is {told[0]}, and {told[1]} with learned embeddings; of the others it is {min(others):.3f} or more" in page
    levels = [course.plateau(2) for course in conditions["one_hot"][0]]
    assert f"| 1.03 on the plateau | {min(levels):.3f} to {max(levels):.3f} | 25 |" in page


def test_the_page_tells_how_the_loss_slides_off_the_unigram_on_long_strings():
    own, _ = _opened("ngram-gradients")
    stages = [course.loss[course.looks(1)] for course in own]
    first, last = (np.median([losses[at] for losses in stages]) for at in (0, -1))
    step, learned = (np.median(steps) for steps in ([course.steps[0] for course in own], [course.begins(2) for course in own]))
    told = f"From step {step:.0f} until lag 1 is learned, at step {learned:.0f}, it falls from {first:.3f} to {last:.3f} (medians)."
    assert told in " ".join(Path("docs/studies/ngrams/README.md").read_text().split())


def test_models_with_mlps_stay_at_the_level_of_figure_7():
    own, _ = _opened("ngram-mlp")
    assert len(own) == 25
    for course in own:
        assert _before(course) == pytest.approx(1.603, abs=0.01)


def _before(course):
    """The median loss until the unigram is left."""
    return np.median(course.loss[course.steps < leaves(course, 1)])


def test_the_page_tells_when_models_with_mlps_leave_the_unigram_and_the_bigram():
    """docs/studies/ngrams/README.md, "With MLPs"."""
    page = Path("docs/studies/ngrams/README.md").read_text()
    section = " ".join(page.partition("## With MLPs")[2].partition("\n## ")[0].split())
    told = re.findall(r"between steps ([\d,]+) and ([\d,]+), half of them by step ([\d,]+)", section)
    own, last = _opened("ngram-mlp")
    for k, numbers in zip((1, 2), told, strict=True):
        steps = [leaves(course, k) for course in own]
        assert [int(number.replace(",", "")) for number in numbers] == [min(steps), max(steps), np.median(steps)]
    assert all(course.learned[1] < leaves(course, 2) for course in own)
    near = [25 * int((np.abs(course.loss - band(course, 2)[0]) < 0.005).sum()) for course in own]
    low, high = re.search(r"for ([\d,]+) to ([\d,]+) steps", section).groups()
    assert [int(number.replace(",", "")) for number in (low, high)] == [min(near), max(near)]
    plateaus = [_before(course) for course in own]
    assert f"is at {min(plateaus):.3f} to {max(plateaus):.3f}." in section
    ratios = [leaves(course, 2) / leaves(course, 1) for course in own]
    assert f"need {min(ratios):.1f} to {max(ratios):.1f} times" in section
    at = [course.loss[course.steps == 4000][0] for course in own]
    assert f"median of ours is {np.median(at):.3f}." in section
    assert f"{min(last):.3f} to {max(last):.3f} on 16,384" in section


def test_the_page_tells_how_many_of_200_seeds_leave_the_bigram_under_each_change():
    """docs/studies/ngrams/README.md, "What shortens the time at the bigram"."""
    page = Path("docs/studies/ngrams/README.md").read_text()
    section = page.partition("## What shortens the time at the bigram")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+)", section, re.MULTILINE))
    conditions = _conditions("ngram-survival")
    assert all(len(own) == 200 for own, _ in conditions.values())
    assert all(next(iter(course.learned)) == 1 for own, _ in conditions.values() for course in own)
    left = {name: sum(course.escape(2) is not None for course in own) for name, (own, _) in conditions.items()}
    assert left == {name: int(count) for name, count in told.items()}
    assert min(course.escape(2) or np.inf for course in conditions["base"][0]) == 2176


def test_the_page_tells_how_the_loss_falls_to_the_bigram():
    """docs/studies/ngrams/README.md, "Plateaus" of long strings and "N1" of attention alone."""
    page = " ".join(Path("docs/studies/ngrams/README.md").read_text().split())

    def at(own, step):
        return f"{np.median([course.loss[course.steps == step][0] for course in own]):.3f}"

    own, _ = _opened("ngram-gradients")
    assert f"falls from {at(own, 20)} at step 20 to {at(own, 160)} at step 160" in page
    assert f"and {at(own, 360)} at step 360. Then it stays at {np.median([course.plateau(2) for course in own]):.3f}" in page
    own, _ = _conditions("ngram-attention-only")["one_hot"]
    assert f"The loss falls from {at(own, 64)} at step 64 to {at(own, 1024)} at step 1,024" in page
    first = np.median([course.plateau(1) for course in own])
    unigram, bigram = band(own[0], 1)[0], band(own[0], 2)[1]
    assert f"median loss of the first stage, {first:.3f}, lies within 0.02 of the losses of both" in page
    assert max(unigram - first, first - bigram) < 0.02
    assert f"too near each other: {unigram:.3f} and {bigram:.3f}" in page
