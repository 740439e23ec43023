"""The answer of a report in one sentence, and how it says what is smaller than the paper."""

import math
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from results.claims.compare import exceeds
from results.report.family import scored_answers
from results.report.family_sections import FAMILIES
from results.report.first_screen import answer, answer_of_values, change_in_words, changes, paper_shows, smaller_than
from results.rows.plural import factor, factors
from results.rows.summary import SUMMARY
from results.rows.value_summary import VALUES
from results.statistics.intervals import clopper_pearson


def row(condition: str, median: float, zeros: int, of: int = 10, name: str = "sparse") -> dict:
    share = clopper_pearson(zeros, of)
    joint = {"jointly_zero": zeros, "jointly_zero_of": of, "jointly_zero_low": share.low, "jointly_zero_high": share.high}
    median_row = {
        "error_median": median,
        "median_low": median / 2,
        "median_high": median * 2,
        "error_min": median / 2,
        "error_max": 0.5,
    }
    return {"condition": condition, "stage": 0, "set": name, "zero_error_of": of, **joint, **median_row}


def said(*rows: dict) -> str:
    return answer(pa.Table.from_pylist(list(rows), schema=SUMMARY), ["sparse", "dense"])


def test_conditions_that_differ_in_replicates_without_error_are_told_apart_by_them() -> None:
    assert said(row("a", 0.1, 0), row("b", 0.0, 9)) == (
        "Replicates without an error on either set: b has 9 of 10 (95 %: 55.5 to 99.7 %); a: 0 of 10 (95 %: 0.0 to 30.8 %)."
    )
    many = said(*(row(f"c{i}", 0.1, 0) for i in range(5)), row("best", 0.0, 10))
    assert many.startswith("Of 6 conditions, best has the most replicates without an error on either set, 10 of 10 (")
    assert "5 others have the fewest, 0 of 10" in many
    tied = said(*(row(f"c{i}", 0.0, 10) for i in range(5)), row("worst", 0.1, 2))
    assert tied.startswith(
        "Of 6 conditions, 5 have the most replicates without an error on either set, 10 of 10 (95 %: 69.2 to 100.0 %) each; "
    )


def test_conditions_whose_shares_without_an_error_may_be_equal_are_told_apart_by_their_medians() -> None:
    """1 of 10 and 0 of 10 say nothing; where the medians are all zero there is nothing better to say."""
    assert said(row("a", 0.1, 1), row("b", 0.3, 0)).startswith(
        "Conditions differ most on sparse, by 0.2: the median error is lowest, 0.1 "
    )
    assert said(row("a", 0.0, 9), row("b", 0.0, 6)).startswith("Replicates without an error on either set: a has 9 of 10 (")


def test_conditions_that_are_alike_may_have_other_numbers_of_replicates() -> None:
    assert said(row("a", 0.0, 10), row("b", 0.0, 10)) == (
        "In both conditions, 10 of 10 replicates (95 %: 69.2 to 100.0 %) make no error on either set."
    )
    assert said(row("a", 0.0, 10), row("b", 0.0, 20, 20)) == (
        "In both conditions, 100 % of the replicates make no error on either set."
    )
    assert "In both conditions, 33.3 % of the replicates" in said(row("a", 0.3, 10, 30), row("b", 0.3, 20, 60))
    nobody = {"jointly_zero": 0, "jointly_zero_of": 0}
    assert said(row("a", 0.0, 0) | nobody, row("b", 0.0, 0) | nobody) == (
        "The medians of all conditions are equal; no replicate has a number on every set yet."
    )
    assert said(row("a", 0.0, 10), row("b", 0.0, 0) | nobody) == (
        "The medians of all conditions are equal; no replicate of b has a number on every set yet."
    )


