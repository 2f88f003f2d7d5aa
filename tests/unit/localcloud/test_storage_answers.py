"""Answers that the emulator does not give."""

from __future__ import annotations

import json

import pytest

from localgcp.storage import completed, layout_source

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
