"""What scripts leave as their metrics is read as they write it: their own names, texts beside numbers, several folders, W&B."""

import json
import sys

import pytest
import wandb
from tensorboardX import SummaryWriter
from tensorboardX.proto import event_pb2

from harness.experiments import event_files
from harness.experiments.entries import BadResult
from harness.experiments.event_files import scalars_of
from harness.experiments.metrics_file import results_in
from harness.experiments.own_wandb_runs import hand_over_settings
from tests.harness.offline_log import log_of_run


@pytest.fixture
def read(tmp_path):
    """read(name, text, …): what is read of a file of these lines."""

    def of(name, text, **named):
        (tmp_path / name).write_text(text)
        return list(results_in(tmp_path / name, "{folder}/" + name, **named))

    return of


def test_a_script_may_log_texts_beside_its_numbers(read):
    lines = [
        {"event": "begin", "args": {"lr": 1}},
        {"step": 1.0, "loss": 2.0, "val": None, "at": "12:00"},
        {"step": 2, "val": 3},
    ]
    expected = [{"step": 1, "loss": 2.0}, {"step": 2, "val": 3}]
    assert read("m.jsonl", "\n".join(json.dumps(line) for line in lines)) == expected
    assert read("m.json", json.dumps(lines)) == expected


def test_a_table_is_read_as_pandas_writes_it(read):
    text = ",epoch,model,accuracy,best\n0,1,mlp,0.5,True\n1,2,mlp,0.75,\n"
    assert read("m.csv", text, step="epoch") == [{"step": 1, "accuracy": 0.5, "best": True}, {"step": 2, "accuracy": 0.75}]


def test_a_table_is_read_whatever_its_spaces_cases_and_quotes(read):
    """Also with the mark that Excel writes first, and with lines that are not the file's own."""
    text = '\ufeffset, step, train loss, ok, note\n test, 1, 0.5, true, "a\nb"\ntest, 2, 0.25, False, c\n'
    expected = [{"train loss": 0.5, "ok": True}, {"train loss": 0.25, "ok": False}]
    assert read("m.csv", text) == [{"step": step, "set": "test"} | line for step, line in enumerate(expected, 1)]
    assert read("m.jsonl", '\ufeff{"loss": 1, "note": "a\u2028b"}\n') == [{"loss": 1}]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("m.csv", b"1,0.5\n2,0.25\n", "line 1 of {folder}/m.csv has only numbers, and must have the names of the columns"),
        ("m.csv", b'a,b\n1,"x\ny"\n2\n', "line 4 of {folder}/m.csv has another number of values than its header"),
        ("m.csv", "précision\n1\n".encode("latin-1"), "{folder}/m.csv is not UTF-8 at byte 2: open it with encoding='utf-8'"),
        ("m.jsonl", b'{"val": {"loss": 1}}', "a run without a result has failed; val is \"{'loss': 1}\""),
    ],
)
def test_a_file_that_would_be_read_otherwise_than_it_is_meant_is_refused(tmp_path, name, text, sentence):
    (tmp_path / name).write_bytes(text)
    with pytest.raises(BadResult) as refused:
        list(results_in(tmp_path / name, "{folder}/" + name))
    assert sentence in str(refused.value)


def test_lines_without_steps_are_numbered_so_that_none_is_lost(read):
    """Within their set, and only where a set has several."""
    lines = [{"score": 1.0}, {"set": "a", "score": 2.0}, {"score": 3.0}]
    expected = [{"step": 1, "score": 1.0}, {"step": 1, "set": "a", "score": 2.0}, {"step": 2, "score": 3.0}]
    assert read("m.json", json.dumps(lines)) == expected
    assert read("m.json", json.dumps(lines[:2])) == lines[:2]
    assert read("m.json", json.dumps([*lines, {"step": 9, "score": 4.0}])) == [*lines, {"step": 9, "score": 4.0}]


@pytest.mark.parametrize(
    ("text", "named", "sentence"),
    [
        ('{"loss": 1}\n{"loss": "high"}', {}, "loss is a number in one line and 'high' in another"),
        ('{"loss": "high"}', {}, "{folder}/m.jsonl holds no number: a run without a result has failed"),
        ('{"loss": 1}', {"step": "epoch"}, "{folder}/m.jsonl holds no epoch, which experiment.metrics names as its step"),
        ('{"loss": 1}\n{"loss": oops}', {}, "line 2 of {folder}/m.jsonl is not JSON"),
    ],
)
def test_a_file_without_numbers_to_rely_on_is_refused_in_a_sentence(read, text, named, sentence):
    with pytest.raises(BadResult) as refused:
        read("m.jsonl", text, **named)
    assert sentence in str(refused.value)


def test_a_metric_that_the_study_names_is_not_left_out_for_being_a_text(read):
    assert read("m.jsonl", '{"loss": 1, "score": "high"}', declared={"score"}) == [{"loss": 1, "score": "high"}]


