"""LaTeX tables: names escaped, numbers as a paper has them, and an interval beside every median."""

import math

import pyarrow as pa
import pytest

from results.markdown_table import table_lines
from results.rows.latex import Tabular, errors_table, values_table
from results.rows.measures import Measure
from results.rows.summary import SUMMARY, Replicate, Score, replicates_of, summarise
from results.rows.value_summary import returned, summarise_values
from results.statistics.intervals import clopper_pearson
from results.store.schema import SCHEMAS
from tests.results.synthetic import manifest, tables


def errors(names):
    plan = manifest(8, names=names)
    packs = tables(plan).values()
    rows = [pa.concat_tables(pack[name] for pack in packs) for name in ("replicates", "evaluations")]
    return summarise(plan, replicates_of(plan, *rows, SCHEMAS["failures"].empty_table()))


def test_errors_are_a_booktabs_table_with_names_escaped():
    text = errors_table(errors(("lr_0.1 & 50%", "lstm")))
    assert r"lr\_0.1 \& 50\% & sparse\_online & 8/8 & " in text
    assert "& diverged &" in text
    body = [row for row in text.splitlines() if row.endswith(r"\\")]
    assert len(body) == 7
    assert {row.replace(r"\&", "").count("&") for row in body} == {8}
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1


def test_a_median_has_its_interval_and_an_end_that_is_not_bounded_is_a_dash():
    row = {
        "condition": "c",
        "stage": 0,
        "set": "dense",
        "planned": 9,
        "zero_error_of": 9,
        "zero_error": 0,
        "error_median": 0.25,
    }
    row |= {"zero_error_low": 0.0, "zero_error_high": 0.336}
    ends = [(0.1, 0.5), (0.0, math.inf)]
    text = errors_table(
        pa.Table.from_pylist([row | {"median_low": low, "median_high": high} for low, high in ends], schema=SUMMARY)
    )
    assert "& 0.25 [0.1, 0.5] &" in text
    assert "& 0.25 [0, --] &" in text


def test_errors_name_stages_and_round_no_share_to_none_or_all():
    row = {"condition": "warm", "set": "dense", "planned": 100, "zero_error_of": 100, "error_max": 0.9996}
    shares = [(zero, clopper_pearson(zero, 100)) for zero in (1, 99)]
    few, many = ({"zero_error": zero, "zero_error_low": end.low, "zero_error_high": end.high} for zero, end in shares)
    text = errors_table(pa.Table.from_pylist([row | {"stage": 0} | few, row | {"stage": 1} | many], schema=SUMMARY))
    assert "\nwarm & dense & 100/100 & -- & -- & -- & -- & 0.9996 & 1/100 [0.0003, 0.054] " in text
    assert "\nwarm, stage 1 & dense & 100/100 & -- & -- & -- & -- & 0.9996 & 99/100 [0.946, 0.9997] " in text


def test_signs_that_default_fonts_lack_are_printed_and_no_row_begins_with_an_option():
    assert "\n\\lbrack{}a\\textless{}b\\textbar{}c\\textgreater{}d] & " in errors_table(errors(("[a<b|c>d]", "lstm")))


def replicate(condition, seed, status="finished", **costs):
    scores = {name: Score(0, 0, 0, cost, math.nan, math.nan) for name, cost in costs.items()}
    return Replicate(condition, 0, f"{condition}{seed}", seed, seed, status, None, None, scores)


LOSS, SOLVED, OTHER = (
    Measure("result", name, better, True, kind)
    for name, better, kind in (("loss_a", "lower", "number"), ("solved", "higher", "flag"), ("steps", "lower", "number"))
)


def values(*known, measures=(LOSS, SOLVED, OTHER)):
    return summarise_values(known, measures)


