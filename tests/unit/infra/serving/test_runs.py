"""Which job a run is, and whether what it left can be a version of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.emulator import StorageEmulator
from tests.unit.localcloud.conftest import free_port
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import JobRefusedError
from vertex_training.serving.declared import ModelSource
from vertex_training.serving.google import MOST_METRICS_BYTES, GoogleRuns
from vertex_training.serving.ports import RunFolder
from vertex_training.serving.uploads import find_artifacts, metrics_of

SOURCE = ModelSource("acme", "us-central1", "dev", "titanic", "titanic", 3)


def job(
    state="SUCCEEDED", *, name="customJobs/1", created=1, output="gs://out/titanic/abc/", digest="a"
):
    return JobSnapshot(name, f"JOB_STATE_{state}", created, digest, output=output)


class Runs:
    def __init__(self, *jobs, files=("model.json",), metrics=b'{"accuracy": 0.8}'):
        self.found, self.content, self.asked = jobs, RunFolder(files, metrics), []

    def jobs(self, parent, labels):
        self.asked.append((parent, dict(labels)))
        return list(self.found)

    def folder(self, uri):
        self.asked.append(uri)
        return self.content


def find(runs, files=()):
    return find_artifacts(SOURCE, "model", files, runs)


@pytest.mark.parametrize(
    ("runs", "files", "text"),
    [
        (Runs(), (), "run 3 of job 'titanic' has no job in project acme, region us-central1"),
        (Runs(job("RUNNING")), (), r"is RUNNING \(customJobs/1\), not SUCCEEDED. Wait"),
        (Runs(job("FAILED")), (), r"is FAILED .* Set `run: 4`"),
        (Runs(job(), job(name="2", digest="b")), (), "has several jobs .* Hint: raise `run`"),
        (Runs(job(output="")), (), "has no output directory"),
        (Runs(job(), files=()), (), "wrote no files to gs://out/titanic/abc/model/"),
        (Runs(job(), files=("a", "b")), ("model.json",), "not write model.json .* has only: a, b"),
    ],
)
def test_a_run_that_cannot_become_a_version_is_refused(runs, files, text):
    with pytest.raises(JobRefusedError, match=text):
        find(runs, files)


@pytest.mark.parametrize(
    ("content", "metrics"),
    [
        (b"", {}),
        (b"[1]", {}),
        (b"{", {}),
        (b"\xff\xfe", {}),
        (b"[" * 100_000, {}),
        (
            b'{"a": NaN, "b": Infinity, "c": 1e400, "d": true, "e": "1", "f": null, "g": 2}',
            {"g": 2},
        ),
    ],
)
def test_metrics_are_finite_numbers_with_plain_names_whatever_the_file_has(content, metrics):
    assert metrics_of(RunFolder((), content)) == metrics


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
