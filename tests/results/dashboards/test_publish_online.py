"""Publishing to a local double of W&B's server: what arrives is what Parquet has, once, whatever the server refuses or drops on the way."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb

from results.dashboards import publish as publishing
from results.dashboards.publish import publish
from results.store.tables import Store, open_store, read, write_bytes
from tests.results.dashboards.wandb_double import Double, serve
from tests.results.store.sample_rows import STEPS, commit_pack, manifest

KEYS = {"transformer": ["a", "b", "c", "d"], "lstm": ["k", "l", "m"]}  # d diverges


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """W&B's client asks the double alone, with a made-up key, and waits little before it asks again."""
    wandb.teardown()  # settings are read once a process
    monkeypatch.setattr(publishing, "PAUSE_S", 0.0)
    words = {"CONFIG_DIR": tmp_path / "config", "CACHE_DIR": tmp_path / "cache", "DATA_DIR": tmp_path / "data"}
    words |= {"API_KEY": "a" * 40, "MODE": "online", "ERROR_REPORTING": "false", "PROJECT": "manyseeds"}
    for kind in ("GRAPHQL", "FILE_STREAM", "FILE_TRANSFER"):
        words |= {f"X_{kind}_RETRY_WAIT_MIN_SECONDS": 0.1, f"X_{kind}_RETRY_WAIT_MAX_SECONDS": 0.5}
    for name, value in words.items():
        monkeypatch.setenv(f"WANDB_{name}", str(value))
    yield
    wandb.teardown()


def study_of(folder: Path, keys: dict[str, list[str]] = KEYS, ended: int | None = None) -> Store:
    """A study in a store; `ended`: so many replicates of each condition alone."""
    store = open_store(folder / "runs", "quick")
    for condition, mine in keys.items():
        commit_pack(store, f"fc-{condition}", mine[:ended], condition=condition)
    write_bytes(store, "manifests/0011.yaml", json.dumps(manifest(keys)).encode())
    return store


def sent(monkeypatch: pytest.MonkeyPatch, folder: Path, double: Double, store: Store, runs: str = "study") -> str | None:
    """Publish online to the double."""
    monkeypatch.setenv("WANDB_BASE_URL", double.address)
    return publish(store, "online", folder, runs)


def number(value: Any) -> float:
    """A number of a W&B table, whose infinities are words."""
    return {"Infinity": math.inf, "NaN": math.nan}.get(value, value)  # type: ignore[call-overload,no-any-return]


def check_study(double: Double, store: Store, keys: dict[str, list[str]]) -> None:
    """The study's run has the table of replicates and the extremes of every online set, as Parquet has them."""
    run = double.runs["quick-0011"]
    rows = {(row["key"], row["set"], row["step"]): row for row in read(store, "evaluations").to_pylist()}
    lines = {line["key"]: line for line in run.table("replicates")}
    assert sorted(lines) == sorted(key for mine in keys.values() for key in mine)
    for key, line in lines.items():
        for name in ("sparse", "dense", "in_distribution"):
            assert line[f"{name}.errors"] == rows[key, name, 200]["errors"]
    curves = {line["step"]: line for line in run.history if "replicates" not in line}
    assert sorted(curves) == list(STEPS)
    for step in STEPS:
        for condition, mine in keys.items():
            own = [rows[key, "sparse_online", step] for key in mine]
            known = sorted(math.inf if row["errors"] is None else row["errors"] / row["count"] for row in own)
            prefix = f"{condition}/sparse_online"
            assert curves[step][f"{prefix}/replicates"] == len(mine)
            assert curves[step][f"{prefix}/error_min"] == known[0]
            if math.isfinite(known[-1]):
                assert curves[step][f"{prefix}/error_max"] == known[-1]
    bands = run.table("bands")
    assert {(band["step"], band["condition"]) for band in bands} == {(step, name) for step in STEPS for name in keys}
    for band in bands:
        line = curves[band["step"]]
        expected = line.get(f"{band['condition']}/sparse_online/error_max", math.inf)
        assert number(band["error_max"]) == expected


@pytest.mark.slow
def test_ten_thousand_replicates_survive_refusals_and_dropped_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = {name: [f"{name[0]}{n:05d}" for n in range(5000)] for name in KEYS}
    store = study_of(tmp_path, keys)

    def trouble(kind: str, before: int) -> str:
        troubles = {"UpsertBucket": ["429"], "CreateRunFiles": ["429"], "stream": ["429", "drop"], "PUT": ["429", "drop"]}.get(
            kind, []
        )
        return troubles[before] if before < len(troubles) else ""

    with serve(trouble) as double:
        where = sent(monkeypatch, tmp_path, double, store)
        assert where == f"{double.address}/team/manyseeds/runs/quick-0011"
    assert list(double.runs) == ["quick-0011"]
    refused = {"UpsertBucket 429", "CreateRunFiles 429", "stream 429", "stream drop", "PUT 429", "PUT drop"}
    assert double.refused == dict.fromkeys(refused, 1)
    check_study(double, store, keys)


