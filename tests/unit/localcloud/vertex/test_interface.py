"""Jobs with a Private Service Connect interface: they run, or say what they lack."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
from tests.unit.localcloud.vertex.estate import AGENT, HOST, Estate

SUCCEEDED = vertex.JobState.JOB_STATE_SUCCEEDED
CORP = {"domain": "corp.example.com.", "target_project": PROJECT, "target_network": "vpc"}


def with_interface(attachment: str = "psc", **config: Any) -> dict[str, Any]:
    return command_job("true", psc_interface_config={"network_attachment": attachment, **config})


def failure(cloud: Cloud, job: dict[str, Any]) -> tuple[int, str]:
    ended = cloud.run(job)
    assert ended.state == vertex.JobState.JOB_STATE_FAILED
    return ended.error.code, ended.error.message


def test_a_job_needs_its_attachment_and_the_agent_its_right_on_it(
    cloud: Cloud, estate: Estate
) -> None:
    estate.network()
    code, message = failure(cloud, with_interface())
    assert (code, "networkAttachments/psc does not exist" in message) == (5, True)

    path = estate.attachment()
    code, message = failure(cloud, with_interface())
    assert (code, "Grant it roles/compute.networkAdmin in project local-training" in message) == (
        7,
        True,
    )
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    assert cloud.run(with_interface()).state == SUCCEEDED
    assert cloud.run(with_interface(path)).state == SUCCEEDED


def test_an_interface_cannot_use_every_address(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.attachment(cidr="100.64.9.0/28")
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    code, message = failure(cloud, with_interface())

    assert (code, "100.64.0.0/10 cannot be used by an interface" in message) == (9, True)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_shared_subnetwork_needs_the_agent_to_be_a_user_of_it(
    cloud: Cloud, estate: Estate, narrow: bool
) -> None:
    estate.host()
    estate.attach()
    estate.apis("compute")
    estate.attachment(subnet_project=HOST)
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    code, message = failure(cloud, with_interface())
    assert (code, "in the Shared VPC host project local-host" in message) == (7, True)
    subnet = f"projects/{HOST}/regions/us-central1/subnetworks/psc"
    cloud.grant(subnet if narrow else f"projects/{HOST}", "roles/compute.networkUser", AGENT)

    assert cloud.run(with_interface()).state == SUCCEEDED


def test_dns_peering_needs_its_network_and_the_agents_right(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.attachment()
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    other = {**CORP, "target_network": "other"}
    code, message = failure(cloud, with_interface(dns_peering_configs=[other]))
    assert (code, "global/networks/other of the DNS peering" in message) == (5, True)
    code, message = failure(cloud, with_interface(dns_peering_configs=[CORP]))
    assert (code, "Grant it roles/dns.peer there" in message) == (7, True)
    cloud.grant(f"projects/{PROJECT}", "roles/dns.peer", AGENT)

    assert cloud.run(with_interface(dns_peering_configs=[CORP])).state == SUCCEEDED
