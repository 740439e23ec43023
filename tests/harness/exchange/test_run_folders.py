"""Folders that W&B and TensorBoard wrote themselves, and W&B's export: imported with the numbers that were logged."""

import math

import pytest
import wandb
from tensorboardX import SummaryWriter

from harness.exchange.finished_runs import Columns, import_runs
from results.dashboards.offline_runs import offline_run
from results.errors import StudyError
from results.store.manifest import manifest_of
from results.store.tables import committed, open_store, read
from tests.harness.offline_log import offline_log, run_record
from tests.results.dashboards.offline_file import read_records

SEEDS, RATES = (0, 1), (0.1, 0.2)
COLUMNS = Columns("seed", ("lr",), {"accuracy": "higher"})


def accuracy(seed, lr, step):
    return seed + lr * step


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """W&B's own files of four runs that ended, one that failed and one whose process was killed."""
    folder = tmp_path_factory.mktemp("wandb")

    def log(seed, lr, status=0):
        config = {"seed": seed, "net": {"width": 8}, "words": ["many"] * 9}
        run = wandb.init(mode="offline", project="p", config=config, dir=folder, reinit="finish_previous")
        run.config.update({"lr": lr})
        for step in range(3):
            run.log({"accuracy": accuracy(seed, lr, step), "epoch": step + 1, "loss/test": math.nan if seed else 1.0})
        run.finish(exit_code=status)
        file = next(folder.rglob(f"run-{run.id}.wandb"))
        read_records(file.parent)  # waits for W&B's own process, which writes on after `finish` has returned
        return file

    for seed in SEEDS:
        for lr in RATES:
            log(seed, lr)
    log(7, 0.1, status=1)
    killed = log(8, 0.1)
    killed.write_bytes(killed.read_bytes()[:-40])
    return folder


@pytest.fixture
def import_(tmp_path):
    """import_(path, columns) → {(condition, seed, metric, step): value}, and what was said."""

    def imported(path, columns=COLUMNS):
        store, said = open_store(tmp_path / "runs", "mine"), []
        import_runs(store, path, columns, "", said.append)
        seeds = {row["key"]: (row["condition"], row["init_seed"]) for row in committed(store).to_pylist()}
        rows = read(store, "evaluations").to_pylist()
        return {(*seeds[row["key"]], row["metric"], row["step"]): row["value"] for row in rows}, said

    return imported


def test_offline_runs_of_wandb_have_their_last_values(offline, import_, tmp_path):
    columns = Columns("seed", ("lr", "net.width"), {"accuracy": "higher", "loss/test": ""}, ignore=("words",))
    found, said = import_(offline, columns)
    assert found == {
        (f"lr={lr}, net.width=8", seed, metric, 0): value
        for seed in SEEDS
        for lr in RATES
        for metric, value in (("accuracy", pytest.approx(accuracy(seed, lr, 2))), ("loss/test", None if seed else 1.0))
    }
    assert said[0].startswith("not finished: offline-run-")
    assert "(exit status 1)" in said[0]
    assert "(has not ended)" in said[0]
    assert said[1].startswith("counted as failed or missing (State failed or running): 2 rows of")
    store = open_store(tmp_path / "runs", "mine")
    unfinished = {row[2] for row in manifest_of(store)["replicates"]} - {
        row["init_seed"] for row in committed(store).to_pylist()
    }
    (failure,) = read(store, "failures").to_pylist()
    assert (unfinished, failure["kind"]) == ({7, 8}, "raised")


def test_offline_runs_of_wandb_have_their_values_by_a_step_of_their_own(offline, import_):
    found, _ = import_(offline, Columns("seed", ("lr",), {"accuracy": "higher"}, step="epoch"))
    assert found == {
        (f"lr={lr}", seed, "accuracy", step + 1): pytest.approx(accuracy(seed, lr, step))
        for seed in SEEDS
        for lr in RATES
        for step in range(3)
    }


def test_a_setting_of_wandb_runs_that_is_not_named_is_refused(offline, import_):
    with pytest.raises(StudyError, match="lr differs between runs"):
        import_(offline, Columns("seed", (), {"accuracy": "higher"}))


def test_a_table_that_wandb_exported_is_imported(tmp_path, import_):
    path = tmp_path / "export.csv"
    path.write_text(
        '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","lr","seed","accuracy"\n'
        '"sweet-sun-1","finished","-","me","","2026-05-04T10:11:12.000Z","31","","0.1","0","0.91"\n'
        '"dry-lake-2","finished","-","me","","2026-05-04T10:12:12.000Z","33","","0.1","1","0.93"\n'
    )
    found, _ = import_(path, Columns("seed", ("lr",), {"accuracy": "higher"}, ignore=("Name", "Created", "Runtime")))
    assert found == {("lr=0.1", 0, "accuracy", 0): 0.91, ("lr=0.1", 1, "accuracy", 0): 0.93}


