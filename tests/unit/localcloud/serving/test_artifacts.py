"""A model's artifacts are copied object by object into a bucket of no project."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core.exceptions import Conflict, Forbidden

from localgcp.errors import ApiError
from localgcp.serving import artifacts

NAME = "projects/1/locations/us-central1/models/m/operations/7"
COPIES = "caip-tenant-1-us-central1"


class Storage:
    """Buckets in memory, by Google's client as far as it is used."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, str]] = {"b": {}}
        self.denied = False

    def create_bucket(self, name: str) -> None:
        if name in self.buckets:
            raise Conflict("there")
        self.buckets[name] = {}

    def list_blobs(self, bucket: str, prefix: str) -> list[Any]:
        if self.denied:
            raise Forbidden("no right")
        names = sorted(name for name in self.buckets[bucket] if name.startswith(prefix))
        return [
            SimpleNamespace(name=name, delete=lambda name=name: self.buckets[bucket].pop(name))
            for name in names
        ]

    def bucket(self, name: str) -> Any:
        def copy_blob(blob: Any, target: str, new: str) -> None:
            self.buckets[target][new] = self.buckets[name][blob.name]

        return SimpleNamespace(copy_blob=copy_blob) if name == "b" else name


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    made = Storage()
    monkeypatch.setattr(artifacts, "storage_client", lambda url: made if url == "u" else None)
    return made


def refusal(uri: str) -> tuple[str, str]:
    with pytest.raises(ApiError) as refused:
        artifacts.copy("u", uri, NAME, threading.Event())
    return refused.value.code.name, refused.value.message


def test_a_folder_without_objects_and_one_that_cannot_be_read_are_refused(
    storage: Storage,
) -> None:
    storage.buckets["b"] = {"run/": ""}
    assert refusal("gs://b/run") == (
        "FAILED_PRECONDITION",
        "gs://b/run has no objects: a model's artifacts are expected there.",
    )
    storage.denied = True
    assert refusal("gs://b/run") == (
        "FAILED_PRECONDITION", "The artifacts at gs://b/run cannot be read: no right",
    )  # fmt: skip


def test_a_server_that_stops_copies_no_more(storage: Storage) -> None:
    storage.buckets["b"] = {"run/a": "1"}
    stopping = threading.Event()
    stopping.set()
    assert artifacts.copy("u", "gs://b/run", NAME, stopping) == f"gs://{COPIES}/m/7/artifacts"
    assert storage.buckets[COPIES] == {}


def test_a_copy_is_removed_and_no_other(storage: Storage) -> None:
    storage.buckets[COPIES] = {"m/7/artifacts/a": "1", "m/7/artifacts/b/c": "2", "m/70/x": "3"}
    artifacts.remove("u", "")
    artifacts.remove("u", f"gs://{COPIES}/m/7/artifacts")
    assert storage.buckets[COPIES] == {"m/70/x": "3"}
    assert artifacts.bucket_of("1", "us-central1") == COPIES
