"""Which requests of Cloud Storage reach the emulator, and in which form."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from localgcp.errors import LocalCloudError, RefusedRequestError
from localgcp.storage.emulator import StorageEmulator, completed, layout_source
from localgcp.storage.requests import (
    StorageRequest,
    accepted,
    condition_source,
    unmet_condition,
)

CASES = yaml.safe_load(Path(__file__).with_name("requests.yaml").read_text("utf-8"))
OBJECT = "/storage/v1/b/b-1/o/x"
UPLOAD = "/upload/storage/v1/b/b-1/o"


def request(
    verb: str = "GET", target: str = OBJECT, body: bytes | None = None, **headers: str
) -> StorageRequest:
    return StorageRequest(verb, target, {k.replace("_", "-"): v for k, v in headers.items()}, body)


def answer(given: StorageRequest) -> dict[str, Any]:
    try:
        found = accepted(given)
    except RefusedRequestError as error:
        return {"refused": [error.status, str(error)]}
    headers = {} if found.headers == given.headers else {"headers_then": dict(found.headers)}
    body = {} if found.body == given.body else {"body_then": (found.body or b"").decode()}
    return {"accepted": f"{found.verb} {found.target}", **headers, **body}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["request"][:60])
def test_a_request_is_accepted_or_refused_as_recorded(case: dict[str, Any]) -> None:
    verb, _, target = case["request"].partition(" ")
    body = case["body"].encode() if "body" in case else None
    found = answer(StorageRequest(verb, target, case.get("headers", {}), body))
    sent = {key: case[key] for key in ("request", "headers", "body") if key in case}
    assert {**sent, **found} == case


def test_a_compressed_body_is_read_and_goes_on_in_the_clear() -> None:
    packed = gzip.compress(b'{"a":1}')
    given = request("PATCH", OBJECT, packed, content_encoding="GZIP", x="y")
    assert accepted(given) == request("PATCH", OBJECT, b'{"a": 1}', x="y")
    for body, said in (
        (b"{}", "the body is not valid gzip data."),
        (packed[:-9], "the body is truncated, or larger than 64 MiB."),
    ):
        given = request("PATCH", OBJECT, body, content_encoding="gzip")
        assert answer(given)["refused"] == [400, said]
    lone = json.dumps({"name": "a\ud800b"}).encode()
    given = request("POST", f"{UPLOAD}?uploadType=resumable", lone)
    assert answer(given)["refused"] == [400, "an object's name is not valid UTF-8."]


@pytest.mark.parametrize(
    ("verb", "query", "status"),
    [
        ("DELETE", "ifGenerationMatch=5&ifMetagenerationMatch=1", None),
        ("DELETE", "ifGenerationMatch=5&ifMetagenerationMatch=2", 412),
        ("GET", "ifGenerationNotMatch=4", None),
        ("GET", "ifGenerationNotMatch=5", 304),
        ("PATCH", "ifGenerationNotMatch=5", 412),
    ],
)
def test_conditions_are_on_the_generation_and_the_metadata(
    verb: str, query: str, status: int | None
) -> None:
    given = request(verb, f"/download{OBJECT}?generation=5&{query}")
    assert condition_source(given) == f"{OBJECT}?generation=5"
    assert unmet_condition(given, {"generation": "5"}) == status
    with pytest.raises(RefusedRequestError, match="ifGenerationMatch is not a number"):
        unmet_condition(request(target=f"{OBJECT}?ifGenerationMatch=x"), {})


LAYOUT = "/storage/v1/b/box/storageLayout?alt=json"
JSON = [("Content-Type", "application/json"), ("Content-Length", "4"), ("Date", "today")]


def test_the_layout_of_a_bucket_is_made_of_the_bucket() -> None:
    assert layout_source("GET", LAYOUT) == "/storage/v1/b/box"
    bucket = {"name": "box", "location": "US-CENTRAL1", "locationType": "region", "etag": "x"}
    status, _, body = completed("GET", LAYOUT, (200, JSON, json.dumps(bucket).encode()))
    assert status == 200
    assert json.loads(body) == {
        "kind": "storage#storageLayout",
        "bucket": "box",
        "location": "US-CENTRAL1",
        "locationType": "region",
        "hierarchicalNamespace": {"enabled": False},
    }


def test_a_bucket_has_no_managed_folders() -> None:
    target = "/storage/v1/b/box/managedFolders?alt=json"
    assert layout_source("GET", target) == "/storage/v1/b/box"
    status, _, body = completed("GET", target, (200, JSON, b'{"name": "box"}'))
    assert (status, json.loads(body)) == (200, {"kind": "storage#managedFolders"})
    assert completed("GET", target, (404, JSON, b"Not Found"))[0] == 404


@pytest.mark.parametrize(
    ("verb", "target"),
    [
        ("POST", LAYOUT),
        ("POST", "/storage/v1/b/box/managedFolders"),
        ("GET", "/storage/v1/b/box"),
        ("GET", "/storage/v1/b/box/o/storageLayout"),
        ("GET", "/storage/v1/b/box/o/a/storageLayout"),
    ],
)
def test_other_requests_are_not_taken_for_it(verb: str, target: str) -> None:
    assert layout_source(verb, target) is None
    assert completed(verb, target, (200, JSON, b"null")) == (200, JSON, b"null")


def test_a_deletion_is_answered_with_nothing() -> None:
    target = "/storage/v1/b/box/o/a"
    assert completed("DELETE", target, (200, JSON, b"null\n")) == (204, [("Date", "today")], b"")
    assert completed("DELETE", target, (404, JSON, b"null")) == (404, JSON, b"null")


def test_emulator_at_a_port_in_use_is_reported(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    emulator = StorageEmulator(tmp_path / "a" / "objects", tmp_path / "log", notes)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=f"on port {port} did not start. Hint: see"):
            emulator.start(port)
    assert "in use" in (tmp_path / "log").read_text()
    assert list(notes.iterdir()) == []
    assert not emulator.alive()
