"""The store keeps what was written, under writers in many threads and processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.inventory.store import (
    BUCKET,
    EMPTY_POLICY,
    Binding,
    Store,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "some" / "state" / "cloud.sqlite")


def test_a_bucket_that_a_client_made_is_of_no_project(store: Store) -> None:
    """gsutil makes it in the emulator, which keeps each bucket in a folder."""
    assert store.bucket("mine") is None
    (store.path.with_name("storage") / "mine").mkdir(parents=True)
    assert store.bucket("mine") == {"name": "mine"}
    store.put(BUCKET, "mine", "local-p", {}, {"name": "mine", "project": "local-p"})
    assert store.bucket("mine") == {"name": "mine", "project": "local-p"}
    for name in ("", ".", "..", "mine/", "../storage/mine", "mine/x", "mine\n", "/"):
        assert store.bucket(name) is None


def test_a_member_that_is_gone_is_in_no_policy(store: Store) -> None:
    limit = {"title": "t", "description": "", "expression": "x"}
    before = {
        "b/a": (Binding("r1", ("gone", "stays")), Binding("r1", ("gone",), limit)),
        "b/b": (Binding("r2", ("gone",)),),
        "b/c": (Binding("r3", ("stays", "gone2")),),
    }
    etags = {
        name: store.set_policy(name, bindings, expected_etag=EMPTY_POLICY.etag).etag
        for name, bindings in before.items()
    }
    store.delete_member("gone")
    found = store.policies()
    assert {name: policy.bindings for name, policy in found.items()} == {
        "b/a": (Binding("r1", ("stays",)),), "b/c": before["b/c"],
    }  # fmt: skip
    assert {name for name in found if found[name].etag == etags[name]} == {"b/c"}