def test_values_have_quantiles_and_flags_their_share():
    known = [replicate("a", seed, loss_a=float(seed - 2), solved=-float(seed > 1)) for seed in range(6)]
    text = values_table(values(*known, replicate("a", 6, "diverged"), measures=(LOSS, SOLVED)))
    lines = [line for line in text.splitlines() if line.startswith("a &")]
    assert lines[0] == r"a & loss\_a & 7/7 & $-$2 & $-$0.5 & 1 [$-$2, --] & 2.5 & diverged \\"
    share = clopper_pearson(4, 7)
    assert lines[1] == rf"a & solved & 7/7 & \multicolumn{{5}}{{l}}{{true: 4/7 [{share.low:.3f}, {share.high:.3f}]}} \\"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0004321, r"$4.3\times 10^{-4}$"),
        (0.25, "0.25"),
        (1234.5, "1,234"),
        (999.7, "1,000"),
        (2.5e7, r"$2.5\times 10^{7}$"),
    ],
)
def test_numbers_are_written_as_in_a_paper(value, text):
    assert f"& {text} [" in values_table(values(replicate("a", 0, loss_a=value), measures=(LOSS,)))


def test_a_metric_that_a_condition_does_not_have_has_no_row():
    """A condition of which nothing has ended keeps its rows."""
    summary = values(replicate("a", 0, loss_a=1.0, solved=-1.0), replicate("b", 0, steps=5.0), replicate("c", 0, "missing"))
    assert {(row["condition"], row["metric"]) for row in returned(summary)} == {
        ("a", "loss_a"),
        ("a", "solved"),
        ("b", "steps"),
        *(("c", metric) for metric in ("loss_a", "solved", "steps")),
    }
    assert "b & loss" not in values_table(summary)
    assert r"c & solved & 0/1 & \multicolumn{5}{l}{true: --} \\" in values_table(summary)


def test_the_lines_of_a_command_are_a_tabular_and_comments():
    printed = []
    tell = Tabular(printed.append)
    rows = [("a|b_1", "sparse", "0.58 [0.4, ∞]", "−0.1 – 3×"), ("c\\", None, "50 %", "")]
    for line in ("What is compared: 95 % intervals.", "", *table_lines(("condition", "set", "P(a|b)", "n"), rows), "After it."):
        tell(line)
    tell.close()
    assert printed == [
        "% What is compared: 95 % intervals.",
        "",
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"condition & set & P(a\textbar{}b) & n \\",
        r"\midrule",
        r"a\textbar{}b\_1 & sparse & 0.58 \lbrack{}0.4, $\infty$] & $-$0.1 -- 3$\times$ \\",
        r"c\textbackslash{} & -- & 50 \% &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% After it.",
    ]


def test_numbers_of_a_table_have_a_minus_and_powers_of_ten_and_names_are_kept():
    printed = []
    tell = Tabular(printed.append)
    rows = [
        ("lr=1e-3", "step-5", "1.91e-06", "-0.47 [-0.474, 2.2e+03]"),
        ("-1", "2e5", "below 1e-300", "lr=1e-3 returns none, nor does x-2"),
        ("a", "b", "−0.1 – 0.2", "[-∞, -1.5e-07]"),
    ]
    for line in table_lines(("condition", "set", "p", "difference"), rows):
        tell(line)
    assert printed[4:] == [
        r"lr=1e-3 & step-5 & $1.91\times 10^{-6}$ & $-$0.47 \lbrack{}$-$0.474, $2.2\times 10^{3}$] \\",
        r"-1 & 2e5 & below $1\times 10^{-300}$ & lr=1e-3 returns none, nor does x-2 \\",
        r"a & b & $-$0.1 -- 0.2 & \lbrack{}$-$$\infty$, $-1.5\times 10^{-7}$] \\",
    ]


def test_a_table_at_the_end_is_closed_and_the_next_one_has_its_own_head():
    printed = []
    for _ in range(2):
        tell = Tabular(printed.append)
        for line in table_lines(("a", "b"), [(1, 2)]):
            tell(line)
        tell.close()
        tell.close()
    assert printed[:7] == printed[7:]
    assert printed[-1] == r"\end{tabular}"
