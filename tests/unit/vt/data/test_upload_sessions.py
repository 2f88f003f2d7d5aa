"""Each request of an upload in parts, and where the address of a session is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from google.api_core import exceptions

from vertex_training.errors import CommandError
from vertex_training_cli.data import sessions
from vertex_training_cli.data.comparison import Pair
from vertex_training_cli.data.files import LocalFile

URL = "https://storage.googleapis.com/upload/1"
#: CRC-32C of "123456789" is E3069283 (RFC 3720): big-endian, in base64.
DIGITS, CRC32C = b"123456789", "4waSgw=="


def answer(code: int, **headers: str) -> requests.Response:
    made = requests.Response()
    made.status_code = code
    made.headers.update(headers)
    made.request = requests.Request("PUT", URL).prepare()
    made._content = b""
    return made


class Service:
    """Answers in turn; remembers bodies and headers of requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.got: list[tuple[str, bytes, dict[str, str]]] = []
        self.options: list[dict[str, Any]] = []

    def put(self, url: str, body: bytes, headers: dict[str, str], **options: Any) -> Any:
        self.got.append((url, body, headers))
        self.options.append(options)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None: ...


class Bucket:
    """A bucket that begins a session for each upload."""

    name = "b"

    def __init__(self, *urls: str) -> None:
        self.urls, self.begun = list(urls), list[Any]()

    def blob(self, name: str) -> Any:
        def begin(**options: Any) -> str:
            self.begun.append((name, options))
            return self.urls.pop(0)

        return SimpleNamespace(name=name, create_resumable_upload_session=begin)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """A file of nine bytes, sent in parts of four; the cache is this test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(sessions, "CHUNK", 4)
    path = tmp_path / "digits"
    path.write_bytes(DIGITS)
    status = path.stat()
    file = LocalFile(path, "digits", status.st_size, status.st_mtime_ns)
    return Pair("digits", "new", file)


def send(monkeypatch: pytest.MonkeyPatch, pair: Pair, service: Service, bucket: Bucket):
    monkeypatch.setattr(requests, "Session", lambda: service)
    told: list[int] = []
    sessions.upload(bucket, "set/", pair, told.append)  # type: ignore[arg-type]
    return told


def notes(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache/vertex-training/uploads").glob("*"))


ASK = (URL, b"", {"Content-Range": "bytes */9"})
WHOLE = [
    ASK,
    (URL, b"1234", {"Content-Range": "bytes 0-3/9"}),
    (URL, b"5678", {"Content-Range": "bytes 4-7/9"}),
    (URL, b"9", {"Content-Range": "bytes 8-8/9", "X-Goog-Hash": f"crc32c={CRC32C}"}),
]


def interrupted(monkeypatch: pytest.MonkeyPatch, pair: Pair) -> None:
    """An upload that a kill ended after its first part."""
    service = Service(answer(308), answer(308), KeyboardInterrupt())
    service.answers[2] = Killed()
    with pytest.raises(Killed):
        send(monkeypatch, pair, service, Bucket(URL))


class Killed(Exception):
    """The process ended here."""


def test_an_object_that_is_whole_is_not_sent_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, pair)
    service = Service(answer(200))
    assert send(monkeypatch, pair, service, Bucket()) == [9]
    assert service.got == [ASK]


@pytest.mark.parametrize("code", [404, 410])
def test_a_session_that_the_service_forgot_is_begun_anew_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    interrupted(monkeypatch, pair)
    later = f"{URL}2"
    bucket = Bucket(later)
    assert send(monkeypatch, pair, Service(answer(code), answer(200)), bucket) == [9]
    assert len(bucket.begun) == 1
    with pytest.raises(CommandError) as ended:
        send(monkeypatch, pair, Service(answer(code), answer(code)), Bucket(URL, later))
    assert str(ended.value) == "digits: the upload was ended twice by the service."
    assert notes(tmp_path) == []


def test_what_the_service_refuses_is_raised_as_it_is(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(exceptions.Forbidden):
        send(monkeypatch, pair, Service(answer(403)), Bucket(URL))


@pytest.mark.parametrize(
    "lost", [requests.ConnectionError(), requests.Timeout(), answer(503), answer(429)]
)
def test_what_may_pass_is_tried_again_from_where_the_service_is(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, lost: Any
) -> None:
    monkeypatch.setattr("google.api_core.retry.retry_unary.time.sleep", lambda _: None)
    service = Service(
        answer(308), answer(308), lost, answer(308, Range="bytes=0-7"), answer(200)
    )  # fmt: skip
    assert send(monkeypatch, pair, service, Bucket(URL)) == [0, 4, 4, 1]
    assert service.got == [*WHOLE[:3], ASK, WHOLE[3]]


def test_a_file_that_changes_meanwhile_is_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pair.file is not None
    path = pair.file.path
    changed = f"{path} changed while it was sent. Hint: run it again."

    class Changing(Service):
        def put(self, *words: Any, **options: Any) -> Any:
            path.write_bytes(b"1234567890")
            return super().put(*words, **options)

    for answers in ((answer(308),), (answer(200),)):
        path.write_bytes(DIGITS)
        with pytest.raises(CommandError) as refused:
            send(monkeypatch, pair, Changing(*answers), Bucket(URL, URL))
        assert str(refused.value) == changed
