import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet
import pytest

from results import second_process
from results.errors import StudyError
from results.report import report
from results.report.page_template import format_least_share, format_rate
from results.report.plots import figure_files, pareto, violins
from results.report.plots.error_axis import error_scale
from results.report.plots.errors_by_condition import errors_by_condition
from results.report.plots.panels import titled_panels
from results.report.report import write_report
from results.store import tables as store_tables
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, committed, open_store, read, table_files, write_bytes
from tests.results.report.browser import FLAGS, browser, with_script
from tests.results.synthetic import failure, manifest, tables, write

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_store(str(tmp_path_factory.mktemp("store")), "synthetic")
    write(store, manifest(12))
    first = min(committed(store)["pack"].to_pylist())
    for table in ("evaluations", "curves", "replicates"):  # the same replicates again, in a pack that loses
        rows = read(store, table, filter=pc.field("pack") == first)
        place = rows.schema.get_field_index("pack")
        commit(store, "zz-loses", {table: rows.set_column(place, "pack", pa.array(["zz-loses"] * rows.num_rows))})
    return store


@pytest.fixture(scope="module")
def page(study: Store) -> str:
    return write_report(study).read_text(encoding="utf-8")


def test_the_page_opens_from_disk_without_an_error(study: Store, page: str, tmp_path: Path) -> None:
    address = Path(study.path("report", "index.html")).as_uri()
    # a second script sorts by dense errors twice, so that the worst replicates come first
    probe = tmp_path / "index.html"
    click = "<script type=module>for (let i = 0; i < 2; i++) document.querySelectorAll('#replicate-table th button')[9].click()</script>"
    probe.write_text(with_script(page, click), encoding="utf-8")
    for url in (address, probe.as_uri()):
        command = [browser(), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert "CONSOLE" not in done.stderr
        assert 'data-ready="true"' in done.stdout
        assert "How long is the tail of read errors?" in done.stdout
        assert 'id="summary-table"' in done.stdout
        assert done.stdout.count("<figure") == 7
    assert 'aria-sort="descending"' in done.stdout
    body = done.stdout.split('id="replicate-table"')[1].split("<tbody>")[1]
    assert "diverged" in body.split("</tr>")[0]


def test_two_processes_make_the_files_that_one_makes(study: Store, page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(report, "MANY", 1)
    monkeypatch.setattr(store_tables, "_VERY_MANY", 2)
    monkeypatch.setattr(second_process, "worthwhile", lambda: True)
    try:
        write_report(study, tmp_path / "out")
    finally:
        second_process.stop()
    mine, theirs = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "out", Path(study.path("report")))
    )
    assert mine == theirs
    assert len(mine) > 20


def test_the_page_says_what_it_must(page: str) -> None:
    for text in (
        "Smaller than the paper: 1,000 steps (10,000)",
        "train.steps: 10000 -&gt; 1000",
        "train.lr=0.0003",
        "1 diverged",
        "most probable token",
        "2.13.0",
        "0123456789abcdef",
        "≥ 77.9 % of seeds",  # 0.05^(1/12), beside each maximum
        "The reads of one string err together",
    ):
        assert text in page
    assert 'id="partial"' not in page
    assert page.count("<tr><td>") == 24


