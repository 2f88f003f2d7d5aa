"""Objects by URI or path, and the errors an operator sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from titanic import storage
from titanic.errors import JobError


class _Blob:
    """A blob whose every call fails with `error`, or that keeps what is written."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.written: list[tuple[bytes, dict[str, Any]]] = []

    def download_as_bytes(self) -> bytes:
        if self.error:
            raise self.error
        return b"content"

    def upload_from_string(self, data: bytes, **options: Any) -> None:
        if self.error:
            raise self.error
        self.written.append((data, options))


def _use(blob: _Blob, monkeypatch: pytest.MonkeyPatch) -> _Blob:
    monkeypatch.setattr(storage, "_blob", lambda _uri: blob)
    return blob


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


def test_objects_are_read_and_written_with_type_and_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = _use(_Blob(), monkeypatch)
    assert storage.read_bytes("gs://b/x") == b"content"
    storage.write_bytes("gs://b/x", b"data", "text/csv")
    [(data, options)] = blob.written
    assert data == b"data"
    assert options["content_type"] == "text/csv"
    assert options["retry"] is not None


@pytest.mark.parametrize(
    ("error", "reading", "writing"),
    [
        (exceptions.NotFound("x"), "no such object", "no such bucket"),
        (exceptions.Forbidden("x"), "roles/storage.objectViewer", "roles/storage.objectUser"),
        (exceptions.ServiceUnavailable("try\nlater"), "try later", "try later"),
        (ConnectionError("refused"), "refused", "refused"),
    ],
)
def test_what_the_storage_answers_becomes_one_plain_line(
    error: Exception, reading: str, writing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(_Blob(error), monkeypatch)
    with pytest.raises(JobError, match=f"^cannot read gs://b/x: .*{reading}[^\n]*$"):
        storage.read_bytes("gs://b/x")
    with pytest.raises(JobError, match=f"^cannot write gs://b/x: .*{writing}[^\n]*$"):
        storage.write_bytes("gs://b/x", b"", "text/plain")