def test_event_files_of_tensorboard_have_their_settings_from_the_names_of_folders(tmp_path, import_):
    logs = tmp_path / "logs"
    for seed in SEEDS:
        with SummaryWriter(str(logs / "lr=0.5" / f"net=small_seed={seed}")) as writer:
            for step in (1, 2):
                writer.add_scalar("accuracy", seed + step / 4, step)
                writer.add_scalar("other", 1.0, step)
    columns = Columns("seed", ("lr", "net"), {"accuracy": "higher"})
    assert import_(logs, columns)[0] == {("lr=0.5, net=small", seed, "accuracy", 0): seed + 0.5 for seed in SEEDS}


def test_event_files_of_tensorboard_have_their_values_by_step(tmp_path, import_):
    with SummaryWriter(str(tmp_path / "logs" / "seed=3")) as writer:
        for step in (1, 2):
            writer.add_scalar("accuracy", step / 4, step)
            writer.add_scalar("other", 1.0, step)
    found, _ = import_(tmp_path / "logs", Columns("seed", (), {"accuracy": "", "other": ""}, step="step"))
    assert {step: value for (_, _, metric, step), value in found.items() if metric == "accuracy"} == {1: 0.25, 2: 0.5}


def test_a_tag_that_is_called_step_leaves_the_steps_as_they_are(tmp_path, import_):
    with SummaryWriter(str(tmp_path / "logs" / "seed=3")) as writer:
        for step in (1, 2):
            writer.add_scalar("accuracy", step / 4, step)
            writer.add_scalar("step", step * 100, step)
    found, _ = import_(tmp_path / "logs", Columns("seed", (), {"accuracy": "", "./step": ""}, step="step"))
    assert {(metric, step): value for (_, _, metric, step), value in found.items()} == {
        **{("accuracy", 1): 0.25, ("accuracy", 2): 0.5},
        **{("./step", 1): 100.0, ("./step", 2): 200.0},
    }
    with pytest.raises(StudyError, match=r"no number 'set'"):
        import_(tmp_path / "logs", Columns("seed", (), {"set": ""}))


@pytest.mark.parametrize("length", [1, 2**15 - 60, 2**15, 3 * 2**15 + 7])
def test_a_record_of_any_length_is_read_from_its_blocks(tmp_path, length):
    path = tmp_path / "run-1.wandb"
    path.write_bytes(offline_log(run_record(words="a" * length), run_record(seed=3)))
    assert offline_run(path).config == {"words": "a" * length, "seed": 3}


@pytest.mark.parametrize("size", [0, 2, 7])
def test_a_file_that_has_hardly_begun_is_a_run_that_has_not_ended(tmp_path, size):
    path = tmp_path / "run-1.wandb"
    path.write_bytes(offline_log()[:size])
    assert offline_run(path).status is None


def test_a_block_that_lost_its_end_is_refused(tmp_path):
    """As W&B was seen to leave one: 40 zeros in the place of what was written."""
    path = tmp_path / "run-1.wandb"
    log = offline_log(run_record(words="a" * 2**15))
    path.write_bytes(log[: 2**15 - 40] + bytes(40) + log[2**15 :])
    with pytest.raises(StudyError, match=r"can't be read as a W&B run: bytes 14 to 32,767 are damaged, move the run away"):
        offline_run(path)


def _unnamed(folder):
    with SummaryWriter(str(folder / "logs" / "run7")) as writer:
        writer.add_scalar("accuracy", 1.0, 1)


def _no_run(folder):
    (folder / "logs").mkdir()


def _other_bytes(folder):
    _no_run(folder)
    (folder / "logs" / "run-1.wandb").write_bytes(b"PK\x03\x04")


def _damaged(folder):
    _no_run(folder)
    (folder / "logs" / "run-1.wandb").write_bytes(b":W&B\xe1\xbe\x00" + b"\0\0\0\0\x03\x00\x01\xff\xff\xff")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (_unnamed, "the folder run7 of a run does not say its settings: name it as in lr=0.1_seed=3"),
        (_no_run, "holds no runs: a folder with W&B's"),
        (_other_bytes, "is no file of a W&B run"),
        (_damaged, "can't be read as a W&B run"),
    ],
)
def test_a_folder_that_can_not_be_imported_is_refused_in_a_sentence(tmp_path, import_, make, sentence):
    make(tmp_path)
    with pytest.raises(StudyError) as refused:
        import_(tmp_path / "logs")
    assert sentence in str(refused.value)


def test_a_metric_that_no_run_has_is_refused_with_those_they_have(offline, import_):
    with pytest.raises(StudyError, match="have no number 'acuracy'; did you mean accuracy"):
        import_(offline, Columns("seed", ("lr",), {"acuracy": ""}, ignore=("words",)))
