"""What is answered over REST of projects, quotas, networks and names, as whole documents."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp import secretmanager
from localgcp.errors import ExchangeEndedError
from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE
from localgcp.projects import local_project_number
from localgcp.reads import serving
from tests.unit.localcloud.rest_cloud import PROJECT, RestCloud, cloud

__all__ = ["cloud"]

OTHER = "local-p2"
NUMBER = local_project_number(PROJECT)
COMPUTE = f"/compute/v1/projects/{PROJECT}"
ROUTER, NAT = "gcp:compute/router:Router", "gcp:compute/routerNat:RouterNat"
FIREWALL = "gcp:compute/firewall:Firewall"
RULES = "/v2/projects/{}/policies/{}:getEffectivePolicy"


def no(permission: str, on: str) -> tuple[int, str]:
    return 403, f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."


def test_a_project_has_a_number_and_somebody_who_pays(cloud: RestCloud) -> None:
    assert cloud.get(f"/v3/projects/{PROJECT}") == {
        "name": f"projects/{NUMBER}", "projectId": PROJECT, "state": "ACTIVE",
    }  # fmt: skip
    assert cloud.get(f"/v1/projects/{PROJECT}/billingInfo") == {
        "name": f"projects/{PROJECT}/billingInfo", "projectId": PROJECT,
        "billingAccountName": "billingAccounts/000000-000000-000000", "billingEnabled": True,
    }  # fmt: skip
    refused = no("resourcemanager.projects.get", "projects/acme")
    assert cloud.refusal("GET", "/v3/projects/acme") == refused
    cloud.put(SERVICE, "acme/run.googleapis.com", "acme")
    assert cloud.get("/v3/projects/acme")["projectId"] == "acme"


def test_two_apis_are_on_in_every_project(cloud: RestCloud) -> None:
    cloud.put(SERVICE, f"{PROJECT}/run.googleapis.com")
    cloud.put(SERVICE, f"{OTHER}/dns.googleapis.com", OTHER)
    names = ("cloudresourcemanager", "run", "serviceusage")
    assert cloud.get(f"/v1/projects/{PROJECT}/services") == {
        "services": [
            {
                "name": f"projects/{PROJECT}/services/{name}.googleapis.com",
                "parent": f"projects/{PROJECT}", "state": "ENABLED",
                "config": {"name": f"{name}.googleapis.com"},
            }
            for name in names
        ]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "rule"),
    [
        ("iam.disableServiceAccountKeyCreation", {"enforce": False}),
        ("iam.managed.disableServiceAccountKeyCreation", {"enforce": False}),
        ("storage.uniformBucketLevelAccess", {"enforce": False}),
        ("storage.publicAccessPrevention", {"enforce": False}),
        ("iam.allowedPolicyMemberDomains", {"allowAll": True}),
        ("gcp.resourceLocations", {"allowAll": True}),
    ],
)
def test_no_constraint_restricts_anything(cloud: RestCloud, constraint: str, rule: Any) -> None:
    assert cloud.get(RULES.format(PROJECT, constraint)) == {
        "name": f"projects/{NUMBER}/policies/{constraint}", "spec": {"rules": [rule]},
    }  # fmt: skip


def quotas(**used: float) -> list[dict[str, Any]]:
    return [{"metric": name, "limit": 1e6, "usage": float(used[name])} for name in sorted(used)]


def test_a_region_has_what_a_project_uses_in_it(cloud: RestCloud) -> None:
    empty = {"RESERVATIONS": 0, "NETWORK_ATTACHMENTS": 0, "IN_USE_ADDRESSES": 0}
    wanted = {"kind": "compute#region", "name": "us-west1", "status": "UP"}
    assert cloud.get(f"{COMPUTE}/regions/us-west1") == wanted | {"quotas": quotas(**empty)}
    link = f"https://www.googleapis.com{COMPUTE}/zones/us-west1-a"
    for name, zone, kind, project in (
        ("a", link, "a2-highgpu-2g", PROJECT), ("b", "us-west1-b", "n1-standard-4", PROJECT),
        ("c", "us-east1-b", "a2-highgpu-1g", PROJECT), ("d", "us-west1-a", "g2-standard-4", OTHER),
    ):  # fmt: skip
        machines = {"count": "3", "instanceProperties": {"machineType": kind}}
        path = f"projects/{project}/zones/{zone.rpartition('/')[2]}/reservations/{name}"
        cloud.put(RESERVATION, path, project, zone=zone, specificReservation=machines)
    cloud.put(vpc.ATTACHMENT, "x", region="us-west1")
    cloud.put(vpc.ATTACHMENT, "y", region="us-east1")
    cloud.put(NAT, "n", region="us-west1")
    used = {"RESERVATIONS": 2, "NETWORK_ATTACHMENTS": 1, "IN_USE_ADDRESSES": 1,
            "NVIDIA_A100_GPUS": 6}  # fmt: skip
    assert cloud.get(f"{COMPUTE}/regions/us-west1") == wanted | {"quotas": quotas(**used)}


def test_a_project_of_compute_engine_has_what_it_uses_anywhere(cloud: RestCloud) -> None:
    wanted = {"kind": "compute#project", "name": PROJECT}
    for type_ in (vpc.NETWORK, vpc.SUBNETWORK, vpc.ADDRESS, FIREWALL, ROUTER):
        cloud.put(type_, "a")
        cloud.put(type_, "b", OTHER)
    cloud.put(vpc.NETWORK, "c")
    used = {"NETWORKS": 2, "SUBNETWORKS": 1, "GLOBAL_INTERNAL_ADDRESSES": 1, "FIREWALLS": 1,
            "ROUTERS": 1}  # fmt: skip
    assert cloud.get(COMPUTE) == wanted | {"quotas": quotas(**used)}
    cloud.put(vpc.HOST_PROJECT, PROJECT)
    assert cloud.get(COMPUTE) == wanted | {"quotas": quotas(**used), "xpnProjectStatus": "HOST"}


def test_a_service_project_has_a_host(cloud: RestCloud) -> None:
    assert cloud.get(f"{COMPUTE}/getXpnHost") == {}
    for host, service in (("local-h1", OTHER), ("local-h2", PROJECT)):
        cloud.put(vpc.SERVICE_PROJECT, f"{host}/{service}", host, hostProject=host,
                  serviceProject=service)  # fmt: skip
    wanted = {"kind": "compute#project", "name": "local-h2"}
    assert cloud.get(f"{COMPUTE}/getXpnHost") == wanted


def test_a_network_has_its_connections_and_the_zone_of_this_machine(cloud: RestCloud) -> None:
    path = f"projects/{PROJECT}/global/networks/n"
    given = f"projects/{NUMBER}/global/networks/n"
    at = "/v1/services/servicenetworking.googleapis.com/connections"
    zones = f"/dns/v1/projects/{PROJECT}/managedZones"
    assert cloud.get(zones) == {"managedZones": []}
    cloud.put(vpc.NETWORK, path)
    cloud.put(vpc.NETWORK, "projects/local-p2/global/networks/n", OTHER)
    assert cloud.get(f"{at}?network={given}") == {}
    cloud.put(vpc.CONNECTION, "c", network=path, peering="p", reservedPeeringRanges=["r"])
    cloud.put(vpc.CONNECTION, "d", network=path)
    service = "services/servicenetworking.googleapis.com"
    first = {"network": given, "peering": "p", "reservedPeeringRanges": ["r"], "service": service}
    second = {"network": given, "reservedPeeringRanges": [], "service": service}
    assert cloud.get(f"{at}?network={given}") == {"connections": [first, second]}
    text = "network must be projects/NUMBER/global/networks/NAME."
    for query in ("", "?network=n", f"?network=n&network={given}"):
        assert cloud.refusal("GET", f"{at}{query}") == (400, text)
    link = f"https://www.googleapis.com/compute/v1/{path}"
    visible = {"privateVisibilityConfig": {"networks": [{"networkUrl": link}]}}
    zone = {"name": "this-machine", "dnsName": ".", "visibility": "private"}
    assert cloud.get(zones) == {"managedZones": [zone | visible]}


def test_a_bucket_is_of_a_project_of_ours_or_of_nobody_we_know(cloud: RestCloud) -> None:
    missing = (404, "The specified bucket does not exist.")
    assert cloud.refusal("GET", "/storage/v1/b/data") == missing
    cloud.put(BUCKET, "data", name="data")
    found = cloud.get("/storage/v1/b/data")
    assert (found["kind"], found["name"], found.get("projectNumber")) == (
        "storage#bucket", "data", None,
    )  # fmt: skip
    cloud.put(BUCKET, "ours", name="ours", project=PROJECT, location="US")
    assert cloud.get("/storage/v1/b/ours")["projectNumber"] == NUMBER


def test_a_version_of_a_secret_is_enabled_or_not_there(cloud: RestCloud) -> None:
    path = f"/v1/projects/{PROJECT}/secrets/key/versions/latest"
    missing = (404, f"Secret Version [{path}] not found.")
    assert cloud.refusal("GET", path) == missing
    folder = cloud.store.path.parent / "secrets"
    for value in (b"one", b"two"):
        secretmanager.add_version(folder, PROJECT, "key", value)
    assert cloud.refusal("GET", path) == missing  # values outlive their secret
    cloud.put("gcp:secretmanager/secret:Secret", f"projects/{PROJECT}/secrets/key")
    name = f"projects/{NUMBER}/secrets/key/versions"
    assert cloud.get(path) == {"name": f"{name}/2", "state": "ENABLED"}
    assert cloud.get(path.replace("latest", "1")) == {"name": f"{name}/1", "state": "ENABLED"}
    (folder.parent / "7").touch()
    for outside in (
        path.replace("key", "..%2F.."),
        path.replace(PROJECT, "..").replace("key", ".."),
    ):
        assert cloud.refusal("GET", outside)[0] == 404


@pytest.mark.parametrize(
    ("type_", "api", "path", "stored", "wanted"),
    [
        ("monitoring/notificationChannel:NotificationChannel", "v3", "notificationChannels/7",
         {"type": "email", "labels": {"email_address": "a@b.c"}, "enabled": True},
         {"type": "email", "labels": {"email_address": "a@b.c"}, "enabled": True}),
        ("kms/cryptoKey:CryptoKey", "v1", "locations/l/keyRings/r/cryptoKeys/k",
         {"purpose": "ASYMMETRIC_SIGN", "primaries": [{"name": "v1", "state": "ENABLED"}]},
         {"purpose": "ASYMMETRIC_SIGN", "primary": {"name": "v1", "state": "ENABLED"}}),
    ],
)  # fmt: skip
def test_what_has_a_name_is_read_by_its_path(
    cloud: RestCloud, type_: str, api: str, path: str, stored: Any, wanted: Any
) -> None:
    name = f"projects/{PROJECT}/{path}"
    missing = (404, f"The resource '{name}' was not found")
    assert cloud.refusal("GET", f"/{api}/{name}") == missing
    cloud.put(f"gcp:{type_}", name, **stored)
    assert cloud.get(f"/{api}/{name}") == {"name": name, **wanted}


BUCKET_ASKS = "/storage/v1/b/data/iam/testPermissions?permissions="


def test_who_asks_holds_every_permission_on_what_is_there(cloud: RestCloud) -> None:
    at = f"/v1/projects/{PROJECT}:testIamPermissions"
    both = ["a.b.get", "a.b.set"]
    assert cloud.post(at, permissions=both) == {"permissions": both}
    assert cloud.post(at, permissions=[]) == {}
    assert cloud.post("/v1/projects/acme:testIamPermissions", permissions=both) == {}
    cloud.put(SERVICE, "acme/run.googleapis.com", "acme")
    there = cloud.post("/v1/projects/acme:testIamPermissions", permissions=both)
    assert there == {"permissions": both}
    email = f"trainer@{PROJECT}.iam.gserviceaccount.com"
    account = f"/v1/projects/{PROJECT}/serviceAccounts/{email}:testIamPermissions"
    assert cloud.post(account, permissions=both) == {}
    cloud.put(ACCOUNT, email, email=email)
    assert cloud.post(account, permissions=both) == {"permissions": both}
    key = f"projects/{PROJECT}/locations/l/keyRings/r/cryptoKeys/k"
    assert cloud.refusal("POST", f"/v1/{key}:testIamPermissions", b'{"permissions": ["a"]}') == (
        404, f"{key} was not found.",
    )  # fmt: skip
    assert cloud.refusal("GET", f"{BUCKET_ASKS}a.b.get") == (404, "b/data was not found.")
    cloud.put(BUCKET, "data", name="data", project=PROJECT)
    found = cloud.get(f"{BUCKET_ASKS}a.b.get&permissions=a.b.set")
    assert found["permissions"] == both
    for of_project in ("storage.buckets.create", "storage.buckets.list"):
        assert cloud.refusal("GET", f"{BUCKET_ASKS}a.b.get&permissions={of_project}") == (
            400, "permissions of projects are asked of no bucket.",
        )  # fmt: skip
    cloud.fault("iam", "deny", match="a.b.set")
    assert cloud.post(at, permissions=both) == {"permissions": ["a.b.get"]}
    assert cloud.get(f"{BUCKET_ASKS}a.b.get&permissions=a.b.set")["permissions"] == ["a.b.get"]


def test_policies_are_read_and_written_unless_a_fault_denies_it(cloud: RestCloud) -> None:
    at = f"/v1/projects/{PROJECT}"
    bindings = [{"role": "roles/viewer", "members": ["user:a@b.c"]}]
    written = cloud.post(f"{at}:setIamPolicy", policy={"bindings": bindings})
    assert written["bindings"] == bindings
    assert cloud.post(f"{at}:getIamPolicy") == written
    cloud.fault("iam", "deny")
    for verb in ("get", "set"):
        body = b'{"policy": {}}' if verb == "set" else b"{}"
        assert cloud.refusal("POST", f"{at}:{verb}IamPolicy", body) == no(
            f"resourcemanager.projects.{verb}IamPolicy", f"projects/{PROJECT}"
        )


def test_faults_change_and_end_answers(cloud: RestCloud) -> None:
    path = f"/v3/projects/{PROJECT}"
    cloud.fault("cloudresourcemanager", "patch", patch={"state": "GONE", "name": None})
    assert cloud.get(path) == {"projectId": PROJECT, "state": "GONE"}
    cloud.fault("cloudresourcemanager", "error", code="429", when="after")
    assert cloud.refusal("GET", path) == (429, "fault 2 of the local cloud")
    cloud.fault("cloudresourcemanager", "deny")
    assert cloud.refusal("GET", path) == no("resourcemanager.projects.get", path)
    cloud.fault("storage", "patch", method="buckets.get", patch={"projectNumber": "7"})
    assert cloud.get("/storage/v1/b/theirs") == {"projectNumber": "7"}
    cloud.fault("storage", "reset")
    with pytest.raises(ExchangeEndedError):
        cloud.get("/storage/v1/b/theirs")


def test_a_reset_ends_the_connection_that_asks(
    cloud: RestCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(serving, "named_connection", {"c-7": "peer"}.get)
    monkeypatch.setattr(serving, "reset_connection", ended.append)
    cloud.fault("storage", "reset")
    for connection in ("c-7", "c-8"):
        with pytest.raises(ExchangeEndedError):
            cloud.reads.answer("GET", "/storage/v1/b/data", b"", connection)
    assert ended == ["peer"]


def test_faults_keep_an_answer_waiting(cloud: RestCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    waited, held = list[float](), list[tuple[Any, ...]]()
    monkeypatch.setattr(cloud.stopping, "wait", waited.append)
    monkeypatch.setattr(cloud.faults, "hold", lambda *told: held.append(told))
    path = f"/v3/projects/{PROJECT}"
    answer = cloud.get(path)
    cloud.fault("cloudresourcemanager", "delay", seconds=2.5)
    cloud.fault("cloudresourcemanager", "delay", seconds=0.5, when="after")
    assert cloud.get(path) == answer
    assert (waited, held) == ([2.5, 0.5], [])
    cloud.fault("storage", "delay", method="buckets.get", seconds=7)
    cloud.fault("monitoring", "hold")
    channel = f"/v3/projects/{PROJECT}/notificationChannels/7"
    assert cloud.refusal("GET", channel)[0] == 404
    assert (waited, held) == ([2.5, 0.5], [(4, channel, cloud.stopping)])


def test_a_request_is_a_json_object_of_a_method_that_is_there(cloud: RestCloud) -> None:
    assert cloud.get("/v9/anything") is None
    at = f"/v1/projects/{PROJECT}:testIamPermissions"
    for body in (b"[]", b"{", b'"a"', b"[" * 100_000):
        assert cloud.refusal("POST", at, body) == (400, "the body is no JSON object.")
    # A field that is null is one that is not set.
    assert cloud.post(at, permissions=None) == {}
