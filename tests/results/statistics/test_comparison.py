"""Comparisons of two conditions against scipy's tests, and of a study's conditions from its rows."""

import itertools
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from launch.cli import cli
from results.errors import StudyError
from results.report.contrasts import _p, contrasts, show_contrasts, show_value_contrasts
from results.rows.latex import Tabular
from results.rows.measures import Measure
from results.rows.study_rows import StudyRows
from results.rows.summary import Replicate, Score
from results.statistics.comparison import (
    DRAWS,
    EXACT,
    compare,
    differences,
    holm,
    pair_superiority,
    sign_flip,
    signed_ranks,
)
from results.statistics.intervals import Interval
from results.store.tables import open_store
from tests.results import synthetic


@pytest.mark.parametrize("seed", range(4))
def test_the_paired_test_is_wilcoxons_without_ties(seed):
    random = np.random.default_rng(seed)
    x, y = random.lognormal(-5, 2, 25), random.lognormal(-4.5, 2, 25)
    assert sign_flip(differences(x, y)).p == pytest.approx(stats.wilcoxon(x, y, method="exact").pvalue)


@pytest.mark.parametrize("seed", range(4))
def test_zeros_and_ties_are_summed_over_every_flip(seed):
    random = np.random.default_rng(seed)
    changes = random.integers(-3, 4, 11).astype(float)
    ranks = np.abs(signed_ranks(changes))[changes != 0]
    sums = [abs(np.dot(ranks, signs)) for signs in itertools.product((-1, 1), repeat=len(ranks))]
    assert sign_flip(changes).p == pytest.approx(np.mean(np.array(sums) >= abs(signed_ranks(changes).sum()) - 1e-9))


STATISTICS = Path(__file__).parents[3] / "results" / "statistics"


def test_zeros_count_in_the_ranking_as_in_scipys_pratt():
    random = np.random.default_rng(0)
    changes = np.where(random.random(150) < 0.3, 0.0, random.normal(0.1, 1, 150))
    theirs = stats.wilcoxon(changes, zero_method="pratt", method="asymptotic")
    assert sign_flip(changes).p == pytest.approx(theirs.pvalue, abs=0.004)
    ranks = signed_ranks(changes)
    assert min(ranks[ranks > 0].sum(), -ranks[ranks < 0].sum()) == theirs.statistic


def test_many_pairs_are_drawn_with_the_same_result():
    random = np.random.default_rng(1)
    changes = random.normal(0.1, 1, EXACT + 100)
    found = sign_flip(changes)
    assert found == sign_flip(changes)
    assert found.p == pytest.approx(stats.wilcoxon(changes).pvalue, abs=0.01)
    shifted = random.normal(1.5, 1, EXACT + 100)
    assert sign_flip(shifted) == (1 / (DRAWS + 1), 2.0 ** (1 - len(shifted)), True)
    assert sign_flip(np.ones(EXACT + 1)) == (2.0**-EXACT, 2.0**-EXACT, False)  # all agree: exact


def test_infinities_of_both_are_equal_and_of_one_the_worst():
    inf = math.inf
    assert differences([inf, 0.0, inf, 0.1], [inf, inf, 0.2, 0.1]).tolist() == [0.0, inf, -inf, 0.0]
    assert sign_flip(differences([inf] * 5, [inf] * 5))[:2] == (1.0, 1.0)
    assert sign_flip(differences([0.1] * 6, [inf] * 6))[:2] == (2 / 2**6,) * 2
    assert sign_flip([1.0, 1.0, 0.0, -1.0]).least == 2 / 2**3
    with pytest.raises(ValueError, match="no pairs"):
        differences([0.1], [0.1, 0.2])


def test_the_chance_within_pairs_has_a_conservative_interval():
    changes = [1.0] * 15 + [0.0] * 6 + [-1.0] * 4
    chance, interval = pair_superiority(changes)
    assert chance == pytest.approx(18 / 25)
    alone = stats.binomtest(15, 25).proportion_ci(0.975, "exact"), stats.binomtest(21, 25).proportion_ci(0.975, "exact")
    assert interval.low == pytest.approx((alone[0].low + alone[1].low) / 2)
    assert interval.high == pytest.approx((alone[0].high + alone[1].high) / 2)
    with pytest.raises(ValueError, match="no pair"):
        pair_superiority([])


