"""What the service of buckets decides, refuses and takes away, with an emulator of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localgcp.errors import UnlistableBucketError
from localgcp.gcp.diff import Change
from localgcp.gcp.emulator import Emulator
from localgcp.inventory.store import BUCKET, Binding
from tests.unit.localcloud.gcp.estate import (
    PROJECT,
    Estate,
    told,
    write_policy,
)

LOCKED = {"retentionPolicy": {"isLocked": True, "retentionPeriod": "100"}}
UNLOCKED = {"retentionPolicy": {"isLocked": False, "retentionPeriod": "100"}}
RETAINED = (
    "googleapi: Error 403: Object 'a' is subject to bucket's retention policy or object retention "
    "and cannot be deleted or overwritten, retentionPolicyNotMet"
)
FULL = "Error trying to delete bucket data containing objects without `force_destroy` set to true"


class Storage:
    """An emulator: the buckets it has, with their objects; None: they cannot be listed."""

    def __init__(self) -> None:
        self.buckets: dict[str, list[str] | None] = {}
        self.made: list[tuple[str, ...]] = []

    def create_bucket(self, *values: str) -> None:
        self.made.append(values)

    def has_bucket(self, name: str) -> bool:
        return name in self.buckets

    def objects(self, name: str) -> Iterator[str]:
        names = self.buckets[name]
        if names is None:
            raise UnlistableBucketError(name)
        yield from list(names)

    def delete_object(self, bucket: str, name: str) -> None:
        names = self.buckets[bucket]
        assert names is not None
        names.remove(name)

    def delete_bucket(self, name: str) -> None:
        assert not self.buckets.pop(name)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    held = Storage()
    monkeypatch.setattr(Emulator, "of", staticmethod(lambda _cloud: held))
    return held


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"name": "No"}, "400: Invalid bucket name: 'No', invalid"),
        ({"name": "new", "labels": {"a": "b", "k": "v" * 64}},
         f"400: Invalid argument: label k has an illegal value '{'v' * 64}', invalid"),
        ({"name": "new\n"}, "400: Invalid bucket name: 'new\n', invalid"),
        ({"name": "new", "labels": {"k": "v" * 63, "l": "", "m": 1, "n": "a_b-c"}}, None),
        ({"name": "mine"}, "409: Your previous request to create the named bucket succeeded and "
         "you already own it., conflict"),
    ],
)  # fmt: skip
def test_a_bucket_that_cannot_be_is_refused(
    estate: Estate, storage: Storage, inputs: Any, said: str | None
) -> None:
    storage.buckets = {"mine": [], "theirs": []}
    estate.store.put(BUCKET, "mine", PROJECT, {}, {})
    estate.store.put(BUCKET, "theirs", "local-a", {}, {})
    cloud, kind = estate.kind(BUCKET)
    found = told(lambda: kind.verify(cloud, PROJECT, inputs, "Making"))
    assert found == (said and f"Making: googleapi: Error {said}")


def test_a_bucket_that_a_client_deleted_leaves_its_name(estate: Estate, storage: Storage) -> None:
    estate.store.put(BUCKET, "data", PROJECT, {}, {})
    write_policy(estate, "b/data", Binding("roles/viewer", ("a",)))
    assert storage.buckets == {}
    cloud, kind = estate.kind(BUCKET)
    kind.verify(cloud, PROJECT, {"name": "data"}, "Making")
    assert estate.store.get(BUCKET, "data") is None
    assert estate.store.policy("b/data").bindings == ()


@pytest.mark.parametrize(
    ("new", "old", "replaced"),
    [
        (LOCKED, LOCKED, False), (UNLOCKED, LOCKED, True), ({}, LOCKED, True),
        (LOCKED, UNLOCKED, False), ({}, UNLOCKED, False), ({}, {}, False),
    ],
)  # fmt: skip
def test_unlocking_replaces_a_bucket(estate: Estate, new: Any, old: Any, replaced: bool) -> None:
    _, kind = estate.kind(BUCKET)
    change = [Change("retentionPolicy.isLocked", "update", replace=True)]
    assert kind.changed(new, old) == (change if replaced else [])


@pytest.mark.parametrize(
    ("objects", "olds", "said"),
    [
        ([], {}, None), ([], LOCKED, None), (["a", "b"], {}, FULL), (None, {}, FULL),
        (["a", "b"], {"forceDestroy": True}, None), (None, {"forceDestroy": True}, None),
        (["a"], {"forceDestroy": True, **UNLOCKED}, RETAINED), (["a"], UNLOCKED, FULL),
    ],
)  # fmt: skip
def test_a_bucket_goes_with_all_that_it_has_or_stays(
    estate: Estate, storage: Storage, objects: list[str] | None, olds: Any, said: str | None
) -> None:
    storage.buckets = {"data": objects, "other": ["c"]}
    folder = estate.store.path.parent / "storage"
    (folder / "data" / "empty").mkdir(parents=True)
    (folder / "data.bucketMetadata").touch()
    (folder / "other").mkdir()
    etag = estate.store.policy("b/data").etag
    estate.store.set_policy("b/data", (Binding("roles/r", ("m",)),), expected_etag=etag)
    cloud, kind = estate.kind(BUCKET)
    assert told(lambda: kind.unmake(cloud, "data", olds)) == said
    left = sorted(path.name for path in folder.iterdir())
    assert left == (["data", "data.bucketMetadata", "other"] if said else ["other"])
    assert ("data" in storage.buckets) is bool(said)
    assert set(estate.store.policies()) == ({"b/data"} if said else set())


@pytest.mark.parametrize("inputs", [{}, {"retentionPolicy": {}}])
def test_a_locked_retention_is_not_taken_away(estate: Estate, inputs: Any) -> None:
    olds = {"location": "US", "retentionPolicy": {"isLocked": True, "retentionPeriod": "1"}}
    cloud, kind = estate.kind(BUCKET)
    assert "Cannot reduce retention" in str(
        told(lambda: kind.remake(cloud, PROJECT, "data", inputs, olds))
    )
    del olds["retentionPolicy"]["retentionPeriod"]
    assert told(lambda: kind.remake(cloud, PROJECT, "data", inputs, olds)) is None
