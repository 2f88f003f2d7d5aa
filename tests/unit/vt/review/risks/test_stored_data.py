"""Data that stays under another key, and buckets of which reads are paid for: whole findings."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.unit.vt.review import plans
from tests.unit.vt.review.quotes import quote
from vertex_training_cli.review import stored_data
from vertex_training_cli.review.stored_data import ColdBucket, KeyChange

RING: Final = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys"
REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
SECRET: Final = "gcp:secretmanager/secret:Secret"


def update(type_: str, name: str, old: dict[str, Any], new: dict[str, Any]) -> plans.Event:
    return plans.step("update", type_, name, old=old, new=new)


def bucket(key: str = "", storage: str = "", name: str = "data") -> dict[str, Any]:
    encryption = {"encryption": {"defaultKmsKeyName": f"{RING}/{key}"}} if key else {}
    return {"name": name, **encryption, **({"storageClass": storage} if storage else {})}


def repository(key: str) -> dict[str, Any]:
    return {"kmsKeyName": f"{RING}/{key}"} if key else {"format": "DOCKER"}


def secret(*keys: str) -> dict[str, Any]:
    replicas = [{"customerManagedEncryption": {"kmsKeyName": f"{RING}/{key}"}} for key in keys]
    return {"replication": {"userManaged": {"replicas": replicas}}}


def encrypted(key: str, run: int = 1) -> dict[str, Any]:
    made = plans.job("train", run=run)
    message = json.loads(made["request"]) | {"encryptionSpec": {"kmsKeyName": f"{RING}/{key}"}}
    return made | {"request": json.dumps(message)}


def test_a_key_is_told_once_with_all_that_it_encrypted() -> None:
    plan = plans.plan(
        update(plans.BUCKET, "storage-b", bucket("one"), bucket("two")),
        update(REPOSITORY, "registry", repository("one"), repository("two")),
        update(plans.BUCKET, "storage-a", bucket("one"), bucket()),
        update(SECRET, "secrets-x", secret("one", "east"), secret("one", "west")),
        plans.step("replace", plans.JOB, "training-t", encrypted("job"), encrypted("new", 2)),
        update(plans.BUCKET, "storage-new", bucket(), bucket("two")),
        update(plans.BUCKET, "storage-same", bucket("one"), bucket("one", "NEARLINE")),
        plans.create(plans.BUCKET, "storage-made", **bucket("one")),
        plans.delete(plans.BUCKET, "storage-gone", **bucket("three")),
    )
    assert stored_data.key_changes(plan) == (
        KeyChange(f"{RING}/east", f"{RING}/west", ("secrets-x",)),
        KeyChange(f"{RING}/job", f"{RING}/new", ("training-t",)),
        KeyChange(f"{RING}/one", "", ("storage-a",)),
        KeyChange(f"{RING}/one", f"{RING}/two", ("registry", "storage-b")),
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (KeyChange(f"{RING}/one", "", ("a",)), "<one> (<a>)"),
        (KeyChange(f"{RING}/one", f"{RING}/two", ("a", "b", "c")), "<one> → <two> (<a>, <b>, <c>)"),
        (KeyChange(f"{RING}/k", "projects/x/k", ("a", "b", "c", "d", "e")),
         f"<{RING}/k> → <projects/x/k> (<a>, <b>, <c> and 2 more)"),
    ],
)  # fmt: skip
def test_keys_of_one_name_are_told_apart_by_their_whole_names(change: KeyChange, told: str) -> None:
    assert stored_data.OTHER_KEY.name(change, quote) == told
    assert stored_data.UNENCRYPTED.name(change, quote) == told


def test_a_key_that_goes_is_a_loss_and_another_one_a_change() -> None:
    plan = plans.plan(
        update(plans.BUCKET, "a", bucket("one"), bucket()),
        update(plans.BUCKET, "b", bucket("one"), bucket("two")),
    )
    gone, other = (
        KeyChange(f"{RING}/one", "", ("a",)),
        KeyChange(f"{RING}/one", f"{RING}/two", ("b",)),
    )
    assert list(stored_data.UNENCRYPTED.find(plan)) == [gone]
    assert list(stored_data.OTHER_KEY.find(plan)) == [other]
    kinds = (stored_data.UNENCRYPTED, stored_data.OTHER_KEY, stored_data.COLD)
    assert [(e.key, e.headline, e.question, e.answer, e.danger) for e in kinds] == [
        ("keysGone", "no longer encrypted with your key", "what is lost",
         "no longer encrypted with your key: {}", "destroys"),
        ("keysChanged", "encrypted with another key", "which limits are raised",
         "encrypted with another key: {}", "opens"),
        ("coldBuckets", "reads are paid for", "what it can cost", "reads are paid for: {}",
         "opens"),
    ]  # fmt: skip


READS: Final = plans.step("same", plans.MEMBER, "reads", plans.member("data"), plans.member("data"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "NEARLINE", "<b> (<STANDARD> → <NEARLINE>, $0.01 a GB)"),
        ("STANDARD", "coldline", "<b> (<STANDARD> → <COLDLINE>, $0.02 a GB)"),
        ("COLDLINE", "ARCHIVE", "<b> (<COLDLINE> → <ARCHIVE>, $0.05 a GB)"),
        ("ARCHIVE", "COLDLINE", None),
        ("NEARLINE", "", None),
        ("", "STANDARD", None),
        ("STANDARD", "REGIONAL", None),
    ],
)
def test_a_class_is_told_whose_reads_cost_more_than_before(
    old: str, new: str, told: str | None
) -> None:
    plan = plans.plan(update(plans.BUCKET, "b", bucket(storage=old), bucket(storage=new)), READS)
    found = stored_data.cold_buckets(plan)
    assert [stored_data.COLD.name(each, quote) for each in found] == ([told] if told else [])


def test_a_new_bucket_is_cold_from_the_start_where_it_is_read() -> None:
    plan = plans.plan(
        plans.create(plans.BUCKET, "read", **bucket(storage="ARCHIVE")),
        plans.create(plans.BUCKET, "unread", **bucket(storage="ARCHIVE", name="other")),
        plans.delete(plans.BUCKET, "gone", **bucket(storage="ARCHIVE")),
        READS,
    )
    [found] = stored_data.cold_buckets(plan)
    assert found == ColdBucket("read", "", "ARCHIVE")
    assert stored_data.COLD.name(found, quote) == "<read> (<ARCHIVE>, $0.05 a GB)"
