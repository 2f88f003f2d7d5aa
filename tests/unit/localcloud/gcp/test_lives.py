"""How resources are read, changed and taken away while something else holds or changes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.services.accounts import missing_account
from localgcp.gcp.services.base import ResourceType
from localgcp.gcp.services.grants import add_member, rewrite
from localgcp.inventory import vpc
from localgcp.inventory.store import ACCOUNT, SERVICE, Binding
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.gcp.estate import (
    HOST,
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


@pytest.mark.parametrize(
    "role",
    [
        "roles/viewer", "organizations/1/roles/x", "projects/acme/roles/x",
        f"projects/{PROJECT}/roles/x",
    ],
)  # fmt: skip
def test_a_role_that_is_there_or_is_another_clouds_is_granted(estate: Estate, role: str) -> None:
    estate.enable("cloudresourcemanager")
    path = f"projects/{PROJECT}/roles/x"
    estate.store.put("gcp:projects/iAMCustomRole:IAMCustomRole", path, PROJECT, {}, {})
    cloud, kind = estate.kind("gcp:projects/iAMMember:IAMMember")
    kind.create(cloud, {"project": PROJECT, "role": role, "member": MEMBER})
    assert estate.store.policy(f"projects/{PROJECT}").bindings == (Binding(role, (MEMBER,)),)


OTHERS = f"projects/{HOST}"


@pytest.mark.parametrize(
    ("token", "resource", "api", "on", "made"),
    [
        ("gcp:compute/subnetworkIAMMember:SubnetworkIAMMember", vpc.SUBNETWORK, "compute",
         ("subnetwork", f"{OTHERS}/regions/eu/subnetworks/s"), {"region": "eu"}),
        ("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
         "gcp:artifactregistry/repository:Repository", "artifactregistry",
         ("repository", f"{OTHERS}/locations/eu/repositories/r"), {"location": "eu"}),
        ("gcp:secretmanager/secretIamMember:SecretIamMember",
         "gcp:secretmanager/secret:Secret", "secretmanager",
         ("secretId", f"{OTHERS}/secrets/s"), {}),
    ],
)  # fmt: skip
def test_a_grant_returns_the_project_and_the_place_of_its_resource(
    estate: Estate, token: str, resource: str, api: str, on: tuple[str, str], made: Any
) -> None:
    name, path = on
    estate.store.put(resource, path, HOST, {}, {})
    estate.store.put(SERVICE, f"{HOST}/{api}.googleapis.com", HOST, {}, {})
    cloud, kind = estate.kind(token)
    found = kind.create(cloud, {name: path, "role": VIEWER, "member": MEMBER})
    etag = estate.store.policy(path).etag
    wanted = {name: path, "role": VIEWER, "member": MEMBER, "project": HOST, "etag": etag, **made}
    assert {key: found.outputs[key] for key in wanted} == wanted


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
SSD = {"interface": "NVME", "diskSizeGb": 375}


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


def test_the_machine_of_a_reservation_is_returned_with_all_its_fields(estate: Estate) -> None:
    given = reservation("1")
    own = {"localSsds": [SSD | {"__defaults": ["interface"]}], "minCpuPlatform": "Intel Skylake"}
    given["specificReservation"]["instanceProperties"] |= own
    given["specificReservation"]["sourceInstanceTemplate"] = "t"
    cloud, kind = estate.kind(RESERVATION)
    assert kind.make(cloud, PROJECT, RESERVED, given)["specificReservation"] == specific(
        1, 0, localSsds=[SSD], minCpuPlatform="Intel Skylake"
    ) | {"sourceInstanceTemplate": "t"}


def test_a_reservation_is_held_by_the_jobs_that_use_it(estate: Estate, jobs: JobTable) -> None:
    outputs = {"specificReservation": specific(3, 0), "name": "x", "project": PROJECT}
    estate.store.put(RESERVATION, RESERVED, PROJECT, {"a": 1}, outputs)
    cloud, kind = estate.kind(RESERVATION)
    found = kind.read(cloud, RESERVED)
    assert found is not None
    assert (found.id, found.inputs, found.outputs) == (
        RESERVED, {"a": 1}, outputs | {"specificReservation": specific(3, 2)},
    )  # fmt: skip
    assert told(lambda: kind.remake(cloud, PROJECT, RESERVED, reservation("1"), {})) == (
        f"Error updating Reservation '{RESERVED}': googleapi: Error 400: Invalid value for field "
        "'resource.specificReservation.count': '1'. The reservation has 2 instances in use and "
        "cannot shrink below that., invalid"
    )
    named = outputs | {"specificReservationRequired": True}
    job = f"projects/{jobs.list()[0].number}/locations/us-central1/customJobs/1"
    assert told(lambda: kind.unmake(cloud, RESERVED, named)) == (
        f"Error deleting Reservation: googleapi: Error 400: The reservation resource '{RESERVED}' "
        f"is already being used by '{job}', resourceInUseByAnotherResource"
    )
    assert told(lambda: kind.unmake(cloud, RESERVED, outputs)) is None
    jobs.move("1", JobState.SUCCEEDED)
    assert told(lambda: kind.unmake(cloud, RESERVED, named)) is None


def test_a_reservation_that_deleted_itself_is_gone_and_its_name_is_free(estate: Estate) -> None:
    cloud, kind = estate.kind(RESERVATION)
    for at, is_there in (("2999-01-01T00:00:00Z", True), ("2020-01-01T00:00:00Z", False)):
        outputs = {"deleteAtTime": at, "specificReservation": specific(1, 0)}
        estate.store.put(RESERVATION, RESERVED, PROJECT, {}, outputs)
        assert (kind.read(cloud, RESERVED) is not None) is is_there
        kind.verify(cloud, PROJECT, reservation("1"), "Making")
        assert (estate.store.get(RESERVATION, RESERVED) is not None) is is_there


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


def test_a_grant_that_comes_while_an_account_goes_is_kept(estate: Estate) -> None:
    cloud, kind = estate.kind(ACCOUNT)
    member, path = f"serviceAccount:{EMAIL}", "b/data"
    write_policy(estate, path, Binding(VIEWER, (member, MEMBER)))
    roles = [f"roles/r{number}" for number in range(20)]

    def grant(role: str) -> None:
        rewrite(cloud, path, "", lambda held: add_member(held, role, MEMBER, None))
        kind.unmake(cloud, ACCOUNT_PATH, {"email": EMAIL})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(grant, roles))
    found = estate.store.policy(path).bindings
    assert {each.role: each.members for each in found} == dict.fromkeys([VIEWER, *roles], (MEMBER,))


@pytest.mark.parametrize(
    ("member", "missing"),
    [
        (f"serviceAccount:nobody@{PROJECT}.iam.gserviceaccount.com", True),
        (f"user:nobody@{PROJECT}.iam.gserviceaccount.com", False),
        (f"serviceAccount:nobody@{PROJECT}.example.com", False),
        ("serviceAccount:nobody@acme.iam.gserviceaccount.com", False),
        (f"deleted:serviceAccount:nobody@{PROJECT}.iam.gserviceaccount.com", False),
        ("allUsers", False),
    ],
)
def test_only_accounts_of_local_projects_are_looked_for(
    estate: Estate, member: str, missing: bool
) -> None:
    cloud, _ = estate.kind(ACCOUNT)
    assert missing_account(cloud, member) == (member.partition(":")[2] if missing else None)


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


def test_a_secret_that_is_protected_is_not_deleted(estate: Estate) -> None:
    outputs = {"project": PROJECT, "deletionProtection": True}
    estate.store.put(SECRET, SECRET_PATH, PROJECT, {}, outputs)
    cloud, kind = estate.kind(SECRET)
    assert told(lambda: kind.delete(cloud, SECRET_PATH, outputs)) == (
        f"cannot destroy secret {SECRET_PATH} without setting deletion_protection=false and "
        "running `pulumi up`"
    )
    assert estate.store.get(SECRET, SECRET_PATH) is not None
    for path in (SECRET_PATH, f"{SECRET_PATH}2"):
        write_policy(estate, path, Binding(VIEWER, (MEMBER,)))
    kind.delete(cloud, SECRET_PATH, outputs | {"deletionProtection": False})
    assert estate.store.get(SECRET, SECRET_PATH) is None
    assert list(estate.store.policies()) == [f"{SECRET_PATH}2"]  # its own goes with it


@pytest.mark.parametrize(
    ("ring", "project"),
    [("projects/local-a/locations/l/keyRings/k", "local-a"), ("k", PROJECT), ("", PROJECT)],
)
def test_a_key_is_in_the_project_of_its_ring(estate: Estate, ring: str, project: str) -> None:
    cloud, kind = estate.kind("gcp:kms/cryptoKey:CryptoKey")
    assert kind.project(cloud, {"keyRing": ring}) == project


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:artifactregistry/repository:Repository",
         {"repositoryId": "r", "format": "DOCKER", "cleanupPolicies": [
             {"id": "p", "action": "KEEP", "mostRecentVersions": {"keepCount": 1}},
             {"id": "q", "action": "DELETE", "condition": {"tagState": "ANY"}}]}),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
         {"workloadIdentityPoolId": "p", "oidc": {"issuerUri": "x"},
          "attributeMapping": {"google.subject": "assertion.sub"}}),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
         {"workloadIdentityPoolId": "p", "aws": {"accountId": "1"}}),
    ],
)  # fmt: skip
def test_what_a_service_takes_is_not_refused(estate: Estate, token: str, inputs: Any) -> None:
    pool = f"projects/{PROJECT}/locations/global/workloadIdentityPools/p"
    estate.store.put("gcp:iam/workloadIdentityPool:WorkloadIdentityPool", pool, PROJECT, {}, {})
    cloud, kind = estate.kind(token)
    assert told(lambda: kind.verify(cloud, PROJECT, inputs, "Making")) is None
