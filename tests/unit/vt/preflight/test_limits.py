"""What an organization, quotas and the network's owner would refuse, one at a time.

A row is a fault in the words of ``vt local fault add``, then the subject, the answer, and what a
deployment would meet.
"""

from __future__ import annotations

import json

import pytest

from tests.fixture_project import copy_project
from tests.unit.vt.preflight.conftest import HOST, NAMES, NETWORK, PROJECT, Rehearsal
from vertex_training_cli.declared import DeclaredStack, declare_stack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight import networks, organization_policies, quotas, reservations
from vertex_training_cli.preflight.answers import Answer, Verdict

PARTS = (organization_policies, quotas, networks, reservations)
Expected = tuple[str, str, str]
VERTEX = "aiplatform.googleapis.com/custom_model_training"
FAMILY = "compute.googleapis.com/gpus_per_gpu_family"
SUBNET = "subnet training-prod"
LINK = f"https://www.googleapis.com/compute/v1/{NETWORK}"


def policy(name: str, rule: dict[str, object], project: str = PROJECT) -> str:
    match = f"projects/{project}/policies/{name}:"
    return patch("orgpolicy", "*", {"spec": {"rules": [rule]}}, match)


def patch(service: str, method: str, document: dict[str, object], match: str = "") -> str:
    words = f"{service} patch --method {method} --patch '{json.dumps(document)}'"
    return f"{words} --match {match}" if match else words


def allowed(*values: str) -> dict[str, object]:
    return {"values": {"allowedValues": values}}


def denied(*values: str) -> dict[str, object]:
    return {"values": {"deniedValues": values}}


def limit(metric: str, value: int, usage: int = 0) -> dict[str, object]:
    return {"quotas": [{"metric": metric, "limit": value, "usage": usage}]}


def in_network(**fields: object) -> dict[str, object]:
    return {"network": LINK, **fields}


ON_PROJECT, ON_HOST = f"project {PROJECT}", f"project {HOST}"
REFUSALS: dict[str, tuple[str, Expected]] = {
    "the region is not allowed": (
        policy("gcp.resourceLocations", allowed("in:europe-locations")),
        (ON_PROJECT, "allowed: in:europe-locations", "job titanic in us-central1"),
    ),
    "the subnet's region is denied in the host project": (
        policy("gcp.resourceLocations", denied("us-central1"), HOST),
        (ON_HOST, "denied: us-central1", "subnetwork training-prod in us-central1"),
    ),
    "an API may not be used": (
        policy("gcp.restrictServiceUsage", denied("aiplatform.googleapis.com")),
        (ON_PROJECT, "denied: aiplatform", "API aiplatform.googleapis.com: its calls are refused"),
    ),
    "no account may be made": (
        policy("iam.disableServiceAccountCreation", {"enforce": True}),
        (ON_PROJECT, "enforced", "account trainer-prod: the creation is refused"),
    ),
    "deleted objects are to be kept for no time": (
        policy("storage.softDeletePolicySeconds", allowed("0")),
        (ON_PROJECT, "allowed: 0", "bucket local-ml-prod-staging-prod (604800 s)"),
    ),
    "nobody outside of the organization is granted anything": (
        policy("iam.allowedPolicyMemberDomains", {"denyAll": True}),
        (ON_PROJECT, "all denied", "member group:ml-release@example.com: the grant is refused"),
    ),
    "only named members are granted something": (
        policy(
            "iam.managed.allowedPolicyMembers",
            {"enforce": True, "parameters": {"allowedMemberSubjects": ["user:a@example.com"]}},
        ),
        (ON_PROJECT, "enforced; allowed: user:a@example.com", "member group:ml-release@"),
    ),
    "no reservation may be shared": (
        policy("compute.sharedReservationsOwnerProjects", {"denyAll": True}),
        (ON_PROJECT, "all denied", "reservation h100-mega-prod: the reservation is refused"),
    ),
    "another project may share reservations": (
        policy("compute.sharedReservationsOwnerProjects", allowed("projects/12")),
        (ON_PROJECT, "allowed: projects/12", "reservation h100-mega-prod"),
    ),
    "buckets need a key": (
        policy("gcp.restrictNonCmekServices", denied("is:storage.googleapis.com")),
        (ON_PROJECT, "denied: is:storage", "bucket local-ml-prod-staging-prod"),
    ),
    "jobs need a key": (
        policy("gcp.restrictNonCmekServices", denied("aiplatform.googleapis.com")),
        (ON_PROJECT, "denied: aiplatform", "job titanic, job flash-attention"),
    ),
    "the host project may not be used": (
        policy("compute.restrictSharedVpcHostProjects", allowed("under:projects/local-other")),
        (ON_PROJECT, "allowed: under:projects/local-other", f"host project {HOST}"),
    ),
    "the subnet may not be used": (
        policy("compute.restrictSharedVpcSubnetworks", {"denyAll": True}),
        (ON_PROJECT, "all denied", f"subnet projects/{HOST}/regions/us-central1/subnetworks/"),
    ),
    "there is no quota for the CPUs of a job": (
        "serviceusage deny --method consumerQuotaMetrics.get --match training_cpus --times 0",
        (f"{VERTEX}_cpus", "0", "job titanic takes 4"),
    ),
    "there is no quota for the GPUs of a reservation": (
        "serviceusage deny --method consumerQuotaMetrics.get --match gpu_family --times 0",
        (f"{FAMILY} NVIDIA_H100_MEGA", "0", "the reservations take 40"),
    ),
    "there are as many reservations as there may be": (
        patch("compute", "regions.get", limit("RESERVATIONS", 3, 3)),
        ("quota RESERVATIONS", "3 of 3 are used", "the stack takes 1 more"),
    ),
    "there are as many subnets as there may be": (
        patch("compute", "projects.get", limit("SUBNETWORKS", 9, 9), f"{HOST}"),
        ("quota SUBNETWORKS", "9 of 9 are used", "the stack takes 1 more"),
    ),
    "the network is not there": (
        f"compute error --code 404 --method networks.get --match {NETWORK} --times 0",
        (NETWORK, "not there", "what the stack makes in it is refused"),
    ),
    "the project has another host": (
        patch("compute", "projects.getXpnHost", {"name": "local-other"}),
        (ON_PROJECT, "local-other", "the attachment is refused"),
    ),
    "a subnet has the addresses": (
        patch(
            "compute",
            "subnetworks.aggregatedList",
            {
                "items": {
                    "regions/us-east1": {
                        "subnetworks": [
                            in_network(
                                name="there", region="r/us-east1", ipCidrRange="10.20.0.0/20"
                            )
                        ]
                    }
                }
            },
        ),
        (SUBNET, "held by subnet there in us-east1 (10.20.0.0/20)", "the creation is refused"),
    ),
    "a range of peering has the addresses": (
        patch(
            "compute",
            "globalAddresses.list",
            {
                "items": [
                    in_network(
                        name="google",
                        purpose="VPC_PEERING",
                        address="10.16.0.0",
                        prefixLength=12,
                    )
                ]
            },
        ),
        (SUBNET, "held by range google (10.16.0.0/12)", "the creation is refused"),
    ),
    "a route leads to some of the addresses": (
        patch(
            "compute",
            "routes.list",
            {"items": [in_network(name="office", destRange="10.20.0.8/29", nextHopIp="10.1.0.2")]},
        ),
        (SUBNET, "held by route office (10.20.0.8/29)", "the creation is refused"),
    ),
    "a subnet of the same name in another region has the addresses": (
        patch(
            "compute",
            "subnetworks.aggregatedList",
            {
                "items": {
                    "regions/us-east1": {
                        "subnetworks": [
                            in_network(
                                name="training-prod",
                                region="r/us-east1",
                                ipCidrRange="10.20.0.0/20",
                            )
                        ]
                    }
                }
            },
        ),
        (SUBNET, "held by subnet training-prod in us-east1", "the creation is refused"),
    ),
    "a peered network has the addresses": (
        patch(
            "compute",
            "routes.list",
            {"items": [in_network(name="r", destRange="10.0.0.0/8", nextHopPeering="hub")]},
        ),
        (SUBNET, "held by peering hub (10.0.0.0/8)", "the creation is refused"),
    ),
}