def test_holm():
    """Holm 1979, and the textbook example 0.01, 0.04, 0.03, 0.005."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_show_what_the_spread_of_conditions_hides():
    random = np.random.default_rng(2)
    x = random.lognormal(-5, 3, 25)
    y = x * random.lognormal(0.5, 0.3, 25)
    paired, alone = compare(x, y, True), compare(x, y, False)
    assert paired.p < 1e-3 < 0.2 < alone.p
    assert paired.ratios[0.5].interval.high - paired.ratios[0.5].interval.low < alone.ratios[0.5].interval.high
    assert (paired.first, paired.second, paired.paired, alone.paired) == (25, 25, True, False)


def _replicates(condition, errors, seeds=None):
    def one(seed, error):
        status = {math.inf: "diverged", None: "missing"}.get(error, "finished")
        scores = {"sparse": Score(0, 100, 10, error, 0.0, 1.0)} if status == "finished" else {}
        return Replicate(condition, 0, f"{condition}{seed}", *seed, status, None, None, scores)

    return [one(seed, error) for seed, error in zip(seeds or [(i, i) for i in range(len(errors))], errors, strict=True)]


def test_conditions_are_paired_by_their_seeds_whatever_their_order():
    errors = [i / 100 for i in range(1, 13)]
    base = _replicates("base", errors)
    other = _replicates("other", [1.1 * error for error in errors])[::-1]
    [found] = contrasts(base + other, ["sparse"])
    assert found.compared.paired
    assert found.compared.superiority == 1.0
    assert found.compared.ratios[0.5].interval == Interval(pytest.approx(1.1), pytest.approx(1.1))
    assert found.holm == found.compared.p == 2 / 2**12
    assert found.needed is None
    later = _replicates("other", [1.1 * error for error in errors], [(i + 50, i) for i in range(12)])
    [alone] = contrasts(base + later, ["sparse"])
    assert not alone.compared.paired
    assert alone.needed.more > 100


def test_missing_replicates_bound_the_chance():
    base, other = _replicates("base", [0.1] * 10), _replicates("other", [0.2] * 7 + [math.inf, None, None])
    [found] = contrasts(base + other, ["sparse"])
    assert (found.missing, found.compared.first) == (2, 8)
    assert found.bounds == Interval(0.8, 1.0)
    [unpaired] = contrasts(base + _replicates("other", [0.2] * 9 + [None], [(i, i + 1) for i in range(10)]), ["sparse"])
    assert unpaired.bounds == Interval(pytest.approx(0.9), 1.0)


def test_p_values_are_corrected_over_all_conditions_and_sets():
    random = np.random.default_rng(3)
    rows = [each for name in "abcdef" for each in _replicates(name, random.lognormal(-5, 1, 20).tolist())]
    found = contrasts(rows, ["sparse"], baseline="c")
    assert [each.condition for each in found] == list("abdef")
    assert [each.holm for each in found] == holm([each.compared.p for each in found])


def test_replicates_too_few_for_any_p_below_the_level_are_named(tmp_path, capsys):
    shifted = [(i + 50, i) for i in range(9)]

    def found(n, others):
        rows = _replicates("base", [i / 100 for i in range(n)])
        return contrasts(
            rows + [each for k in range(others) for each in _replicates(f"c{k}", [1.0 + i for i in range(n)], shifted[:n])],
            ["sparse"],
        )

    [alone] = found(5, 1)
    assert alone.holm == alone.least == alone.compared.least == pytest.approx(2 / 252)
    assert [each.least for each in found(5, 7)] == pytest.approx([14 / 252] * 7)  # 7 at once: separated, and yet not shown
    assert all(each.needed.more > 0 for each in found(5, 7))
    assert found(2, 1)[0].least == pytest.approx(1 / 3)
    synthetic.write(open_store(str(tmp_path), "synthetic"), synthetic.manifest(4))
    cli.main(["compare", str(tmp_path), "synthetic"], standalone_mode=False)
    text = capsys.readouterr().out
    assert "2 of 2 comparisons can't reach a corrected p of 0.05" in text
    assert len(re.findall(r"\| \S+ \(at least 0\.\d+\) \|", text)) == 2


def test_no_comparison_has_a_reason():
    product = list(itertools.product(range(3), range(3)))
    crossed = contrasts(_replicates("a", [0.1] * 9, product) + _replicates("b", [0.2] * 9, product), ["sparse"])[0]
    assert (crossed.compared, crossed.holm, crossed.reason) == (None, None, "replicates share seeds: no independent sample")
    one_data_seed = [(i, 0) for i in range(9)]
    fixed = contrasts(_replicates("a", [0.1] * 9, one_data_seed) + _replicates("b", [0.2] * 9, one_data_seed), ["sparse"])[0]
    assert fixed.compared.paired
    empty = contrasts(_replicates("a", [0.1] * 3) + _replicates("b", [None, None, 0.1]), ["sparse"])[0]
    assert empty.reason == "1 pair with a number: needs at least 2"
    with pytest.raises(ValueError, match="no condition 'x'; conditions: a; b"):
        contrasts(_replicates("a", [0.1] * 3) + _replicates("b", [0.1] * 3), ["sparse"], "x")
    with pytest.raises(ValueError, match="a is the only condition"):
        contrasts(_replicates("a", [0.1] * 3), ["sparse"])


def test_only_equal_stages_are_compared_and_the_others_are_named(monkeypatch):
    students = [replace(each, stage=1) for name in "bc" for each in _replicates(name, [0.2] * 9)]
    teachers = _replicates("teacher", [0.1] * 9)
    with pytest.raises(
        StudyError, match=r"^only equal stages .*, and no other condition has a stage of teacher: write --baseline b$"
    ):
        contrasts(teachers + students, ["sparse"], "teacher")
    with pytest.raises(StudyError, match=r"no other condition has a stage of teacher$"):
        contrasts(teachers + students[:9], ["sparse"])
    lines = shown(monkeypatch, teachers + students)
    assert lines[0].startswith("made: each condition against b;")
    assert lines[-1] == "Not compared, as only equal stages are: teacher."
    lines = shown(monkeypatch, teachers + _replicates("labels", [0.2] * 9) + students)
    assert lines[-1] == "Not compared, as only equal stages are: b, stage 1; c, stage 1."
    lines = shown(monkeypatch, students)
    assert [line[:32] for line in lines if line.startswith("| c")][1:] == ["| c, stage 1 | sparse | 9 pairs "]


def test_no_chance_or_ratio_is_rounded_to_never_even_always_or_equal(monkeypatch):
    base = _replicates("base", [(i + 1) / 100 for i in range(20)])
    errors = [0.195, *[1.0] * 19]  # one is not above all 20
    worse = _replicates("worse", errors, [(i, i + 1) for i in range(20)])
    near = _replicates("near", [each.scores["sparse"].rate * 1.0004 for each in base])
    lines = [line for line in shown(monkeypatch, base + worse + near) if line.startswith(("| worse", "| near"))]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert cells[0][5] == "0.998 [0.96, 0.9999]"
    assert cells[1][8].startswith("1.0004 [1.0004, 1.0004]")
    assert [_p(p, False) for p in (0.049996, 0.05, 0.05004, 0.9996, 1.0)] == ["0.049996", "0.05", "0.05004", "0.9996", "1"]
    missing = shown(monkeypatch, base + _replicates("worse", [0.5] * 19 + [None]))
    assert (
        "Missing: replicates without a number; after them, the least and the largest P(errs more) that they leave possible."
        in missing
    )


def test_a_difference_says_what_it_is_of():
    """Where pairs differ by 1 in the middle, the medians of the two conditions differ by -1."""
    base, other = _replicates("base", [0.0, 4.0, 5.0]), _replicates("other", [1.0, 3.0, 6.0])
    measure, said = Measure("result", "sparse", "lower", True, "number"), []
    for rows in (base + other, base + _replicates("other", [1.0, 3.0, 6.0], [(i, i + 1) for i in range(3)])):
        show_value_contrasts("made", rows, [measure], None, said.append)
    assert said[0].endswith("of pairs the median of their differences, else the difference of the two medians.")
    cells = [line.split("|")[8].strip() for line in said if line.startswith("| other")]
    assert cells == ["1 [-∞, ∞]", "-1 [-∞, ∞]"]


def test_a_difference_of_nothing_has_no_sign_and_one_of_infinities_is_none():
    measure, said = Measure("result", "sparse", "higher", True, "number"), []
    for errors in ([-1.0] * 9, [math.inf] * 9):
        rows = _replicates("base", errors) + _replicates("other", errors, [(i, i + 1) for i in range(9)])
        show_value_contrasts("made", rows, [measure], None, said.append)
    cells = [line.split("|")[8].strip() for line in said if line.startswith("| other")]
    assert cells == ["0 [0, 0]", "both medians are of diverged replicates"]
    said.clear()
    show_value_contrasts(
        "made", _replicates("base", errors) + _replicates("other", errors), [measure], None, said.append
    )  # pairs
    assert "| both medians are of diverged replicates |" in next(line for line in said if line.startswith("| other"))


def test_a_metric_that_a_condition_does_not_return_is_missing_from_none_of_its_replicates():
    measure, said = Measure("result", "sparse", "lower", True, "number"), []
    rows = [replace(replicate, status="finished") for replicate in _replicates("base", [None] * 9)]
    show_value_contrasts("made", rows + _replicates("other", [0.1] * 9), [measure], None, said.append)
    (line,) = (line for line in said if line.startswith("| other"))
    assert [cell.strip() for cell in line.split("|")][4:6] == ["0", "base does not return it"]


def test_a_study_whose_replicates_all_failed_has_nothing_to_compare():
    """It had a table without a line."""
    rows = _replicates("base", [None] * 3) + _replicates("other", [None] * 3)
    with pytest.raises(StudyError, match="made has no value of any replicate yet, so there is nothing to compare"):
        show_value_contrasts("made", rows, [], None, print)


def test_the_only_comparison_is_not_1_of_1(monkeypatch):
    lines = shown(monkeypatch, _replicates("base", [0.1, 0.2, 0.3]) + _replicates("other", [0.2, 0.3, 0.4]))
    short = "The one comparison can't reach a corrected p of 0.05: too few replicates, too few that differ, or too many comparisons."
    assert short in lines


def test_a_p_that_random_splits_bound_is_printed_as_a_bound(monkeypatch):
    """P(errs more) = 1 with the exact p of its 30 and 30 replicates, beside one of 0.97 whose p was the same 0.0001."""
    base = [(i + 1) / 100 for i in range(30)]
    near, apart = [1.0] * 29 + [0.005], [1.0] * 30
    seeds = [(i, i + 1) for i in range(30)]
    rows = _replicates("base", base) + _replicates("near", near, seeds) + _replicates("apart", apart, seeds)
    later = _replicates("later", [0.9 * error for error in base])  # pairs: an exact p, below the others
    lines = shown(monkeypatch, rows + later)
    cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")][6:8] for line in lines if line[:1] == "|"}
    exact = 2 / math.comb(60, 30)
    assert cells["apart"] == [f"{exact:.3g}", f"{3 * exact:.3g}"]
    assert cells["near"] == ["≤ 0.0001", "≤ 0.0001"]
    assert cells["later"][1] == f"{2 * 2 / 2**30:.3g}"
    assert sum(line.startswith("≤: no random split of the replicates is as extreme") for line in lines) == 1
    assert sum(line.startswith("Replicates: two numbers are of the baseline and of the condition") for line in lines) == 1
    assert not any(line.startswith(("≤", "Replicates:")) for line in shown(monkeypatch, rows[:30] + later))
    printed = []
    latex = Tabular(printed.append)
    for line in lines:
        latex(line)
    assert any(r" & $\le$ 0.0001 & $\le$ 0.0001 & " in line for line in printed)


def test_a_corrected_p_that_is_carried_over_from_a_bound_is_one(monkeypatch):
    """Holm's p of the second is that of the first, which has the larger factor; that of an exact p below both is its own."""
    rows = [each for name in "abcd" for each in _replicates(name, [i / 100 for i in range(9)])]
    pairs = compare([0.0] * 9, [1.0] * 9, True)
    tests = iter([replace(pairs, p=1e-4, at_most=True), replace(pairs, p=1.5e-4), replace(pairs, p=1e-6)])
    monkeypatch.setattr("results.report.contrasts.compare", lambda *_, **__: next(tests))
    found = contrasts(rows, ["sparse"])
    assert [each.holm for each in found] == pytest.approx([2e-4, 2e-4, 3e-6])
    assert [each.at_most for each in found] == [True, True, False]


