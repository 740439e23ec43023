"""Windows of a text of a user's own: the ids of its files, masked or to be continued; bad folders, files and ids in one sentence."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import tasks
from harness.draw import Draw
from tasks.text.corpus import Corpus

LENGTH = 12
BERT = {"vocabulary": 50, "length": LENGTH, "mask": 3, "begin": 1, "special": (0, 1, 3), "mask_rate": 0.3}


def text(count, seed=0, vocabulary=50):
    return np.random.default_rng(seed).integers(4, vocabulary, count).astype(np.uint16)


@pytest.fixture
def folder(tmp_path):
    for part, sizes in (("train", (40, 5, 300)), ("test", (60,))):
        (tmp_path / part).mkdir()
        for number, size in enumerate(sizes):
            np.save(tmp_path / part / f"{number}.npy", text(size, number))
    return tmp_path


def draw(*seeds, step=1):
    return Draw(torch.tensor(seeds), step=step)


def runs(folder, part):
    return [np.load(path).astype(np.int64) for path in sorted((folder / part).glob("*.npy"))]


@pytest.mark.parametrize("begin", [1, None])
def test_windows_are_consecutive_ids_of_one_file_and_all_are_met(folder, begin):
    task = Corpus(str(folder), **BERT | {"begin": begin})
    tokens = task.windows(draw(0, 1), 3000)
    assert tokens.shape == (2, 3000, LENGTH)
    front = int(begin is not None)
    if front:
        assert (tokens[..., 0] == 1).all()
    size = LENGTH - front
    known = {tuple(run[at : at + size]) for run in runs(folder, "train") for at in range(len(run) - size + 1)}
    found = [tuple(each) for each in tokens[0, :, front:].tolist()]
    assert set(found) == known  # the file of 5 has none
    counts = np.array([found.count(each) for each in known])
    assert counts.mean() == 3000 / len(known)
    assert counts.std() < 1.3 * np.sqrt(counts.mean())


def test_a_window_is_a_function_of_seed_step_and_row_alone(folder):
    task = Corpus(str(folder), **BERT)
    whole = task.sample(draw(5, 6), 8)
    alone = task.sample(draw(6).rows(3), 2)
    assert torch.equal(alone.inputs[0], whole.inputs[1, 3:5])
    assert torch.equal(alone.weights[0], whole.weights[1, 3:5])
    assert not torch.equal(task.sample(draw(6, step=2), 2).targets[0], whole.targets[1, :2])


def test_masking_is_that_of_grammars_and_leaves_special_ids_alone(folder):
    task = Corpus(str(folder), **BERT | {"special": (0, 1, 3, 10, 11)})
    batch = task.sample(draw(0), 4000)
    selected = batch.weights > 0
    plain = ~torch.isin(batch.targets, torch.tensor([0, 1, 3, 10, 11]))
    assert not (selected & ~plain).any()
    assert selected[plain].double().mean() == pytest.approx(0.3, abs=0.01)
    assert (batch.inputs == 3)[selected].double().mean() == pytest.approx(0.8 + 0.1 / 50, abs=0.02)
    assert (batch.inputs == batch.targets)[selected].double().mean() == pytest.approx(0.1 + 0.1 / 50, abs=0.02)
    assert torch.equal(batch.inputs[~selected], batch.targets[~selected])
    some = selected.any(-1)
    torch.testing.assert_close(batch.weights.sum(-1)[some], torch.ones_like(batch.weights[..., 0])[some])
    assert batch.hidden is None
    hiding = replace(task, hide_selected_from_attention=True).sample(draw(0), 4000)
    assert torch.equal(hiding.hidden, selected)
    assert int(selected.sum(-1).max()) <= LENGTH
    assert (selected.sum(-1) <= task.scored_positions()).double().mean() > 0.998


def test_next_prediction_is_of_the_token_that_follows(folder):
    task = Corpus(str(folder), vocabulary=50, length=LENGTH, objective="next", special=(7,))
    batch = task.sample(draw(0), 500)
    assert torch.equal(batch.targets[..., :-1], batch.inputs[..., 1:])
    scored = batch.weights > 0
    assert not scored[..., -1].any()
    assert torch.equal(scored[..., :-1], batch.inputs[..., 1:] != 7)
    assert task.scored_positions() is None


def test_the_number_of_predicted_positions_is_the_quantile_of_a_binomial_law(folder):
    from scipy import stats

    np.save(folder / "train" / "long.npy", text(5000))
    for length, rate in ((130, 0.15), (1300, 0.15), (2100, 0.5), (33, 1.0)):
        task = Corpus(str(folder), **BERT | {"length": length, "mask_rate": rate, "begin": None})
        exact = int(stats.binom.ppf(0.999, length, rate))
        assert task.scored_positions() == min(length, -(-exact // 8) * 8)


def test_arrow_and_parquet_hold_the_same_ids(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "train").mkdir()
    flat, lists, stream = text(40, 0), [text(300, 2).tolist()], text(5, 1)
    pq.write_table(pa.table({"input_ids": pa.array(lists), "length": [300]}), other / "train" / "2.parquet")
    with pa.OSFile(str(other / "train" / "0.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema(pa.uint16())) as file:
        file.write_table(pa.table({"tokens": pa.array(flat)}))
    with pa.OSFile(str(other / "train" / "1.arrow"), "wb") as sink, pa.ipc.new_stream(sink, schema(pa.uint16())) as file:
        file.write_table(pa.table({"tokens": pa.array(stream)}))
    one, two = (Corpus(str(each), **BERT) for each in (folder, other))
    assert one.content != two.content
    assert torch.equal(one.windows(draw(3), 200), two.windows(draw(3), 200))


def schema(kind):
    return pa.schema([("tokens", kind)])


def test_files_are_mapped_and_not_read(folder):
    runs = Corpus(str(folder), **BERT)._runs()
    assert all(isinstance(run, np.memmap) for run in runs)


def test_the_hash_follows_the_bytes_and_the_parts_and_not_the_place(folder, tmp_path_factory):
    task = Corpus(str(folder), **BERT)
    assert len(task.content) == 32
    moved = tmp_path_factory.mktemp("moved") / "elsewhere"
    folder.rename(moved)
    same = Corpus(str(moved), **BERT)
    assert same.content == task.content
    assert replace(same, part="test").content == task.content
    np.save(moved / "test" / "0.npy", text(60, 9))
    changed = Corpus(str(moved), **BERT)
    assert changed.content != task.content
    with pytest.raises(ValueError, match=rf"task\.content = {task.content}.* {changed.content}"):
        replace(same, part="test")


@pytest.mark.parametrize(
    ("spoil", "fields", "sentence"),
    [
        (None, {"folder": "nowhere"}, r"^task\.folder = 'nowhere' is no folder here: give the folder"),
        (None, {"folder": ""}, r"^task\.folder = '' is no folder here"),
        (None, {"folder": "empty"}, r"^task\.folder = .* has no folder with \.npy, \.arrow, \.parquet files"),
        (None, {"folder": "train"}, r"^task\.folder = .*train' holds .* itself: give the folder above it, or move its files"),
        (None, {"part": "valid"}, r"^task\.part = 'valid' is no part of .*; parts: test, train$"),
        (
            None,
            {"vocabulary": 40},
            r"holds the token id 4\d and task\.vocabulary = 40: write the tokenizer's size, at least (4\d|50)",
        ),
        (None, {"length": 400}, r"^no file of .*/train holds 399 tokens in a row, a window of task\.length = 400"),
        (np.zeros(9), {}, r"9\.npy holds float64 of 1 dimensions: token ids are one row of whole numbers"),
        (np.zeros((3, 3), int), {}, r"9\.npy holds int64 of 2 dimensions"),
        (np.array([4, -1]), {}, r"9\.npy holds the token id -1: ids are whole numbers from 0$"),
        (np.array([{}], dtype=object), {}, r"9\.npy can't be read as token ids: it holds Python objects"),
        (b"", {}, r"9\.npy can't be read as token ids: it is no \.npy file: write it with numpy\.save$"),
        (b"no array", {}, r"9\.npy can't be read as token ids: it is no \.npy file: write it with numpy\.save$"),
        (b"\x93NUMPY\x01\x00", {}, r"9\.npy can't be read as token ids: it is damaged or cut off: write it again"),
        (None, {"mask": None}, r"^task\.mask is missing"),
        (None, {"mask": 50}, r"^task\.mask = 50 must be an id of 0 … 49"),
        (None, {"special": (0, 77)}, r"^task\.special = 77 must be an id"),
        (
            None,
            {"objective": "next"},
            r"^task\.mask, mask_rate and hide_selected_from_attention apply only to objective: masked, and",
        ),
        (None, {"objective": "last"}, r"^task\.objective = 'last' must be masked or next"),
        (None, {"length": 2}, r"^task\.length = 2 must hold at least two tokens"),
        (None, {"mask_rate": 0.0}, r"^task\.mask_rate = 0 must be"),
        (
            None,
            {"mask_rate": 1e-3, "vocabulary": 30_522},
            r"at least 0\.0071, below which 30,522 tokens are not drawn alike",
        ),
        (None, {"vocabulary": 1}, r"^task\.vocabulary = 1 must be at least 2"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(folder, spoil, fields, sentence):
    (folder / "empty").mkdir()
    if isinstance(spoil, bytes):
        (folder / "train" / "9.npy").write_bytes(spoil)
    elif spoil is not None:
        np.save(folder / "train" / "9.npy", spoil, allow_pickle=True)
    where = fields.get("folder", str(folder))
    given = BERT | fields | {"folder": str(folder / where) if where in ("empty", "train") else where}
    with pytest.raises(ValueError, match=sentence) as error:
        tasks.build("corpus", **given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"a": [1, 2], "b": [1, 2]}, "it has the columns a, b: name the one with the ids input_ids or tokens"),
        ({"tokens": [1, None]}, "its column tokens has missing values"),
        ({"tokens": [[1, None], [2]]}, "its column tokens has missing values in its lists"),
        ({"tokens": ["a", "b"]}, "holds object of 1 dimensions"),
    ],
)
def test_bad_columns_are_refused(folder, columns, sentence):
    pq.write_table(pa.table(columns), folder / "train" / "9.parquet")
    with pytest.raises(ValueError, match=sentence):
        Corpus(str(folder), **BERT)
