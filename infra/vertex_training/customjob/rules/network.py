"""Rules about a job's access to a VPC by peering (``network``) or by a PSC interface."""

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
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
#: Required fields of DNS peering, with examples.
EXAMPLES: Final = {
    "domain": "domain: corp.example.com.",
    "targetProject": "targetProject: my-project",
    "targetNetwork": "targetNetwork: my-network",
}


@rule("network-name", PEERING)
def network_name(job: Job) -> Findings:
    """Check that a network is written with its full name."""
    network = job.spec.get("network")
    if network is not None and not NETWORK.match(network):
        what = "network must be the full name of a network"
        yield Finding((*SPEC, "network"), what, network, f"write {FORM}")


@rule("network-number", PEERING)
def network_number(job: Job) -> Findings:
    """Check that a network's name has the number of its project, or of the Shared VPC host."""
    match = NETWORK.match(job.network)
    if match and not match[1].isdecimal():
        command = f"gcloud projects describe {match[1]} --format='value(projectNumber)'"
        hint = f"write the number that `{command}` prints"
        what = "the network name must have the project's number instead of its id"
        yield Finding((*SPEC, "network"), what, match[1], hint)


@rule("network-or-interface", PEERING, "warning")
def network_or_interface(job: Job) -> Findings:
    """Check that a job has a peered network or a PSC interface, not both."""
    if job.network and "pscInterfaceConfig" in job.spec:
        what = "the job has both network and pscInterfaceConfig, which Google does not document"
        yield Finding(INTERFACE, what, "", "remove network or pscInterfaceConfig")


@rule("ranges-without-network", TYPES + "custom_job.py")
def ranges_without_network(job: Job) -> Findings:
    """Check that a job with reservedIpRanges has a network."""
    if job.spec.get("reservedIpRanges") and not job.network:
        what, hint = "reservedIpRanges has no effect without network", f"add network: {FORM}"
        yield Finding((*SPEC, "reservedIpRanges"), what, "", hint)


@rule("range-name", TYPES + "custom_job.py")
def range_name(job: Job) -> Findings:
    """Check that reserved ranges are names, not addresses."""
    for index, name in enumerate(job.spec.get("reservedIpRanges", [])):
        if not NAME.match(name):
            what = "a reserved range must be the name of an allocated range"
            hint = "write a name such as vertex-ai-range"
            yield Finding((*SPEC, "reservedIpRanges", index), what, name, hint)


@rule("peering-accelerator", GUIDES + "training/using-private-ip")
def peering_accelerator(job: Job) -> Findings:
    """Check that a job on H100 mega, H200 or B200 machines uses a PSC interface, not peering."""
    for pool in job.pools:
        known = machines.accelerators().get(pool.accelerator)
        if job.network and known and not known.vpc_peering:
            what = f"machines with {pool.accelerator} do not support VPC peering"
            hint = "use pscInterfaceConfig: {networkAttachment: ${network.attachment}}"
            yield Finding((*SPEC, "network"), what, job.network, hint)
            return


@rule("attachment-missing", TYPES + "service_networking.py")
def attachment_missing(job: Job) -> Findings:
    """Check that a pscInterfaceConfig has a networkAttachment."""
    interface = job.spec.get("pscInterfaceConfig")
    if interface is not None and not interface.get("networkAttachment"):
        hint = "write networkAttachment: ${network.attachment}"
        what = "networkAttachment is missing"
        yield Finding(INTERFACE, what, "", hint, missing="networkAttachment")


@rule("attachment-name", TYPES + "service_networking.py")
def attachment_name(job: Job) -> Findings:
    """Check that networkAttachment is a name, or the full name in case of another project."""
    name = job.attachment
    if name and not NAME.match(name) and not ATTACHMENT.match(name):
        hint = "write NAME, or projects/P/regions/REGION/networkAttachments/NAME"
        what = "networkAttachment must be the name of a network attachment"
        yield Finding((*INTERFACE, "networkAttachment"), what, name, hint)


@rule("attachment-region", PSC)
def attachment_region(job: Job) -> Findings:
    """Check that the network attachment is in the job's region."""
    match = ATTACHMENT.match(job.attachment)
    if match and job.region and match[1] != job.region:
        what = f"the network attachment must be in the job's region {job.region}"
        hint = f"name a network attachment in {job.region}"
        yield Finding((*INTERFACE, "networkAttachment"), what, match[1], hint)


def _peerings(job: Job) -> Iterator[tuple[dict[str, Any], Path]]:
    configs = job.spec.get("pscInterfaceConfig", {}).get("dnsPeeringConfigs", [])
    for index, config in enumerate(configs):
        yield config, (*INTERFACE, "dnsPeeringConfigs", index)


@rule("dns-peering-needs", TYPES + "service_networking.py", of=_peerings)
def dns_peering_needs(config: dict[str, Any], path: Path) -> Findings:
    """Check that DNS peering has a domain, a project and a network."""
    for field in EXAMPLES:
        if not config.get(field):
            hint = f"write {EXAMPLES[field]}"
            yield Finding(path, f"{field} is missing", "", hint, field)


@rule("dns-peering-domain", TYPES + "service_networking.py", of=_peerings)
def dns_peering_domain(config: dict[str, Any], path: Path) -> Findings:
    """Check that the domain of DNS peering ends with a dot."""
    domain = config.get("domain", "")
    if domain and not domain.endswith("."):
        what = "the domain must end with a dot"
        yield Finding((*path, "domain"), what, domain, f"write {domain}.")


@rule("dns-peering-target", TYPES + "service_networking.py", of=_peerings)
def dns_peering_target(config: dict[str, Any], path: Path) -> Findings:
    """Check that DNS peering has a project id and a short network name."""
    project, network = config.get("targetProject"), config.get("targetNetwork")
    if project and not PROJECT_ID.match(project):
        what = "targetProject must be a project id"
        hint = "write the id, such as my-project, instead of the number"
        yield Finding((*path, "targetProject"), what, project, hint)
    if network and not NAME.match(network):
        what = "targetNetwork must be a short network name"
        hint = "write the last part of the network's full name"
        yield Finding((*path, "targetNetwork"), what, network, hint)
