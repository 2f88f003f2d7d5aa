"""What becomes reachable, in words; and what everybody, or any address, reaches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import reachability
from vertex_training_cli.review.reachability import ReachabilityChange

RULE = "gcp:compute/firewall:Firewall"
FIREWALL = {
    "network": "projects/p/global/networks/training",
    "direction": "INGRESS",
    "sourceRanges": ["10.0.0.0/24"],
    "allows": [{"protocol": "tcp", "ports": ["22", "443"]}, {"protocol": "icmp"}],
}


def changes(*told: plans.Event) -> list[ReachabilityChange]:
    return reachability.reachability_changes(plans.plan(*told))


def sentences(*told: plans.Event) -> list[tuple[str, str]]:
    return [(each.verb, each.what) for each in changes(*told)]


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({}, "denies  from anywhere to any machine in it"),
        (
            {"denies": [{"protocol": "all"}], "sourceTags": ["a"], "sourceServiceAccounts": ["b"]},
            "denies all from a, b to any machine in it",
        ),
        (  # what a rule leaves out of its direction is INGRESS
            {"allows": [{"protocol": "tcp"}], "targetTags": ["t"]},
            "allows tcp from anywhere to t",
        ),
        (FIREWALL, "allows tcp 22,443, icmp from 10.0.0.0/24 to any machine in it"),
        (FIREWALL | {"targetTags": ["a", "b"]}, "allows tcp 22,443, icmp from 10.0.0.0/24 to a, b"),
    ],
)
def test_a_firewall_rule_says_which_ends_it_leaves_open(rule: dict[str, Any], what: str) -> None:
    new = rule | {"network": WIRE_UNKNOWN}
    assert sentences(plans.create(RULE, "f", **new)) == [
        ("opens", f"a firewall rule of a new network that {what}")
    ]


@pytest.mark.parametrize("type_", sorted(reachability._DESCRIPTIONS))
def test_every_kind_of_network_resource_is_told_even_without_its_inputs(type_: str) -> None:
    assert sentences(plans.create(type_, "x"))[0][0] == "opens"
    assert sentences(plans.delete(type_, "x"))[0][0] == "closes"


OPEN_JOB: dict[str, Any] = {
    "network": "n", "enableWebAccess": True, "enableDashboardAccess": True,
    "pscInterfaceConfig": {
        "networkAttachment": "att", "dnsPeeringConfigs": [{"domain": "b."}, {"domain": "a."}, {}]},
}  # fmt: skip
OPENED = [
    "DNS zone  to job j", "DNS zone a. to job j", "DNS zone b. to job j",
    "a shell into the machines of job j, for who may use Vertex AI", "network n to job j",
    "the dashboard of job j", "the network behind att to job j",
]  # fmt: skip


def test_a_job_opens_networks_and_shells_and_closes_them() -> None:
    opened = plans.create(plans.JOB, "training-j", **plans.job("j", **OPEN_JOB))
    assert changes(opened) == [ReachabilityChange("opens", what, "training-j") for what in OPENED]
    gone = plans.delete(plans.JOB, "training-j", **plans.job("j", **OPEN_JOB))
    assert changes(gone) == [ReachabilityChange("closes", what, "training-j") for what in OPENED]
    same = plans.step(
        "replace", plans.JOB, "training-j", plans.job("j", **OPEN_JOB),
        plans.job("j", run=2, **OPEN_JOB),
    )  # fmt: skip
    assert changes(same) == []
    bare = plans.job("j")
    assert changes(plans.create(plans.JOB, "training-j", **bare)) == []
    given = plans.step("replace", plans.JOB, "training-j", bare, plans.job("j", **OPEN_JOB))
    assert changes(given) == changes(opened)
    taken = plans.step("replace", plans.JOB, "training-j", plans.job("j", **OPEN_JOB), bare)
    assert changes(taken) == changes(gone)


def test_of_a_grant_those_who_are_everybody_are_told_and_no_others() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    old = {"bucket": "data", "role": "r", "members": ["user:a", "allUsers"]}
    new = old | {"members": ["user:a", "user:b", "allAuthenticatedUsers"]}
    assert sentences(plans.step("update", binding, "b", old=old, new=new)) == [
        ("opens", "bucket data to everybody (allAuthenticatedUsers)"),
        ("closes", "bucket data to everybody (allUsers)"),
    ]