def test_publishing_again_sends_nothing_new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = study_of(tmp_path)
    with serve() as double:
        sent(monkeypatch, tmp_path, double, store, "replicate")
        check_study(double, store, KEYS)
        before = {name: (list(run.history), run.config(), run.table("replicates") if "replicates" in run.history[-1] else None)
                  for name, run in double.runs.items()}  # fmt: skip
        uploads = double.asked["CreateArtifact"]
        sent(monkeypatch, tmp_path, double, store, "replicate")
        check_study(double, store, KEYS)
    after = {name: (list(run.history), run.config(), run.table("replicates") if "replicates" in run.history[-1] else None)
             for name, run in double.runs.items()}  # fmt: skip
    for name in before:
        assert after[name][0] == before[name][0]
        assert after[name][2] == before[name][2]
        same = [{key: value for key, value in each[1].items() if key != "_wandb"} for each in (before[name], after[name])]
        assert same[0] == same[1]
    assert double.asked["CreateArtifact"] == uploads
    assert len(double.runs) == 8


@pytest.mark.slow
def test_replicates_and_conditions_have_runs_with_their_own_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = study_of(tmp_path)
    evaluations, curves = read(store, "evaluations").to_pylist(), read(store, "curves").to_pylist()
    with serve() as double:
        sent(monkeypatch, tmp_path, double, store, "condition")
        assert sorted(double.runs) == [f"quick-0011{end}" for end in ("", "-c0", "-c1")]
        about = double.runs["quick-0011-c1"].about
        assert (about["displayName"], about["groupName"], about["jobType"]) == ("lstm", "quick", "condition")
        sent(monkeypatch, tmp_path, double, store, "replicate")
    assert len(double.runs) == 3 + 7
    for condition, keys in KEYS.items():
        for key in keys:
            run = double.runs[f"quick-{key}-s0"]
            assert (run.about["groupName"], run.about["jobType"], run.config()["key"]) == (condition, "replicate", key)
            expected: dict[int, dict[str, float]] = {step: {"step": step} for step in STEPS}
            for row in evaluations:
                if row["key"] == key and row["set"] == "sparse_online" and row["errors"] is not None:
                    expected[row["step"]]["sparse_online/error"] = row["errors"] / row["count"]
            for row in curves:
                if row["key"] == key:
                    expected[row["step"]]["loss"] = row["value"]
            said = [{name: value for name, value in line.items() if not name.startswith("_")} for line in run.history]
            assert said == [expected[step] for step in STEPS]
            finals = {name: value for name, value in run.summary.items() if name.endswith("/errors")}
            assert finals == {
                f"{row['set']}/errors": row["errors"]
                for row in evaluations
                if (row["key"], row["step"]) == (key, 200) and row["errors"] is not None
            }


@pytest.mark.slow
def test_a_study_that_is_not_complete_sends_tables_and_later_its_history(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = study_of(tmp_path, ended=2)
    with serve() as double:
        sent(monkeypatch, tmp_path, double, store)
        run = double.runs["quick-0011"]
        assert len(run.history) == 1
        assert {band["replicates"] for band in run.table("bands")} == {2}
        study_of(tmp_path)
        sent(monkeypatch, tmp_path, double, store)
        assert {band["replicates"] for band in run.table("bands")} == {4, 3}
    assert list(double.runs) == ["quick-0011"]
    check_study(double, store, KEYS)


def test_runs_start_at_a_pace_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits: list[float] = []
    written: list[str] = []
    write_run: Callable[..., str] = lambda mode, folder, run, history: written.append(run.id) or run.id  # type: ignore[func-returns-value]  # noqa: E731
    monkeypatch.setattr(publishing, "_write_run", write_run)
    monkeypatch.setattr(publishing, "PAUSE_S", 0.5)
    monkeypatch.setattr(publishing.time, "sleep", waits.append)
    monkeypatch.setattr(publishing.time, "monotonic", lambda: 100.0)
    store = study_of(tmp_path)
    assert publish(store, "online", tmp_path, "replicate") == "quick-0011"
    assert waits == [0.5] * 7
    assert len(written) == len(set(written)) == 8
    many = study_of(tmp_path / "many", {"transformer": [f"t{n:04d}" for n in range(1001)]})
    sentence = (
        r"^wandb.runs = replicate would make 1,001 W&B runs of this study and W&B shows 1,000: write condition or study, or .*$"
    )
    with pytest.raises(ValueError, match=sentence):
        publish(many, "online", tmp_path, "replicate")
    with pytest.raises(ValueError, match=r"wandb.runs = 'seed' .*study or condition or replicate"):
        publish(store, "offline", tmp_path, "seed")
    assert len(written) == 8
