"""What becomes reachable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.values import WIRE_UNKNOWN
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


@pytest.mark.parametrize(
    ("type_", "inputs", "what"),
    [
        ("compute/network:Network", {"name": "training"}, "network training"),
        (
            "compute/subnetwork:Subnetwork",
            {"name": "jobs", "ipCidrRange": "10.0.0.0/20"},
            "subnetwork jobs (10.0.0.0/20)",
        ),
        (
            "compute/subnetwork:Subnetwork",
            {"name": "jobs", "ipCidrRange": "10.0.0.0/20", "privateIpGoogleAccess": True},
            "subnetwork jobs (10.0.0.0/20, Google APIs without public addresses)",
        ),
        (
            "compute/globalAddress:GlobalAddress",
            {
                "name": "peers",
                "address": "10.8.0.0",
                "prefixLength": 20,
                "network": "projects/p/global/networks/training",
            },
            "address range peers (10.8.0.0/20) of network training",
        ),
        (
            "compute/globalAddress:GlobalAddress",
            {"name": "peers", "prefixLength": 20, "network": WIRE_UNKNOWN},
            "address range peers (chosen by Google/20) of a new network",
        ),
        (
            "servicenetworking/connection:Connection",
            {"network": "training", "service": "servicenetworking.googleapis.com"},
            "a peering of network training with servicenetworking.googleapis.com",
        ),
        (
            "compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig",
            {"peering": "to-google", "importCustomRoutes": True, "exportCustomRoutes": False},
            "routes of peering to-google: import True, export False",
        ),
        (
            "compute/networkAttachment:NetworkAttachment",
            {"name": "psc", "connectionPreference": "ACCEPT_MANUAL"},
            "attachment psc: who it accepts gets addresses in its subnetworks (ACCEPT_MANUAL)",
        ),
        (
            "compute/router:Router",
            {"name": "out", "network": "projects/p/global/networks/training"},
            "router out of network training",
        ),
        (
            "compute/routerNat:RouterNat",
            {"name": "nat"},
            "the internet to machines without public addresses (NAT nat)",
        ),
        (
            "compute/sharedVPCHostProject:SharedVPCHostProject",
            {"project": "host"},
            "project host as host of shared networks",
        ),
        (
            "compute/sharedVPCServiceProject:SharedVPCServiceProject",
            {"hostProject": "host", "serviceProject": "ml"},
            "networks of project host to project ml",
        ),
        (
            "dns/managedZone:ManagedZone",
            {"dnsName": "corp.example.", "visibility": "private"},
            "DNS zone corp.example. (private)",
        ),
        (  # a zone is public unless it says otherwise
            "dns/managedZone:ManagedZone",
            {"dnsName": "example.com."},
            "DNS zone example.com. (public)",
        ),
        (
            "iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
            {"attributeCondition": "assertion.repository == 'acme/ml'"},
            "tokens of another issuer to this project, if assertion.repository == 'acme/ml'",
        ),
        (
            "iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
            {},
            "tokens of another issuer to this project, if anything",
        ),
    ],
)
def test_a_network_resource_is_a_sentence(type_: str, inputs: dict[str, Any], what: str) -> None:
    plan = plans.plan(plans.create(f"gcp:{type_}", "x", **inputs))
    assert reachability.reachability_changes(plan) == [
        reachability.ReachabilityChange("opens", what, "x")
    ]
    assert all(map(reachability.is_network, plan.steps))


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({}, "denies  from anywhere to any machine in it"),
        (
            {"denies": [{"protocol": "all"}], "sourceTags": ["a"], "sourceServiceAccounts": ["b"]},
            "denies all from a, b to any machine in it",
        ),
        (
            {"direction": "EGRESS", "allows": [{"protocol": "udp", "ports": ["53"]}]},
            "allows udp 53 from any machine in it to anywhere",
        ),
        (  # what a rule leaves out of its direction is INGRESS
            {"allows": [{"protocol": "tcp"}], "targetTags": ["t"]},
            "allows tcp from anywhere to t",
        ),
    ],
)
def test_a_firewall_rule_says_which_ends_it_leaves_open(rule: dict[str, Any], what: str) -> None:
    new = {"network": WIRE_UNKNOWN} | rule
    assert told(plans.create("gcp:compute/firewall:Firewall", "f", **new)) == [
        ("opens", f"a firewall rule of a new network that {what}")
    ]


def test_everything_that_a_job_opens_and_closes_is_told_with_the_job() -> None:
    spec = {
        "network": "projects/1/global/networks/n",
        "enableWebAccess": True,
        "enableDashboardAccess": True,
        "pscInterfaceConfig": {
            "networkAttachment": "psc",
            "dnsPeeringConfigs": [{"domain": "corp.example."}, {}],
        },
    }
    names = [
        "DNS zone  to job a",
        "DNS zone corp.example. to job a",
        "a shell into the machines of job a, for who may use Vertex AI",
        "network projects/1/global/networks/n to job a",
        "the dashboard of job a",
        "the network behind psc to job a",
    ]
    made = told(plans.create(plans.JOB, "training-a", **plans.job("a", **spec)))
    gone = told(plans.delete(plans.JOB, "training-a", **plans.job("a", **spec)))
    assert made == [("opens", name) for name in names]
    assert gone == [("closes", name) for name in names]
    assert told(plans.create(plans.JOB, "training-a", **plans.job("a"))) == []


def test_of_a_grant_those_who_are_everybody_are_told_and_no_others() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    old = {"bucket": "data", "role": "r", "members": ["user:a", "allUsers"]}
    new = old | {"members": ["user:a", "user:b", "allAuthenticatedUsers"]}
    assert told(plans.step("update", binding, "b", old=old, new=new)) == [
        ("opens", "bucket data to everybody (allAuthenticatedUsers)"),
        ("closes", "bucket data to everybody (allUsers)"),
    ]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (
            plans.create(plans.BUCKET, "b", name="data"),
            [("opens", "bucket data to rights of everybody (public access prevention)")],
        ),
        (
            plans.create(plans.BUCKET, "b"),
            [("opens", "bucket b to rights of everybody (public access prevention)")],
        ),
        (plans.create(plans.BUCKET, "b", publicAccessPrevention="enforced"), []),
        (plans.delete(plans.BUCKET, "b", name="data"), []),
        (plans.create("gcp:bigquery/dataset:Dataset", "d"), []),
    ],
)
def test_a_bucket_is_told_that_leaves_the_door_open(
    event: plans.Event, found: list[tuple[str, str]]
) -> None:
    assert told(event) == found


def test_changes_are_told_by_verb_then_words_then_name() -> None:
    network, nat = "gcp:compute/network:Network", "gcp:compute/routerNat:RouterNat"
    plan = plans.plan(
        plans.delete(network, "gone", name="a"),
        plans.step("update", network, "other", old={"name": "m"}, new={"name": "m", "mtu": 1460}),
        plans.create(nat, "z", name="nat"),
        plans.create(nat, "y", name="nat"),
        plans.create(network, "new", name="b"),
    )
    assert [(each.verb, each.resource) for each in reachability.reachability_changes(plan)] == [
        ("opens", "new"),
        ("opens", "y"),
        ("opens", "z"),
        ("changes", "other"),
        ("closes", "gone"),
    ]


OPEN = FIREWALL | {"sourceRanges": ["0.0.0.0/0"]}


@pytest.mark.parametrize(
    ("old", "new", "public", "danger"),
    [
        (None, OPEN, True, "destroys"),
        (FIREWALL, OPEN, True, "destroys"),
        (None, FIREWALL, False, "opens"),
        (OPEN, OPEN | {"priority": 7}, False, "opens"),
        (OPEN, FIREWALL, False, "opens"),
        (OPEN, None, False, "plain"),
    ],
)
def test_only_what_newly_opens_to_everybody_is_as_bad_as_a_loss(
    old: dict[str, Any] | None, new: dict[str, Any] | None, public: bool, danger: str
) -> None:
    op = "update" if old and new else "create" if new else "delete"
    step = plans.step(op, "gcp:compute/firewall:Firewall", "f", old=old, new=new)
    [change] = reachability.reachability_changes(plans.plan(step))
    assert (change.public, change.danger) == (public, danger)


def test_a_shell_is_told_of_jobs_that_had_none() -> None:
    def replaced(name: str, before: bool, after: bool) -> plans.Event:
        old, new = (plans.job(name, enableWebAccess=each) for each in (before, after))
        return plans.step("replace", plans.JOB, f"training-{name}", old=old, new=new)

    plan = plans.plan(
        plans.create(plans.JOB, "training-z", **plans.job("z", enableWebAccess=True)),
        replaced("kept", True, True),
        replaced("opened", False, True),
        replaced("closed", True, False),
        plans.delete(plans.JOB, "training-gone", **plans.job("gone", enableWebAccess=True)),
    )
    assert reachability.shells(plan) == ("opened", "z")


def test_egress_is_of_firewall_rules_by_name() -> None:
    rule = {"direction": "EGRESS", "allows": [{"protocol": "all"}]}
    firewall = "gcp:compute/firewall:Firewall"
    plan = plans.plan(
        plans.create(firewall, "z", **rule, destinationRanges=["::/0"]),
        plans.create(firewall, "a", **rule, destinationRanges=["10.0.0.0/8", "0.0.0.0/0"]),
        plans.create(firewall, "off", **rule, disabled=True),
        plans.create(firewall, "denied", direction="EGRESS", denies=[{"protocol": "all"}]),
        plans.create(firewall, "in", **FIREWALL | {"destinationRanges": ["0.0.0.0/0"]}),
        plans.create(firewall, "odd", **rule, destinationRanges=WIRE_UNKNOWN),
        plans.create("gcp:compute/route:Route", "no-rule", **rule),
        plans.delete(firewall, "gone", **rule),
    )
    assert reachability.opened_egress(plan) == ("a", "in", "z")


def test_types_that_nothing_is_known_of_are_named_if_one_of_them_changes_and_stays() -> None:
    known = (
        *(plans.BUCKET, plans.MEMBER, plans.JOB, "gcp:compute/firewall:Firewall"),
        *("gcp:storage/hmacKey:HmacKey", "gcp:organizations/iAMCustomRole:IAMCustomRole"),
        "gcp:pubsub/topicIAMMember:TopicIAMMember",
    )
    plan = plans.plan(
        *(plans.create(type_, "known") for type_ in known),
        plans.create("other:z:Zone", "z"),
        plans.step("update", "other:a:Account", "a", {"x": 1}, {"x": 2}),
        plans.create("other:a:Account", "b"),
        plans.step("same", "other:s:Same", "s", {}, {}),
        plans.delete("other:g:Gone", "g"),
    )
    assert reachability.unjudged_types(plan) == ("other:a:Account", "other:z:Zone")
