"""`manyseeds compare --across`: conditions over all values of one setting, from imported runs to the printed table."""

import re
from dataclasses import replace

import pytest

from harness.exchange.finished_runs import Columns, import_runs
from results.errors import StudyError
from results.report.contrasts import show_contrasts
from results.rows.measures import measures_of
from results.rows.pooled import show_pooled
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store

# scores of seeds 0, 1, …; the games differ by more than the algorithms do
SCORES = {
    ("slow", "easy"): [8, 8, 8, 9],
    ("slow", "hard"): [1, 1, 2, 2],
    ("fast", "easy"): [9, 10, 10, 10],
    ("fast", "hard"): [2, 2, 2, 1],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return _imported(tmp_path_factory.mktemp("pooled"), SCORES)


def _compared(store):
    """The cells of the last two lines."""
    said = []
    show_contrasts(store, None, said.append, "game")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in said[-2:]]


def _imported(folder, scores_of, declared="higher"):
    rows = [(*names, seed, score) for names, scores in scores_of.items() for seed, score in enumerate(scores)]
    path, found = folder / "scores.csv", open_store(folder / "runs", "games")
    path.write_text("algorithm,game,seed,score\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    import_runs(found, path, Columns("seed", ("algorithm", "game"), {"score": declared}), "q", lambda text: None)
    return found


def test_conditions_are_compared_within_each_value_and_averaged(store):
    slow, fast = _compared(store)
    assert slow[:5] == ["algorithm=slow", "score (higher is better)", "2", "8", "0"]
    assert slow[5:] == ["5", "baseline"]  # the mean of 2, 2, 8, 8; 8 replicates are too few for an interval
    assert fast[5] == "5.75"  # the mean of 2, 2, 9, 10
    chance = ((15 + 1 / 2) / 16 + (6 + 8 / 2) / 16) / 2  # pairs that are won, and half of those that are equal
    assert fast[6] == f"{chance:.2f}"


def test_a_metric_whose_better_direction_is_not_declared_says_so(tmp_path):
    """As where its name is misspelt under `evaluate.metrics`: better and worse may be the wrong way round."""
    slow, _ = _compared(_imported(tmp_path, SCORES, declared=""))
    assert slow[1] == "score (lower counts as better: the study does not say)"


def test_ten_replicates_of_both_have_intervals(tmp_path):
    slow, fast = _compared(_imported(tmp_path, {names: [*scores, 5] for names, scores in SCORES.items()}))
    assert re.fullmatch(r"5 \[\d\.?\d*, \d\.?\d*\]", slow[5])
    assert re.fullmatch(r"0\.\d\d \[0\.\d\d, 0\.\d\d\]", fast[6])


def test_replicates_that_share_seeds_are_not_compared(store):
    manifest = manifest_of(store)
    study = read_study(store, manifest)
    crossed = [
        replace(replicate, init_seed=replicate.init_seed // 2, data_seed=replicate.data_seed % 2)
        for replicate in study.replicates
    ]
    said = []
    show_pooled(manifest, crossed, measures_of(manifest, study.evaluations), "game", None, said.append)
    assert sum("replicates share seeds: no independent sample" in line for line in said) == 2
    assert "baseline" not in said[-2]


@pytest.mark.parametrize(
    ("across", "baseline", "sentence"),
    [
        ("gam", None, "--across gam is no setting of the study; settings: name, algorithm, game; did you mean game?"),
        ("game", "quick", "there is no condition 'quick'; conditions: algorithm=slow; algorithm=fast"),
    ],
)
def test_what_can_not_be_compared_is_refused_in_a_sentence(store, across, baseline, sentence):
    with pytest.raises(StudyError) as refused:
        show_contrasts(store, baseline, lambda text: None, across)
    assert sentence in str(refused.value)


def test_a_condition_that_lacks_a_value_is_named(store, tmp_path):
    path, found = tmp_path / "more.csv", open_store(tmp_path / "runs", "games")
    path.write_text("algorithm,game,seed,score\nslow,easy,0,1\nslow,hard,0,1\nfast,easy,0,1\n")
    import_runs(found, path, Columns("seed", ("algorithm", "game"), {"score": ""}), "q", lambda text: None)
    with pytest.raises(StudyError, match="algorithm=fast has no condition with game=hard"):
        show_contrasts(found, None, lambda text: None, "game")


def test_a_setting_that_alone_tells_the_conditions_apart_leaves_nothing_to_compare(tmp_path):
    path, found = tmp_path / "scores.csv", open_store(tmp_path / "runs", "games")
    path.write_text("game,seed,score\n" + "".join(f"{game},{seed},{seed}\n" for game in ("easy", "hard") for seed in range(4)))
    import_runs(found, path, Columns("seed", ("game",), {"score": "higher"}), "q", lambda text: None)
    with pytest.raises(StudyError, match=r"--across game pools all conditions .*: leave it out to compare the values of game"):
        show_contrasts(found, None, print, "game")
