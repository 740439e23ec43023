import datetime
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from launch.cli import cli
from results.errors import StudyError
from results.report.replicate_page import write_replicate_page
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, open_store, read
from tests.results.report.browser import EVIL, FLAGS, browser, with_script
from tests.results.synthetic import manifest, write


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, Any]]:
    store, plan = open_store(str(tmp_path_factory.mktemp("store")), "synthetic"), manifest(6, names=("transformer", EVIL))
    plan["conditions"][1]["config"]["task"]["name"] = EVIL
    write(store, plan, ended=5)
    return store, plan


def test_a_replicate_has_a_page_with_its_curves_scores_and_provenance(study: Any) -> None:
    store, plan = study
    key = plan["replicates"][0][0]
    path = write_replicate_page(store, key[:9])
    assert path == Path(store.path("report")) / f"replicate-{key[:12]}.html"
    text = path.read_text(encoding="utf-8")
    for told in (
        key,
        "transformer: init seed 0, data seed 0",
        "Finished</span>, 1,000 steps",
        "train.lr",
        "torch 2.13.0",
        "0123456789abcdef",
    ):
        assert told in text
    assert text.count("<figure") == 1
    assert '"title":"sparse_online"' in text.split('class="plot">')[1].split("</script>")[0]
    scores = re.findall(
        r'<tr><th scope="row">(\w+)</th><td>([\d,]+)</td><td>([\d,]+)</td><td>\S+</td><td>\S+ to \S+</td></tr>', text
    )
    assert [name for name, *_ in scores] == ["sparse_online", "sparse", "dense"]
    assert [reads for *_, reads in scores] == ["3,567", "3,540", "46,120"]


def test_a_replicate_that_diverged_says_where_and_still_has_its_curve(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "diverged"), manifest(3)
    write(store, plan)
    text = write_replicate_page(store, plan["replicates"][2][0], tmp_path / "out").read_text(encoding="utf-8")
    assert "Diverged at step 321" in text
    assert text.count("<td>diverged</td>") == 3
    assert 'class="plot"' in text


def test_the_page_of_a_later_stage_names_it(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "synthetic"), manifest(1, names=("warm",))
    plan["conditions"][0]["config"]["stages"] = [{}, {"labels": "previous"}]
    write(store, plan, ended=1)
    for table in ("evaluations", "replicates"):
        rows = read(store, table)
        later = rows.set_column(1, rows.schema.field("stage"), pa.array([1] * rows.num_rows, pa.int32()))
        commit(store, rows["pack"][0].as_py(), {table: later})
    assert "<h1>warm, stage 1: init seed 0" in write_replicate_page(store, plan["replicates"][0][0]).read_text(encoding="utf-8")


def test_a_set_that_the_study_no_longer_lists_has_no_part_in_the_page(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "edited"), manifest(3)
    for name in ("sparse_online", "dense"):  # the one from the conditions, the other from the study
        del (plan["conditions"][0] if name == "dense" else plan)["sets"][name]
    write(store, plan)
    text = write_replicate_page(store, plan["replicates"][0][0], tmp_path / "out").read_text(encoding="utf-8")
    assert re.findall(r'<tr><th scope="row">(\w+)</th><td>[\d,]+</td>', text) == ["sparse"]


def test_names_are_text_and_the_page_fits_a_phone_and_asks_for_nothing(study: Any, tmp_path: Path) -> None:
    store, plan = study
    text = write_replicate_page(store, plan["replicates"][6][0], tmp_path).read_text(encoding="utf-8")
    assert "<script>" not in text
    assert text.count("&lt;script&gt;alert(1)") >= 2
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//|@import|url\((?!#)""", text)
    name = next(tmp_path.glob("replicate-*.html")).name
    (tmp_path / name).write_text(
        with_script(
            text,
            "<script>addEventListener('load', () => { const root = document.documentElement; parent.postMessage("
            "[root.scrollWidth - root.clientWidth, performance.getEntriesByType('resource').length], '*'); });</script>",
        ),
        encoding="utf-8",
    )
    (tmp_path / "frame.html").write_text(
        "<script>addEventListener('message', (event) => { document.title = event.data.join(' '); });</script>"
        f'<iframe style="width:390px;height:900px" src="{name}"></iframe>'
    )
    command = [browser(), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", (tmp_path / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    assert "<title>0 0</title>" in done.stdout


def test_a_key_that_is_unknown_ambiguous_or_has_not_ended_is_one_sentence(study: Any, tmp_path: Path) -> None:
    store, plan = study
    with pytest.raises(ValueError, match=r"synthetic .*'nothing': take one from"):
        write_replicate_page(store, "nothing")
    with pytest.raises(ValueError, match=r"synthetic .*''"):
        write_replicate_page(store, "")
    first = [row[0][0] for row in plan["replicates"]]
    shared = next(character for character in first if first.count(character) > 1)
    with pytest.raises(ValueError, match=rf"^{first.count(shared)} keys .*'{shared}'.*give more"):
        write_replicate_page(store, shared)
    with pytest.raises(ValueError, match=r"has not ended, so there is nothing to draw"):
        write_replicate_page(store, plan["replicates"][5][0])
    with pytest.raises(StudyError, match="no study 'other'"):
        write_replicate_page(open_store(str(tmp_path), "other"), "a")


def test_a_replicate_that_failed_is_not_said_to_end_by_another_run(tmp_path: Path) -> None:
    store, plan = open_store(str(tmp_path), "synthetic"), manifest(2)
    write(store, plan, ended=1)
    failed = plan["replicates"][1][0]
    about = {"pack": "fa-1", "attempt": 1, "keys": [failed], "stage": 0, "kind": "raised", "exception": "no", "traceback": ""}
    about["at"] = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    commit(store, "fa-1-1", {"failures": pa.Table.from_pylist([about], SCHEMAS["failures"])})
    with pytest.raises(StudyError, match=r"has failed, so there is nothing to draw.*manyseeds retry runs it again"):
        write_replicate_page(store, failed)


def test_the_command_writes_the_page_and_finds_the_only_study(study: Any, tmp_path: Path) -> None:
    store, plan = study
    arguments = ["--key", plan["replicates"][1][0], "--out", str(tmp_path)]
    for words in (["report", store.root, "synthetic"], ["report", store.root]):
        done = CliRunner().invoke(cli, [*words, *arguments])
        assert done.exit_code == 0, done.output
        assert Path(done.output.strip()).is_file()
