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
    NUMBER,
    PROJECT,
    TIME,
    Estate,
    told,
    worded,
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


SOFT = {"retentionDurationSeconds": 604_800, "effectiveTime": TIME}
MADE = {
    "project": PROJECT, "projectNumber": int(NUMBER), "location": "US-WEST1", "rpo": None,
    "selfLink": "https://www.googleapis.com/storage/v1/b/data", "softDeletePolicy": SOFT,
    "timeCreated": TIME, "updated": TIME, "url": "gs://data",
}  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "changes"),
    [
        ({"location": "us-west1"}, {}),
        *(({"location": each}, {"location": each.upper(), "rpo": "DEFAULT"})
          for each in ("us", "EU", "Asia")),
        ({"location": "US", "rpo": "ASYNC_TURBO"}, {"location": "US", "rpo": "ASYNC_TURBO"}),
        ({"location": "us-west1", "softDeletePolicy": {"retentionDurationSeconds": 0}},
         {"softDeletePolicy": {"retentionDurationSeconds": 0, "effectiveTime": ""}}),
        ({"location": "us-west1", "softDeletePolicy": {"retentionDurationSeconds": 700_000}},
         {"softDeletePolicy": {"retentionDurationSeconds": 700_000, "effectiveTime": TIME}}),
    ],
)  # fmt: skip
def test_a_bucket_is_made_where_it_is_asked_for(
    estate: Estate, storage: Storage, inputs: Any, changes: Any
) -> None:
    made = MADE | changes
    assert estate.made(BUCKET, name="data", **inputs) == made
    assert storage.made == [(PROJECT, "data", made["location"])]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"name": "No"}, "400: Invalid bucket name: 'No', invalid"),
        ({"name": "new", "labels": {"k": "V"}},
         "400: Invalid argument: label k has an illegal value 'V', invalid"),
        ({"name": "new", "labels": {"a": "b", "k": "v" * 64}},
         f"400: Invalid argument: label k has an illegal value '{'v' * 64}', invalid"),
        ({"name": "new\n"}, "400: Invalid bucket name: 'new\n', invalid"),
        ({"name": "new", "labels": {"k": "a\n"}},
         "400: Invalid argument: label k has an illegal value 'a\n', invalid"),
        ({"name": "new", "labels": {"k": "a b"}},
         "400: Invalid argument: label k has an illegal value 'a b', invalid"),
        ({"name": "new", "labels": {"k": "v" * 63, "l": "", "m": 1, "n": "a_b-c"}}, None),
        ({"name": "mine"}, "409: Your previous request to create the named bucket succeeded and "
         "you already own it., conflict"),
        ({"name": "theirs"}, "409: The requested bucket name is not available. The bucket "
         "namespace is shared by all users of the system. Please select a different name and try "
         "again., conflict"),
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
    ("period", "old", "refused"),
    [("99", LOCKED, True), ("100", LOCKED, False), ("101", LOCKED, False), ("99", UNLOCKED, False)],
)
def test_a_locked_retention_is_not_shortened(
    estate: Estate, period: str, old: Any, refused: bool
) -> None:
    cloud, kind = estate.kind(BUCKET)
    olds = {**old, "location": "US", "softDeletePolicy": {"a": 1}}
    inputs: dict[str, Any] = {"retentionPolicy": {"retentionPeriod": period}}
    if refused:
        assert told(lambda: kind.remake(cloud, PROJECT, "data", inputs, olds)) == (
            "Error updating Bucket data: googleapi: Error 403: Cannot reduce retention duration of "
            "a locked Retention Policy for bucket 'data'., forbidden"
        )
        return
    kept = {"location": "US", "updated": TIME, "softDeletePolicy": {"a": 1}}
    assert worded(kind.remake(cloud, PROJECT, "data", inputs, olds)) == kept
    inputs["softDeletePolicy"] = {"retentionDurationSeconds": 604_800}
    assert worded(kind.remake(cloud, PROJECT, "data", inputs, olds)) == kept | {
        "softDeletePolicy": SOFT
    }


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


@pytest.mark.parametrize("objects", [[], None])
def test_a_bucket_goes_whatever_the_emulator_left_of_it(
    estate: Estate, storage: Storage, objects: list[str] | None
) -> None:
    storage.buckets = {"data": objects}
    cloud, kind = estate.kind(BUCKET)
    assert told(lambda: kind.unmake(cloud, "data", {"forceDestroy": True})) is None
    assert storage.buckets == {}


@pytest.mark.parametrize("inputs", [{}, {"retentionPolicy": {}}])
def test_a_locked_retention_is_not_taken_away(estate: Estate, inputs: Any) -> None:
    olds = {"location": "US", "retentionPolicy": {"isLocked": True, "retentionPeriod": "1"}}
    cloud, kind = estate.kind(BUCKET)
    assert "Cannot reduce retention" in str(
        told(lambda: kind.remake(cloud, PROJECT, "data", inputs, olds))
    )
    del olds["retentionPolicy"]["retentionPeriod"]
    assert told(lambda: kind.remake(cloud, PROJECT, "data", inputs, olds)) is None


def test_a_bucket_is_there_if_both_record_and_bucket_are(estate: Estate, storage: Storage) -> None:
    estate.store.put(BUCKET, "data", PROJECT, {"a": 1}, {"b": 2})
    cloud, kind = estate.kind(BUCKET)
    assert kind.read(cloud, "data") is None
    storage.buckets = {"data": [], "other": []}
    found = kind.read(cloud, f"{PROJECT}/data")
    assert found is not None
    assert (found.id, found.inputs, found.outputs) == ("data", {"a": 1}, {"b": 2})
    assert kind.read(cloud, "other") is None
    assert kind.owner(cloud, "local-a/data") == "local-a"
    assert kind.owner(cloud, "data") == PROJECT