def test_equal_shares_of_other_numbers_of_replicates_tie() -> None:
    assert said(row("a", 0.0, 9), row("b", 0.0, 18, 20), row("c", 0.1, 0), row("d", 0.1, 0, 20)) == (
        "Of 4 conditions, 2 have the largest share of replicates without an error on either set, 90 % each; 2 others have the smallest, "
        "0 % each."
    )
    assert said(row("a", 0.0, 9), row("b", 0.0, 12, 20), row("c", 0.1, 0), row("d", 0.1, 0)) == (
        "Of 4 conditions, a has the largest share of replicates without an error on either set, 9 of 10 (95 %: 55.5 to 99.7 %); 2 others "
        "have the smallest, 0 of 10 (95 %: 0.0 to 30.8 %) each."
    )


def test_an_interval_of_some_replicates_does_not_end_at_none_or_all() -> None:
    assert "a has 2,999 of 3,000 (95 %: 99.8 to 99.999 %); b: 1 of 3,000 (95 %: 0.001 to 0.2 %)" in said(
        row("a", 0.0, 2999, 3000), row("b", 0.1, 1, 3000)
    )


def test_conditions_that_always_err_are_told_apart_by_their_medians() -> None:
    text = said(row("a", 0.3, 0), row("b", 0.3, 0), row("a", 0.02, 0, name="dense"), row("b", 0.134, 0, name="dense"))
    assert text == (
        "Conditions differ most on dense, by 0.114: the median error is lowest, 0.02 (95 %: 0.01 to 0.04), for a, and highest, 0.134 "
        "(95 %: 0.067 to 0.268), for b."
    )
    assert said(row("a", 0.3, 0), row("b", 0.3, 0)) == (
        "In both conditions, 0 of 10 replicates (95 %: 0.0 to 30.8 %) make no error on either set."
    )


def test_medians_are_picked_and_told_by_their_difference_and_ties_are_named() -> None:
    """100 times 10⁻⁴ is a larger ratio than 2 times 0.3, and a smaller difference."""
    dense = [row("a", 0.3, 0, name="dense"), row("b", 0.6, 0, name="dense")]
    assert said(row("a", 0.0001, 0), row("b", 0.01, 0), *dense) == (
        "Conditions differ most on dense, by 0.3: the median error is lowest, 0.3 (95 %: 0.15 to 0.6), for a, and highest, 0.6 "
        "(95 %: 0.3 to 1.2), for b."
    )
    assert said(row("a", 0.1, 0), row("b", 0.4, 0), row("c", 0.1, 0), row("d", 0.4, 0) | {"median_low": 0.3}, *dense) == (
        "Conditions differ most on sparse and dense, by 0.3: on sparse the median error is lowest, 0.1 (95 %: 0.05 to 0.2), "
        "for a and c, and highest, 0.4, for b (95 %: 0.2 to 0.8) and d (95 %: 0.3 to 0.8)."
    )
    diverged = {"error_max": math.inf}
    assert said(row("a", 0.1, 0), *(row(name, math.inf, 0) | diverged for name in "bcd")) == (
        "Conditions differ most on sparse: the median error is lowest, 0.1 (95 %: 0.05 to 0.2), for a, and highest, diverged "
        "(95 %: diverged), for b and 2 others."
    )
    one = pa.Table.from_pylist([row("a", 0.1, 0), row("b", 0.4, 0)], schema=SUMMARY)
    assert answer(one, ["sparse"]).startswith("Conditions differ on sparse, by 0.3: the median error is lowest, 0.1 (")


@pytest.mark.parametrize(
    ("errors", "noun"),
    [
        (["a closing bracket whose type is another one"], "closing brackets"),
        (["a read (the position after an “r”) where the bit is wrong", "a read that is wrong"], "reads"),
        (["an answer, of a variable, that is not its value"], "answers"),
        (["a query that is answered wrongly"], "queries"),
        (["a string whose class is wrong", "a position where the token is wrong"], "answers"),
        (["wrong"], "answers"),
    ],
)
def test_the_answer_calls_what_is_scored_by_the_noun_of_the_task(errors: list[str], noun: str) -> None:
    scoring = {"metrics": ["wrong"], "direction": "lower"}
    plan = [{"name": error, "config": {}, "scoring": scoring | {"error": error}} for error in errors]
    assert scored_answers(plan, FAMILIES) == noun
    table = pa.Table.from_pylist([row("a", 0.25, 0)], schema=SUMMARY)
    assert answer(table, ["sparse"], noun).startswith(f"On sparse, the median of 10 replicates errs on 0.25 of the {noun} (")


