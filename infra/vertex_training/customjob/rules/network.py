"""Rules for a job's access to a VPC: by peering (``network``) or by a PSC interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

PEERING: Final = GUIDES + "general/vpc-peering"
PSC: Final = GUIDES + "general/vpc-psc-i-setup"
NETWORK: Final = re.compile(r"projects/([^/]+)/global/networks/([a-z]([a-z0-9-]{0,61}[a-z0-9])?)\Z")
NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
ATTACHMENT: Final = re.compile(
    r"projects/[^/]+/regions/([a-z]+-[a-z]+[0-9]+)/networkAttachments/[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z"
)
PROJECT_ID: Final = re.compile(r"[a-z][a-z0-9.:-]{4,}[a-z0-9]\Z")
FORM: Final = "projects/PROJECT_NUMBER/global/networks/NAME"
INTERFACE: Final[Path] = ("jobSpec", "pscInterfaceConfig")
#: What DNS peering needs, with an example of each.
EXAMPLES: Final = {
    "domain": "domain: corp.example.com.",
    "targetProject": "targetProject: my-project",
    "targetNetwork": "targetNetwork: my-network",
}


@rule("network-name", PEERING)
def network_name(job: Job) -> Iterator[Finding]:
    """A network is named in full."""
    network = job.spec.get("network")
    if network is not None and not NETWORK.match(network):
        yield Finding((*SPEC, "network"), "not the full name of a network", network, FORM)


@rule("network-number", PEERING)
def network_number(job: Job) -> Iterator[Finding]:
    """A network is named with its project's number; a Shared VPC's with the host project's."""
    match = NETWORK.match(job.network)
    if match and not match[1].isdecimal():
        hint = "gcloud projects describe " + match[1] + " --format='value(projectNumber)'"
        what = "needs the project's number, not its id"
        yield Finding((*SPEC, "network"), what, match[1], hint)


@rule("network-or-interface", PEERING, "warning")
def network_or_interface(job: Job) -> Iterator[Finding]:
    """A job has a peered network or a PSC interface, not both."""
    if job.network and "pscInterfaceConfig" in job.spec:
        what = "network is given as well; no page describes both together"
        yield Finding(INTERFACE, what, "", "remove one of the two")


@rule("ranges-without-network", TYPES + "custom_job.py")
def ranges_without_network(job: Job) -> Iterator[Finding]:
    """reservedIpRanges go with a network."""
    if job.spec.get("reservedIpRanges") and not job.network:
        what, hint = "says nothing without network", f"network: {FORM}"
        yield Finding((*SPEC, "reservedIpRanges"), what, "", hint)


@rule("range-name", TYPES + "custom_job.py")
def range_name(job: Job) -> Iterator[Finding]:
    """Reserved ranges are given by name, not as addresses."""
    for index, name in enumerate(job.spec.get("reservedIpRanges", [])):
        if not NAME.match(name):
            what, hint = "not the name of an allocated range", "for example vertex-ai-range"
            yield Finding((*SPEC, "reservedIpRanges", index), what, name, hint)


@rule("peering-accelerator", GUIDES + "training/using-private-ip")
def peering_accelerator(job: Job) -> Iterator[Finding]:
    """H100 mega, H200 and B200 machines use a PSC interface; they cannot be peered."""
    for pool in job.pools:
        known = machines.accelerators().get(pool.accelerator)
        if job.network and known and not known.vpc_peering:
            what = f"{pool.accelerator} does not work with VPC peering"
            hint = "pscInterfaceConfig: {networkAttachment: ${network.attachment}}"
            yield Finding((*SPEC, "network"), what, job.network, hint)
            return


@rule("attachment-missing", TYPES + "service_networking.py")
def attachment_missing(job: Job) -> Iterator[Finding]:
    """A PSC interface names its network attachment."""
    interface = job.spec.get("pscInterfaceConfig")
    if interface is not None and not interface.get("networkAttachment"):
        hint = "networkAttachment: ${network.attachment}"
        what = "networkAttachment is missing"
        yield Finding(INTERFACE, what, "", hint, missing="networkAttachment")


@rule("attachment-name", TYPES + "service_networking.py")
def attachment_name(job: Job) -> Iterator[Finding]:
    """A network attachment is given by its name, or in full if it is in another project."""
    name = job.attachment
    if name and not NAME.match(name) and not ATTACHMENT.match(name):
        hint = "NAME, or projects/P/regions/REGION/networkAttachments/NAME"
        path = (*INTERFACE, "networkAttachment")
        yield Finding(path, "not the name of a network attachment", name, hint)


@rule("attachment-region", PSC)
def attachment_region(job: Job) -> Iterator[Finding]:
    """The network attachment is in the job's region."""
    match = ATTACHMENT.match(job.attachment)
    if match and job.region and match[1] != job.region:
        what = f"must be in the job's region {job.region}"
        hint = "attachments are regional: name one of that region"
        yield Finding((*INTERFACE, "networkAttachment"), what, match[1], hint)


def _peerings(job: Job) -> Iterator[tuple[dict[str, Any], Path]]:
    configs = job.spec.get("pscInterfaceConfig", {}).get("dnsPeeringConfigs", [])
    for index, config in enumerate(configs):
        yield config, (*INTERFACE, "dnsPeeringConfigs", index)


@rule("dns-peering-needs", TYPES + "service_networking.py")
def dns_peering_needs(job: Job) -> Iterator[Finding]:
    """DNS peering names its domain, project and network."""
    for config, path in _peerings(job):
        for field in EXAMPLES:
            if not config.get(field):
                yield Finding(path, f"{field} is missing", "", EXAMPLES[field], field)


@rule("dns-peering-domain", TYPES + "service_networking.py")
def dns_peering_domain(job: Job) -> Iterator[Finding]:
    """The domain of DNS peering ends with a dot."""
    for config, path in _peerings(job):
        domain = config.get("domain", "")
        if domain and not domain.endswith("."):
            yield Finding((*path, "domain"), "must end with a dot", domain, f"{domain}.")


@rule("dns-peering-target", TYPES + "service_networking.py")
def dns_peering_target(job: Job) -> Iterator[Finding]:
    """DNS peering names its project by id and its network by its short name."""
    for config, path in _peerings(job):
        project, network = config.get("targetProject"), config.get("targetNetwork")
        if project and not PROJECT_ID.match(project):
            hint = "for example my-project, not its number"
            yield Finding((*path, "targetProject"), "must be the project's id", project, hint)
        if network and not NAME.match(network):
            hint = "the last part of its name"
            yield Finding((*path, "targetNetwork"), "must be the network's name", network, hint)
