"""The path or URI of a store, and what can't be one."""

import pytest

from results.errors import StoreError, StudyError
from results.store import tables as store
from results.store.filesystem import shell_word
from results.store.tables import committed, open_store
from tests.results.store.sample_rows import commit_pack, in_order


def test_a_store_that_is_no_folder_is_refused_and_a_good_one_is_left_as_it_was(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StoreError, match=r"/file .*\(Not a directory\): name a path or URI that can be, with store= or --store$"
    ):
        open_store(tmp_path / "file", "study").check_writable()
    open_store(tmp_path / "new" / "deep", "study").check_writable()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    at = open_store(tmp_path / "new", "study")
    commit_pack(at, "fe-1", ["a"])
    before = sorted(tmp_path.rglob("*"))
    at.check_writable()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = open_store("runs", "study")
    monkeypatch.chdir("/")
    commit_pack(at, "fe-1", ["a"])
    assert (tmp_path / "runs/study/replicates/fe-1.parquet").exists()
    assert in_order(committed(open_store(f"file://{tmp_path}/runs", "study"))) == in_order(committed(at))


@pytest.mark.parametrize(
    "uri", ["s3://ID:SECRET@/x", "nope://ID:SECRET@host/x?secret_key=SECRET", "s3://bucket/x?token=SECRET"]
)
def test_credentials_in_a_uri_are_never_repeated(uri):
    with pytest.raises(StudyError, match=r"can't be opened as a store|names no bucket|an option 'token' that is") as caught:
        open_store(uri, "study")
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(("scheme", "who"), [("s3", "ID:SECRET@"), ("gs", "")])
def test_an_unknown_option_of_a_uri_is_named(scheme, who):
    with pytest.raises(
        StudyError, match=f"^the store {scheme}://bucket/x has an option 'endpoint' that is unknown: leave it out"
    ):
        open_store(f"{scheme}://{who}bucket/x?endpoint=http://localhost:9", "study")


def test_a_study_name_stays_inside_the_store(tmp_path):
    for name in ("../up", "", ".hidden", "a/b"):
        with pytest.raises(ValueError, match="can't name a folder"):
            open_store(tmp_path, name)


@pytest.mark.parametrize("uri", ["file:///tmp/%00x", "file:///tmp/a%0ab"])
def test_a_uri_that_stands_for_no_path_is_refused(uri):
    with pytest.raises(StudyError, match="which is no path"):
        open_store(uri, "study")


def test_the_folder_of_kept_weights_is_no_study(tmp_path):
    (tmp_path / "artifacts" / "manifests").mkdir(parents=True)
    assert store.studies(tmp_path) == []
    with pytest.raises(StudyError, match="choose another"):
        open_store(tmp_path, "artifacts")


@pytest.mark.parametrize(
    ("uri", "word"),
    [
        ("gs://bucket/runs", "gs://bucket/runs"),
        ("gs://anonymous@bucket/my-runs", "gs://anonymous@bucket/my-runs"),  # without credentials, as typed
        ("gs://anonymous@bucket/runs?scheme=http&project_id=SECRET", "'gs://anonymous@bucket/runs?scheme=http'"),
        (
            "s3://ID:SECRET@bucket/runs?endpoint_override=https://minio.example:9000&region=eu-1",
            "'s3://bucket/runs?endpoint_override=https://minio.example:9000&region=eu-1'",
        ),
        ("gs://bucket/runs?scheme=http&endpoint_override=ID:SECRET@host:9&project_id=SECRET", "'gs://bucket/runs?scheme=http'"),
        ("/shared/my runs?region=1", "'/shared/my runs?region=1'"),
    ],
)
def test_a_store_in_a_command_can_be_pasted_and_found(uri, word):
    assert open_store(uri, "study").shell_word == shell_word(uri) == word