def test_every_older_study_of_a_family_has_a_noun() -> None:
    for family in FAMILIES:
        for task, error in family.errors.items():
            assert scored_answers([{"config": {"task": {"name": task}}}], FAMILIES) != "answers" or error[:9] == "an answer"
    older = [{"config": {"task": {"name": "a_task_of_a_user"}}}]
    assert scored_answers(older, FAMILIES) == "scored positions"


def test_an_interval_without_an_end_names_no_number() -> None:
    open_above = row("a", 0.02, 0) | {"median_high": math.inf}
    unknown = row("b", 0.5, 0, of=5) | {"median_low": 0.0, "median_high": math.inf}
    assert said(open_above, unknown) == (
        "Conditions differ most on sparse, by 0.48: the median error is lowest, 0.02 (95 %: at least 0.01), for a, and highest, 0.5 "
        "(too few replicates for an interval), for b."
    )


def test_an_interval_from_no_error_to_diverged_is_no_lack_of_replicates() -> None:
    """As of 25 replicates, 10 of them without an error and 12 diverged."""
    mixed = row("a", 0.02, 10, of=25) | {"median_low": 0.0, "median_high": math.inf, "error_max": math.inf}
    assert "the median of 25 replicates errs on 0.02 of the answers (95 %: 0 to diverged), the worst diverged." in said(mixed)


def test_conditions_whose_replicates_have_all_diverged_are_not_said_to_err() -> None:
    lost = [row(name, math.inf, 0) | {"error_min": math.inf, "error_max": math.inf, "planned": 10} for name in ("a", "b")]
    assert said(*lost) == "In both conditions, every replicate diverged."
    assert said(lost[0], lost[1] | {"zero_error_of": 3}) == "In both conditions, every replicate that has ended diverged."


def test_conditions_without_a_number_are_not_counted_among_those_that_have_one() -> None:
    none = row("none", 0.1, 0) | {"zero_error_of": 0, "jointly_zero_of": 0, "error_median": None}
    clean = [row(name, 0.0, 10) | {"error_max": 0.0} for name in ("a", "b")]
    of_one = "10 of 10 replicates (95 %: 69.2 to 100.0 %) make no error on either set."
    assert said(clean[0], none) == f"Only a, of 2 conditions, has numbers yet. {of_one}"
    assert said(*clean, none) == f"Only 2 of 3 conditions have numbers yet. In both conditions, {of_one}"
    late = row("a", 0.1, 0, name="dense"), row("b", 0.3, 0, name="dense")  # which sparse does not have yet
    assert said(clean[0], row("b", 0.0, 0) | none | {"condition": "b"}, *late).startswith(
        "Conditions differ most on dense, by 0.2: "
    )


def test_replicates_that_have_all_diverged_did_so_on_every_set() -> None:
    diverged = [row("a", math.inf, 0, of=3, name=name) | {"error_max": math.inf} for name in ("sparse", "dense")]
    assert said(*diverged) == "All 3 replicates diverged."
    assert said(*(each | {"zero_error_of": 1} for each in diverged)) == "The only replicate diverged."


def values_said(*rows: dict) -> str:
    return answer_of_values(pa.Table.from_pylist(list(rows), schema=VALUES))


def value_row(condition: str, median: float, better: str = "lower", **more) -> dict:
    about = {"condition": condition, "metric": "loss", "better": better, "kind": "number", "values": 10, "median": median}
    around = {"median_low": median - 1, "median_high": median + 1, "min": median - 2, "max": median + 2}
    return about | around | {"q25": median, "q75": median, "iqm": median} | more


