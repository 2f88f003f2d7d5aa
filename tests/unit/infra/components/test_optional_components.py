"""Components that few stacks have: their types, places, outputs, and what each waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.infra.components.test_whole_stack import Made, _registered
from tests.unit.infra.stacks import H100, HOST, PEERING

STACK: dict[str, Any] = {
    "network": {**PEERING, "ranges": {"workers": {"prefixLength": 16, "address": "10.64.0.0"}}},
    "sharedVpc": {**HOST, "enableHost": True},
    "reservations": {"h100": {**H100, "deleteAfterDuration": "3600s"}},
    "channels": {"oncall": {"email": "ml-oncall@example.com"}},
    "alerts": {"channels": ["oncall"], "failed": True},
    "images": {"trainer": {"context": "trainer"}},
    "buckets": {"data": {"members": {"roles/storage.objectViewer": ["group:a@example.com"]}}},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("checkout")
        (root / "trainer").mkdir()
        (root / "trainer" / "Dockerfile").write_text("FROM scratch\n")
        yield _registered(root, STACK, patch)


APIS = {"apis-cloudresourcemanager", "apis-compute"}
HOSTS = {"host-compute", "host-servicenetworking"}
AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"


def inside(made: Made, component: str) -> dict[str, tuple[dict[str, Any], set[str]]]:
    """Inputs of what is in a component, and what it waits for."""
    return {name: (inputs, made.waits[name]) for name, inputs in made.of(component).items()}


def test_each_has_its_type_and_ends_with_its_outputs(made: Made) -> None:
    names = ("host", "network", "network-peering", "capacity", "monitoring", "extra")
    assert {name: (made.types[name], made.outputs[name]) for name in names} == {
        "host": ("vertextraining:sharedvpc:HostProject", {}),
        "network": ("vertextraining:network:Network", {"network": "network-vpc-id"}),
        "network-peering": ("vertextraining:network:Peering", {}),
        "capacity": (
            "vertextraining:capacity:Capacity",
            {"reservations": {"h100": "capacity-h100-id"}},
        ),
        "monitoring": ("vertextraining:monitoring:Monitoring", {}),
        "extra": ("vertextraining:iam:ExtraGrants", {}),
    }


def test_a_host_project_is_one_before_the_project_is_attached(made: Made) -> None:
    api = {"project": "acme-net-prod", "disableOnDestroy": False}
    before = APIS | HOSTS | {"apis-servicenetworking"}
    assert inside(made, "host") == {
        "host-compute": ({**api, "service": "compute.googleapis.com"}, set()),
        "host-servicenetworking": ({**api, "service": "servicenetworking.googleapis.com"}, set()),
        "host-host": ({"project": "acme-net-prod"}, before),
        "host-attached": (
            {"hostProject": "acme-net-prod", "serviceProject": "acme-ml-prod"},
            before | {"host-host"},
        ),
    }
    assert made.waits["network-vpc"] == {
        *before, "host-host", "host-attached", "apis-vertex-agent",
    }  # fmt: skip


def test_a_peering_has_a_range_of_the_network(made: Made) -> None:
    assert made.parents["network-peering"] == "network"
    assert inside(made, "network-peering") == {
        "network-peering-workers": (
            {
                "project": "acme-net-prod",
                "name": "training-workers-prod",
                "addressType": "INTERNAL",
                "purpose": "VPC_PEERING",
                "address": "10.64.0.0",
                "prefixLength": 16,
                "network": "network-vpc-id",
            },
            {"network-vpc"},
        ),
        "network-peering-connection": (
            {
                "network": "network-vpc-id",
                "service": "servicenetworking.googleapis.com",
                "reservedPeeringRanges": ["training-workers-prod"],
                "deletionPolicy": "REMOVE_PEERING",
            },
            {"network-vpc", "network-peering-workers"},
        ),
    }


def test_the_account_that_builds_waits_for_the_apis(made: Made) -> None:
    assert {name: waits for name, (_, waits) in inside(made, "images").items()} == {
        "images-account": {"apis-iam", "apis-cloudbuild", "apis-cloudresourcemanager"},
        "images-logs": {"images-account"},
        "images-pushes": {"images-account", "registry-docker"},
        "images-reads-source": {"images-account", "storage-staging"},
    }


def test_a_reservation_is_found_by_vertex_ai_and_its_cost_is_told(made: Made) -> None:
    waits = APIS | {"apis-vertex-agent"}
    found = inside(made, "capacity")
    reservation, waited = found.pop("capacity-h100")
    assert (reservation["name"], waited) == ("h100-prod", waits)
    viewer = {"project": "acme-ml-prod", "role": "roles/compute.viewer", "member": AGENT}
    assert found == {"capacity-finds-acme-ml-prod": (viewer, waits)}
    [told] = made.said
    assert told.startswith("reservation h100: 5 x a3-megagpu-8g in us-central1-a: $")


def test_other_members_are_granted_after_what_they_get_it_on(made: Made) -> None:
    assert inside(made, "extra") == {
        "extra-buckets-data-roles/storage.objectViewer-group:a@example.com": (
            {
                "bucket": "acme-ml-prod-data-prod",
                "role": "roles/storage.objectViewer",
                "member": "group:a@example.com",
            },
            {"registry-docker", "storage-control", "storage-data", "storage-staging"},
        )
    }
