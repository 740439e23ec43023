"""The page of 1,000 glitches: small, opened by a browser from disk, drawn on demand, and what it says is what the file has."""

import re
from pathlib import Path

import pytest

from results.report.flipflop import glitches
from results.report.flipflop.glitch_page import lines, page_name, write_glitch_page
from results.report.replicate_page import write_replicate_page
from results.store.tables import Store, open_store, write_bytes
from tests.results.report.browser import EVIL, asked
from tests.results.report.flipflop.glitch_rows import about, rows
from tests.results.synthetic import manifest, write

ASK = """
const rows = document.getElementById("rows"), text = (id) => document.getElementById(id).innerText;
const press = (key) => rows.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
told.lines = document.querySelectorAll("#rows tbody tr").length;
told.strips = document.querySelectorAll("#heads canvas").length;
told.first = text("one-title");
press("ArrowDown"); told.second = text("one-title"); press("ArrowUp");
const sort = [...document.querySelectorAll("#rows th button")].find((button) => button.innerText.includes("margin"));
sort.click();
document.querySelector("#rows tbody tr").click();
told.worst = text("one-title");
told.sisters = text("told");
document.querySelector("input[value=norm]").click();
told.heads = [...document.querySelectorAll("#heads span")].map((span) => span.innerText);
told.last = document.querySelector("#prompt .last").innerText;
told.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
told.requests = performance.getEntriesByType("resource").length;
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_store(tmp_path_factory.mktemp("runs"), "glitchy")
    told = about()
    glitches.write(store, told, rows(told, 1000))
    return store


@pytest.mark.parametrize("width", [1300, pytest.param(500, marks=pytest.mark.slow)])
def test_a_thousand_glitches_of_48_heads_are_a_small_page_that_draws_what_is_chosen(
    study: Store, tmp_path: Path, width: int
) -> None:
    found = glitches.read(study, about().key, "dense")
    assert found is not None
    told, table = found
    path = write_glitch_page(study, told.key, "dense", tmp_path)
    assert path.stat().st_size < 5e6
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//|@import|url\((?!#)""", text)
    seen = asked(text, ASK, tmp_path, width)
    assert (seen["lines"], seen["strips"], seen["wide"], seen["requests"]) == (1000, 49, 0, 0)
    listed = table.to_pylist()
    for name, row in (("first", listed[0]), ("second", listed[1]), ("worst", max(listed, key=lambda row: row["margin"]))):
        said, right = (told.answers[row[each]] for each in ("answer", "right"))
        title = f"String {row['string']}, position {row['position']}: said {said}, right is {right}, margin "
        assert seen[name].startswith(title)
        assert float(seen[name].removeprefix(title)) == pytest.approx(row["margin"], rel=5e-3)
    assert seen["sisters"].startswith(f"{sum(row['sister_wrong'])} of 25 sister seeds")
    assert seen["last"] == f"w{told.answers[row['right']]}"
    shares = [norm / row["totals"][place // told.kept] for place, norm in enumerate(row["norms"])]
    for head, line in enumerate(seen["heads"][1:]):
        own = shares[head * told.kept : (head + 1) * told.kept]
        assert float(line.split(" ")[0]) == pytest.approx(max(own), abs=0.0051)
        assert ("last write" in line.split(";")[0]) == (own[0] == max(own))
        assert float(line.rpartition("Σ ")[2]) == pytest.approx(row["totals"][head], rel=0.051)


def test_few_glitches_of_a_model_without_heads_or_sisters_say_so(tmp_path: Path) -> None:
    store = open_store(tmp_path, "glitchy")
    told = about(layers=0, heads=0, kept=0, steps=[40], sisters=[], sisters_known=0, condition=EVIL, limit=9, errors=3)
    bare = {"keys": [], "weights": [], "norms": [], "totals": []}
    glitches.write(store, told, [row | bare for row in rows(about(steps=[40], sisters=[], kept=2), 3)])
    text = write_glitch_page(store, told.key, "dense").read_text(encoding="utf-8")
    assert "alert(1)" in text
    assert "<script>alert(1)" not in text
    for sentence in ("All 3 glitches", "has no heads to look at", "Only the weights of the end", "No other replicate"):
        assert sentence in text
    glitches.write(store, told, [])
    assert "No glitch in the 4,000 strings" in write_glitch_page(store, told.key, "dense").read_text(encoding="utf-8")


def test_what_is_printed_is_a_line_a_glitch(study: Store) -> None:
    printed = list(lines(study, about().key, "dense", 1000, 25))
    assert printed[0] == (
        "glitchy: 1,000 glitches of 0123456789ab (transformer, seeds 3, 4) in the first 400 of 4,000 strings of dense; "
        "committed: 9,876 errors in 470,000 reads"
    )
    assert len(printed) == 1002
    assert re.fullmatch(r" +0 +\d+ +[\d.e-]+ +\d+ +1 +[01] +[01] +\d+ of 25  [wri01 ]+ r", printed[2])


def test_the_replicates_page_leads_to_its_glitches(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "synthetic"), manifest(3)
    write(store, plan)
    key = plan["replicates"][0][0]
    assert "Its glitches" not in write_replicate_page(store, key).read_text(encoding="utf-8")
    told = about(key=key, study="synthetic")
    glitches.write(store, told, rows(told, 2))
    path = write_replicate_page(store, key)
    assert f'<a href="{page_name(key, "dense")}">on dense</a>' in path.read_text(encoding="utf-8")
    assert (path.parent / page_name(key, "dense")).is_file()


def test_a_file_that_is_missing_or_another_is_one_sentence(tmp_path: Path) -> None:
    store = open_store(tmp_path, "glitchy")
    with pytest.raises(ValueError, match=r"glitchy .*012345678901 .*dense.*: .*manyseeds glitches"):
        write_glitch_page(store, "0123456789012345", "dense")
    write_bytes(store, "glitches/k-dense.parquet", b"PAR1 no")
    told = about(layers=1, heads=2)
    glitches.write(store, told, rows(about(layers=1, heads=1), 1))
    with pytest.raises(ValueError, match=r"-dense.parquet .*\(ValueError\): delete it and run"):
        write_glitch_page(store, told.key, "dense")
    with pytest.raises(ValueError, match=r"k-dense.parquet .*\(ArrowInvalid\): delete it and run"):
        glitches.read(store, "k", "dense")
