"""What a study file, a manifest and a checkpoint of somebody else may do: name things, and nothing more."""

import json
import logging
import pickle
import re
import sys
from pathlib import Path

import pytest
import torch

from harness.exchange.replicate import find
from harness.executing import run_pack as execute
from harness.local import main as local
from harness.planning.manifest import plan_of, read
from harness.study.config import build
from harness.study.load import from_tree, load
from harness.study.safe_yaml import MOST_BYTES, read_yaml
from harness.training import checkpoint
from harness.training import weights as artifacts
from launch.cli import family, main
from models.custom import custom
from results.store import tables as store
from results.store.tables import committed, open_store
from tests.harness.tiny import STUDY, write_study
from tests.pickle_bomb import Bomb
from tests.results.synthetic import manifest as synthetic

ROOT = Path(__file__).parents[2]
MODULE = """
from pathlib import Path
Path("ran").touch()
from torch import nn

class Mean(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.head = nn.Linear(8, vocabulary)

    def forward(self, tokens):
        return self.head(self.embed(tokens))
"""


def test_no_source_file_unpickles_or_evaluates():
    found = []
    for folder in ("harness", "launch", "models", "results", "tasks"):
        for path in (ROOT / folder).rglob("*.py"):
            words = r"\bpickle\b|torch\.load\(|allow_pickle=True|yaml\.(unsafe_|full_)?load\(|(?<![.\w])(eval|exec)\(|import_module\("
            found += [f"{path.name}: {match[0]}" for match in re.finditer(words, path.read_text())]
    # a user's own, once it is allowed; our own probes, by names that are constants of harness/probes; pandas, polars or duckdb; one of
    # two packages that read TensorBoard's files; and what two processes of ours send each other through a pipe, which no file and no
    # other user can write into
    pipe = "second_process.py: pickle"
    own = ["custom.py", "event_files.py", "load_rows.py", "registry.py"]
    assert sorted(set(found)) == [*(f"{name}: import_module(" for name in own), pipe]


def test_a_module_that_was_not_allowed_is_not_imported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange_models.py").write_text(MODULE)
    path = Path(write_study(tmp_path))
    path.write_text(STUDY.replace("lstm: {model: {name: lstm, width: 8}}", 'mine: {model: {name: "strange_models:Mean"}}'))
    for words in (["plan"], ["run"], ["retry"], ["estimate", "--seconds=1"]):
        with pytest.raises(SystemExit) as caught:
            main([*words, str(path), "store=runs"])
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert "would import the module strange_models and run what it holds: if you trust it, pass --allow-import" in said
        assert said.count("\n") == 1
    for name in (
        "os:system",
        "strange_models:Mean.__init__",
        "strange_models :Mean",
        "a:b:c",
        "../strange_models:Mean",
        ["a:b"],
    ):
        with pytest.raises(ValueError, match=r"--allow-import|must be MODULE:CLASS|must be a word"):
            build("model", {"name": name})
    assert not (tmp_path / "ran").exists()
    assert "strange_models" not in sys.modules