@pytest.fixture(scope="session")
def prod(tmp_path_factory: pytest.TempPathFactory) -> tuple[StackRef, DeclaredStack]:
    """The fixture's stack as it is: its buckets and jobs have no key."""
    root = copy_project(tmp_path_factory.mktemp("limits"))
    file = root / "Pulumi.prod.yaml"
    text = file.read_text(encoding="utf-8")
    for name, ours in NAMES.items():
        text = text.replace(name, ours)
    file.write_text(text, encoding="utf-8")
    ref = StackRef(root, "vertex-training", "prod", PROJECT, "us-central1")
    return ref, declare_stack(root, "prod")


def told(rehearsal: Rehearsal, *verdicts: Verdict) -> list[Answer]:
    """Answers with one of these verdicts, of the parts that are tested here."""
    answers = [answer for part in PARTS for answer in part.ask(rehearsal.context())]
    return [each for each in answers if each.verdict in verdicts]


@pytest.mark.parametrize("case", REFUSALS)
def test_each_refusal_is_told_with_what_it_stops(rehearsal: Rehearsal, case: str) -> None:
    fault, (subject, answer, meets) = REFUSALS[case]
    rehearsal.add_fault(fault)
    [refused] = told(rehearsal, Verdict.REFUSED)
    assert refused.subject == subject
    assert refused.answer.startswith(answer)
    assert meets in refused.meets
    assert refused.mend


UNKNOWN = {
    "domains are customers, which cannot be asked": (
        policy("iam.allowedPolicyMemberDomains", allowed("C01abcdef")),
        "group:ml-release@example.com cannot be asked",
        "",
    ),
    "policies may not be read": (
        "orgpolicy deny --match gcp.resourceLocations --times 0",
        "403",
        "orgpolicy.policy.get",
    ),
    "quotas may not be read": (
        "serviceusage error --code 403 --method consumerQuotaMetrics.get --times 0",
        "403",
        "serviceusage.quotas.get",
    ),
    "zones may not be read": ("dns deny --times 0", "403", "dns.managedZones.list"),
}