def test_experiments_are_told_apart_by_the_best_and_the_worst_median() -> None:
    rows = value_row("a", 3.0), value_row("b", -2.0, median_low=-math.inf), value_row("c", 1.0)
    assert values_said(*rows) == (
        "The median loss is lowest, −2 (95 %: at most −1), for b, and highest, 3 (95 %: 2 to 4), for a."
    )
    assert values_said(*(each | {"better": "higher"} for each in rows)).startswith("The median loss is highest, 3")
    assert values_said(value_row("a", math.inf)) == "The median loss is diverged (95 %: diverged)."
    assert values_said(value_row("a", 1.0), value_row("b", 1.0)) == (
        "The median loss is the same for both conditions: 1 (95 %: 0 to 2)."
    )
    tied = values_said(value_row("a", 12345.6), value_row("b", 1.0), value_row("c", 1.0))
    assert tied == (
        "The median loss is lowest, 1 (95 %: 0 to 2), for b and 1 other, and highest, 12,346 (95 %: 12,345 to 12,347), for a."
    )
    assert values_said() == "No replicate has a number yet."
    late = value_row("late", 0.0, values=0)
    assert values_said(value_row("a", 1.0), late) == (
        "Only a, of 2 conditions, has numbers yet. The median loss is 1 (95 %: 0 to 2)."
    )


def test_replicates_that_are_all_alike_are_asked_about_their_seed() -> None:
    """A script that ignores its seed would otherwise settle any comparison."""
    alike = [value_row(name, 0.7, min=0.7, max=0.7) for name in ("a", "b")]
    asked = "have the same numbers: does the code use its seed?"
    assert values_said(alike[0], value_row("b", 0.5)).endswith(f" All 10 replicates of a {asked}")
    assert values_said(*alike).endswith(f" Within a and 1 other, all replicates {asked}")
    assert asked not in values_said(alike[0] | {"values": 2})
    assert asked not in values_said(alike[0], value_row("a", 0.5, metric="other"))
    for end in (0.0, 1.0, 100.0, math.inf):  # as of an accuracy that nobody misses
        assert asked not in values_said(value_row("a", end, min=end, max=end))


def test_conditions_with_the_same_numbers_are_asked_about_their_setting() -> None:
    """As of a grid over experiment.lrr, where the function reads lr."""
    asked = "have the same numbers: does the code use the setting that tells them apart?"
    assert values_said(value_row("lrr=1", 0.4), value_row("lrr=2", 0.4)).endswith(f" lrr=1 and lrr=2 {asked}")
    assert asked not in values_said(value_row("lrr=1", 0.4), value_row("lrr=2", 0.4, max=3.0))
    assert asked not in values_said(value_row("lrr=1", 4.0), value_row("lrr=2", 4.0))  # counts
    others = value_row("lrr=1", 0.5, metric="other"), value_row("lrr=2", 0.6, metric="other")
    assert asked not in values_said(value_row("lrr=1", 0.4), value_row("lrr=2", 0.4), *others)


def test_an_answer_about_a_metric_that_some_conditions_lack_says_how_many_have_it() -> None:
    others = [value_row(name, 0.0, metric="other") for name in ("a", "b", "c")]
    assert values_said(value_row("a", 3.0), value_row("b", 1.0), *others) == (
        "The median loss, which 2 of 3 conditions return, is lowest, 1 (95 %: 0 to 2), for b, and highest, 3 (95 %: 2 to 4), for a."
    )
    assert values_said(value_row("a", 3.0), *others) == (
        "The median loss, which 1 of 3 conditions returns, is 3 (95 %: 2 to 4)."
    )
    assert values_said(value_row("a", 1.0), value_row("b", 1.0), *others) == (
        "The median loss, which 2 of 3 conditions return, is the same for both: 1 (95 %: 0 to 2)."
    )


def test_experiments_with_flags_alone_are_told_apart_by_how_often_they_are_true() -> None:
    flags = [
        value_row(name, 0.0, "higher", kind="flag", true=true, true_share=true / 10, true_low=true / 20, true_high=1.0)
        for name, true in (("a", 2), ("b", 8))
    ]
    assert values_said(*flags) == (
        "loss is true most, in 8 of 10 replicates (95 %: 40.0 to 100.0 %), for b, and least, in 2 of 10 replicates "
        "(95 %: 10.0 to 100.0 %), for a."
    )


