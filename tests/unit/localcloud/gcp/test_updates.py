"""Updates and defaults that the cloud itself decides."""

from __future__ import annotations

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused, row_named

RESERVATION = "gcp:compute/reservation:Reservation"
SECRET = "gcp:secretmanager/secret:Secret"
TENSORBOARD = "gcp:vertex/aiTensorboard:AiTensorboard"
BUDGET = "gcp:billing/budget:Budget"
NETWORK = "gcp:compute/network:Network"
ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
CONNECTION = "gcp:servicenetworking/connection:Connection"
ROUTES = "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig"


def test_an_update_of_what_is_gone_is_not_found(local: Plugin) -> None:
    local.enable("secretmanager")
    inputs = {"secretId": "s", "replication": {"auto": {}}}
    id_, olds = local.create(SECRET, inputs)
    local.delete(SECRET, id_, olds)

    news = local.checked(SECRET, "x", {**inputs, "labels": {"team": "a"}})
    text = refused(lambda: local.update(SECRET, id_, news, olds))

    assert "Error 404" in text
    assert text.endswith("does not exist, notFound")


def test_a_tensorboard_is_as_new_as_its_last_change(local: Plugin) -> None:
    local.enable("aiplatform")
    _, made = local.create(TENSORBOARD, {"displayName": "runs", "region": "us-central1"})
    assert made["updateTime"] == made["createTime"]
    assert made["blobStoragePathPrefix"].startswith("cloud-ai-platform-")


@pytest.mark.parametrize("given", [{}, {"exportSubnetRoutesWithPublicIp": False}])
def test_a_peering_exports_routes_with_public_addresses_and_imports_none_unless_asked(
    local: Plugin, given: dict[str, bool]
) -> None:
    local.enable("compute", "servicenetworking")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    range_ = {"name": "training", "purpose": "VPC_PEERING", "addressType": "INTERNAL"}
    local.create(ADDRESS, {**range_, "network": "vpc", "prefixLength": 16})
    service = {"network": "vpc", "service": "servicenetworking.googleapis.com"}
    local.create(CONNECTION, {**service, "reservedPeeringRanges": ["training"]})

    peering = {"network": "vpc", "peering": "servicenetworking-googleapis-com"}
    custom = {"exportCustomRoutes": True, "importCustomRoutes": False}
    _, made = local.create(ROUTES, {**peering, **custom, **given})

    expected = {"exportSubnetRoutesWithPublicIp": True, "importSubnetRoutesWithPublicIp": False}
    assert {key: made[key] for key in expected} == expected | given


def test_an_api_that_is_off_is_named_as_the_console_names_it(local: Plugin) -> None:
    text = refused(lambda: local.create(BUDGET, row_named("cap")["inputs"]))
    assert "Cloud Billing Budget API has not been used in project" in text


def test_a_second_connection_is_refused_with_the_ranges_of_the_first(local: Plugin) -> None:
    local.enable("compute", "servicenetworking")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    range_ = {"name": "training", "purpose": "VPC_PEERING", "addressType": "INTERNAL"}
    local.create(ADDRESS, {**range_, "network": "vpc", "prefixLength": 16})
    service = {"network": "vpc", "service": "servicenetworking.googleapis.com"}
    local.create(CONNECTION, {**service, "reservedPeeringRanges": ["training"]})
    again = refused(
        lambda: local.create(CONNECTION, {**service, "reservedPeeringRanges": ["training"]})
    )
    assert "training" in again


def machines(**parts: object) -> dict[str, object]:
    """A reservation of one N1 machine with a T4 and a local SSD; ``parts`` change them."""
    gpu = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
    ssd = {"interface": "NVME", "diskSizeGb": 375}
    gpu |= {key: value for key, value in parts.items() if key in gpu}
    ssd |= {key: value for key, value in parts.items() if key in ssd}
    machine = {"machineType": "n1-standard-8", "guestAccelerators": [gpu], "localSsds": [ssd]}
    return {
        "name": "gpus", "zone": "us-central1-a",
        "specificReservation": {"count": 1, "instanceProperties": machine},
    }  # fmt: skip


@pytest.mark.parametrize(
    "parts",
    [{"acceleratorCount": 2}, {"acceleratorType": "nvidia-tesla-v100"}, {"interface": "SCSI"}],
)
def test_other_gpus_or_disks_are_another_reservation(
    local: Plugin, parts: dict[str, object]
) -> None:
    local.enable("compute")
    id_, olds = local.create(RESERVATION, machines())
    diff = local.diff(RESERVATION, id_, local.checked(RESERVATION, "x", machines(**parts)), olds)
    assert list(diff.replaces)
    same = local.diff(RESERVATION, id_, local.checked(RESERVATION, "x", machines()), olds)
    assert not list(same.replaces)


def replicas(region: str, key: str = "") -> dict[str, object]:
    replica: dict[str, object] = {"location": region}
    if key:
        replica["customerManagedEncryption"] = {"kmsKeyName": key}
    return {"secretId": "s", "replication": {"userManaged": {"replicas": [replica]}}}


def test_a_secret_in_another_region_is_another_secret_and_loses_its_versions(local: Plugin) -> None:
    local.enable("secretmanager")
    id_, olds = local.create(SECRET, replicas("us-central1"))
    moved = local.checked(SECRET, "x", replicas("europe-west4"))
    assert list(local.diff(SECRET, id_, moved, olds).replaces)
    keyed = local.checked(SECRET, "x", replicas("us-central1", "projects/p/…/k"))
    assert not list(local.diff(SECRET, id_, keyed, olds).replaces)