def test_the_page_runs_no_script_but_its_own(page: str, tmp_path: Path) -> None:
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert page.index(policy) < page.index("<title>"), "nothing of the store stands before it"
    own = re.findall(r'<script type="(?:module|text/javascript)">(.*?)</script>', page, re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in own}
    assert set(re.search(r"script-src ([^;]*);", policy)[1].split()) == digests
    assert "unsafe-inline" not in re.search(r"script-src ([^;]*);", policy)[1]
    foreign = tmp_path / "index.html"
    foreign.write_text(page.replace("<h1>", "<script>document.title = 'pwned'</script><h1>"), encoding="utf-8")
    command = [browser(), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", foreign.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>pwned" not in done.stdout
    assert 'data-ready="true"' in done.stdout


def test_a_study_of_a_users_own_is_not_measured_by_a_paper(tmp_path: Path) -> None:
    plan = manifest(4) | {"source": {}, "reductions": ["model.layers: 6 -> 2"]}
    store = open_store(str(tmp_path), "own")
    write(store, plan)
    text = write_report(store).read_text()
    assert "Smaller than the study as written: 2 layers (6)" in text
    assert "scale paper" not in text.lower()
    assert "than the paper" not in text
    quiet = open_store(str(tmp_path), "quiet")
    write(quiet, plan | {"reductions": [], "overrides": ["store=x"], "scale": "paper"})
    assert 'id="scale"' not in write_report(quiet).read_text()


@pytest.mark.parametrize("sets", [1, 2])
def test_the_note_on_conditions_names_the_figure_of_error_against_error_where_there_is_one(
    sets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(violins, "MAX_CONDITIONS", 1)
    plan = manifest(4)
    kept = ["sparse", "dense"][:sets]
    plan["sets"] = {name: plan["sets"][name] for name in kept}
    plan["conditions"] = [each | {"sets": {name: each["sets"][name] for name in kept}} for each in plan["conditions"]]
    store = open_store(str(tmp_path), "many")
    write(store, plan)
    text = write_report(store).read_text(encoding="utf-8")
    (note,) = re.findall(r'id="conditions-drawn">(.*?)</p>', text)
    assert note.startswith("Of 2 conditions a figure draws at most the 1 with the largest effect")
    assert (
        ("the one of error against error draws all" in note)
        == ("Error on dense against error on sparse" in text)
        == (sets == 2)
    )


def test_the_page_needs_nothing_from_anywhere(page: str) -> None:
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_files_lie_beside_the_page_and_every_relative_link_has_its_file(study: Store, page: str) -> None:
    folder = Path(study.path("report"))
    links = re.findall(r'<a href="([^"#]+)"', page)
    assert {"summary.csv", "summary.tex", "summary.parquet", "replicates.csv"} <= set(links)
    assert all((folder / link).is_file() for link in links)
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".png"}


def test_each_table_is_written_with_only_the_rows_that_count(study: Store, page: str) -> None:
    assert len(table_files(study, "curves")) > len(set(committed(study)["pack"].to_pylist()))
    for table in SCHEMAS:
        written = pyarrow.parquet.read_table(study.path("report", "tables", f"{table}.parquet"))
        assert repr(written.to_pylist()) == repr(read(study, table).to_pylist()), table


def test_a_report_reads_each_table_once(study: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an object store each reading of a table is a request or two a pack."""
    asked: list[str] = []

    def files(store: Store, table: str, packs: Collection[str] | None = None) -> list[str]:
        asked.append(table)
        return table_files(store, table, packs)

    monkeypatch.setattr("results.store.tables.table_files", files)
    write_report(study, tmp_path)
    assert sorted(asked) == ["curves", "evaluations", "failures", "probes", "profiles", "replicates"]


def test_the_same_rows_make_the_same_bytes(study: Store, page: str, tmp_path: Path) -> None:
    write_report(study, tmp_path)
    first = Path(study.path("report"))
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(files) == 7 + 14 + 6
    assert all((tmp_path / path).read_bytes() == (first / path).read_bytes() for path in files)


def test_a_partial_study_says_so_and_shows_its_failures(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "partial"), manifest(10)
    write(store, plan, ended=3)
    rows = pa.Table.from_pylist([failure(plan["replicates"][8][0], "OSError: <disk> full")], schema=SCHEMAS["failures"])
    commit(store, "fd-0000000000000000-1", {"failures": rows})
    text = write_report(store).read_text()
    assert "Partial: 6 of 20 replicates." in text
    assert "1 failed" in text
    assert "OSError: &lt;disk&gt; full" in text


def test_a_study_of_which_nothing_is_trained_yet_has_a_report(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "planned"), manifest(3)
    write_bytes(store, "manifests/0.yaml", json.dumps(plan).encode())
    text = write_report(store).read_text()
    assert "Partial: 0 of 6 replicates." in text
    assert "Nothing is trained yet." in text
    assert "<figure" not in text


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&"
    plan = manifest(6, names=(evil, "lstm"))
    plan |= {"question": f"Is {evil} safe?", "overrides": [evil], "source": {evil: evil}, "git": evil}
    plan["sets"][evil] = plan["sets"].pop("dense")
    for condition in plan["conditions"]:
        condition["sets"][evil] = condition["sets"].pop("dense")
    store = open_store(str(tmp_path), "evil")
    write(store, plan)
    text = write_report(store).read_text()
    assert "<script>alert" not in text
    assert "<script>" not in text
    assert "Is &lt;script&gt;alert(1)" in text
    assert not re.search(r'="[^"]*<script', text)


def test_sets_of_any_name_are_drawn_the_dense_against_the_sparse(tmp_path: Path) -> None:
    store, plan, names = open_store(str(tmp_path), "names"), manifest(6), {"dense": "long", "sparse": "short"}
    for pack, rows in tables(plan).items():
        for table in ("evaluations", "profiles"):
            at = rows[table].schema.get_field_index("set")
            renamed = pa.array([names.get(name, name) for name in rows[table]["set"].to_pylist()])
            rows[table] = rows[table].set_column(at, rows[table].schema.field("set"), renamed)
        commit(store, pack, rows)
    plan["sets"] = {"long": plan["sets"]["dense"], "short": plan["sets"]["sparse"]}
    for condition in plan["conditions"]:
        condition["sets"] = {"long": condition["sets"]["dense"], "short": condition["sets"]["sparse"]}
    write_bytes(store, "manifests/0.yaml", json.dumps(plan).encode())
    text = write_report(store).read_text()
    assert "<b>Error on long against error on short.</b>" in text
    assert '"label":"error rate, long"' in text


def test_a_set_that_asks_conditions_for_other_numbers_of_answers_has_both_ends(tmp_path: Path) -> None:
    """As where a sweep changes the length of the strings: one number, of the last condition, would be wrong for all others."""
    store, plan = open_store(str(tmp_path), "lengths"), manifest(2)
    longer, other = tables(plan).items()
    rows = longer[1]["evaluations"]
    doubled = pc.multiply(rows["count"], pa.scalar(2, pa.int64()))
    longer[1]["evaluations"] = rows.set_column(rows.schema.get_field_index("count"), rows.schema.field("count"), doubled)
    for pack, by_table in (longer, other):
        commit(store, pack, by_table)
    write_bytes(store, "manifests/0.yaml", json.dumps(plan).encode())
    text = write_report(store).read_text()
    assert "<td>400</td><td>46,120 to 92,240</td>" in text
    assert "<td>3.2×10⁻⁵ to 6.5×10⁻⁵ <small>(0.00746)</small></td>" in text  # 1 - 0.05^(1/n)
    assert "<td>46,120</td>" not in text.partition("As a paragraph for a paper")[0].partition("<h3>Evaluation sets</h3>")[2]


def test_the_newest_manifest_is_the_plan(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "again")
    for name, seeds, at in (("a", 12, 100), ("b", 8, 300), ("c", 10, 200)):
        write_bytes(store, f"manifests/{name}.yaml", json.dumps(manifest(seeds)).encode())
        os.utime(store.path("manifests", f"{name}.yaml"), (at, at))
    assert "Partial: 0 of 16 replicates." in write_report(store).read_text()


def test_a_manifest_with_complete_settings_is_quoted_and_else_defaults_are_pointed_out(page: str, tmp_path: Path) -> None:
    assert "A setting that is not named has its default." in page
    plan = manifest(2)
    for condition in plan["conditions"]:
        condition["settings"] = condition["config"] | {"train": condition["config"]["train"] | {"warmup": 50}}
    store = open_store(str(tmp_path), "complete")
    write(store, plan)
    text = write_report(store).read_text()
    assert "train.warmup=50" in text
    assert "A setting that is not named has its default" not in text


def test_a_study_that_is_not_there_is_named_with_its_store(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"'nowhere' .*run it first"):
        write_report(open_store(str(tmp_path), "nowhere"))
    store = open_store(str(tmp_path), "broken")
    write_bytes(store, "manifests/0.yaml", b"{")
    with pytest.raises(ValueError, match=r"manifests/0\.yaml is no manifest"):
        write_report(store)


def test_a_store_that_is_not_local_gets_its_report_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(open_store("runs", "quick"), manifest(2))
    remote = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    store = Store(remote, "runs", "quick")
    assert write_report(store) == Path("report-quick/index.html")
    assert Path("report-quick/summary.csv").is_file()


def test_the_whole_report_is_built_without_torch_and_ray(study: Store, tmp_path: Path) -> None:
    program = f"""
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "ray", "wandb", "omegaconf", "pandas"):
            raise ModuleNotFoundError(f"No module named {{name!r}}: forbidden here")

sys.meta_path.insert(0, Forbidden())
from results.report.report import write_report
from results.store.tables import open_store
print(write_report(open_store({study.root!r}, "synthetic"), {str(tmp_path / "out")!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "index.html").is_file()


def test_zero_has_a_place_of_its_own_that_no_small_rate_shares() -> None:
    scale = error_scale(np.array([0.0, 1e-5, 0.3, np.inf]))
    zero, small, large, diverged = scale.place(np.array([0.0, 1e-5, 0.3, np.inf]))
    assert zero < scale.low <= small < large <= scale.high < diverged
    assert small == pytest.approx(-5)
    assert np.isnan(scale.place(np.array([np.nan]))).all()


@pytest.mark.parametrize(
    ("rates", "ends", "ticks"),
    [
        ([0.39, 0.66], (0.35, 0.7), ["0.7", "0.6", "0.5", "0.4"]),
        ([0.1, 1.0], (0.1, 1.0), ["1", "0.5", "0.2", "0.1"]),
        ([2.2e-4, 2.9e-4], (2e-4, 3.2e-4), None),
        ([0.5], (0.4, 0.65), None),
        ([1.0], (0.65, 1.0), None),
        ([12.0, 13.0], (10.0, 16.0), None),
        ([0.05, 0.6], (0.01, 1.0), ["1", "10⁻¹", "10⁻²"]),
        ([0.0], (0.01, 1.0), ["1", "10⁻¹", "10⁻²"]),
    ],
)
def test_rates_within_one_decade_fill_the_axis(rates: list[float], ends: tuple[float, float], ticks: list[str] | None) -> None:
    """It had two decades at least, and 0.39 to 0.66 took a tenth of it. Rates that are all alike do not fill it either."""
    scale = error_scale(rates, [0.0, np.inf])
    assert (10**scale.low, 10**scale.high) == pytest.approx(ends)
    shown = scale.place([0.0, *rates, np.inf])
    assert shown[0] < scale.low
    assert shown[-1] > scale.high
    assert all(scale.low <= place <= scale.high for place in scale.place([rate for rate in rates if rate]))
    labels = [label for _, label in scale.ticks]
    assert ticks is None or labels == ticks
    assert 2 <= len(labels) <= 6
    assert len(set(labels)) == len(labels)


def test_the_ends_of_a_narrow_axis_are_round_and_hold_its_rates() -> None:
    random = np.random.default_rng(0)
    for least, ratio in zip(10 ** random.uniform(-8, 4, 500), 10 ** random.uniform(0, 1, 500), strict=True):
        scale = error_scale([least, least * ratio])
        assert scale.low <= np.log10(least) + 1e-12
        assert scale.high >= np.log10(least * ratio) - 1e-12
        assert 0.15 < scale.span < 1.7


def test_figures_stand_with_nothing_but_zeros_or_nothing_but_diverged() -> None:
    for value in (0.0, np.inf):
        only = np.full(3, value)
        assert "<svg" in figure_files.svg(errors_by_condition({"s": {"a": only}}))
        assert "<svg" in figure_files.svg(pareto.draw({"a": (only, only)}, "s", "t", {"a": [0, 1, 2]}))


def test_panels_of_a_large_grid_stand_where_a_layout_of_all_of_them_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    for most in (figure_files.MANY_PANELS, 100):
        monkeypatch.setattr(figure_files, "MANY_PANELS", most)
        names = ["a condition"] * 13
        with titled_panels(names, 1.5, 1.2, "training step", "error rate", "y", columns=3) as (figure, panels):
            figure_files.svg(figure)
        places.append(np.array([panel.get_position().extents for panel in panels]))
    assert np.abs(places[0] - places[1]).max() < 0.005  # of the figure


def test_names_that_mean_something_to_the_plotting_library_are_drawn_as_they_are(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "names")
    write(store, manifest(6, names=("50 $\\bad{$ & %", "_hidden")))
    write_report(store)
    drawn = (tmp_path / "names" / "report" / "figures" / "profile-since_write.svg").read_text()
    assert "50 $\\bad{$ &amp; %" in drawn
    assert "_hidden" in drawn


def test_rates_are_written_as_people_write_them() -> None:
    values = [0.0, 0.01234, 4.21e-5, float("inf"), None, 1.0]
    assert [format_rate(value) for value in values] == ["0", "0.0123", "4.2×10⁻⁵", "diverged", "–", "1"]
    assert [format_least_share(share) for share in (0.0, 0.77908, 0.92789, 1.0)] == ["0.0 %", "77.9 %", "92.7 %", "100.0 %"]
