"""What becomes reachable, in words; and what everybody, or any address, reaches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import reachability
from vertex_training_cli.review.reachability import ReachabilityChange

NETWORK = "projects/p/global/networks/net"
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
    ("type_", "inputs", "what"),
    [
        ("gcp:compute/network:Network", {"name": "n"}, "network n"),
        ("gcp:compute/subnetwork:Subnetwork", {"name": "s", "ipCidrRange": "10.0.0.0/24"},
         "subnetwork s (10.0.0.0/24)"),
        ("gcp:compute/subnetwork:Subnetwork",
         {"name": "s", "ipCidrRange": "10.0.0.0/24", "privateIpGoogleAccess": True},
         "subnetwork s (10.0.0.0/24, Google APIs without public addresses)"),
        ("gcp:compute/globalAddress:GlobalAddress",
         {"name": "r", "prefixLength": 16, "network": NETWORK},
         "address range r (chosen by Google/16) of network net"),
        ("gcp:compute/globalAddress:GlobalAddress",
         {"name": "r", "address": "10.1.0.0", "prefixLength": 16, "network": WIRE_UNKNOWN},
         "address range r (10.1.0.0/16) of a new network"),
        ("gcp:servicenetworking/connection:Connection",
         {"network": NETWORK, "service": "servicenetworking.googleapis.com"},
         "a peering of network net with servicenetworking.googleapis.com"),
        ("gcp:servicenetworking/connection:Connection", {}, "a peering of network  with services"),
        ("gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig",
         {"peering": "p", "importCustomRoutes": True, "exportCustomRoutes": False},
         "routes of peering p: import True, export False"),
        ("gcp:compute/networkAttachment:NetworkAttachment",
         {"name": "a", "connectionPreference": "ACCEPT_MANUAL"},
         "attachment a: who it accepts gets addresses in its subnetworks (ACCEPT_MANUAL)"),
        ("gcp:compute/router:Router", {"name": "r", "network": NETWORK}, "router r of network net"),
        ("gcp:compute/routerNat:RouterNat", {"name": "n"},
         "the internet to machines without public addresses (NAT n)"),
        ("gcp:compute/sharedVPCHostProject:SharedVPCHostProject", {"project": "p"},
         "project p as host of shared networks"),
        ("gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject",
         {"hostProject": "h", "serviceProject": "s"}, "networks of project h to project s"),
        ("gcp:dns/managedZone:ManagedZone", {"dnsName": "x.", "visibility": "private"},
         "DNS zone x. (private)"),
        ("gcp:dns/managedZone:ManagedZone", {"dnsName": "x."}, "DNS zone x. (public)"),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
         {"attributeCondition": "a == b"},
         "tokens of another issuer to this project, if a == b"),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", {},
         "tokens of another issuer to this project, if anything"),
        (RULE, {"network": NETWORK, "denies": [{"protocol": "all"}], "direction": "EGRESS"},
         "a firewall rule of network net that denies all from any machine in it to anywhere"),
        (RULE, {"network": NETWORK, "allows": [{"protocol": "tcp", "ports": ["22", "80-90"]},
                                               {"protocol": "icmp"}],
                "sourceRanges": ["10.0.0.0/8"], "sourceTags": ["t"],
                "targetServiceAccounts": ["a@p"]},
         "a firewall rule of network net that allows tcp 22,80-90, icmp from 10.0.0.0/8, t to a@p"),
    ],
)  # fmt: skip
def test_a_network_resource_is_a_sentence(type_: str, inputs: dict[str, Any], what: str) -> None:
    assert [(each.verb, each.what, each.resource) for each in changes(
        plans.create(type_, "r", **inputs)
    )] == [("opens", what, "r")]  # fmt: skip
    assert changes(plans.delete(type_, "r", **inputs)) == [ReachabilityChange("closes", what, "r")]
    plan = plans.plan(plans.create(type_, "r"), plans.create(plans.BUCKET, "b"))
    assert [reachability.is_network(step) for step in plan.steps] == [True, False]


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
        (FIREWALL, "allows tcp 22,443, icmp from 10.0.0.0/24 to any machine in it"),
        (
            FIREWALL | {"sourceRanges": []},
            "allows tcp 22,443, icmp from anywhere to any machine in it",
        ),
        (FIREWALL | {"targetTags": ["a", "b"]}, "allows tcp 22,443, icmp from 10.0.0.0/24 to a, b"),
        (
            FIREWALL | {"targetServiceAccounts": ["a@p"]},
            "allows tcp 22,443, icmp from 10.0.0.0/24 to a@p",
        ),
        (
            FIREWALL | {"destinationRanges": ["10.1.0.0/16"]},
            "allows tcp 22,443, icmp from 10.0.0.0/24 to 10.1.0.0/16",
        ),
        (
            {"allows": [{"protocol": "tcp"}], "sourceTags": ["t"]},
            "allows tcp from t to any machine in it",
        ),
        (
            {"allows": [{"protocol": "tcp"}], "sourceServiceAccounts": ["a"]},
            "allows tcp from a to any machine in it",
        ),
        (
            {
                "allows": [{"protocol": "tcp"}],
                "direction": "EGRESS",
                "destinationRanges": ["10.1.0.0/16"],
            },
            "allows tcp from any machine in it to 10.1.0.0/16",
        ),
    ],
)
def test_a_firewall_rule_says_which_ends_it_leaves_open(rule: dict[str, Any], what: str) -> None:
    new = rule | {"network": WIRE_UNKNOWN}
    assert sentences(plans.create(RULE, "f", **new)) == [
        ("opens", f"a firewall rule of a new network that {what}")
    ]


def test_a_changed_rule_is_told_with_what_differs() -> None:
    new = FIREWALL | {"sourceRanges": ["0.0.0.0/0"]}
    step = plans.step("update", RULE, "f", old=FIREWALL, new=new)
    [change] = changes(step)
    assert change.verb == "changes"
    assert [(each.path, each.new) for each in change.differences] == [
        ("sourceRanges[0]", "0.0.0.0/0")
    ]


@pytest.mark.parametrize("type_", sorted(reachability._DESCRIPTIONS))
def test_every_kind_of_network_resource_is_told_even_without_its_inputs(type_: str) -> None:
    assert sentences(plans.create(type_, "x"))[0][0] == "opens"
    assert sentences(plans.delete(type_, "x"))[0][0] == "closes"


def test_what_opens_comes_first_and_each_in_the_order_of_its_words() -> None:
    net = "gcp:compute/network:Network"
    found = changes(
        plans.delete(net, "1", name="b"), plans.delete(net, "2", name="a"),
        plans.step("update", net, "3", {"name": "c", "x": 1}, {"name": "c", "x": 2}),
        plans.create(net, "5", name="d"), plans.create(net, "4", name="d"),
    )  # fmt: skip
    assert found == [
        ReachabilityChange("opens", "network d", "4"),
        ReachabilityChange("opens", "network d", "5"),
        ReachabilityChange("changes", "network c", "3", (FieldDifference("x", "1", "2"),)),
        ReachabilityChange("closes", "network a", "2"),
        ReachabilityChange("closes", "network b", "1"),
    ]


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


@pytest.mark.parametrize(
    ("old", "new", "shells"),
    [(None, True, ("j",)), (False, True, ("j",)), (True, True, ()), (True, None, ())],
)
def test_a_shell_is_new_where_there_was_none(
    old: bool | None, new: bool | None, shells: tuple[str, ...]
) -> None:
    both = [
        None if each is None else plans.job("j", run=n, enableWebAccess=each)
        for n, each in enumerate((old, new))
    ]
    op = "create" if old is None else "delete" if new is None else "replace"
    assert reachability.shells(plans.plan(plans.step(op, plans.JOB, "t", *both))) == shells


PUBLIC = plans.member("data", who="allUsers")
ENFORCED = {"name": "b", "publicAccessPrevention": "enforced"}
BUCKET = "bucket b to rights of everybody (public access prevention)"
POSSIBLE = "bucket b (no public access prevention)"


@pytest.mark.parametrize(
    ("event", "told", "opened"),
    [
        (plans.create(plans.MEMBER, "m", **PUBLIC),
         [("opens", "bucket data to everybody (allUsers)", True)], ("bucket data",)),
        (plans.step("update", plans.MEMBER, "m", plans.member("data"), PUBLIC),
         [("opens", "bucket data to everybody (allUsers)", True)], ("bucket data",)),
        (plans.delete(plans.MEMBER, "m", **PUBLIC),
         [("closes", "bucket data to everybody (allUsers)", False)], ()),
        (plans.step("update", plans.MEMBER, "m", PUBLIC, plans.member("data", "x", "allUsers")),
         [("opens", "bucket data to everybody (allUsers)", False),
          ("closes", "bucket data to everybody (allUsers)", False)], ()),
        (plans.create(plans.MEMBER, "m", **plans.member("data")), [], ()),
        (plans.create(plans.BUCKET, "r", name="b"), [("opens", BUCKET, True)], (POSSIBLE,)),
        (plans.create(plans.BUCKET, "r"), [("opens", BUCKET.replace(" b ", " r "), True)],
         (POSSIBLE.replace(" b ", " r "),)),
        (plans.create(plans.BUCKET, "r", **ENFORCED), [], ()),
        (plans.step("update", plans.BUCKET, "r", ENFORCED, {"name": "b"}),
         [("opens", BUCKET, True)], (POSSIBLE,)),
        (plans.step("update", plans.BUCKET, "r", {"name": "b"}, ENFORCED),
         [("closes", BUCKET, False)], ()),
        (plans.step("update", plans.BUCKET, "r", {"name": "b"}, {"name": "b", "x": 1}), [], ()),
        (plans.delete(plans.BUCKET, "r", name="b"), [], ()),
        (plans.create("gcp:bigquery/dataset:Dataset", "d"), [], ()),
    ],
)  # fmt: skip
def test_what_everybody_reaches_is_public(
    event: plans.Event, told: list[tuple[str, str, bool]], opened: tuple[str, ...]
) -> None:
    assert [(each.verb, each.what, each.public) for each in changes(event)] == told
    assert reachability.opened_to_everybody(plans.plan(event)) == opened


TCP = [{"protocol": "tcp"}]


@pytest.mark.parametrize(
    ("rule", "is_open", "is_egress"),
    [
        ({"allows": TCP}, True, False),
        ({"allows": TCP, "sourceRanges": ["0.0.0.0/0"]}, True, False),
        ({"allows": TCP, "sourceRanges": ["10.0.0.0/8", "::/0"]}, True, False),
        ({"allows": TCP, "sourceRanges": ["10.0.0.0/8"]}, False, False),
        ({"allows": TCP, "sourceRanges": ["0.0.0.0/1", "128.0.0.0/1"]}, True, False),
        ({"allows": TCP, "sourceRanges": "0.0.0.0/0"}, False, False),
        ({"allows": TCP, "sourceTags": ["t"]}, False, False),
        ({"allows": TCP, "sourceServiceAccounts": ["a"]}, False, False),
        ({"allows": TCP, "sourceTags": ["t"], "sourceRanges": ["0.0.0.0/0"]}, True, False),
        ({"allows": TCP, "disabled": True}, False, False),
        ({"denies": TCP}, False, False),
        ({"allows": TCP, "direction": "INGRESS"}, True, False),
        ({"allows": TCP, "direction": "EGRESS"}, False, True),
        ({"allows": TCP, "direction": "EGRESS", "destinationRanges": ["0.0.0.0/0"]}, False, True),
        ({"allows": TCP, "direction": "EGRESS", "destinationRanges": ["10.0.0.0/8"]}, False, False),
        ({"allows": TCP, "direction": "EGRESS", "disabled": True}, False, False),
        ({"denies": TCP, "direction": "EGRESS"}, False, False),
        ({"allows": TCP, "sourceTags": ["t"], "destinationRanges": ["0.0.0.0/0"]}, False, True),
    ],
)  # fmt: skip
def test_a_rule_that_lets_anybody_in_or_machines_out_is_found(
    rule: dict[str, Any], is_open: bool, is_egress: bool
) -> None:
    plan = plans.plan(plans.create(RULE, "f", **rule))
    assert reachability.opened_to_everybody(plan) == (("firewall f",) if is_open else ())
    assert reachability.opened_egress(plan) == (("f",) if is_egress else ())
    [change] = reachability.reachability_changes(plan)
    assert change.public is is_open
    again = plans.plan(plans.step("update", RULE, "f", rule, {**rule, "priority": 1}))
    assert reachability.opened_to_everybody(again) == ()
    assert reachability.opened_egress(again) == ()


def test_names_of_what_opens_are_in_order() -> None:
    egress = {"allows": TCP, "direction": "EGRESS"}
    events = [plans.create(RULE, name, **egress) for name in "bac"]
    events += [plans.create(RULE, name, allows=TCP) for name in "zyx"]
    plan = plans.plan(*events)
    assert reachability.opened_egress(plan) == ("a", "b", "c")
    assert reachability.opened_to_everybody(plan) == ("firewall x", "firewall y", "firewall z")
    jobs = [plans.create(plans.JOB, n, **plans.job(n, enableWebAccess=True)) for n in "bac"]
    assert reachability.shells(plans.plan(*jobs)) == ("a", "b", "c")


def test_of_a_grant_those_who_are_everybody_are_told_and_no_others() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    old = {"bucket": "data", "role": "r", "members": ["user:a", "allUsers"]}
    new = old | {"members": ["user:a", "user:b", "allAuthenticatedUsers"]}
    assert sentences(plans.step("update", binding, "b", old=old, new=new)) == [
        ("opens", "bucket data to everybody (allAuthenticatedUsers)"),
        ("closes", "bucket data to everybody (allUsers)"),
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
    step = plans.step(op, RULE, "f", old=old, new=new)
    [change] = changes(step)
    assert (change.public, change.danger) == (public, danger)


def test_egress_is_of_firewall_rules_by_name() -> None:
    rule = {"direction": "EGRESS", "allows": [{"protocol": "all"}]}
    plan = plans.plan(
        plans.create(RULE, "z", **rule, destinationRanges=["::/0"]),
        plans.create(RULE, "a", **rule, destinationRanges=["10.0.0.0/8", "0.0.0.0/0"]),
        plans.create(RULE, "off", **rule, disabled=True),
        plans.create(RULE, "denied", direction="EGRESS", denies=[{"protocol": "all"}]),
        plans.create(RULE, "in", **FIREWALL | {"destinationRanges": ["0.0.0.0/0"]}),
        plans.create(RULE, "odd", **rule, destinationRanges=WIRE_UNKNOWN),
        plans.create("gcp:compute/route:Route", "no-rule", **rule),
        plans.delete(RULE, "gone", **rule),
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
