"""A retention binds the stack itself: what it could no longer do is refused before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import refused, rows, unjudged
from vertex_training.stack_rules import retention

KEPT = {"retention": {"days": 30}}
FORCE = ("buckets.a.forceDestroy", "remove it, or retention")
KEEPS = "cannot be: nothing in the bucket can be deleted for 30 days"
LESS = "is less than retention, within which nothing is deleted: 30 days"


@pytest.mark.parametrize(
    ("bucket", "found"),
    [
        ({}, []),
        (KEPT, []),
        ({"forceDestroy": True, "protect": True}, [
            ("buckets.a.forceDestroy", "cannot be: the bucket is protected, and nothing deletes it",
             "", "remove it, or protect")]),
        (KEPT | {"forceDestroy": True}, [(FORCE[0], KEEPS, "", FORCE[1])]),
        (KEPT | {"objects": {"a": "b"}}, [
            ("buckets.a.objects", "could not be replaced for 30 days when their files change", "",
             "another bucket")]),
        (KEPT | {"deleteAfterDays": 29}, [
            ("buckets.a.deleteAfterDays", LESS, "29", "as many days, or more")]),
    ],
)  # fmt: skip
def test_what_would_have_to_be_deleted_within_a_retention_is_refused(
    bucket: dict[str, Any], found: list[tuple[str, ...]]
) -> None:
    assert rows(retention.problems(unjudged(buckets={"a": bucket}))) == found


def test_all_of_a_bucket_is_told_at_once() -> None:
    bucket = KEPT | {"forceDestroy": True, "protect": True, "objects": {"a": "b"}}
    found = rows(retention.problems(unjudged(buckets={"a": bucket | {"deleteAfterDays": 1}})))
    keys = ("forceDestroy", "forceDestroy", "objects", "deleteAfterDays")
    assert [row[0] for row in found] == [f"buckets.a.{key}" for key in keys]


def test_who_uses_such_a_bucket_is_warned() -> None:
    accounts = {
        "other": {"reads": ["kept", "near"]},
        "writer": {"writes": ["kept", "cold"]},
        "second": {"writes": ["kept"], "reads": ["cold"]},
    }
    buckets = {
        "kept": KEPT, "cold": {"storageClass": "ARCHIVE"}, "near": {"storageClass": "NEARLINE"},
        "alone": KEPT | {"storageClass": "COLDLINE"}, "plain": {},
    }  # fmt: skip
    found = retention.warnings(unjudged(buckets=buckets, serviceAccounts=accounts))
    overwrites = "account writer writes it, and can overwrite no file there, no checkpoint"
    paid = "account {} uses it: every read is paid for"
    assert rows(found) == [
        ("buckets.kept.retention", overwrites, "", "a bucket of its own for what is kept"),
        ("buckets.cold.storageClass", paid.format("second"), "ARCHIVE", "STANDARD"),
        ("buckets.near.storageClass", paid.format("other"), "NEARLINE", "STANDARD"),
    ]
    [(path, _)] = refused(buckets={"old": {"storageClass": "COLD"}})
    assert path == "buckets.old.storageClass"
