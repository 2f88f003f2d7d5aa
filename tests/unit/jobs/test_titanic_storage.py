"""Objects by URI or path, and the errors an operator sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from titanic import storage
from titanic.errors import JobError


def test_a_uri_splits_into_bucket_and_object() -> None:
    assert storage.split_uri("gs://data/titanic/train.npz") == ("data", "titanic/train.npz")


@pytest.mark.parametrize("uri", ["gs://", "gs://data", "gs://data/", "gs:///train.npz", "data/x"])
def test_a_uri_without_bucket_or_object_is_refused(uri: str) -> None:
    with pytest.raises(JobError, match="Hint: write gs://BUCKET/PATH"):
        storage.split_uri(uri)


@pytest.mark.parametrize(
    ("directory", "joined"),
    [
        ("gs://b/run/model/", "gs://b/run/model/model.pt"),
        ("gs://b/run/model", "gs://b/run/model/model.pt"),
        ("out/", "out/model.pt"),
        ("/gcs/b/out", "/gcs/b/out/model.pt"),
    ],
)
def test_a_name_is_joined_with_one_slash(directory: str, joined: str) -> None:
    assert storage.join(directory, "model.pt") == joined


def test_a_local_file_is_written_whole_into_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.json"
    storage.write_bytes(str(path), b"old", "application/json")
    storage.write_bytes(str(path), b"new", "application/json")
    assert storage.read_bytes(str(path)) == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["metrics.json"]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "train.npz"
    with pytest.raises(JobError) as caught:
        storage.read_bytes(str(path))
    assert str(caught.value) == f"cannot read {path}: No such file or directory"


def test_a_folder_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(JobError, match=r"cannot write .*metrics\.json: "):
        storage.write_bytes(str(tmp_path / "run" / "metrics.json"), b"", "application/json")
