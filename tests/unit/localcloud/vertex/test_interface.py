"""Jobs with a Private Service Connect interface: they run, or say what they lack."""

from __future__ import annotations

from typing import Any

from google.cloud import aiplatform_v1 as vertex

from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
from tests.unit.localcloud.vertex.estate import AGENT, Estate

SUCCEEDED = vertex.JobState.JOB_STATE_SUCCEEDED
CORP = {"domain": "corp.example.com.", "target_project": PROJECT, "target_network": "vpc"}


def with_interface(attachment: str = "psc", **config: Any) -> dict[str, Any]:
    return command_job("true", psc_interface_config={"network_attachment": attachment, **config})


def failure(cloud: Cloud, job: dict[str, Any]) -> tuple[int, str]:
    ended = cloud.run(job)
    assert ended.state == vertex.JobState.JOB_STATE_FAILED
    return ended.error.code, ended.error.message


def test_an_interface_cannot_use_every_address(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.attachment(cidr="100.64.9.0/28")
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    code, message = failure(cloud, with_interface())

    assert (code, "100.64.0.0/10 cannot be used by an interface" in message) == (9, True)


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
