"""What CreateCustomJob refuses about networks and reservations, to the official client."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions

from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until
from tests.unit.localcloud.vertex.estate import NUMBER, VPC, Estate

CPU = "projects/local-training/zones/us-central1-a/reservations/cpu"
KEY = "compute.googleapis.com/reservation-name"


def reserved(kind: str = "SPECIFIC_RESERVATION", **changes: Any) -> dict[str, Any]:
    affinity = {"reservation_affinity_type": kind, "key": KEY, "values": [CPU]}
    return {**affinity, **changes}


def on_reservation(affinity: dict[str, Any], **spec: Any) -> dict[str, Any]:
    job = command_job("true", **spec)
    job["job_spec"]["worker_pool_specs"][0]["machine_spec"]["reservation_affinity"] = affinity
    return job


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"network": "vpc"}, "job_spec.network", "must be in the form projects/"),
        ({"network": "projects/local-training/global/networks/vpc"}, "job_spec.network",
         "{project number}"),
        ({"reserved_ip_ranges": ["r"]}, "job_spec.reserved_ip_ranges", "need a network"),
        ({"network": VPC, "reserved_ip_ranges": ["10.0.0.0/16"]}, "job_spec.reserved_ip_ranges",
         "name of an allocated range expected, got '10.0.0.0/16'"),
        ({"network": VPC, "psc_interface_config": {"network_attachment": "a"}},
         "job_spec.psc_interface_config", "cannot be used together"),
        ({"psc_interface_config": {"dns_peering_configs": []}},
         "job_spec.psc_interface_config.network_attachment", "Required field"),
        ({"psc_interface_config": {"network_attachment": "A/b"}},
         "job_spec.psc_interface_config.network_attachment", "Not the name"),
        ({"psc_interface_config": {
            "network_attachment": "projects/p/regions/europe-west4/networkAttachments/a"}},
         "job_spec.psc_interface_config.network_attachment", "job's region us-central1"),
        ({"psc_interface_config": {"network_attachment": "a", "dns_peering_configs": [
            {"domain": "corp.example.com", "target_project": "p"}]}},
         "job_spec.psc_interface_config.dns_peering_configs[0].domain", "end with a dot"),
        ({"psc_interface_config": {"network_attachment": "a", "dns_peering_configs": [
            {"domain": "corp.example.com.", "target_project": "p"}]}},
         "job_spec.psc_interface_config.dns_peering_configs[0].target_network", "Required"),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be_meant_is_refused(
    cloud: Cloud, spec: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument) as caught:
        cloud.submit(command_job("true", **spec))

    assert f"Field: {field}; Message: " in caught.value.message
    assert message in caught.value.message
    assert cloud.jobs.list() == []


@pytest.mark.parametrize("accelerator", ["NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB"])
def test_accelerators_that_cannot_peer_are_refused(cloud: Cloud, accelerator: str) -> None:
    job = command_job("true", network=VPC)
    machine = job["job_spec"]["worker_pool_specs"][0]["machine_spec"]
    machine |= {"accelerator_type": accelerator, "accelerator_count": 8}

    with pytest.raises(exceptions.InvalidArgument, match=f"not supported with {accelerator}"):
        cloud.submit(job)


def test_a_number_that_is_no_project_is_refused(cloud: Cloud) -> None:
    with pytest.raises(exceptions.PermissionDenied, match="resource project 123"):
        cloud.submit(command_job("true", network="projects/123/global/networks/vpc"))


def test_a_region_has_one_network_at_a_time(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.peering()
    first = cloud.submit(command_job("sleep", "600", network=VPC)).name
    other = f"projects/{NUMBER}/global/networks/other"

    with pytest.raises(exceptions.FailedPrecondition) as caught:
        cloud.submit(command_job("true", network=other))
    assert f"while {first} uses {VPC}" in caught.value.message
    cloud.client.cancel_custom_job(name=first)
    job_id = first.rpartition("/")[2]
    wait_until(lambda: (job := cloud.jobs.get(job_id)) and job.state is JobState.CANCELLED)

    cloud.submit(command_job("true", network=other))


@pytest.mark.parametrize(
    ("affinity", "spec", "message"),
    [
        (reserved("TYPE_UNSPECIFIED"), {}, "Required field is not set"),
        (reserved(key="name"), {}, f"Must be {KEY}, got 'name'"),
        (reserved(values=[]), {}, "reservation_affinity.values; Message: Required"),
        (reserved(values=["cpu"]), {}, "projects/P/zones/Z/reservations/R expected, got 'cpu'"),
        (reserved(values=[CPU.replace("us-central1-a", "europe-west4-a")]), {},
         "zone must be in the job's region us-central1"),
        (reserved("ANY_RESERVATION"), {}, "Only SPECIFIC_RESERVATION has a key and values"),
        (reserved(), {"scheduling": {"strategy": "SPOT"}}, "strategy SPOT cannot use reserv"),
        (reserved("ANY_RESERVATION", key="", values=[]),
         {"scheduling": {"strategy": "FLEX_START"}}, "strategy FLEX_START cannot use reserv"),
        (reserved(), {"persistent_resource_id": "warm"}, "on a persistent resource cannot use"),
    ],
)  # fmt: skip
def test_a_reservation_that_cannot_be_meant_is_refused(
    cloud: Cloud, affinity: dict[str, Any], spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument) as caught:
        cloud.submit(on_reservation(affinity, **spec))

    assert message in caught.value.message
    assert "worker_pool_specs[0].machine_spec.reservation_affinity" in caught.value.message
