"""What a job measured, of which files, what is read again, and what is said of the rest."""

from __future__ import annotations

import gzip
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob

from vertex_training.errors import OperatorError
from vertex_training_cli.jobs import metrics, objects
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.objects import Objects, StoredFile

OUT = "gs://out/a"


def job(output: str = f"{OUT}/", number: int = 7) -> CustomJob:
    return CustomJob(
        name=f"projects/1/locations/r/customJobs/{number}", display_name="fit",
        job_spec={"base_output_directory": {"output_uri_prefix": output}},
    )  # fmt: skip


class Bucket:
    """The objects of a project's jobs; what was asked of them."""

    def __init__(self) -> None:
        self.contents: dict[tuple[str, str], Any] = {}
        self.listed: Any = ([], False)
        self.asked: list[Any] = []

    def nearest(self, uri: str, ending: str) -> bytes:
        self.asked.append((uri, ending))
        found = self.contents.get((uri, ending), b"")
        if isinstance(found, Exception):
            raise found
        return found

    def files(self, folder: str, part: str) -> Any:
        self.asked.append((folder, part))
        if isinstance(self.listed, Exception):
            raise self.listed
        return self.listed


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket; its event files have the scalars ``loss`` and ``rate``, and are damaged."""
    made = Bucket()
    monkeypatch.setattr(metrics, "Objects", lambda project: made if project == "acme" else None)

    def read(objects: Any, folder: str, files: Any, *, more: bool) -> Any:
        made.asked.append(("read", folder, len(files), more))
        found = {"loss": [3.0, 2.0], "rate": [0.5, 0.25]}
        return (found, ["damaged records are left out"] if more else []) if files else ({}, [])

    monkeypatch.setattr(metrics.scalars, "read", read)
    return made


FILES = [StoredFile("events", 9, None)]
METRICS, HISTORY = (OUT, "metrics.json"), (OUT, "history.csv")
EVENTS = (f"{OUT}/logs/", "tfevents")


def test_event_files_are_read_again_once_they_have_changed(bucket: Bucket) -> None:
    said: list[str] = []
    reader = MetricsReader("acme", said.append)
    bucket.listed = (FILES, True)
    for _ in range(2):
        assert reader.curves(job()) == {"loss": [3.0, 2.0], "rate": [0.5, 0.25]}
    bucket.listed = ([StoredFile("events", 10, None)], False)
    reader.curves(job())
    reads = [each for each in bucket.asked if each[0] == "read"]
    assert reads == [("read", EVENTS[0], 1, True), ("read", EVENTS[0], 1, False)]
    assert said == ["TensorBoard logs of fit: damaged records are left out"]
    bucket.listed = OperatorError("403")  # what was read before is still shown
    assert reader.curves(job()) == {"loss": [3.0, 2.0], "rate": [0.5, 0.25]}


def test_what_cannot_be_read_is_said_once(bucket: Bucket) -> None:
    said: list[str] = []
    reader = MetricsReader("acme", said.append)
    bucket.contents = {METRICS: OperatorError("no right"), HISTORY: OperatorError("no right")}
    bucket.listed = OperatorError("no right either")
    assert reader.metrics(job()) == {}
    assert reader.curves(job()) == {}
    assert said == ["no metrics: no right"]


def test_a_job_without_an_output_directory_is_not_looked_for(bucket: Bucket) -> None:
    reader = MetricsReader("acme", print)
    assert (reader.metrics(job("")), reader.curves(job(""))) == ({}, {})
    assert bucket.asked == []


def test_of_a_tuning_job_the_best_trial_counts(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = HyperparameterTuningJob(name="projects/1/locations/r/hyperparameterTuningJobs/9")
    trials = [
        {"id": str(number), "finalMeasurement": {"metrics": [{"metricId": "acc", "value": value}]}}
        for number, value in enumerate((0.25, 0.75, 0.5), 1)
    ]
    message: dict[str, Any] = {"studySpec": {"metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}]}}
    monkeypatch.setattr(metrics.view, "message", lambda _: message)
    reader = MetricsReader("acme", print)
    assert (reader.metrics(tuning), reader.curves(tuning)) == ({}, {})
    message["trials"] = trials
    assert reader.metrics(tuning) == {"acc": 0.75}
    assert bucket.asked == []


class Client:
    """A client of Cloud Storage with the objects of one bucket."""

    def __init__(self, **contents: bytes) -> None:
        self.contents, self.asked = contents, list[Any]()
        self.error: Exception | None = None

    def list_blobs(self, bucket: str, *, prefix: str, **options: Any) -> Any:
        self.asked.append((bucket, prefix, options))
        if self.error:
            raise self.error
        page = [SimpleNamespace(name=each, size=3, updated=None) for each in self.contents]
        return SimpleNamespace(pages=iter([page]), next_page_token="")

    def bucket(self, name: str) -> Any:
        return SimpleNamespace(blob=lambda object_: self._blob(f"{name}/{object_}"))

    def _blob(self, path: str) -> Any:
        def download(**options: Any) -> bytes:
            self.asked.append((path, options))
            return self.contents[path.partition("/")[2]]

        return SimpleNamespace(download_as_bytes=download)


def objects_of(monkeypatch: pytest.MonkeyPatch, client: Client) -> Objects:
    monkeypatch.setattr(objects, "storage_client", lambda project: client)
    return Objects("acme")


#: One page, which is not asked for again.
PAGE = {
    "page_size": 1000,
    "fields": "items(name,size,updated),nextPageToken",
    "timeout": 4,
    "retry": None,
}


def test_the_object_nearest_to_a_folder_is_read_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {
        "a/b/c/metrics.json": b"far", "a/z/metrics.json": b"z", "a/b/metrics.json": b"near",
        "a/metrics.json.tmp": b"no",
    }  # fmt: skip
    client = Client(**names)
    found = objects_of(monkeypatch, client)
    assert found.nearest("gs://out/a", "metrics.json") == b"near"
    assert found.nearest("gs://out/a/", "history.csv") == b""
    bounds = {"end": 8 * 1024 * 1024, "raw_download": True, "timeout": 4}
    assert client.asked == [
        ("out", "a/", PAGE), ("out/a/b/metrics.json", bounds), ("out", "a/", PAGE),
    ]  # fmt: skip
    with pytest.raises(OperatorError) as failed:
        found.nearest("out/a", "metrics.json")
    assert str(failed.value) == "'out/a' is no gs:// URI"
    client.error = exceptions.Forbidden("no right")
    with pytest.raises(OperatorError) as failed:
        found.nearest("gs://out/a", "metrics.json")
    assert str(failed.value) == "gs://out cannot be listed: no right"


@pytest.mark.parametrize(
    ("stored", "content"),
    [
        (b"", b""),
        (b"plain", b"plain"),
        (gzip.compress(b"packed", mtime=0), b"packed"),
        (gzip.compress(b"packed", mtime=0)[:12], b"p"),
        (b"\x1f\x8bdamaged", b""),
        (b"x" * 8_388_609, b"x" * 8_388_608),
        (gzip.compress(b"x" * 8_388_609), b"x" * 8_388_608),
    ],
    ids=["empty", "plain", "packed", "cut", "damaged", "long", "long and packed"],
)
def test_a_compressed_object_is_unpacked_within_bounds(stored: bytes, content: bytes) -> None:
    assert objects._unpacked(stored) == content
