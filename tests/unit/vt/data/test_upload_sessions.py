"""Each request of an upload in parts, and where the address of a session is kept."""

from __future__ import annotations

import json
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


def test_a_new_upload_sends_each_part_and_the_checksum_with_the_last(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service, bucket = Service(*(answer(308) for _ in range(3)), answer(200)), Bucket(URL)
    assert send(monkeypatch, pair, service, bucket) == [0, 4, 4, 1]
    assert service.got == WHOLE
    assert service.options == [{"allow_redirects": False, "timeout": 300}] * 4
    began = {"size": 9, "if_generation_match": 0, "timeout": 300}
    assert bucket.begun == [("set/digits", began)]
    assert notes(tmp_path) == []


def interrupted(monkeypatch: pytest.MonkeyPatch, pair: Pair) -> None:
    """An upload that a kill ended after its first part."""
    service = Service(answer(308), answer(308), KeyboardInterrupt())
    service.answers[2] = Killed()
    with pytest.raises(Killed):
        send(monkeypatch, pair, service, Bucket(URL))


class Killed(Exception):
    """The process ended here."""


def test_an_interrupted_upload_goes_on_in_its_session(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupted(monkeypatch, pair)
    [note] = notes(tmp_path)
    assert json.loads(note.read_bytes()) == {"url": URL}
    assert (note.suffix, len(note.stem)) == (".json", 32)
    assert (note.stat().st_mode & 0o777, note.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    service, bucket = Service(answer(308, Range="bytes=0-3"), answer(308), answer(201)), Bucket()
    assert send(monkeypatch, pair, service, bucket) == [4, 4, 1]
    assert (service.got, bucket.begun) == ([ASK, *WHOLE[2:]], [])
    assert notes(tmp_path) == []


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


def test_what_does_not_pass_is_tried_for_ten_minutes_with_ever_longer_waits(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("google.api_core.retry.retry_base.random.uniform", lambda _, most: most)
    monkeypatch.setattr("google.api_core.retry.retry_unary.time.sleep", waits.append)
    monkeypatch.setattr("google.api_core.retry.retry_unary.time.monotonic", lambda: sum(waits))
    with pytest.raises(exceptions.RetryError):
        send(monkeypatch, pair, Service(*[answer(503)] * 30), Bucket(URL))
    assert waits == [1, 2, 4, 8, 16, *[30] * 18]  # 31 s and 540 s; one more would be 601 s


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


@pytest.mark.parametrize(
    ("url", "emulator", "kept"),
    [
        (URL, None, True),
        ("http://storage.googleapis.com/x", None, False),
        ("https://storage.googleapis.com.evil.example/x", None, False),
        ("https://storage.googleapis.com:8443/x", None, False),
        (URL, "http://127.0.0.1:8002", False),
        ("http://127.0.0.1:8002/upload", "http://127.0.0.1:8002", True),
        ("http://127.0.0.1:8003/upload", "http://127.0.0.1:8002", False),
    ],
)
def test_an_address_that_leads_elsewhere_is_not_used(
    monkeypatch: pytest.MonkeyPatch, url: str, emulator: str | None, kept: bool, tmp_path: Path
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    if emulator:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    sessions._remember(tmp_path / "deep/note", url)
    assert sessions._remembered(tmp_path / "deep/note") == (url if kept else None)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 7}', '{"url": null}'])
def test_a_note_that_is_none_is_forgotten(tmp_path: Path, text: str) -> None:
    (tmp_path / "note").write_text(text)
    assert sessions._remembered(tmp_path / "note") is None
    assert sessions._remembered(tmp_path / "gone") is None


def test_each_file_and_place_has_a_note_of_its_own(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert pair.file is not None
    same = sessions._note("b", "o", pair.file)
    assert sessions._note("b", "o", pair.file) == same
    other = LocalFile(pair.file.path, "digits", 9, pair.file.mtime_ns + 1)
    larger = LocalFile(pair.file.path, "digits", 10, pair.file.mtime_ns)
    moved = LocalFile(tmp_path / "other", "digits", 9, pair.file.mtime_ns)
    others = [sessions._note("b", "o", each) for each in (other, larger, moved)]
    others += [sessions._note("c", "o", pair.file), sessions._note("b", "p", pair.file)]
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    others.append(sessions._note("b", "o", pair.file))
    assert len({same, *others}) == 7
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sessions.folder() == tmp_path / ".cache/vertex-training/uploads"
