"""The methods paragraph of experiments: what a committed study and an imported table say, and nothing else."""

import copy
from pathlib import Path

import pytest

from harness.exchange.finished_runs import Columns, import_runs
from results.report.methods_of_experiments import experiment_text
from results.report.report import write_report
from results.rows.measures import Measure, measures_of
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest, reported
from results.store.tables import Store, committed, open_store, read
from tests.results.report.browser import asked

ROOT = Path(__file__).parents[3]


def text_of(store: Store, change=lambda manifest: None, measures=None) -> str:
    manifest = copy.deepcopy(newest_manifest(store)[1])
    change(manifest)
    replicates, evaluations = committed(store), read(store, "evaluations").filter(reported(manifest))
    planned = replicates_of(manifest, replicates, evaluations, read(store, "failures"))
    return experiment_text(manifest, planned, measures or measures_of(manifest, evaluations), replicates)


@pytest.fixture(scope="module")
def growth() -> Store:
    return open_store(str(ROOT / "docs/studies/generation"), "vgb-error-growth")


def test_every_value_is_that_of_the_study(growth):
    text = text_of(growth)
    for part in (
        "The study “vgb-error-growth” has 320 replicates of 8 conditions; a replicate is a run of “verified_sampling” with a seed of its",
        "Settings: process = brackets, alphabet = 2,",
        "; the conditions differ in horizon and sampler, as their names say.",
        "10 metrics are reported, each by the last value that a replicate returned.",
        "each condition: 40 replicates (seeds 0 to 39; 40 finished).",
        "; the claim VGB1 was judged by a rule fixed in the code.",
        "Run on cpu: Intel(R) Xeon(R) Processor, with manyseeds 0.1.0, numpy 2.4.6,",
    ):
        assert part in text
    assert "true or false" not in text
    assert "\n" not in text


def test_conditions_whose_names_say_nothing_have_their_settings_named(growth):
    def rename(manifest):
        for place, condition in enumerate(manifest["conditions"]):
            condition["name"] = f"c{place}"

    text = text_of(growth, rename)
    assert "differing between conditions: c0 (horizon = 8, sampler = guided); c1 (horizon = 16, sampler = guided);" in text
    assert "as their names say" not in text


def test_endings_are_counted_by_condition(growth):
    def few(manifest):
        kept = [row for row in manifest["replicates"] if row[1] in (0, 4)][::20]
        manifest["replicates"] = [*kept, ["f" * 32, 4, 77, 77]]

    text = text_of(growth, few)
    assert "“sampler=guided, horizon=8”: 2 replicates (seeds 0, 20; 2 finished); “" in text
    assert "3 replicates (seeds 0, 20, 77; 2 finished, 1 missing)." in text
    assert "medians with replicates that failed or are missing are bounded by their being the best and the worst" in text


def test_flags_are_named_with_their_interval(growth):
    flag, number = Measure("result", "solved", "higher", False, "flag"), Measure("test", "loss", "lower", False, "number")
    text = text_of(growth, measures=[number, flag])
    assert "Reported is the last value that each replicate returned of loss (test) and solved (true or false)." in text
    assert "the share of replicates that return true has the exact interval of Clopper and Pearson" in text
    assert "median" not in text_of(growth, measures=[flag])


def test_an_imported_table_is_no_run_of_ours(tmp_path):
    store = open_store(str(tmp_path), "berts")
    table = ROOT / "examples/published/berts_of_a_feather.csv"
    columns = Columns("run", ("cases",), {"accuracy": "higher"})
    import_runs(store, table, columns, "", lambda line: None)
    text = text_of(store)
    assert "400 replicates of 4 conditions; a replicate is a run from an imported table with a seed of its own." in text
    assert "Reported is the last value that each replicate returned of accuracy (higher is better)." in text
    assert text.endswith("The runs were imported from berts_of_a_feather.csv.")


def test_the_page_has_the_paragraph_the_citation_and_the_files(growth, tmp_path):
    page = write_report(growth, str(tmp_path))
    text = page.read_text()
    assert "as their names say" in text[text.index('id="methods-text"') :]
    assert "@misc{manyseeds," in text
    for name in ("summary.tex", "replicates.parquet", "tables/evaluations.parquet"):
        assert f'href="{name}"' in text
        assert (page.parent / name).is_file()
    assert "returned by no replicate of sampler=guided, horizon=16;" in text
    assert ">no value<" not in text


def test_the_names_of_conditions_without_a_value_do_not_widen_the_table(tmp_path):
    samplers = open_store(str(ROOT / "docs/studies/generation"), "samplers-with-a-verifier")
    page = write_report(samplers, str(tmp_path)).read_text(encoding="utf-8")
    script = """const around = document.getElementById("summary-table").parentElement;
    told.whole = around.scrollWidth;
    const without = [...around.querySelectorAll("tr")].filter((row) => row.textContent.includes("returned by no replicate"));
    told.rows = without.length;
    for (const row of without) row.remove();
    told.rest = around.scrollWidth;"""
    told = asked(page, script, tmp_path, 1200)
    assert told["rows"] > 0
    assert told["whole"] == told["rest"]
