"""Grants outside of IAM: access lists of datasets and ACLs, as IAM would have them."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.plan.access import grants_alone, is_list, listed_grants

DATASET = "gcp:bigquery/dataset:Dataset"
ENTRY = "gcp:bigquery/datasetAccess:DatasetAccess"
LATER = object()
VIEW = {"projectId": "acme", "datasetId": "reports", "tableId": "daily"}


def listed(token: str, **inputs: Any) -> list[tuple[Any, ...]]:
    found = listed_grants(token, inputs)
    return [(each.role, each.member, each.kind, each.target) for each in found]


@pytest.mark.parametrize(
    ("entry", "role", "member"),
    [
        ({"role": "WRITER", "userByEmail": "t@acme.iam.gserviceaccount.com"},
         "roles/bigquery.dataEditor", "serviceAccount:t@acme.iam.gserviceaccount.com"),
        ({"role": "READER", "specialGroup": "projectReaders"},
         "roles/bigquery.dataViewer", "projectViewer:of the dataset's project"),
        ({"role": "READER", "iamMember": "principal://iam.googleapis.com/x"},
         "roles/bigquery.dataViewer", "principal://iam.googleapis.com/x"),
        ({"view": VIEW}, "access", "view:acme.reports.daily"),
        ({"routine": VIEW | {"routineId": "f"}}, "access", "routine:acme.reports.daily.f"),
        ({"role": LATER, "userByEmail": LATER}, LATER, LATER),
    ],
)  # fmt: skip
def test_an_entry_of_a_dataset_is_a_grant_on_it(entry: Any, role: Any, member: Any) -> None:
    assert listed(DATASET, datasetId="d", accesses=[entry]) == [(role, member, "dataset", "d")]
    assert listed(ENTRY, datasetId="d", **entry) == [(role, member, "dataset", "d")]


def test_a_dataset_has_as_many_grants_as_entries_and_their_conditions() -> None:
    when = {"expression": "request.time < x", "title": "soon"}
    entries = [
        {"role": "READER", "userByEmail": "a@example.com", "condition": when},
        {"role": "READER", "userByEmail": "b@example.com", "condition": LATER},
        LATER,
    ]
    found = list(listed_grants(DATASET, {"datasetId": "d", "accesses": entries}))
    assert [(each.member, each.condition) for each in found] == [
        ("user:a@example.com", "request.time < x"),
        ("user:b@example.com", ""),
    ]
    assert listed(DATASET, datasetId="d") == []
    assert listed(DATASET, datasetId="d", accesses=LATER) == [("access", LATER, "dataset", "d")]


def test_acl_has_its_entries_and_those_of_a_predefined_acl() -> None:
    reader, writer = "roles/storage.legacyBucketReader", "roles/storage.legacyBucketWriter"
    acl = "gcp:storage/bucketACL:BucketACL"
    entries = ["OWNER:project-owners-1", "READER:group-ml@example.com", LATER, "odd"]
    assert listed(acl, bucket="b", roleEntities=entries) == [
        ("roles/storage.legacyBucketOwner", "projectOwner:1", "bucket", "b"),
        (reader, "group:ml@example.com", "bucket", "b"),
        ("access", LATER, "bucket", "b"),
        ("access", "odd", "bucket", "b"),
    ]
    assert listed(acl, bucket="b", roleEntities=LATER) == [("access", LATER, "bucket", "b")]
    assert listed(acl, bucket="b", predefinedAcl="projectPrivate") == []
    assert listed(acl, bucket="b", predefinedAcl="publicRead") == [
        (reader, "allUsers", "bucket", "b")
    ]
    assert listed(acl, bucket="b", predefinedAcl="publicReadWrite") == [
        (writer, "allUsers", "bucket", "b")
    ]
    assert listed(acl, bucket="b", defaultAcl="authenticatedRead") == [
        ("roles/storage.legacyObjectReader", "allAuthenticatedUsers", "object", "b/*")
    ]
    for kind, name in (("objectACL:ObjectACL", "o"), ("defaultObjectACL:DefaultObjectACL", "")):
        inputs = {"bucket": "b", "object": name, "predefinedAcl": "publicRead"}
        assert listed(f"gcp:storage/{kind}", **inputs) == [
            ("roles/storage.legacyObjectReader", "allUsers", "object", f"b/{name or '*'}")
        ]


def test_entry_without_a_place_is_reported_without_it() -> None:
    everybody = {"role": "READER", "entity": "allUsers"}
    kind = "gcp:storage/bucketAccessControl:BucketAccessControl"
    assert listed(kind, **everybody) == [
        ("roles/storage.legacyBucketReader", "allUsers", "bucket", "")
    ]
    assert listed(DATASET, accesses=LATER) == [("access", LATER, "dataset", "")]


def test_types_are_lists_have_lists_or_neither() -> None:
    assert (is_list(DATASET), grants_alone(DATASET)) == (True, False)
    assert (is_list(ENTRY), grants_alone(ENTRY)) == (True, True)
    other = "gcp:storage/notification:Notification"
    assert (is_list(other), grants_alone(other), listed(other, entity="allUsers")) == (
        False,
        False,
        [],
    )
