"""How resources are read, changed and taken away while something else holds or changes them."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.services.base import ResourceType
from localgcp.gcp.services.grants import rewrite
from localgcp.inventory import vpc
from localgcp.inventory.store import ACCOUNT, Binding
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.gcp.estate import (
    LINK,
    PROJECT,
    REGION,
    ROUTER,
    SUBNET,
    VPC,
    Estate,
    told,
    write_policy,
)
from tests.unit.localcloud.vertex.rows import job_row

BUCKET_GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"
RESERVATION = "gcp:compute/reservation:Reservation"
ZONE = f"projects/{PROJECT}/zones/us-west1-a"
RESERVED = f"{ZONE}/reservations/x"
EMAIL = f"trainer@{PROJECT}.iam.gserviceaccount.com"
ACCOUNT_PATH = f"projects/{PROJECT}/serviceAccounts/{EMAIL}"
MEMBER, VIEWER = "group:ml@example.com", "roles/viewer"
CONDITION = {"title": "t", "description": "", "expression": "true"}


@pytest.mark.parametrize(
    ("binding", "condition", "is_there"),
    [
        (Binding(VIEWER, ("a", MEMBER)), None, True),
        (Binding(VIEWER, ("a",)), None, False),
        (Binding("roles/editor", (MEMBER,)), None, False),
        (Binding(VIEWER, (MEMBER,), CONDITION), None, False),
        (Binding(VIEWER, (MEMBER,)), CONDITION, False),
        (Binding(VIEWER, (MEMBER,), CONDITION), CONDITION, True),
    ],
)
def test_a_grant_is_there_while_the_policy_has_its_member_role_and_condition(
    estate: Estate, deleted_buckets: set[str], binding: Binding, condition: Any, is_there: bool
) -> None:
    inputs = {"bucket": "data", "role": VIEWER, "member": MEMBER, "condition": condition}
    id_ = f"b/data/{VIEWER}/{MEMBER}"
    estate.store.put(BUCKET_GRANT, id_, PROJECT, inputs, {"etag": "old", "kept": 1})
    write_policy(estate, "b/data", binding, Binding("roles/other", ("b",)))
    cloud, kind = estate.kind(BUCKET_GRANT)
    found = kind.read(cloud, id_)
    if not is_there:
        assert found is None
        return
    assert found is not None
    etag = estate.store.policy("b/data").etag
    assert (found.id, found.inputs, found.outputs) == (id_, inputs, {"etag": etag, "kept": 1})
    deleted_buckets.add("data")  # by a client of Cloud Storage: its policy went with it
    assert kind.read(cloud, id_) is None


def test_a_policy_that_a_change_leaves_as_it_is_is_not_written(estate: Estate) -> None:
    write_policy(estate, "b/data", Binding(VIEWER, (MEMBER,)))
    cloud, _ = estate.kind(BUCKET_GRANT)
    before = estate.store.policy("b/data")
    assert rewrite(cloud, "b/data", "doing", lambda bindings: bindings) == before
    assert estate.store.policy("b/data") == before
    changed = rewrite(cloud, "b/data", "doing", lambda _: ())
    assert changed == estate.store.policy("b/data") != before


def test_a_network_whose_connection_a_job_uses_is_not_deleted(estate: Estate) -> None:
    estate.store.delete(ROUTER, f"{REGION}/routers/r")
    estate.store.delete(vpc.SUBNETWORK, SUBNET)
    values = {"network": VPC, "service": "s"}
    estate.store.put(vpc.CONNECTION, "c", PROJECT, values, values)
    jobs = JobTable(estate.store.path)
    jobs.insert(job_row("1", {"network": VPC}, state=JobState.RUNNING, project=PROJECT))
    cloud, kind = estate.kind(vpc.NETWORK)
    job = f"projects/{jobs.list()[0].number}/locations/us-central1/customJobs/1"
    assert told(lambda: kind.unmake(cloud, VPC, {})) == (
        f"Error deleting Network: googleapi: Error 400: The network resource '{VPC}' is already "
        f"being used by '{job}', resourceInUseByAnotherResource"
    )
    assert [each.id for each in estate.store.list(vpc.CONNECTION)] == ["c"]
    jobs.move("1", JobState.SUCCEEDED)
    kind.unmake(cloud, VPC, {})
    assert estate.store.list(vpc.CONNECTION) == []


MACHINE = {
    "guestAccelerators": [], "localSsds": [], "locationHint": "", "machineType": "n1-standard-4",
    "maintenanceInterval": "", "minCpuPlatform": "",
}  # fmt: skip


def specific(count: int, used: int, **machine: Any) -> dict[str, Any]:
    """As the API returns it."""
    return {
        "assuredCount": count, "count": count, "inUseCount": used,
        "instanceProperties": MACHINE | machine, "sourceInstanceTemplate": "",
    }  # fmt: skip


def reservation(count: str, **more: Any) -> dict[str, Any]:
    properties = {"machineType": "n1-standard-4", "__defaults": []}
    given = {"count": count, "instanceProperties": properties, "__defaults": []}
    return {"name": "x", "zone": "us-west1-a", "specificReservation": given, **more}


@pytest.fixture
def jobs(estate: Estate) -> JobTable:
    """One that runs, with two machines of the reservation."""
    table = JobTable(estate.store.path)
    table.insert(job_row("1", {}, state=JobState.RUNNING))
    assert table.claim("1", {RESERVED: 2}, {RESERVED: 3})
    return table


ALONE = {"projectMaps": [], "projects": [], "shareType": "LOCAL"}


@pytest.mark.parametrize(
    ("given", "olds", "made"),
    [
        (reservation("2"), {},
         {"deleteAtTime": "", "shareSettings": ALONE, "specificReservation": specific(2, 2)}),
        (reservation("3", deleteAtTime="2999-01-01T00:00:00Z"), {"deleteAtTime": "2998"},
         {"deleteAtTime": "2999-01-01T00:00:00Z", "shareSettings": ALONE,
          "specificReservation": specific(3, 2)}),
        (reservation("3", shareSettings={"shareType": "SPECIFIC_PROJECTS", "projects": ["a"],
                                         "__defaults": []}), {"deleteAtTime": "2998"},
         {"deleteAtTime": "2998", "specificReservation": specific(3, 2),
          "shareSettings": {"projectMaps": [], "projects": ["a"],
                            "shareType": "SPECIFIC_PROJECTS"}}),
    ],
)  # fmt: skip
def test_a_reservation_is_updated_with_what_jobs_use_of_it(
    estate: Estate, jobs: JobTable, given: Any, olds: Any, made: Any
) -> None:
    cloud, kind = estate.kind(RESERVATION)
    zone = LINK + ZONE
    found = kind.remake(cloud, PROJECT, RESERVED, given, {"zone": zone, **olds})
    assert found == {"zone": zone, **made}


@pytest.mark.parametrize(
    ("inputs", "known"),
    [
        ({"accountId": Secret("trainer"), "project": "local-a"}, "trainer@local-a"),
        ({"accountId": "trainer"}, f"trainer@{PROJECT}"),
        ({"accountId": UNKNOWN}, ""),
        ({"accountId": "trainer", "project": UNKNOWN}, ""),
    ],
)
def test_an_address_is_foretold_once_its_parts_are_known(
    estate: Estate, inputs: dict[str, Any], known: str
) -> None:
    cloud, kind = estate.kind(ACCOUNT)
    email = f"{known}.iam.gserviceaccount.com"
    foretold = {"email": email, "member": f"serviceAccount:{email}"} if known else {}
    assert kind.known(cloud, inputs) == foretold


def test_an_account_that_goes_while_it_is_taken_over_is_refused(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.enable("iam")
    cloud, kind = estate.kind(ACCOUNT)
    kind.create(cloud, {"accountId": "trainer"})
    inputs = {"accountId": "trainer", "createIgnoreAlreadyExists": True}
    assert kind.create(cloud, inputs).id == ACCOUNT_PATH
    monkeypatch.setattr(ResourceType, "read", lambda *_given: None)
    with pytest.raises(CloudError) as refused:
        kind.create(cloud, inputs)
    assert refused.value.code == 409


def test_a_resource_that_nobody_verifies_is_updated_by_its_inputs(estate: Estate) -> None:
    cloud, kind = estate.kind(channel := "gcp:monitoring/notificationChannel:NotificationChannel")
    id_ = f"projects/{PROJECT}/notificationChannels/1"
    olds = {"name": id_, "project": PROJECT, "type": "email", "displayName": "old"}
    estate.store.put(channel, id_, PROJECT, {}, olds)
    off = told(lambda: kind.update(cloud, id_, {}, olds)) or ""
    assert off.startswith(
        f"Error updating NotificationChannel '{id_}': googleapi: Error 403: Cloud Monitoring API "
        f"has not been used in project {PROJECT} before or it is disabled."
    )
    estate.enable("monitoring")
    found = kind.update(cloud, id_, {"type": "email", "displayName": "new"}, olds)
    assert {key: found[key] for key in olds} == olds | {"displayName": "new"}
    stored = estate.store.get(channel, id_)
    assert stored is not None
    assert (stored.project, stored.inputs) == (PROJECT, {"type": "email", "displayName": "new"})
    assert stored.outputs["displayName"] == "new"


def test_an_attachment_that_changes_is_verified_and_keeps_its_region(estate: Estate) -> None:
    region, network = LINK + REGION, "vpc"  # a network by its name is the same one
    named = {"name": "u", "network": network, "region": "us-west1"}
    estate.store.put(vpc.SUBNETWORK, f"{REGION}/subnetworks/u", PROJECT, {}, named)
    cloud, kind = estate.kind(vpc.ATTACHMENT)
    inputs: dict[str, Any] = {"name": "x", "subnetworks": [SUBNET, "u"]}
    assert kind.remake(cloud, PROJECT, "x", inputs, {"region": region}) == {"region": region}
    made = kind.make(cloud, PROJECT, "x", {"name": "x", "subnetworks": ["u"]})
    assert made["network"] == LINK + VPC
    inputs["subnetworks"] = [SUBNET, "gone"]
    assert told(lambda: kind.remake(cloud, PROJECT, "x", inputs, {"region": region})) == (
        "Error updating NetworkAttachment 'x': googleapi: Error 400: Invalid value for field "
        "'resource.subnetworks[1]': 'gone'. The referenced subnetwork resource cannot be found., "
        "invalid"
    )


SECRET, SECRET_PATH = "gcp:secretmanager/secret:Secret", f"projects/{PROJECT}/secrets/s"