def test_why_a_ratio_has_no_interval_is_said_once(monkeypatch):
    """Each line of the table had "(an interval needs 36 replicates of each)" in it."""
    rows = [each for name in "abc" for each in _replicates(name, [(i + 1) / 100 for i in range(12)])]
    lines = shown(monkeypatch, rows)
    assert lines.count("[–] after a ratio of 90 % quantiles: an interval needs 36 replicates of each.") == 1
    assert sum("needs 36 replicates" in line for line in lines) == 1
    assert [line.split("|")[9] for line in lines if line.startswith(("| b |", "| c |"))] == [" 1 [–] "] * 2


def test_equal_values_are_no_reason_to_add_replicates(monkeypatch):
    """The line ended with "1 (at least 1)", and the advice was to add replicates."""
    base = _replicates("base", [i / 100 for i in range(20)])
    for rows in (
        _replicates("same", [i / 100 for i in range(20)]),
        _replicates("same", [0.0] * 20, [(i, 99) for i in range(20)]),
    ):
        if rows[0].seeds[1] == 99:
            base = _replicates("base", [0.0] * 20)
        lines = shown(monkeypatch, base + rows)
        assert next(line for line in lines if line.startswith("| same")).split("|")[6:8] == [" 1 ", " 1 "]
        assert lines[-1] == (
            "No difference at all in the one comparison: the values of both conditions are equal. "
            "Replicates like these show none, however many."
        )
    mixed = shown(monkeypatch, _replicates("base", [0.0] * 12) + _replicates("other", [0.0] * 10 + [0.1, 0.2]))
    assert "| 0.5 | 0.5 (at least 0.5) |" in next(line for line in mixed if line.startswith("| other"))
    assert mixed[-1] == (
        "“At least” is the smallest p that their replicates allow. Add replicates, or compare fewer conditions and sets."
    )


