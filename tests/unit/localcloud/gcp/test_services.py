"""What a service decides of a resource when it is made, and what it refuses, without a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localgcp.errors import PluginError, RefusedError
from localgcp.gcp.diff import Change
from localgcp.inventory import vpc
from localgcp.inventory.store import SERVICE
from tests.unit.localcloud.gcp.estate import (
    DIGITS,
    HOST,
    LINK,
    NUMBER,
    PROJECT,
    REGION,
    ROUTER,
    SUBNET,
    TIME,
    VPC,
    Estate,
)

FIREWALL = "gcp:compute/firewall:Firewall"
NAT, ADDRESS = "gcp:compute/routerNat:RouterNat", vpc.ADDRESS
RESERVATION = "gcp:compute/reservation:Reservation"
CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"


COMMON = {"project": PROJECT, "creationTimestamp": TIME}
NUMBERS = {"networkId": DIGITS, "numericId": DIGITS}
COUNT = {"count": "2", "instanceProperties": {"machineType": "n1-standard-4", "__defaults": []}}
MACHINE = {"guestAccelerators": [], "localSsds": [], "locationHint": "", "minCpuPlatform": "",
           "maintenanceInterval": "", "machineType": "n1-standard-4"}  # fmt: skip
SPECIFIC = {"assuredCount": 2, "count": 2, "inUseCount": 0, "instanceProperties": MACHINE,
            "sourceInstanceTemplate": ""}  # fmt: skip
RESERVED = {
    **COMMON, "selfLink": f"{LINK}projects/{PROJECT}/zones/us-west1-a/reservations/x",
    "zone": f"{LINK}projects/{PROJECT}/zones/us-west1-a", "specificReservation": SPECIFIC,
    "reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}, "deleteAtTime": "",
    "shareSettings": {"projectMaps": [], "projects": [], "shareType": "LOCAL"},
}  # fmt: skip
IN_ZONE = {"name": "x", "zone": f"{LINK}projects/{PROJECT}/zones/us-west1-a",
           "specificReservation": COUNT}  # fmt: skip
SHARED = {
    "shareType": "SPECIFIC_PROJECTS",
    "projectMaps": [{"id": "a"}, {"id": "b", "projectId": "c"}],
}
BY_NUMBER = f"projects/{NUMBER}/"


@pytest.mark.parametrize(
    ("token", "inputs", "made"),
    [
        (vpc.NETWORK, {"name": "x"},
         {"project": PROJECT, **NUMBERS, "selfLink": f"{LINK}projects/{PROJECT}/global/networks/x",
          "mtu": 1460, "routingMode": "REGIONAL", "autoCreateSubnetworks": True}),
        (vpc.NETWORK, {"name": "x", "mtu": 8896, "routingMode": "GLOBAL",
                       "autoCreateSubnetworks": False},
         {"project": PROJECT, **NUMBERS, "selfLink": f"{LINK}projects/{PROJECT}/global/networks/x",
          "mtu": 8896, "routingMode": "GLOBAL", "autoCreateSubnetworks": False}),
        (FIREWALL, {"name": "x", "network": "vpc", "priority": 65535,
                    "sourceRanges": ["10.0.0.0/8", "::/0"]},
         {**COMMON, "selfLink": f"{LINK}projects/{PROJECT}/global/firewalls/x",
          "direction": "INGRESS"}),
        (FIREWALL, {"name": "x", "network": LINK + VPC, "direction": "EGRESS", "priority": 0},
         {**COMMON, "selfLink": f"{LINK}projects/{PROJECT}/global/firewalls/x",
          "direction": "EGRESS"}),
        (ROUTER, {"name": "x", "network": "vpc"},
         {**COMMON, "selfLink": f"{LINK}{REGION}/routers/x", "network": LINK + VPC,
          "region": "us-west1"}),
        (NAT, {"name": "x", "router": f"{LINK}{REGION}/routers/r", "subnetworks": [{"name": "s"}],
               "natIpAllocateOption": "AUTO_ONLY"},
         {"project": PROJECT, "region": "us-west1", "endpointTypes": ["ENDPOINT_TYPE_VM"]}),
        (ADDRESS, {"name": "x", "network": "vpc", "purpose": "VPC_PEERING",
                   "addressType": "INTERNAL", "prefixLength": 16},
         {**COMMON, "selfLink": f"{LINK}projects/{PROJECT}/global/addresses/x",
          "address": "10.0.0.0", "labelFingerprint": "42WmSpB8rSM="}),
        (ADDRESS, {"name": "x", "network": "vpc", "purpose": "VPC_PEERING", "prefixLength": 29,
                   "addressType": "INTERNAL", "address": "10.9.0.0"},
         {**COMMON, "selfLink": f"{LINK}projects/{PROJECT}/global/addresses/x",
          "address": "10.9.0.0", "labelFingerprint": "42WmSpB8rSM="}),
        (ADDRESS, {"name": "x"},
         {**COMMON, "selfLink": f"{LINK}projects/{PROJECT}/global/addresses/x",
          "labelFingerprint": "42WmSpB8rSM="}),
        (vpc.ATTACHMENT, {"name": "x", "subnetworks": [SUBNET, "s"]},
         {**COMMON, "selfLink": f"{LINK}{REGION}/networkAttachments/x", "region": LINK + REGION,
          "network": LINK + VPC, "fingerprint": "5CcLE4OZV7w="}),
        (RESERVATION, IN_ZONE, RESERVED),
        (RESERVATION, IN_ZONE | {"shareSettings": SHARED, "reservationSharingPolicy": {"a": "b"},
                                 "deleteAtTime": "2999-01-01T00:00:00Z"},
         {key: value for key, value in RESERVED.items() if key != "reservationSharingPolicy"} | {
             "deleteAtTime": "2999-01-01T00:00:00Z",
             "shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projects": [],
                               "projectMaps": [{"id": "a", "projectId": "a"},
                                               {"id": "b", "projectId": "c"}]}}),
        ("gcp:serviceaccount/account:Account", {"accountId": "trainer"},
         {"email": f"trainer@{PROJECT}.iam.gserviceaccount.com", "project": PROJECT,
          "member": f"serviceAccount:trainer@{PROJECT}.iam.gserviceaccount.com",
          "name": f"projects/{PROJECT}/serviceAccounts/trainer@{PROJECT}.iam.gserviceaccount.com",
          "uniqueId": DIGITS}),
        *(("gcp:projects/serviceIdentity:ServiceIdentity", {"service": f"{name}.googleapis.com"},
           {"project": PROJECT,
            "email": f"service-{NUMBER}@{domain}.iam.gserviceaccount.com",
            "member": f"serviceAccount:service-{NUMBER}@{domain}.iam.gserviceaccount.com"})
          for name, domain in (("aiplatform", "gcp-sa-aiplatform"), ("compute", "compute-system"),
                               ("container", "container-engine-robot"),
                               ("storage", "gs-project-accounts"))),
        ("gcp:iam/workloadIdentityPool:WorkloadIdentityPool", {"workloadIdentityPoolId": "pool"},
         {"project": PROJECT, "state": "ACTIVE",
          "name": f"{BY_NUMBER}locations/global/workloadIdentityPools/pool"}),
        (CHANNEL, {}, {"project": PROJECT,
                       "name": f"projects/{PROJECT}/notificationChannels/{DIGITS}"}),
        ("gcp:monitoring/alertPolicy:AlertPolicy", {},
         {"project": PROJECT, "name": f"projects/{PROJECT}/alertPolicies/{DIGITS}",
          "creationRecords": [{"mutateTime": TIME, "mutatedBy": "user@example.com"}]}),
        ("gcp:monitoring/dashboard:Dashboard", {}, {"project": PROJECT}),
    ],
)  # fmt: skip
def test_a_service_fills_in_what_it_decides(
    estate: Estate, token: str, inputs: Any, made: Any
) -> None:
    assert estate.made(token, **inputs) == made


def wrong(field: str, value: Any, reason: str) -> str:
    text = f"Invalid value for field 'resource.{field}': '{value}'. {reason}"
    return f"Making: googleapi: Error 400: {text}, invalid"


FOREIGN = f"projects/{HOST}/global/networks/vpc"
CROSS = "Cross project referencing is not allowed for this resource."
ABSENT = "The referenced network resource cannot be found."
PEERING = {"name": "x", "network": "vpc", "purpose": "VPC_PEERING", "addressType": "INTERNAL"}


@pytest.mark.parametrize(
    ("token", "inputs", "said"),
    [
        (ROUTER, {"name": "x", "network": FOREIGN}, wrong("network", FOREIGN, CROSS)),
        (ROUTER, {"name": "x", "network": "no"}, wrong("network", "no", ABSENT)),
        *((FIREWALL, {"name": "x", "network": "vpc", "priority": each},
           wrong("priority", each, "Must be between 0 and 65535.")) for each in (-1, 65_536)),
        (FIREWALL, {"name": "x", "network": "vpc", "destinationRanges": ["10.0.0.0/8", "x"]},
         wrong("destinationRanges[1]", "x", "Must be a valid CIDR range ('x' does not appear to be "
               "an IPv4 or IPv6 network).")),
        (NAT, {"name": "x", "router": "no"},
         f"Making: googleapi: Error 404: The resource '{REGION}/routers/no' was not found, "
         "notFound"),
        (NAT, {"name": "x", "router": "r", "subnetworks": [{"name": "s"}, {"name": "t"}]},
         wrong("nats[0].subnetworks[1].name", "t",
               "The referenced subnetwork resource cannot be found.")),
        (NAT, {"name": "x", "router": "r", "natIpAllocateOption": "MANUAL_ONLY"},
         wrong("nats[0].natIps", "", "Manual allocation needs natIps.")),
        (ADDRESS, {**PEERING, "addressType": "EXTERNAL"},
         wrong("addressType", "EXTERNAL", "Purpose VPC_PEERING needs an internal address.")),
        *((ADDRESS, {**PEERING, "prefixLength": each},
           wrong("prefixLength", each, "Must be between 8 and 29.")) for each in (None, 7, 30)),
        (ADDRESS, {**PEERING, "prefixLength": 16, "address": "10.1.0.0"},
         wrong("address", "10.1.0.0", "The range 10.1.0.0/16 conflicts with existing subnetwork "
               "'s' in region 'us-west1'.")),
        (ADDRESS, {**PEERING, "prefixLength": 8},
         f"Making: googleapi: Error 400: There is no unused /8 in network '{VPC}'., "
         "ipSpaceExhausted"),
        (vpc.ATTACHMENT, {"name": "x", "subnetworks": []},
         wrong("subnetworks", "", "All subnetworks must belong to one network.")),
        (vpc.ATTACHMENT, {"name": "x", "subnetworks": ["t"]},
         wrong("subnetworks[0]", "t", "The referenced subnetwork resource cannot be found.")),
        (vpc.ATTACHMENT, {"name": "x", "subnetworks": [SUBNET], "region": "us-east1"},
         wrong("subnetworks[0]", SUBNET, "The subnetwork must be in region us-east1.")),
        (vpc.ATTACHMENT, {"name": "x", "subnetworks": [SUBNET.replace(PROJECT, HOST)]},
         wrong("subnetworks[0]", SUBNET.replace(PROJECT, HOST), CROSS)),
        *((RESERVATION, IN_ZONE | {"zone": each}, wrong("zone", each, "Unknown zone."))
          for each in ("us-west1", "us-west1-a\n")),
        (RESERVATION, IN_ZONE | {"shareSettings": {"shareType": "SPECIFIC_PROJECTS"}},
         wrong("shareSettings.projectMap", "", "SPECIFIC_PROJECTS needs at least one project.")),
        (RESERVATION, IN_ZONE | {"shareSettings": {"shareType": "LOCAL", "projects": ["a"]}},
         wrong("shareSettings.projectMap", "", "A LOCAL reservation is shared with no project.")),
        (RESERVATION, IN_ZONE | {"deleteAtTime": "2020-01-01T00:00:00Z"},
         wrong("deleteAtTime", "2020-01-01T00:00:00Z", "Must be in the future.")),
        ("gcp:monitoring/alertPolicy:AlertPolicy", {"notificationChannels": ["no"]},
         "Making: googleapi: Error 400: Field notification_channels refers to no, which does not "
         "exist., badRequest"),
        (vpc.SERVICE_PROJECT, {"serviceProject": HOST},
         f"Making: googleapi: Error 400: The project '{PROJECT}' is not a Shared VPC host project."
         ", invalid"),
    ],
)  # fmt: skip
def test_what_a_service_does_not_take_is_refused_in_its_words(
    estate: Estate, token: str, inputs: Any, said: str
) -> None:
    assert estate.refusal(token, **inputs) == said


@pytest.mark.parametrize(
    ("old", "new", "replaced"),
    [
        ("10.0.0.0/24", "10.0.0.0/20", False),
        ("10.0.0.0/24", "10.0.0.0/24", False),
        ("10.0.0.0/24", "10.0.0.0/25", True),
        ("10.0.0.0/24", "10.0.1.0/24", True),
        ("10.0.0.0/24", "::/0", True),
        ("", "10.0.0.0/24", False),
    ],
)
def test_a_subnetwork_grows_in_place(estate: Estate, old: str, new: Any, replaced: bool) -> None:
    _, kind = estate.kind(vpc.SUBNETWORK)
    found = kind.changed({"ipCidrRange": new}, {"ipCidrRange": old})
    assert found == ([Change("__meta", "update", True)] if replaced else [])


def told(call: Callable[[], object]) -> str:
    with pytest.raises(PluginError) as error:
        call()
    return str(error.value)


def test_every_write_is_guarded_and_needs_its_api(estate: Estate) -> None:
    cloud, kind = estate.kind("gcp:serviceaccount/account:Account")
    inputs = {"accountId": "trainer"}
    assert told(lambda: kind.create(cloud, inputs)) == (
        "Error creating service account: googleapi: Error 403: Identity and Access Management (IAM)"
        f" API has not been used in project {PROJECT} before or it is disabled. Enable it by "
        "adding iam.googleapis.com to the stack's gcp.projects.Service resources, and make this "
        "resource depend on it, SERVICE_DISABLED"
    )
    abroad, _ = estate.kind("gcp:serviceaccount/account:Account", "acme")
    assert told(lambda: kind.create(abroad, inputs)) == (
        "project 'acme' is not a local project (its id does not begin with 'local-'); the stand-in "
        "for the gcp plugin previews it but refuses to read or write it. Hint: run pulumi outside "
        "`vt local shell` to reach Google Cloud"
    )
    nowhere, _ = estate.kind("gcp:serviceaccount/account:Account", "")
    assert told(lambda: kind.create(nowhere, inputs)) == (
        "gcp:serviceaccount/account:Account: project: required field is not set. Hint: pulumi "
        "config set gcp:project PROJECT, then pulumi up"
    )
    estate.store.put(SERVICE, f"{PROJECT}/iam.googleapis.com", PROJECT, {}, {})
    made = kind.create(cloud, inputs)
    assert kind.read(cloud, made.id) is not None
    assert told(lambda: kind.create(cloud, inputs)) == (
        "Error creating service account: googleapi: Error 409: Service account trainer already "
        f"exists within project projects/{PROJECT}., alreadyExists"
    )
    again = kind.create(cloud, inputs | {"createIgnoreAlreadyExists": True})
    assert again.outputs["uniqueId"] == made.outputs["uniqueId"]
    for policy, stays in (("ABANDON", True), ("DELETE", False)):
        kind.delete(cloud, made.id, made.outputs | {"deletionPolicy": policy})
        assert (kind.read(cloud, made.id) is not None) is stays
    with pytest.raises(RefusedError) as refused:
        kind.delete(cloud, made.id, made.outputs | {"deletionPolicy": "PREVENT"})
    assert str(refused.value) == (
        f"cannot destroy service account {made.id} without setting deletion_policy = DELETE and "
        "running `pulumi up`"
    )
    assert told(lambda: kind.update(cloud, made.id, inputs, made.outputs)) == (
        f"Error updating service account {made.id!r}: googleapi: Error 404: {made.id} does not "
        "exist, notFound"
    )