def test_one_condition_and_none() -> None:
    assert said(row("a", 0.1, 0)).startswith(
        "On sparse the errors are most frequent: the median of 10 replicates errs on 0.1 of the answers (95 %: 0.05 to 0.2), "
        "the worst errs on 0.5. Replicates without an error on either set: 0 of 10 (95 %: "
    )
    assert said(row("a", 0.1, 0), row("a", 0.2, 0, name="dense")).startswith("On dense the errors are most frequent: ")
    lost = row("a", math.inf, 0) | {"error_min": 0.1, "error_max": math.inf}
    assert (
        "On sparse the errors are most frequent: the median of 10 replicates diverged (95 %: diverged), the worst diverged."
        in said(lost)
    )
    rare = row("a", 0.0, 9, name="dense") | {"error_max": 0.1}
    assert said(row("a", 0.0, 9) | {"error_max": 0.0}, rare).startswith("On dense the errors are most frequent: ")
    clean = row("a", 0.0, 10) | {"error_max": 0.0}
    assert said(clean) == "10 of 10 replicates (95 %: 69.2 to 100.0 %) make no error on either set."
    assert (
        said(row("a", 0.1, 0, of=1)) == "On sparse the errors are most frequent: the only replicate errs on 0.1 of the answers."
    )
    all_wrong = row("a", 1.0, 0) | {"error_max": 1.0}
    assert "replicates errs on all of the answers (95 %: 0.5 to 2), the worst errs on all. Replicates" in said(all_wrong)
    assert said() == "No replicate has a number yet."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.layers: 6 -> 2", "2 layers (6)"),
        ("model.layers: 6 -> 1", "1 layer (6)"),
        ("task.length: unset -> 30", "length 30 (not set)"),
        ("evaluate.sets.sparse.sequences: 100000 -> 8000", "8,000 sequences in sparse (100,000)"),
        ("conditions.S5.model.layers: 16 -> 4", "4 layers of S5 (16)"),
        ("train.lr: 3e-4 -> 2e-3 (transformer), 1e-3 (LSTM)", "lr 2e-3 (3e-4) for transformer, 1e-3 (LSTM)"),
        ("model.layers: 1 … 16 -> 1, 2, 4, 8", "layers 1, 2, 4, 8 (1 … 16)"),
        ("model.embedding_dropout: 0.5 -> 0.1 and 0.2", "embedding dropout 0.1 and 0.2 (0.5)"),
        ("conditions: warm, cold, cyclic -> warm, cyclic", "conditions warm, cyclic (warm, cold, cyclic)"),
        ("model.width: 50000, of students 100 -> 3000, 50", "width 3,000, 50 (50,000, of students 100)"),
        ("train.steps: 20000000 -> 400000, of students 1000000", "400,000 steps (20,000,000), of students 1000000"),
        ("replicates: 500 -> 50 of the baseline", "50 replicates (500) of the baseline"),
        ("conditions.deep.replicates: 8 -> 3", "3 replicates of deep (8)"),
        ("conditions.S5.task.automaton: unset -> A4", "automaton A4 (not set) of S5"),
        ("evaluate.sets.online.every: 2344 -> 300", "looks every 300 (2,344) steps in online"),
        ("conditions.a.stages: [{x: 1}] -> [{x: 2}]", None),
        ("anything a manifest may hold", None),
    ],
)
def test_a_reduction_in_words(change: str, words: str | None) -> None:
    assert change_in_words(change) == words


