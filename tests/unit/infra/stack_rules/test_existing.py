"""What exists is its owner's, and no two entries have one name in the cloud."""

import pytest

from tests.unit.infra.stacks import refused as refused_by
from tests.unit.infra.stacks import stack


def refused(**changes):
    return [(path, text.split(". Hint")[0]) for path, text in refused_by(**changes)]


def test_what_exists_takes_no_settings_of_what_the_stack_makes():
    found = refused(
        buckets={"data": {"existing": "acme-data", "protect": True, "objects": {"a": "b"}}},
        secrets={"key": {"existing": "projects/acme-ml-prod/secrets/k", "name": "x"}},
        serviceAccounts={
            "t": {"existing": "t-one-1@acme-ml-prod.iam.gserviceaccount.com", "description": "x"}
        },
    )
    assert [path for path, _ in found if path != "buckets.data.objects.a"] == [
        "buckets.data.objects",
        "buckets.data.protect",
        "serviceAccounts.t.description",
        "secrets.key.name",
    ]


@pytest.mark.parametrize("field", ["existing", "name"])
def test_records_of_submissions_are_nobodys_data(field):
    name = "acme-ml-prod-control-dev"
    assert refused(buckets={"data": {field: name}})[0][0] == f"buckets.data.{field}"


def test_two_accounts_are_told_apart_by_their_project():
    accounts = {
        "a": {"existing": "trainer-x@acme-ml-prod.iam.gserviceaccount.com"},
        "b": {"existing": "trainer-x@acme-other-1.iam.gserviceaccount.com"},
    }
    stack(serviceAccounts=accounts)
    accounts["c"] = {"name": "trainer-x"}
    assert refused(serviceAccounts=accounts)[0][0] == "serviceAccounts.c.name"


def test_a_project_is_for_what_exists():
    assert refused(buckets={"a": {"project": "acme-data-1"}})[0][0] == "buckets.a.project"


REPOSITORY = "projects/acme-images/locations/us/repositories/training"


def test_a_repository_that_exists_takes_no_settings():
    found = refused(registry={"existing": REPOSITORY, "keepVersions": 3, "name": "x"})
    assert [path for path, _ in found] == ["registry.keepVersions", "registry.name"]


def test_names_of_ranges_and_reservations_are_given_once():
    machine = {"zone": "us-central1-a", "machineType": "n1-standard-8", "count": 1}
    ranges = {"a": {"prefixLength": 18, "name": "pool"}, "b": {"prefixLength": 18, "name": "pool"}}
    found = refused(
        network={"mode": "peering", "ranges": ranges},
        reservations={"x": machine | {"name": "y-prod"}, "y": machine},
    )
    assert [path for path, _ in found] == ["network.ranges.b.name", "reservations.x.name"]
    elsewhere = {"y": machine | {"zone": "us-central1-b"}}
    stack(reservations={"x": machine | {"name": "y-prod"}} | elsewhere)


def test_what_exists_has_its_owners_name():
    path = "projects/acme-ml-prod/zones/us-central1-a/reservations/pool"
    machine = {"zone": "us-central1-a", "machineType": "n1-standard-8", "count": 1}
    found = refused(
        network={"mode": "peering", "ranges": {"a": {"existing": "pool", "name": "x"}}},
        reservations={"x": machine | {"existing": path, "name": "y"}},
    )
    assert {path for path, _ in found} >= {"network.ranges.a.name", "reservations.x.name"}
