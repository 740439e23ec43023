"""Layouts of a workspace and a report: built without a server, of what is published and nothing else, and updated in place."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb

from harness.exchange.finished_runs import Columns, import_runs
from launch.cli import main
from results.dashboards.dashboard import show_dashboard
from results.dashboards.dashboard_layout import content_of, report, spec, workspace
from results.dashboards.dashboard_rows import rows_of, runs_of
from results.dashboards.publish import publish
from results.store.tables import Store, open_store
from tests.results import synthetic
from tests.results.dashboards.wandb_double import serve

pytest.importorskip("wandb_workspaces")


@pytest.fixture
def study(tmp_path: Path) -> Store:
    store = open_store(tmp_path / "runs", "synthetic")
    plan = synthetic.manifest(6) | {"claims": {"R2": {"value": 1.0, "of": 100}}}
    plan["conditions"] = [each | {"settings": each["config"]} for each in plan["conditions"]]
    synthetic.write(store, plan)
    return store


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No login, and nothing but this machine."""
    wandb.teardown()
    words = {"CONFIG_DIR": tmp_path / "config", "CACHE_DIR": tmp_path / "cache", "DATA_DIR": tmp_path / "data"}
    words |= {"PROJECT": "manyseeds", "ERROR_REPORTING": "false", "BASE_URL": "http://127.0.0.1:9", "MODE": "offline"}
    for name, value in words.items():
        monkeypatch.setenv(f"WANDB_{name}", str(value))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    yield
    wandb.teardown()