def test_the_same_change_of_several_sets_is_told_once() -> None:
    changed = [f"evaluate.sets.{name}.sequences: 1000 -> 200" for name in ("p_05", "p_10", "p_15")]
    others = ["model.layers: 8 -> 2", "evaluate.sets.share_010.ones: 4 -> 2", "evaluate.sets.p_05.every: 500 -> 200"]
    assert smaller_than({"paper": "liu"}, [changed[0], *others[1:], *changed[1:], others[0]]) == (
        "Smaller than the paper: 2 layers (8), 200 sequences in p_05 and 2 others (1,000), ones 2 (4) in share_010, "
        "looks every 200 (500) steps in p_05"
    )
    assert smaller_than({}, changed[:2]).endswith(": 200 sequences in p_05 and p_10 (1,000)")


def test_what_the_command_line_says_of_where_a_study_runs_is_no_change() -> None:
    assert changes({"overrides": ["store=x", "wandb=off", "pack.size=1"], "reductions": []}) is None
    found = changes({"overrides": ["train.lr=1", "store=x"], "reductions": [], "source": {"paper": "p"}})
    assert found is not None
    assert (found.heading, found.overrides) == ("Set on the command line", ["train.lr=1"])


def test_the_first_screen_tells_the_number_of_replicates_that_was_typed() -> None:
    found = changes({"overrides": ["replicates=20"], "reductions": ["replicates: 20 -> 10", "train.batch: 128 -> 64"]})
    assert found is not None
    assert (found.line, found.every) == (["batch 64 (128)"], ["train.batch: 128 -> 64"])


def test_the_line_has_trained_sizes_first_and_nothing_that_is_larger() -> None:
    reductions = ["evaluate.sets.a.sequences: 9 -> 3", "keep: all -> none", "replicates: 10 -> 20", "model.layers: 6 -> 2"]
    found = changes({"reductions": reductions, "source": {"paper": "p"}})
    assert found is not None
    assert (found.line, found.every) == (["2 layers (6)", "3 sequences in a (9)"], reductions)


def test_other_seeds_kept_weights_and_claims_make_no_study_smaller() -> None:
    others = [
        "seeds.from: unset -> 100",
        "conditions.a.seeds.from: 0 -> 100",
        "keep: all -> none",
        "claims.L1.value: 0.5 -> 0.4",
    ]
    assert smaller_than({"paper": "p"}, [*others, "model.layers: 6 -> 2"]) == "Smaller than the paper: 2 layers (6)"
    assert smaller_than({"paper": "p"}, others) == ""
    assert changes({"reductions": others, "source": {"paper": "p"}}) is None
    found = changes({"reductions": [*others, "model.layers: 6 -> 2"], "source": {"paper": "p"}})
    assert found is not None
    assert found.line == ["2 layers (6)"]


def test_factors_are_written_as_people_say_them() -> None:
    assert [factor(value) for value in (6.714, 0.2, 1234.5, float("inf"))] == ["6.7×", "0.20×", "1,234×", "∞×"]


def test_what_the_paper_shows_is_that_of_the_study_s_own_figure() -> None:
    texts = [{("p", "F1"): "one"}, {("p", "F2"): "two"}]
    assert paper_shows({"source": {"paper": "p", "card": "F2"}}, texts) == "two"
    assert paper_shows({"source": {"paper": "p", "card": "F3"}}, texts) is None
    assert paper_shows({}, texts) is None


def test_every_study_of_a_paper_has_what_the_paper_shows() -> None:
    sources = {path.stem: yaml.safe_load(path.read_text()).get("source") for path in Path("launch/studies").glob("*/*.yaml")}
    shown = [family.paper_shows for family in FAMILIES]
    untold = {name for name, source in sources.items() if source and paper_shows({"source": source}, shown) is None}
    assert untold == {"depth_by_length"}  # a question of this project's own
    assert len(sources) > 70


def test_a_median_that_moves_is_said_to_rise_or_to_fall() -> None:
    found = exceeds([0.2] * 9, [0.03] * 9, 1)
    assert found.moves(to_first=True).startswith("rises 6.7× (P = 1.00 [")
    assert found.moves(to_first=False).startswith("falls to 0.15× (P = 1.00 [")
    assert exceeds([0.2] * 9, [0.0] * 9, 1).moves(to_first=False).startswith("falls to 0 (")
    assert factors(291, float("inf")) == "at least 291×"