def test_one_tag_in_several_folders_is_several_metrics(tmp_path):
    for place, value in (("", 0.5), ("train", 1.0), ("test", 2.0)):
        with SummaryWriter(str(tmp_path / place)) as writer:
            writer.add_scalar("rate" if not place else "loss", value, 7)
    found = {name: value for entry in scalars_of(tmp_path) for name, value in entry.items()}
    assert found == {"step": 7, "rate": 0.5, "train/loss": 1.0, "test/loss": 2.0}


def test_a_tag_with_the_name_of_a_place_does_not_take_the_place(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer:
        for tag in ("loss", "step", "set", "count"):
            writer.add_scalar(tag, 0.5, 7)
    expected = [{"step": 7, name: 0.5} for name in ("loss", "./step", "./set", "./count")]
    assert list(scalars_of(tmp_path)) == expected
    assert list(results_in(tmp_path, "{folder}/")) == expected


def test_scalars_are_read_as_tensorflow_writes_them(tmp_path):
    """In tensors without a shape, by their bytes or as a list."""
    event = event_pb2.Event(step=3)
    for tag, kind, given in (
        ("a", 1, {"float_val": [0.25]}),
        ("b", 2, {"double_val": [0.1]}),
        ("c", 1, {"tensor_content": bytes.fromhex("0000803f")}),
        ("text", 7, {"string_val": [b"x"]}),
    ):
        event.summary.value.add(tag=tag, tensor={"dtype": kind, **given})
    event.summary.value.add(tag="image", tensor={"dtype": 1, "tensor_shape": {"dim": [{"size": 2}]}, "float_val": [1, 2]})
    data = event.SerializeToString()
    (tmp_path / "events.out.tfevents.1").write_bytes(len(data).to_bytes(8, "little") + bytes(4) + data + bytes(4))
    assert list(scalars_of(tmp_path)) == [{"step": 3, "a": 0.25, "b": 0.1, "c": 1.0}]


def test_event_files_are_read_by_the_package_that_wrote_them(tmp_path, monkeypatch):
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.5, 1)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", event_pb2)
    for installed in ({"tensorboardX"}, {"tensorboard"}, set()):
        monkeypatch.setattr(event_files, "find_spec", lambda name, installed=installed: name in installed or None)
        if installed:
            assert list(scalars_of(tmp_path)) == [{"step": 1, "loss": 0.5}]
        else:
            with pytest.raises(BadResult, match="event files need tensorboardX"):
                list(scalars_of(tmp_path))


@pytest.fixture
def wandb_run(tmp_path):
    """wandb_run(name, …): the file of a run, as W&B has it below a folder."""

    def written(name, *history, **named):
        folder = tmp_path / "wandb" / f"offline-run-20260101_000000-{name}"
        folder.mkdir(parents=True)
        (folder / f"run-{name}.wandb").write_bytes(log_of_run(*history, **named))
        return tmp_path / "wandb"

    return written


def test_the_metrics_may_be_a_wandb_run_of_the_script(wandb_run):
    folder = wandb_run(
        "a", {"loss": 2.0, "_runtime": 1.5}, {"loss": 1.0, "image": {"_type": "x"}}, summary={"loss": 1.0, "best": 3}
    )
    expected = [{"step": 0, "loss": 2.0}, {"step": 1, "loss": 1.0}, {"step": 1, "best": 3}]
    assert list(results_in(folder, "{folder}/wandb/")) == expected


def test_a_wandb_run_that_has_not_ended_and_several_of_them_are_refused(wandb_run):
    folder = wandb_run("a", {"loss": 2.0}, status=None)
    with pytest.raises(BadResult, match="the script's W&B run has not ended"):
        list(results_in(folder, "{folder}/wandb/"))
    wandb_run("b", {"loss": 2.0})
    with pytest.raises(BadResult, match="the script made 2 W&B runs"):
        list(results_in(folder, "{folder}/wandb/"))
    with pytest.raises(BadResult, match=r"left no \{folder\}/tb/"):
        list(results_in(folder.parent / "tb", "{folder}/tb/"))


@pytest.mark.parametrize("given", [None, "mine"])
def test_a_script_has_wandbs_settings_of_the_folder_that_its_study_is_started_in(tmp_path, monkeypatch, given):
    """Those of `wandb offline`: without them a script would send what a person does not want to be sent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WANDB_DIR", raising=False)
    if given:
        monkeypatch.setenv("WANDB_DIR", given)
    settings, folder = tmp_path / (given or "") / "wandb" / "settings", tmp_path / "run"
    folder.mkdir()
    hand_over_settings(folder)
    assert not list(folder.iterdir())
    settings.parent.mkdir(parents=True)
    settings.write_text("[default]\nmode = offline\n")
    hand_over_settings(folder)
    assert wandb.Settings(root_dir=str(folder)).settings_workspace == str(folder / "wandb" / "settings")
    assert (folder / "wandb" / "settings").read_text() == settings.read_text()