@pytest.fixture
def words(tmp_path, monkeypatch):
    """The command line of a study of a module of the folder, in a process that has neither allowed nor imported it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(custom, "_allowed", set())
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "strange_models.py").write_text(MODULE)
    path = Path(write_study(tmp_path))
    path.write_text(STUDY.replace("lstm: {model: {name: lstm, width: 8}}", 'mine: {model: {name: "strange_models:Mean"}}'))
    yield [str(path), "only=[mine]", "replicates=1", "store=runs"]
    sys.modules.pop("strange_models", None)


def forget(folder):
    custom._allowed.clear()
    sys.modules.pop("strange_models", None)
    (folder / "ran").unlink(missing_ok=True)


def command(*words):
    """The exit status."""
    try:
        main(list(words))
    except SystemExit as ended:
        return ended.code
    return 0


def test_an_allowed_module_trains_from_a_study_and_each_later_command_asks_again(tmp_path, words, capsys):
    allowed = ("--allow-import", "strange_models")
    assert command("run", *words, *allowed) == 0
    rows = committed(open_store("runs", "tiny"))
    assert rows["status"].to_pylist() == ["finished"]
    assert (tmp_path / "ran").exists()
    rerun = ("rerun", "runs", rows["key"][0].as_py(), "--device", "cpu")
    forget(tmp_path)
    capsys.readouterr()
    assert [command(*each) for each in (rerun, ("status", "runs"), ("report", "runs"))] == [2, 0, 0]
    assert "--allow-import strange_models" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
    assert command(*rerun, *allowed) == 0


def test_a_resolved_manifest_asks_for_its_modules_too(tmp_path, words, capsys):
    assert command("plan", *words, "--write", "resolved.yaml", "--allow-import", "strange_models") == 0
    forget(tmp_path)
    capsys.readouterr()
    arguments = ["resolved.yaml", "runs", "--device", "cpu"]
    assert local(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "--allow-import strange_models" in said
    assert not (tmp_path / "ran").exists()
    assert local([*arguments, "--allow-import", "strange_models"]) == 0
    assert committed(open_store("runs", "tiny"))["status"].to_pylist() == ["finished"]


def test_the_script_of_a_family_takes_the_flag(tmp_path, words, monkeypatch, capsys):
    monkeypatch.setattr("launch.cli.find_study", lambda name, study: words[0])
    monkeypatch.setattr(sys, "argv", ["fflm_replicates.py", "study=mine", *words[1:]])
    with pytest.raises(SystemExit) as ended:
        family("fflm", default="quick")
    assert ended.value.code == 2
    assert "--allow-import strange_models" in capsys.readouterr().err
    sys.argv.append("--allow-import=strange_models")
    with pytest.raises(SystemExit) as ended:
        family("fflm", default="quick")
    assert ended.value.code == 0
    assert committed(open_store("runs", "tiny"))["status"].to_pylist() == ["finished"]


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: !!python/object/apply:os.system ['touch ran']", "is a tag of YAML that no study needs"),
        ("name: !!python/name:os.system", "is a tag of YAML that no study needs"),
        (LAUGHS, "nested more than 40 levels or has more than 5000 values"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested more than 40 levels"),
        ("a: " + "{b: " * 5000 + "1" + "}" * 5000, "nested more than 40 levels"),
        ("a: &a [*a]", "alias .a of nothing that ends before it"),
        ("source:\n" + "".join(f"  a{i + 1}: ${{source.a{i}}}${{source.a{i}}}\n" for i in range(30)), "60 references"),
        ("a: " + "x" * MOST_BYTES, "a study file at most 262144"),
        ("name: ${oc.env:HOME}", "is refused: only"),
        ("a: \x00", "is not a readable YAML file"),
        ("name: 'x\n- }", "is not a readable YAML file"),
    ],
    ids=range(11),
)
def test_a_study_file_can_neither_make_objects_nor_grow(tmp_path, monkeypatch, text, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(ValueError, match=reason) as caught:
        load(tmp_path / "study.yaml")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_anchors_and_merge_keys_of_an_honest_file_are_read():
    text = b"base: &base {lr: 1, betas: [1, 2]}\nother: {<<: *base, lr: 3}\nlist: [*base, &two 2, *two]\n"
    assert read_yaml(text, "x") == {
        "base": {"lr": 1, "betas": [1, 2]},
        "other": {"lr": 3, "betas": [1, 2]},
        "list": [{"lr": 1, "betas": [1, 2]}, 2, 2],
    }


def test_a_pickle_in_place_of_a_checkpoint_or_kept_weights_runs_nothing(tmp_path):
    trap, at = tmp_path / "trap", open_store(tmp_path / "store", "tiny")
    torch_file = tmp_path / "torch.pt"
    torch.save({"a": Bomb(trap)}, torch_file)
    honest = {"w": torch.ones(2)}
    for data in (
        pickle.dumps(Bomb(trap)),
        torch_file.read_bytes(),
        (2**62).to_bytes(8, "little") + b"{}",
        b"",
        b"\x02" + bytes(7) + b"{}",
    ):
        checkpoint.write(at, "fd-1", 10, honest, {"step": 10})
        store.write_bytes(at, "checkpoints/fd-1/20.safetensors", data)
        store.write_bytes(at, "checkpoints/fd-1/\N{SUPERSCRIPT TWO}.safetensors", data)
        tensors, state = checkpoint.read(at, "fd-1")
        assert torch.equal(tensors["w"], honest["w"])
        assert state == {"step": 10}
        key = "a" * 32
        where = artifacts.path(at, key, 0, 5)
        store.write_file(at, where, data)
        store.write_file(at, where.replace("5.safe", "x.safe"), data)
        with pytest.raises(
            ValueError, match=r"5.safetensors (is not a whole safetensors file|holds the weights of None)"
        ) as caught:
            find(at, key)
        assert "\n" not in str(caught.value)
    assert not trap.exists()


def test_a_manifest_with_a_hostile_name_or_depth_is_refused():
    with pytest.raises(ValueError, match="is no manifest"):
        read(b"[" * 100_000)
    with pytest.raises(ValueError, match="is no manifest of a study: study is missing"):
        read(json.dumps({"x" * 10**7: 1}).encode())
    whole = synthetic() | dict.fromkeys(("executor", "store"), "") | {"pack_size": 1}
    with pytest.raises(ValueError, match="has no key 'xxx") as caught:
        read(json.dumps(whole | {"x" * 10**7: 1}).encode())
    assert len(str(caught.value)) < 1000
    condition = {"name": "c", "config": {"task": {"name": "flipflop"}, "model": {"name": "os:system"}, "train": {}}}
    with pytest.raises(ValueError, match="would import the module os"):
        plan_of({"conditions": [condition], "replicates": [["k", 0, 0, 0]], "sets": {}, "study": "../up", "question": ""})
    with pytest.raises(ValueError, match="must be a word of letters"):
        from_tree(
            {
                "name": "../up",
                "task": {"name": "flipflop"},
                "model": {"name": "lstm"},
                "evaluate": {"sets": {"a": {"sequences": 1}}},
            }
        )


SECRETS = ("AKIDNEVERWRITTEN", "SECRETNEVERWRITTEN", "TOKENNEVERWRITTEN")


@pytest.fixture
def server(monkeypatch):
    """A client of a moto S3 server, and the URI of a store there with credentials in it."""
    moto = pytest.importorskip("moto.server", reason="the S3 tests need moto and Flask")
    boto3 = pytest.importorskip("boto3", reason="the S3 tests need boto3")
    user, password, token = SECRETS
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    client.create_bucket(Bucket="bucket")
    yield client, f"s3://{user}:{password}@bucket/runs?scheme=http&region=us-east-1&endpoint_override={host}:{port}"
    running.stop()


def _breaks_for_lstms(train):
    def changed(pack, store, *rest, **more):
        if pack.replicates[0].condition.name == "lstm":
            raise RuntimeError(f"broken in {store}")
        return train(pack, store, *rest, **more)

    return changed


@pytest.mark.slow
def test_credentials_are_in_no_byte_that_a_study_writes_or_says(server, tmp_path, monkeypatch, capfd):
    client, uri = server
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(folder / "wandb-own"))
    monkeypatch.setattr("harness.executing.run_pack.train", _breaks_for_lstms(execute.train))
    path = tmp_path / "tiny.yaml"
    path.write_text(STUDY.replace("executor: local", f'executor: local\nstore: "{uri}"'))
    study, store_is = str(path), f"store={uri}"
    codes = [
        command("run", study, "wandb=offline", "keep=all"),
        command("plan", study, store_is, "replicates=5", "--write", "resolved.yaml"),
        command("status", uri),
        command("report", uri),
        command("merge", "here", uri),
        command("merge", "here", uri, "--study", "gone"),
        command("status", uri.replace("/runs", "/gone")),
        command("status", uri.replace("s3://", "s4://")),
        command("run", study, f"store ={uri}"),
        command("run", study, store_is, "train.lr=}{"),
        command("run", study, store_is.replace("@bucket", "@missing")),
        local(["resolved.yaml", uri, "--device", "cpu"]),
    ]
    assert codes == [1, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 1]
    said = "".join(capfd.readouterr())
    assert "replicates failed" in said
    objects = [each["Key"] for each in client.list_objects_v2(Bucket="bucket")["Contents"]]
    written = {name: client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in objects}
    written |= {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    for kind in ("manifests/", "failures/", "artifacts/", "report", "wandb/", "resolved.yaml"):
        assert any(kind in name for name in written), (kind, sorted(written))
    for secret in SECRETS:
        assert [name for name, data in written.items() if secret.encode() in data] == []
        assert secret not in said