def sections(layout: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Panels of a workspace by section."""
    return {each["name"]: each["panels"] for each in layout["section"]["panelBankConfig"]["sections"]}


def table_of(panel: dict[str, Any]) -> str:
    """The table that a table panel shows."""
    return str(panel["config"]["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"])


def test_the_workspace_shows_what_is_published_and_nothing_else(study: Store) -> None:
    layout = json.loads(spec(workspace(content_of(study))))
    found = sections(layout)
    assert list(found) == ["Claims", "Quantile bands", "Distributions", "Single replicates", "Tables"]
    runs = {run.kind: run for per in ("study", "replicate") for run in runs_of(study, per, rows_of(study))}
    own, single = runs["study"], runs["replicate"]
    (bands,) = found["Quantile bands"]
    sent = {name for _, values in own.history for name in values}
    assert set(bands["config"]["metrics"]) == {
        f"{condition}/sparse_online/error_{q}" for condition in ("transformer", "lstm") for q in ("min", "median", "max")
    }
    assert set(bands["config"]["metrics"]) <= sent
    assert (bands["config"]["xAxis"], bands["config"]["yLogScale"]) == ("step", True)
    violins, pairs, scatter = found["Distributions"]
    assert (
        [panel["config"]["mediaKeys"] for panel in (violins, pairs)] == [["violins"], ["scatter"]] == [[k] for k in own.figures]
    )
    fields = scatter["config"]["fieldSettings"]
    assert set(fields.values()) == {"sparse.error", "dense.error"} <= set(own.tables["replicates"][0])
    curve, points = found["Single replicates"]
    assert set(curve["config"]["metrics"]) <= {name for _, values in single.history for name in values}
    finals = {points["config"][axis].removeprefix("summary:") for axis in ("xAxis", "yAxis")}
    assert finals == {"sparse/final_error", "dense/final_error"} <= set(single.summary)
    tables = [table_of(panel) for panel in found["Claims"] + found["Tables"]]
    assert sorted(tables) == sorted(own.tables) == ["bands", "claims", "replicates", "summary"]
    assert "config:study.value" in json.dumps(layout) or '"name": "study' in json.dumps(layout)
    for run in runs.values():
        assert run.config["study"] == "synthetic"


def test_the_workspace_of_experiments_shows_the_figure_that_they_have(tmp_path: Path) -> None:
    path, store = tmp_path / "runs.csv", open_store(tmp_path / "runs", "rates")
    path.write_text("lr,seed,accuracy\n" + "".join(f"{lr},{seed},0.{seed}{lr}\n" for lr in (1, 2) for seed in range(3)))
    import_runs(store, path, Columns("seed", ("lr",), {"accuracy": "higher"}), "Which?", lambda text: None)
    own = next(runs_of(store, "study", rows_of(store)))
    found = sections(json.loads(spec(workspace(content_of(store)))))
    assert (
        [panel["config"]["mediaKeys"] for panel in found["Distributions"]] == [["values"]] == [[name] for name in own.figures]
    )
    assert sorted(map(table_of, found["Tables"])) == sorted(own.tables)
    assert "by metric" in spec(report(content_of(store)))


def test_the_report_begins_with_the_question_and_has_the_same_panels(study: Store) -> None:
    content = content_of(study)
    blocks = json.loads(spec(report(content)))["blocks"]
    text = json.dumps(blocks)
    assert "How long is the tail of read errors?" in text
    headings = [block["children"][0]["text"] for block in blocks if block["type"] == "heading"]
    assert headings == ["Claims", "Quantile bands", "Distributions", "Single replicates", "Tables"]
    grids = [block["metadata"]["panelBankSectionConfig"]["panels"] for block in blocks if block["type"] == "panel-grid"]
    panels = sections(json.loads(spec(workspace(content))))
    assert [[panel["viewType"] for panel in grid] for grid in grids] == [
        [panel["viewType"] for panel in group] for group in panels.values()
    ]


def test_layouts_are_the_same_every_time_and_leave_out_what_is_not_there(study: Store, tmp_path: Path) -> None:
    for build in (workspace, report):
        assert spec(build(content_of(study))) == spec(build(content_of(study)))
    plain = open_store(tmp_path / "plain", "plain")
    plan = synthetic.manifest(2, "plain", tuple(f"c{n:02d}" for n in range(12)))
    synthetic.write(plain, plan)
    found = sections(json.loads(spec(workspace(content_of(plain)))))
    assert "Claims" not in found
    assert found["Quantile bands"][0]["config"]["chartTitle"] == "sparse_online: error by step, first 10 conditions"
    assert len(found["Quantile bands"][0]["config"]["metrics"]) == 30


def test_the_command_writes_layouts_without_a_server(study: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["dashboard", study.root, "synthetic", "--out", str(tmp_path / "out")])
    paths = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in paths] == ["synthetic-workspace.json", "synthetic-report.json"]
    for path, build in zip(paths, (workspace, report), strict=True):
        assert json.loads(path.read_text()) == json.loads(spec(build(content_of(study))))


def test_a_dashboard_is_made_once_and_then_updated(
    study: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as double:
        for name, value in {"BASE_URL": double.address, "API_KEY": "a" * 40, "MODE": "online"}.items():
            monkeypatch.setenv(f"WANDB_{name}", value)
        with pytest.raises(ValueError, match=r"team/manyseeds.*: .*manyseeds publish STORE"):
            show_dashboard(study, None, None, print)
        publish(study, "online", tmp_path)
        main(["dashboard", study.root, "synthetic"])
        addresses = capsys.readouterr().out.split()
        assert {
            (view["type"], view["displayName" if "displayName" in view else "title"]) for view in double.views.values()
        } == {
            ("project-view", "synthetic (manyseeds)"),
            ("runs", "synthetic (manyseeds)"),
        }
        before = {name: view["spec"] for name, view in double.views.items()}
        plan = synthetic.manifest(7) | {"question": "Another?"}
        synthetic.write(study, plan)
        main(["dashboard", study.root, "synthetic"])
        assert capsys.readouterr().out.split() == addresses
    assert all(address.startswith(f"{double.address}/team/manyseeds") for address in addresses)
    assert list(double.views) == list(before)
    assert ["Another?" in view["spec"] for view in double.views.values()] == [False, True]


def test_what_is_missing_is_one_sentence(study: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"no manifest.*: run it first"):
        show_dashboard(open_store(tmp_path, "nothing"), None, str(tmp_path), print)
    with pytest.raises(ValueError, match=r"W&B .*: log in with `wandb login`$"):
        show_dashboard(study, None, None, print)
    for name in [name for name in sys.modules if name.partition(".")[0] == "wandb_workspaces"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"wandb-workspaces.*: pip install 'manyseeds\[dashboards\]'$"):
        show_dashboard(study, None, str(tmp_path), print)
