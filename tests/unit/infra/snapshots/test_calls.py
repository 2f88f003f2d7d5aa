"""Calls of BigQuery, whole, and objects of a snapshot by the client of Cloud Storage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import requests
from google.api_core import exceptions

from vertex_training.customjob.google import prerequisites
from vertex_training.errors import NotSubmittedError, OperatorError, PermissionDeniedError
from vertex_training.snapshots import google
from vertex_training.snapshots.manifest import StoredObject

BASE = "https://bigquery.googleapis.com/bigquery/v2/projects/acme-ml"
REFERENCE = {"projectId": "acme-ml", "location": "EU"}


class Answer:
    """An answer of BigQuery: its status and its document, None for what is no JSON."""

    reason = "as told"

    def __init__(self, status: int, document: Any) -> None:
        self.status_code, self._document, self.ok = status, document, status < 400

    def json(self) -> Any:
        if self._document is None:
            raise ValueError
        return self._document


def refusal(status: int, reason: str = "", message: str = "no") -> Answer:
    errors = [{"reason": reason}] if reason else []
    return Answer(status, {"error": {"message": message, "errors": errors}})


class Session:
    """Answers in turn, the last one for ever; remembers what was asked, and as whom."""

    def __init__(self) -> None:
        self.answers, self.asked, self.opened = list[Any](), list[Any](), list[Any]()

    def open(self, **how: Any) -> Session:
        self.opened.append(how)
        return self

    def request(self, method: str, url: str, *, json: Any, timeout: float) -> Answer:
        self.asked.append((method, url, json))
        assert timeout == 60
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    found = Session()
    found.pauses = pauses = []  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.delenv(google.EMULATOR, raising=False)
    monkeypatch.setattr(prerequisites, "session", found.open)
    monkeypatch.setattr(google.time, "sleep", pauses.append)
    return found


def bigquery() -> google.BigQuery:
    return google.BigQuery("acme-ml", "EU", "me@x")


CONFIGURATION = {"query": {"query": "SELECT 1"}}


def test_each_call_uses_the_project_and_the_location(session: Session) -> None:
    session.answers = [Answer(200, {"a": 1})]
    asked = bigquery()
    table = {"projectId": "acme-other", "datasetId": "web", "tableId": "clicks"}
    for found in (
        asked.job("j"),
        asked.insert("j", CONFIGURATION),
        asked.dry_run(CONFIGURATION),
        asked.table(table),
    ):
        assert found == {"a": 1}
    sent = {"jobReference": {**REFERENCE, "jobId": "j"}, "configuration": CONFIGURATION}
    dry = {"jobReference": REFERENCE, "configuration": {**CONFIGURATION, "dryRun": True}}
    other = BASE.replace("acme-ml", "acme-other")
    assert session.asked == [
        ("GET", f"{BASE}/jobs/j?location=EU", None),
        ("POST", f"{BASE}/jobs", sent),
        ("POST", f"{BASE}/jobs", dry),
        ("GET", f"{other}/datasets/web/tables/clicks", None),
    ]
    assert session.opened == [{"local": False, "account": "me@x"}] * 4


def test_local_bigquery_serves_local_projects_only(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.answers = [Answer(200, {})]
    local = google.BigQuery("local-training", "EU")
    with pytest.raises(OperatorError) as refused:
        local.job("j")
    assert str(refused.value) == "no BigQuery runs in the local cloud"
    monkeypatch.setenv(google.EMULATOR, "http://127.0.0.1:9")
    assert local.job("j") == {}
    url = "http://127.0.0.1:9/bigquery/v2/projects/local-training/jobs/j?location=EU"
    assert session.asked == [("GET", url, None)]
    assert session.opened == [{"local": True, "account": ""}]
    with pytest.raises(OperatorError) as refused:
        bigquery().job("j")
    assert str(refused.value) == (
        "BIGQUERY_EMULATOR_HOST is set, and project 'acme-ml' is no local one"
    )


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (refusal(400, "invalidQuery", "bad"), NotSubmittedError, "BigQuery: bad"),
        (refusal(403, "", "no right"), PermissionDeniedError, "BigQuery: no right"),
        (refusal(403, "quotaExceeded", "full"), OperatorError, "BigQuery: full"),
        (Answer(404, None), OperatorError, "BigQuery: 404 as told"),
        (Answer(404, {"error": "x"}), OperatorError, "BigQuery: 404 as told"),
        (requests.ConnectionError("secret"), OperatorError,
         "no answer of BigQuery: ConnectionError"),
    ],
)  # fmt: skip
def test_refusal_has_the_message_of_bigquery(
    session: Session, answer: Any, kind: type[Exception], text: str
) -> None:
    session.answers = [answer]
    with pytest.raises(kind) as refused:
        bigquery().dry_run({})
    assert (type(refused.value), str(refused.value)) == (kind, text)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_service_is_called_three_times(session: Session, status: int) -> None:
    session.answers = [refusal(status), refusal(status), Answer(200, {"a": 1})]
    assert bigquery().job("j") == {"a": 1}
    assert session.pauses == [1.0, 4.0]  # pyright: ignore[reportAttributeAccessIssue]
    session.answers, session.asked[:] = [refusal(status)], []
    with pytest.raises(OperatorError):
        bigquery().job("j")
    assert len(session.asked) == 3


def test_table_is_absent_only_if_bigquery_has_none_or_denies_it(session: Session) -> None:
    for answer in (refusal(404, "notFound"), refusal(403, "accessDenied")):
        session.answers = [answer]
        assert bigquery().table(dict.fromkeys(("projectId", "datasetId", "tableId"), "t")) is None
    session.answers = [refusal(403, "billingNotEnabled", "billing is off")]
    with pytest.raises(PermissionDeniedError, match="billing is off"):
        bigquery().table(dict.fromkeys(("projectId", "datasetId", "tableId"), "t"))


class Blob:
    """An object as the client has it."""

    def __init__(self, name: str, content: bytes = b"", generation: Any = 7) -> None:
        self.name, self.content, self.generation = name, content, generation
        self.size: Any = len(content)
        self.crc32c: Any = "AAAAAA=="
        self.failing: list[Exception] = []

    def download_as_bytes(self, *, if_generation_match: int, timeout: float) -> bytes:
        if self.failing:
            raise self.failing.pop(0)
        assert (if_generation_match, timeout) == (self.generation or 0, 60)
        return self.content

    def upload_from_string(self, content: bytes, **how: Any) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.content, self.how = content, how


class Bucket:
    """A bucket with these objects."""

    name = "data"

    def __init__(self, *blobs: Blob) -> None:
        self.blobs = {blob.name: blob for blob in blobs}
        self.error: Exception | None = None

    def bucket(self, name: str) -> Bucket:
        assert name == "data"
        return self

    def _fail(self) -> None:
        if self.error:
            raise self.error

    def list_blobs(self, *, prefix: str, timeout: float) -> Any:
        self._fail()
        found = [blob for name, blob in self.blobs.items() if name.startswith(prefix)]
        return SimpleNamespace(pages=[found], next_page_token=None)

    def get_blob(self, name: str, *, timeout: float) -> Blob | None:
        self._fail()
        return self.blobs.get(name)

    def blob(self, name: str) -> Blob:
        return self.blobs.setdefault(name, Blob(name))


def files(bucket: Bucket) -> google.StorageFiles:
    client: Any = bucket
    return google.StorageFiles(client, "data", "snapshots/x")


def test_objects_have_names_below_the_snapshot() -> None:
    bare = Blob("snapshots/x/e/b")
    bare.size = bare.generation = bare.crc32c = None
    bucket = Bucket(Blob("snapshots/x/e/a", b"rows"), bare, Blob("snapshots/x/other/c"))
    assert files(bucket).objects("e/") == [
        StoredObject("e/a", 4, 7, "AAAAAA=="),
        StoredObject("e/b", 0, 0, ""),
    ]


def test_an_object_is_read_in_one_generation() -> None:
    blob = Blob("snapshots/x/manifest.json", b"{}")
    assert files(Bucket(blob)).read("manifest.json") == (b"{}", 7)
    assert files(Bucket(blob)).read("other") is None
    blob.failing = [exceptions.PreconditionFailed("written meanwhile")]
    assert files(Bucket(blob)).read("manifest.json") == (b"{}", 7)


def test_an_object_is_written_once() -> None:
    bucket = Bucket()
    files(bucket).create("manifest.json", b"{}")
    blob = bucket.blobs["snapshots/x/manifest.json"]
    assert blob.content == b"{}"
    assert blob.how == {
        "content_type": "application/json",
        "if_generation_match": 0,
        "timeout": 60,
    }
    blob.failing = [exceptions.PreconditionFailed("is there")]
    files(bucket).create("manifest.json", b"[]")
    assert blob.content == b"{}"


def test_unreachable_bucket_is_reported_with_its_folder() -> None:
    bucket = Bucket(blob := Blob("snapshots/x/manifest.json"))
    text = "gs://data/snapshots/x could not be read or written: Forbidden: no"
    blob.failing = [exceptions.Forbidden("no")] * 2
    for call in (
        lambda: files(bucket).read("manifest.json"),
        lambda: files(bucket).create("manifest.json", b""),
    ):
        with pytest.raises(OperatorError) as refused:
            call()
        assert str(refused.value) == text
    bucket.error = exceptions.Forbidden("no")
    with pytest.raises(OperatorError) as refused:
        files(bucket).objects("e/")
    assert str(refused.value) == text
