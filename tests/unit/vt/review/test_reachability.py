"""What becomes reachable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import reachability

FIREWALL = {
    "network": "projects/p/global/networks/training",
    "direction": "INGRESS",
    "sourceRanges": ["10.0.0.0/24"],
    "allows": [{"protocol": "tcp", "ports": ["22", "443"]}, {"protocol": "icmp"}],
}


def told(*events: plans.Event) -> list[tuple[str, str]]:
    return [
        (change.verb, change.what)
        for change in reachability.reachability_changes(plans.plan(*events))
    ]


def test_a_firewall_rule_is_a_sentence() -> None:
    [(verb, what)] = told(plans.create("gcp:compute/firewall:Firewall", "f", **FIREWALL))
    assert verb == "opens"
    assert what == (
        "a firewall rule of network training that allows tcp 22,443, icmp from 10.0.0.0/24"
        " to any machine in it"
    )


def test_a_firewall_rule_without_sources_is_open_to_anywhere() -> None:
    rule = FIREWALL | {"sourceRanges": []}
    [(_, what)] = told(plans.create("gcp:compute/firewall:Firewall", "f", **rule))
    assert what.endswith("from anywhere to any machine in it")


def test_an_outward_rule_says_where_to() -> None:
    rule = FIREWALL | {
        "direction": "EGRESS",
        "sourceRanges": [],
        "destinationRanges": ["10.1.0.0/16"],
    }
    [(_, what)] = told(plans.create("gcp:compute/firewall:Firewall", "f", **rule))
    assert what.endswith("from any machine in it to 10.1.0.0/16")


def test_a_changed_rule_is_told_with_what_differs() -> None:
    new = FIREWALL | {"sourceRanges": ["0.0.0.0/0"]}
    step = plans.step("update", "gcp:compute/firewall:Firewall", "f", old=FIREWALL, new=new)
    [change] = reachability.reachability_changes(plans.plan(step))
    assert change.verb == "changes"
    assert [(each.path, each.new) for each in change.differences] == [
        ("sourceRanges[0]", "0.0.0.0/0")
    ]


@pytest.mark.parametrize("type_", sorted(reachability._DESCRIPTIONS))
def test_every_kind_of_network_resource_is_told_even_without_its_inputs(type_: str) -> None:
    assert told(plans.create(type_, "x"))[0][0] == "opens"
    assert told(plans.delete(type_, "x"))[0][0] == "closes"


def test_a_bucket_for_everybody_is_told() -> None:
    public = plans.member("data", who="allUsers")
    assert told(plans.create(plans.MEMBER, "m", **public)) == [
        ("opens", "bucket data to everybody (allUsers)")
    ]


def test_a_bucket_that_no_longer_prevents_public_access_is_told() -> None:
    old = {"name": "data", "publicAccessPrevention": "enforced"}
    new = {"name": "data", "publicAccessPrevention": "inherited"}
    assert told(plans.step("update", plans.BUCKET, "b", old=old, new=new))[0][0] == "opens"
    assert told(plans.step("update", plans.BUCKET, "b", old=new, new=old))[0][0] == "closes"
    assert told(plans.step("update", plans.BUCKET, "b", old=old, new=old | {"x": 1})) == []


def test_a_job_in_a_network_or_with_a_shell_is_told() -> None:
    open_ = plans.job(
        "a",
        enableWebAccess=True,
        pscInterfaceConfig={
            "networkAttachment": "projects/p/regions/r/networkAttachments/psc",
            "dnsPeeringConfigs": [{"domain": "corp.example."}],
        },
    )
    found = told(plans.step("replace", plans.JOB, "training-a", old=plans.job("a"), new=open_))
    assert [verb for verb, _ in found] == ["opens"] * 3
    assert any("networkAttachments/psc" in what for _, what in found)
    assert any("corp.example." in what for _, what in found)
    assert any("shell" in what for _, what in found)


def test_what_opens_comes_first() -> None:
    network = "gcp:compute/network:Network"
    found = told(plans.delete(network, "a", name="a"), plans.create(network, "b", name="b"))
    assert [verb for verb, _ in found] == ["opens", "closes"]


@pytest.mark.parametrize(
    ("targets", "where"),
    [
        ({"targetTags": ["trainer", "batch"]}, "trainer, batch"),
        ({"targetServiceAccounts": ["a@p.iam.gserviceaccount.com"]}, "a@p.iam.gserviceaccount.com"),
        ({"destinationRanges": ["10.1.0.0/16"]}, "10.1.0.0/16"),
    ],
)
def test_a_firewall_rule_names_the_machines_it_applies_to(
    targets: dict[str, list[str]], where: str
) -> None:
    rule = FIREWALL | targets
    [(_, what)] = told(plans.create("gcp:compute/firewall:Firewall", "f", **rule))
    assert what.endswith(f" from 10.0.0.0/24 to {where}")


@pytest.mark.parametrize(
    "sources", [{"sourceTags": ["bastion"]}, {"sourceServiceAccounts": ["bastion"]}]
)
def test_a_firewall_rule_names_the_machines_it_admits(sources: dict[str, list[str]]) -> None:
    rule = FIREWALL | {"sourceRanges": []} | sources
    [(_, what)] = told(plans.create("gcp:compute/firewall:Firewall", "f", **rule))
    assert what.endswith(" from bastion to any machine in it")


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"enableDashboardAccess": True}, "the dashboard of job a"),
        ({"network": "projects/1/global/networks/n"}, "network projects/1/global/networks/n to"),
    ],
)
def test_a_job_that_gives_up_an_access_closes_what_it_opened(
    spec: dict[str, Any], what: str
) -> None:
    bare, open_ = plans.job("a"), plans.job("a", **spec)
    [opened] = told(plans.step("replace", plans.JOB, "training-a", old=bare, new=open_))
    [closed] = told(plans.step("replace", plans.JOB, "training-a", old=open_, new=bare))
    assert (opened[0], closed[0]) == ("opens", "closes")
    assert opened[1] == closed[1]
    assert what in opened[1]