def test_a_table_without_a_comparison_says_what_one_needs(monkeypatch):
    alone = shown(monkeypatch, _replicates("base", [0.1]) + _replicates("other", [0.2]))
    assert alone[1] == "Nothing can be compared yet: that needs two replicates of each condition with a number on the same set."
    assert not any("comparisons" in line for line in alone)


def shown(monkeypatch, replicates):
    """The lines that `manyseeds compare` prints about these replicates."""
    said = []
    monkeypatch.setattr("results.report.contrasts.manifest_of", lambda _: {"conditions": [], "sets": {"sparse": {}}})
    monkeypatch.setattr("results.report.contrasts.read_study", lambda *_: StudyRows(None, None, replicates))
    show_contrasts(SimpleNamespace(study="made"), None, said.append)
    return said


def test_the_command(tmp_path, capsys):
    store = open_store(str(tmp_path), "synthetic")
    synthetic.write(store, synthetic.manifest(12))
    cli.main(["compare", str(tmp_path), "synthetic", "--baseline", "lstm"], standalone_mode=False)
    text = capsys.readouterr().out
    assert "each condition against lstm" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| transformer")]
    assert [row[1] for row in rows] == ["sparse", "dense"]
    for row in rows:
        assert row[2] == "12 pairs"
        assert float(row[5]) <= float(row[6]) <= 0.05
        assert re.match(r"0\.\d\d \[0\.\d\d, \d\.\d\d\]", row[4])
        assert row[7].startswith("∞")
        assert row[9] == "settled"


@pytest.mark.parametrize("call", [pair_superiority, sign_flip])
def test_changes_that_are_nan_are_refused(call):
    with pytest.raises(ValueError, match="a change is NaN"):
        call([1.0, math.nan])


@pytest.mark.parametrize("p", [[0.1, math.nan], [0.1, 2.0], [-0.1]])
def test_holm_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match="they are probabilities"):
        holm(p)


def test_the_statistics_need_neither_torch_nor_ray():
    names = ["results.report.contrasts", *(f"results.statistics.{path.stem}" for path in STATISTICS.glob("[a-z]*.py"))]
    assert len(names) > 5
    code = f"import sys, {', '.join(names)}; print(*{{'torch', 'ray', 'wandb'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_a_study_is_found_in_a_folder_of_stores(tmp_path, capsys):
    synthetic.write(open_store(str(tmp_path / "family"), "synthetic"), synthetic.manifest(12))
    for command in ("compare", "spread"):
        cli.main([command, str(tmp_path), "synthetic"], standalone_mode=False)
        assert "| lstm" in capsys.readouterr().out
