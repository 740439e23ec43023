"""Alignment: a model that answers by the exact law, models that do not, and containment by brute force."""

import itertools

import pytest
import torch

from harness.draw import Draw
from harness.probes.subsequences.alignment import Alignment, alignment, holds
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.store.tables import open_store, read
from tasks.subsequences.associations import Associations
from tests.rounding import rounded

TASK = Associations(length=10, pairs=6, symbols=4, fillers=4, outputs=8, decoys=1, sure=0.9, spread=0.6)
STUDY = """
name: tiny
question: Does the corpus say it?
task: {name: associations, length: 6, pairs: 3, symbols: 2, fillers: 2, outputs: 3, sure: 0.9, spread: 0.3}
model: {name: lstm, width: 8}
train: {steps: 3, batch: 4, warmup: 0}
evaluate: {sets: {own: {sequences: 8}}}
replicates: 2
executor: local
wandb: off
keep: all
"""


def answering(sureness):
    """A model that finds the pair of a string and says its own answer so surely; all alike where there is none or more than one."""
    table = TASK.table(Draw.of_seed)[:, :2].tolist()
    own = torch.nn.functional.one_hot(TASK.table(Draw.of_seed)[:, 2], 8).double()
    law = sureness[:, None] * own + (1 - sureness[:, None]) / 7 * (1 - own)

    def model(tokens, needed):
        found = torch.stack([holds(tokens[0, :, :-1], pair) for pair in table], dim=-1)  # [B, pairs]
        said = torch.where(found.sum(-1, keepdim=True) == 1, found.double() @ law, 1 / 8)
        return said.log()[None, :, None]

    return model


def by_name(rows, name):
    found = {row["item"]: row["value"] for row in rows}
    return [found[f"pair={pair} {name}"] for pair in range(TASK.pairs)]


def test_strings_hold_what_a_search_through_all_places_finds():
    torch.manual_seed(0)
    strings = torch.randint(0, 4, (200, 6))
    for subsequence in ([1], [1, 2], [2, 2], [3, 1, 1]):
        expected = [list(subsequence) in map(list, itertools.combinations(row, len(subsequence))) for row in strings.tolist()]
        assert holds(strings, subsequence).tolist() == expected
    assert holds(strings, []).all()


def correlation(rows):
    return float(torch.corrcoef(torch.tensor([by_name(rows, "srep"), by_name(rows, "exact")]))[0, 1])


def test_a_model_by_the_law_is_traced_to_its_pairs_and_says_what_the_corpus_has():
    rows = alignment(answering(TASK.sureness()), TASK, 512, Alignment(replays=300))
    assert by_name(rows, "planted") == [1.0] * TASK.pairs
    assert by_name(rows, "exact") == rounded([0.9 - 0.6 * pair / 5 for pair in range(6)])
    assert correlation(rows) > 0.9
    assert {row["item"]: row["value"] for row in rows}["least error"] == rounded(0.4)
    assert len(rows) == 3 * TASK.pairs + 1


def test_a_model_of_another_corpus_is_not_aligned_with_this_one():
    """Its answers are sure where those of the corpus are not."""
    assert correlation(alignment(answering(TASK.sureness().flip(0)), TASK, 512, Alignment(replays=100))) < -0.9


def test_tokens_that_are_no_pair_have_the_corpus_counted():
    """A model that only looks for a pair's first token is traced to it and another; the corpus then has other pairs as well."""
    first = int(TASK.table(Draw.of_seed)[0, 0])

    def model(tokens, needed):
        own = torch.nn.functional.one_hot(TASK.table(Draw.of_seed)[0, 2], 8).double()
        there = (tokens[0, :, :-1] == first).any(-1)[:, None]
        return torch.where(there, 0.8 * own + 0.025, 1 / 8).log()[None, :, None]

    rows = alignment(model, TASK, 512, Alignment(replays=50))
    assert by_name(rows, "planted")[0] >= 0.5
    assert by_name(rows, "exact")[0] <= 0.9
    assert by_name(rows, "srep")[0] == rounded(0.825)


def test_rows_reach_the_store(tmp_path, capsys):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    assert run_study(load(path, [f"store={tmp_path}/runs"]), lambda text: None) == 0
    words = ["probe", str(tmp_path / "runs"), "--probe", "alignment", "--strings", "100", "--option", "replays=20"]
    main(words)
    assert "alignment-replays-20 of 2 replicates added" in capsys.readouterr().out.replace(
        "alignment of", "alignment-replays-20 of"
    )
    rows = read(open_store(str(tmp_path / "runs"), "tiny"), "probes").to_pylist()
    assert len(rows) == 2 * (3 * 3 + 1)
    assert {row["probe"] for row in rows} == {"alignment-replays-20"}
    with pytest.raises(SystemExit):
        main([*words[:-1], "replays=0"])
    assert "replays=0 must be at least 1" in capsys.readouterr().err
