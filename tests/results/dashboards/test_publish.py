"""W&B shows what is in Parquet and nothing else: its offline file is read back, record by record, and compared."""

import glob
import io
import json
import math
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest

from harness.exchange.finished_runs import Columns, import_runs
from launch.cli import main
from results.claims import scoreboard
from results.dashboards import dashboard_rows
from results.dashboards import publish as publishing
from results.dashboards.publish import project, publish
from results.store.tables import commit, open_store, read, write_bytes
from tests.results import synthetic
from tests.results.dashboards.offline_file import read_records
from tests.results.store.sample_rows import STEPS, commit_pack, failure, manifest

TRANSFORMERS, LSTMS = ["a", "b", "c", "d", "e"], ["k", "l", "m"]  # d diverges; e is planned and never trained


@pytest.fixture
def study(tmp_path):
    at = open_store(tmp_path / "runs", "quick")
    commit_pack(at, "fc-1", ["a", "b", "c", "d"])
    commit_pack(at, "fd-2", ["a"])  # loses against fc-1
    commit_pack(at, "fc-3", LSTMS, condition="lstm")
    commit(at, "fc-9-1", {"failures": failure("fc-9", 1)})
    plan = manifest({"transformer": TRANSFORMERS, "lstm": LSTMS}) | {"store": "s3://ID:SECRET@bucket/runs"}
    write_bytes(at, "manifests/0011.yaml", json.dumps(plan).encode())
    return at


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Nothing of this process may connect to anything but wandb's own local process."""
    connect = socket.socket.connect

    def local_only(self, address):
        host = address[0] if isinstance(address, tuple) else "a socket file"
        assert host in ("127.0.0.1", "localhost", "::1", "a socket file"), f"tried to reach {address}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "wandb-config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "wandb-cache"))


