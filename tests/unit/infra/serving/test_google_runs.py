"""What a run left in Cloud Storage, read by the official client of an emulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage import StorageEmulator
from tests.unit.localcloud.conftest import free_port
from vertex_training.serving.google.runs import MOST_METRICS_BYTES, GoogleRuns
from vertex_training.serving.protocol.ports import RunFolder

FOLDER: Final = "gs://out/abc/model/"


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Any]:
    home = Home(tmp_path / "home", tmp_path)
    home.create()
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    emulator.start(free_port())
    client: Any = storage_client(emulator.url)
    yield client.create_bucket("out")
    emulator.stop()


def folder(bucket: Any, uri: str = FOLDER) -> RunFolder:
    jobs: Any = None  # it is not asked
    return GoogleRuns(jobs, bucket.client).folder(uri)


def test_files_have_their_names_below_the_folder_and_metrics_their_content(bucket: Any) -> None:
    for name in ("model/metrics.json", "model/b/w.npz", "model/a.json", "model2/no", "no"):
        bucket.blob(f"abc/{name}").upload_from_string("{}")
    assert folder(bucket) == RunFolder(("a.json", "b/w.npz", "metrics.json"), b"{}")
    bucket.blob("abc/model/metrics.json").upload_from_string("1" * MOST_METRICS_BYTES)
    assert len(folder(bucket).metrics) == MOST_METRICS_BYTES
    bucket.blob("abc/model/metrics.json").upload_from_string("1" * (MOST_METRICS_BYTES + 1))
    assert folder(bucket).metrics == b""


def test_a_folder_or_a_bucket_that_is_not_there_has_no_files(bucket: Any) -> None:
    assert folder(bucket) == RunFolder(())
    assert folder(bucket, "gs://no-such-bucket/model/") == RunFolder(())
