"""What exists is its owner's, and no name is given twice: whole reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import H100, rows, unjudged
from vertex_training.stack_rules import existing

OWNERS = ("is its owner's to say: this exists", "", "remove it")
RECORDS = "has the records that make a submission happen once: jobs never reach them"
KEY = "projects/acme-ml-prod/secrets/k"
EMAIL = "t-one-1@acme-ml-prod.iam.gserviceaccount.com"
PLACE = "projects/acme-ml-prod/zones/us-central1-a/reservations/pool"
REPOSITORY = "projects/acme-images/locations/us/repositories/training"


def told(**changes: Any) -> list[tuple[str, str, str, str]]:
    return rows(existing.problems(unjudged(**changes)))


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"buckets": {"a": {"existing": "x-y", "project": "acme-data-1", "team": "v",
                            "formerly": "b"}}}, []),
        ({"buckets": {"a": {"existing": "x-y", "protect": False, "labels": {},
                            "deleteAfterDays": 3}}},
         ["buckets.a.deleteAfterDays", "buckets.a.labels", "buckets.a.protect"]),
        ({"serviceAccounts": {"a": {
            "existing": EMAIL, "team": "v", "reads": [], "writes": [], "secrets": [],
            "callsVertex": True, "submitters": [], "datasets": {}}}}, []),
        ({"serviceAccounts": {"a": {"existing": EMAIL, "roles": {}, "members": {}}}},
         ["serviceAccounts.a.members", "serviceAccounts.a.roles"]),
        ({"secrets": {"a": {"existing": KEY, "team": "v"}}}, []),
        ({"secrets": {"a": {"existing": KEY, "description": "x", "members": {}}}},
         ["secrets.a.description", "secrets.a.members"]),
        ({"registry": {"existing": REPOSITORY, "keepVersions": 3, "immutableTags": True}},
         ["registry.immutableTags", "registry.keepVersions"]),
        ({"registry": {"keepVersions": 3, "name": "x"}}, []),
    ],
)  # fmt: skip
def test_what_exists_takes_no_settings(changes: dict[str, Any], paths: list[str]) -> None:
    assert told(**changes) == [(path, *OWNERS) for path in paths]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"buckets": {"a": {"project": "acme-data-1"}}}, [
            ("buckets.a.project",
             "says nothing without existing: the stack makes its buckets in its own project",
             "acme-data-1", "remove it")]),
        ({"buckets": {"a": {"name": "acme-ml-prod-control-x"}}}, [
            ("buckets.a.name", RECORDS, "acme-ml-prod-control-x", "another bucket")]),
        ({"buckets": {"a": {"existing": "acme-ml-prod-control-x"}}}, [
            ("buckets.a.existing", RECORDS, "acme-ml-prod-control-x", "another bucket")]),
        ({"buckets": {"a": {"name": "acme-ml-prod-controls"}}}, []),
        # Names by default count as well, those of the stack itself among them.
        ({"buckets": {"a": {"name": "acme-ml-prod-b-prod"}, "b": {}}}, [
            ("buckets.a.name", "is the name of b, too", "acme-ml-prod-b-prod", "one of them")]),
        ({"buckets": {"a": {"name": "acme-ml-prod-b-prod"}, "b": {"name": "other-name"}}}, []),
        ({"buckets": {"a": {"name": "acme-ml-prod-staging-prod"}}}, [
            ("buckets.a.name", "is the name of the stack itself, too",
             "acme-ml-prod-staging-prod", "one of them")]),
        ({"buckets": {"a": {"existing": "x-y"}, "b": {"name": "x-y"}, "c": {"name": "x-y"}}}, [
            ("buckets.b.name", "is the name of a, too", "x-y", "one of them"),
            ("buckets.c.name", "is the name of b, too", "x-y", "one of them")]),
        ({"secrets": {"a": {"name": "b-prod"}, "b": {}}}, [
            ("secrets.a.name", "is the name of b, too", "projects/acme-ml-prod/secrets/b-prod",
             "one of them")]),
        ({"serviceAccounts": {"a": {"name": "image-build-prod"}}}, []),
        ({"serviceAccounts": {"a": {"name": "image-build-prod"}},
          "images": {"x": {"context": "jobs/x"}}}, [
            ("serviceAccounts.a.name", "is the name of the stack itself, too",
             "image-build-prod@acme-ml-prod.iam.gserviceaccount.com", "one of them")]),
    ],
)  # fmt: skip
def test_a_name_is_given_once(changes: dict[str, Any], found: Any) -> None:
    assert told(**changes) == found


def ranges(**given: Any) -> dict[str, Any]:
    return {"network": {"mode": "peering", "ranges": given}}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (ranges(a={"prefixLength": 18, "name": "pool"}, b={"prefixLength": 18, "name": "pool"}), [
            ("network.ranges.b.name", "is the name of a, too", "pool", "one of them")]),
        (ranges(a={"prefixLength": 18}, b={"prefixLength": 18, "name": "training-a-prod"}), [
            ("network.ranges.b.name", "is the name of a, too", "training-a-prod",
             "one of them")]),
        (ranges(b={"prefixLength": 18, "name": "training-z-prod"}, z={"prefixLength": 18}), [
            ("network.ranges.b.name", "is the name of z, too", "training-z-prod",
             "one of them")]),
        # What exists has its owner's name, whatever its key.
        (ranges(a={"existing": "pool"}, b={"prefixLength": 18, "name": "training-a-prod"}), []),
        (ranges(a={"existing": "pool", "name": "x"}, b={"prefixLength": 18, "name": "pool"}), [
            ("network.ranges.a.name", "is its owner's to say: this exists", "x", "remove it")]),
        ({"reservations": {"a": H100 | {"name": "pool"}, "b": H100 | {"name": "pool"}}}, [
            ("reservations.b.name", "is the name of a, too", "pool", "one of them")]),
        ({"reservations": {"a": H100 | {"name": "pool"},
                           "b": H100 | {"name": "pool", "zone": "us-central1-b"}}}, []),
        ({"reservations": {"a": H100 | {"name": "pool"},
                           "b": H100 | {"name": "pool", "project": "acme-x-1"}}}, []),
        ({"reservations": {"a": H100 | {"name": "pool"},
                           "b": H100 | {"name": "pool", "project": "acme-ml-prod"}}}, [
            ("reservations.b.name", "is the name of a, too", "pool", "one of them")]),
        ({"reservations": {"a": H100 | {"name": "b-prod"}, "b": H100}}, [
            ("reservations.a.name", "is the name of b, too", "b-prod", "one of them")]),
        ({"reservations": {"a": H100 | {"existing": PLACE, "name": "y"}}}, [
            ("reservations.a.name", "is its owner's to say: this exists", "y", "remove it")]),
    ],
)  # fmt: skip
def test_names_of_ranges_and_of_reservations_in_a_zone_are_given_once(
    changes: dict[str, Any], found: Any
) -> None:
    assert told(**changes) == found