def read_run(folder: str) -> tuple[object, dict, list[dict]]:
    """The run, its config and the lines of its history."""
    found = read_records(folder)
    (run,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    items = [record.history.item for record in found if record.WhichOneof("record_type") == "history"]
    history = [{item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in line} for line in items]
    assert history
    return run, config, history


def table(folder: str, name: str) -> list[dict]:
    (file,) = Path(folder).glob(f"files/media/table/{name}_*.table.json")
    content = json.loads(file.read_text())
    return [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]


def rates(at, keys: list[str], set_name: str, step: int) -> list[float]:
    """Error rates from Parquet, infinity where there is no count; without anything of results.rows.summary."""
    rows = read(at, "evaluations").to_pylist()
    chosen = [row for row in rows if row["key"] in keys and row["set"] == set_name and row["step"] == step]
    return sorted(math.inf if row["errors"] is None else row["errors"] / row["count"] for row in chosen)


def test_one_offline_run_holds_the_numbers_of_the_parquet_files(study):
    folder = publish(study, "offline")
    assert [str(path) for path in Path(study.path("wandb")).glob("*run-*")] == [folder]
    run, config, history = read_run(folder)
    assert (run.display_name, run.run_id, run.project) == ("quick", "quick-0011", "manyseeds")
    assert config["question"] == "How long is the tail?"
    assert config["replicates_planned"] == 8
    assert "packs" not in config
    assert not any(b"SECRET" in path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())

    curves = {line["step"]: line for line in history if "summary._type" not in line}
    assert sorted(curves) == list(STEPS)
    for step in STEPS:
        for condition, keys in {"transformer": TRANSFORMERS, "lstm": LSTMS}.items():
            known = rates(study, keys, "sparse_online", step)
            prefix = f"{condition}/sparse_online"
            assert curves[step][f"{prefix}/replicates"] == len(known)
            assert curves[step][f"{prefix}/diverged"] == sum(map(math.isinf, known))
            assert curves[step][f"{prefix}/error_min"] == known[0]
            if math.isinf(known[-1]):
                assert f"{prefix}/error_max" not in curves[step]
            else:
                assert curves[step][f"{prefix}/error_max"] == known[-1]
                assert curves[step][f"{prefix}/error_median"] == pytest.approx(np.median(known))


def test_the_summary_has_a_line_a_condition_and_set(study):
    folder = publish(study, "offline")
    lines = {(line["condition"], line["set"]): line for line in table(folder, "summary")}
    assert len(lines) == 8
    for name in ("in_distribution", "sparse", "dense"):
        known = rates(study, LSTMS, name, 200)
        line = lines["lstm", name]
        assert (line["error_min"], line["error_max"], line["finished"]) == (known[0], known[-1], 3)
        assert line["error_median"] == pytest.approx(np.median(known))
        line = lines["transformer", name]
        assert (line["planned"], line["finished"], line["diverged"], line["missing"]) == (5, 3, 1, 1)
        assert line["error_min"] == rates(study, TRANSFORMERS, name, 200)[0]
        assert line["error_max"] in ("Infinity", math.inf)


def test_the_table_of_replicates_has_a_line_a_planned_replicate(study):
    lines = {line["key"]: line for line in table(publish(study, "offline"), "replicates")}
    assert sorted(lines) == sorted(TRANSFORMERS + LSTMS)
    errors = {(row["key"], row["set"], row["step"]): row["errors"] for row in read(study, "evaluations").to_pylist()}
    for key in ("a", "b", "c", *LSTMS):
        assert [lines[key][f"{name}.errors"] for name in ("sparse", "dense")] == [
            errors[key, name, 200] for name in ("sparse", "dense")
        ]
    assert (lines["d"]["status"], lines["e"]["status"]) == ("diverged", "missing")


def test_publishing_again_leaves_one_run_and_other_studies_alone(study, tmp_path):
    publish(study, "offline", tmp_path)
    (tmp_path / "wandb" / "offline-run-20260101_000000-very-quick-0011").mkdir()
    grown = manifest({"transformer": [*TRANSFORMERS, "f"], "lstm": LSTMS})
    write_bytes(study, "manifests/ff.yaml", json.dumps(grown).encode())
    folder = publish(study, "offline", tmp_path)
    assert folder is not None
    assert sorted(path.name.split("-", 3)[3] for path in (tmp_path / "wandb").glob("offline-run-*")) == [
        "quick-ff",
        "very-quick-0011",
    ]
    assert read_run(folder)[1]["replicates_planned"] == 9


def test_a_table_too_long_for_wandb_is_cut_and_says_so(study, monkeypatch):
    monkeypatch.setattr(dashboard_rows, "MOST_ROWS", 3)
    folder = publish(study, "offline")
    assert len(table(folder, "replicates")) == 3
    assert read_run(folder)[1]["replicates_note"] == "the table shows the first 3 of 8 replicates"


def test_off_does_nothing_and_does_not_import_wandb(study):
    code = """if True:
        import sys
        from results.dashboards.publish import publish
        from results.store.tables import open_store
        assert publish(open_store(sys.argv[1], "quick"), "off") is None
        print("wandb" in sys.modules)
    """
    found = subprocess.run([sys.executable, "-c", code, study.root], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
    assert not Path(study.path("wandb")).exists()


def test_what_can_not_be_published_is_said_in_one_sentence(study, tmp_path):
    with pytest.raises(ValueError, match=r"wandb='of' .*: use one of off, offline, online"):
        publish(study, "of")
    with pytest.raises(ValueError, match=r"no manifest.* publish"):
        publish(open_store(tmp_path, "nothing"), "offline")


def test_a_refusal_says_what_to_correct(study, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "ours/tails")
    with pytest.raises(
        ValueError, match=r"W&B refused the run .* in the store: change WANDB_PROJECT = 'ours/tails', "
    ) as refused:
        publish(study, "offline", tmp_path)
    assert "wandb login" not in str(refused.value)
    monkeypatch.setenv("WANDB_PROJECT", "")
    assert project() == "manyseeds"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "wandb").write_text("mine")
    with pytest.raises(ValueError, match=r"wandb is a file, .*: remove it"):
        publish(study, "offline", tmp_path / "there")


def test_an_offline_run_stays_until_all_is_sent(study, tmp_path, monkeypatch):
    import wandb

    where = Path(publish(study, "offline", tmp_path))

    def refused(**_):
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.setattr(wandb, "init", refused)
    with pytest.raises(ValueError, match=r"No API key configured"):
        publish(study, "online", tmp_path)
    assert read_run(where)
    monkeypatch.setattr(publishing, "_write_run", lambda *_: "https://wandb.example/run")
    publish(study, "online", tmp_path)
    assert not where.exists()


def test_a_condition_whose_replicates_diverge_has_no_infinite_number(tmp_path):
    at = open_store(tmp_path / "runs", "quick")
    commit_pack(at, "fc-1", ["d", "a"])  # d diverges
    write_bytes(at, "manifests/0011.yaml", json.dumps(manifest({"transformer": ["a", "d"]})).encode())
    summaries = [run.summary for run in dashboard_rows.runs_of(at, "condition", dashboard_rows.rows_of(at))]
    assert [summary["sparse/diverged"] for summary in summaries[1:]] == [1]
    assert all(math.isfinite(value) for summary in summaries for value in summary.values())


def test_conditions_and_replicates_have_offline_runs_of_their_own_and_earlier_ones_are_removed(study, tmp_path):
    for runs, count in (("replicate", 1 + 7), ("condition", 1 + 2)):
        publish(study, "offline", tmp_path, runs)
        names = [path.name.split("-", 3)[3] for path in (tmp_path / "wandb").glob("offline-run-*")]
        assert len(names) == len(set(names)) == count
    run, config, history = read_run(next((tmp_path / "wandb").glob("offline-run-*-c1")))
    assert (run.display_name, run.run_group, run.job_type, config["condition"]) == ("lstm", "quick", "condition", "lstm")
    known = rates(study, LSTMS, "sparse_online", 100)
    assert history[0]["sparse_online/error_min"] == known[0]
    assert history[0]["sparse_online/error_max"] == known[-1]


def test_the_study_has_figures_quantiles_and_claims(tmp_path):
    store = open_store(tmp_path / "runs", "synthetic")
    plan = synthetic.manifest(6) | {"claims": {"R2": {"value": 1.0, "of": 100}}}
    plan["conditions"] = [each | {"settings": each["config"]} for each in plan["conditions"]]
    synthetic.write(store, plan)
    folder = publish(store, "offline")
    _, config, history = read_run(folder)
    line = history[-1]
    for name in ("violins", "scatter"):
        assert line[f"{name}._type"] == "image-file"
        assert (Path(folder) / "files" / line[f"{name}.path"]).read_bytes().startswith(b"\x89PNG")
    (claim,) = table(folder, "claims")
    (verdict,) = scoreboard(store)
    assert (claim["claim"], claim["verdict"], claim["measured"]) == ("R2", verdict.verdict, verdict.finding.measured)
    bands = table(folder, "bands")
    assert {(band["condition"], band["set"]) for band in bands} == {(name, "sparse_online") for name in ("transformer", "lstm")}
    curves = {line["step"]: line for line in history[:-1]}
    for band in bands:
        expected = curves[band["step"]].get(f"{band['condition']}/sparse_online/error_median")
        assert band["error_median"] in (expected, "Infinity")
    assert config["complete"]


def test_the_command_publishes_a_study_again(study, tmp_path, capsys):
    main(["publish", study.root, "--runs", "condition", "--out", str(tmp_path)])
    folder, sync = capsys.readouterr().out.splitlines()
    begins = "  to send them: wandb sync "
    assert sync.startswith(begins)
    assert read_run(folder)[0].run_id == "quick-0011"
    written = set((tmp_path / "wandb").glob("offline-run-*"))
    assert len(written) == 3
    assert {Path(path) for path in glob.glob(sync.removeprefix(begins))} == written
    main(["publish", study.root, "--out", str(tmp_path)])
    folder, sync = capsys.readouterr().out.splitlines()
    assert sync == f"  to send it: wandb sync {folder}"


def test_a_study_of_experiments_has_its_claims_and_groups_as_any_study(monkeypatch):
    """A committed study of experiments, whose claims are judged elsewhere."""
    judged = SimpleNamespace(
        claim=SimpleNamespace(id="G1", sentence="It holds."),
        verdict="reproduced",
        terms=SimpleNamespace(value=1.0),
        finding=SimpleNamespace(measured="1", reason=""),
    )
    monkeypatch.setattr(dashboard_rows, "scoreboard", lambda store: [judged])
    monkeypatch.setattr(dashboard_rows, "draw_values", lambda *rows: [])
    store = open_store("docs/studies/generation", "samplers-with-a-verifier")
    own, *conditions = dashboard_rows.runs_of(store, "condition", dashboard_rows.rows_of(store))
    assert own.tables["claims"][1] == [["G1", "It holds.", "reproduced", 1.0, "1", ""]]
    assert own.config["complete"] is True
    assert {(run.group, run.config["stage"]) for run in conditions} == {(store.study, 0)}
    first = own.tables["summary"][1][0]
    row = dict(zip(own.tables["summary"][0], first, strict=True))
    (same,) = (run for run in conditions if run.name == row["condition"])
    assert same.summary[f"{row['metric']}/median"] == row["median"]


def test_the_parquet_files_leave_out_what_the_newest_plan_lacks(study):
    """A setting of the condition `lstm` was changed: its rows would stand under the name that others have now."""
    plan = manifest({"lstm": TRANSFORMERS}) | {"store": study.root}
    write_bytes(study, "manifests/0011.yaml", json.dumps(plan).encode())
    own, *_ = dashboard_rows.runs_of(study, "study", dashboard_rows.rows_of(study))
    for name in ("replicates", "evaluations", "curves", "profiles"):
        rows = pyarrow.parquet.read_table(io.BytesIO(own.parquet[name]))
        assert set(rows["key"].to_pylist()) <= set(TRANSFORMERS)
    assert rows.num_rows > 0


def test_a_metric_called_as_a_field_of_a_replicate_has_its_own_value(tmp_path, monkeypatch):
    monkeypatch.setattr(dashboard_rows, "draw_values", lambda *rows: [])
    (tmp_path / "runs.csv").write_text("lr,seed,status,key\n1,0,0.5,7\n1,1,0.25,8\n")
    store, columns = open_store(tmp_path / "runs", "own"), Columns("seed", ("lr",), {"status": "higher", "key": "lower"})
    import_runs(store, tmp_path / "runs.csv", columns, "q", lambda text: None)
    _, *replicates = dashboard_rows.runs_of(store, "replicate", dashboard_rows.rows_of(store))
    assert [run.summary for run in replicates] == [
        {"metric.status": value, "metric.key": key, "status": "finished"} for value, key in ((0.5, 7.0), (0.25, 8.0))
    ]


@pytest.mark.parametrize(
    ("scale", "reductions", "overrides", "tag"),
    [
        ("paper", [], ["wandb=off"], "scale paper"),
        ("paper", ["model.layers: 6 -> 2"], [], "reduced"),  # as the file itself lists
        ("paper", [], ["model.layers=2"], "reduced"),
        ("laptop", ["model.layers: 6 -> 2"], [], "scale laptop"),
    ],
)
def test_a_study_that_is_smaller_than_the_paper_is_not_tagged_with_its_scale(scale, reductions, overrides, tag):
    plan = synthetic.manifest(2) | {"scale": scale, "reductions": reductions, "overrides": overrides}
    assert dashboard_rows.live_run("synthetic", "0" * 32, plan).tags == [tag, "fflm", "F2"]
