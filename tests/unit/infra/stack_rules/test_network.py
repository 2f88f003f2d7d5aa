"""Contradictions in a stack's network are told before anything is made."""

import pytest

from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, PEERING, PSC, refused, stack

OTHER = "projects/acme-other/global/networks/theirs"


@pytest.mark.parametrize(
    "network",
    [
        {},
        {"mode": "none"},
        PEERING,
        PSC,
        PSC | {"nat": True, "dnsPeering": {"corp": {"domain": "corp.example.com."}}},
        PEERING | {"exportCustomRoutes": True, "avoid": ["10.0.0.0/8"]},
        PEERING
        | {"ranges": {"a": {"prefixLength": 17, "address": "10.0.0.0"}}, "avoid": ["10.1.0.0/16"]},
        {"mode": "psc", "attachment": {
            "existing": "projects/acme-x/regions/us-central1/networkAttachments/a"}},
        {"mode": "peering", "existing": "projects/109876543210/global/networks/ours",
         "ranges": {"workers": {"existing": "vertex-range"}}},
    ],
)  # fmt: skip
def test_a_network_that_is_in_order_is_read(network):
    assert stack(network=network).network.mode == network.get("mode", "none")


@pytest.mark.parametrize(
    ("network", "path", "text"),
    [
        ({"subnet": {"range": "10.0.0.0/24"}}, "network.subnet", "says nothing in mode none"),
        (PSC | {"ranges": {"a": {"prefixLength": 16}}}, "network.ranges", "is for mode peering"),
        (PEERING | {"attachment": {}}, "network.attachment", "is for mode psc"),
        ({"mode": "psc"}, "network", "needs a subnet for its attachment"),
        ({"mode": "peering"}, "network", "peering needs a range"),
        (PSC | {"subnet": {}}, "network.subnet", "has neither range nor existing"),
        (
            PSC | {"subnet": {"range": "10.20.0.0/29"}},
            "network.subnet.range",
            "is smaller than a /28 (got 10.20.0.0/29)",
        ),
        (PSC | {"existing": OTHER}, "network.existing", "by a Shared VPC only"),
        (
            PSC | {"subnet": {"existing": HOST_SUBNET}},
            "network.subnet.existing",
            "is in a network that exists",
        ),
        (PEERING | {"nat": True}, "network.nat", "is for a subnet's machines"),
        (PEERING | {"ranges": {"a": {}}}, "network.ranges.a", "neither prefixLength nor existing"),
        (
            PEERING | {"ranges": {"a": {"prefixLength": 24}}},
            "network.ranges.a.prefixLength",
            "is too small for training (got /24)",
        ),
        (
            PEERING | {"ranges": {"a": {"existing": "theirs"}}},
            "network.ranges.a.existing",
            "in a network that exists",
        ),
        (
            PEERING | {"ranges": {"a": {"prefixLength": 16, "address": "10.1.2.0"}}},
            "network.ranges.a.address",
            "is not where a /16 begins",
        ),
        (
            PEERING | {"ranges": {"a": {"prefixLength": 17, "address": "172.16.0.0"}}},
            "network.ranges.a.address",
            "overlaps 172.16.0.0/16 (reserved: training uses it itself",
        ),
        (
            PSC | {"subnet": {"range": "100.64.8.0/24"}},
            "network.subnet.range",
            "overlaps 100.64.0.0/10",
        ),
        (PSC | {"avoid": ["10.20.0.0/16"]}, "network.subnet.range", "(in avoid)"),
        (
            PEERING | {"subnet": {"range": "10.1.0.0/24"}}
            | {"ranges": {"a": {"prefixLength": 16, "address": "10.1.0.0"}}},
            "network.ranges.a.address",
            "(of network.subnet.range)",
        ),
        (
            PSC | {"subnet": {"range": "10.20.0.0/28", "existing":
             "projects/acme-ml-prod/regions/europe-west4/subnetworks/x"},
             "existing": "projects/acme-ml-prod/global/networks/x"},
            "network.subnet.existing",
            "is not in the stack's region us-central1",
        ),
        (
            PSC | {"allow": {"workers": {"destinationRanges": ["10.0.0.0/8"]}}},
            "network.allow.workers",
            "the stack makes this rule itself",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_is_told_at_its_place(network, path, text):
    [(where, told)] = refused(network=network)
    assert where == path
    assert text in told
    assert "Hint: " in told


@pytest.mark.parametrize(
    ("network", "path", "text"),
    [
        (PSC | {"subnet": {"range": "10.20.0.1/26"}}, "network.subnet.range", "host bits set"),
        (PSC | {"mode": "vpc"}, "network.mode", "'none', 'peering' or 'psc'"),
        (PSC | {"existing": "production"}, "network.existing", "projects/PROJECT/global/networks"),
        (
            PSC | {"dnsPeering": {"corp": {"domain": "corp.example.com"}}},
            "network.dnsPeering.corp.domain",
            "with a dot at its end (got",
        ),
        (PSC | {"subnt": {}}, "network.subnt", "did you mean 'subnet'?"),
        (PSC | {"subnet": {"rnage": "x"}}, "network.subnet.rnage", "did you mean 'range'?"),
        (
            PSC | {"allow": {"nfs": {"destinationRanges": ["10.0.0.0/8"], "port": []}}},
            "network.allow.nfs.port",
            "did you mean 'ports'?",
        ),
        (PEERING | {"ranges": {"a": {"prefixLength": 40}}}, "network.ranges.a.prefixLength", "29"),
    ],
)
def test_a_value_of_the_wrong_form_is_told_with_the_right_one(network, path, text):
    [(where, told)] = refused(network=network)
    assert where == path
    assert text in told


def test_all_contradictions_are_told_at_once():
    told = refused(
        network=PSC | {"subnet": {"range": "240.0.0.0/30"}, "exportCustomRoutes": True},
        sharedVpc={"hostProject": "acme-ml-prod", "hostProjectNumber": "109876543210"},
    )
    assert [where for where, _ in told] == [
        "network.exportCustomRoutes",
        "sharedVpc.hostProject",
        "sharedVpc.hostProjectNumber",
        "network.subnet.range",
        "network.subnet.range",
    ]


def test_a_host_of_others_is_left_alone():
    shared = HOST | {"manageHost": False}
    told = dict(refused(network=PSC | {"nat": True}, sharedVpc=shared))
    assert set(told) == {"network.existing", "network.subnet.range", "network.nat"}
    assert all("manageHost: false" in text for text in told.values())
    there = {"existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}
    assert stack(network={"mode": "psc"} | there, sharedVpc=shared).shared_vpc


def test_a_shared_vpc_without_a_network_is_told():
    [(where, told)] = refused(sharedVpc=HOST)
    assert where == "sharedVpc"
    assert "says nothing without a network" in told


def test_who_deploys_is_no_longer_a_list_of_the_host_and_the_hint_says_where_it_stands():
    [(where, told)] = refused(network=PSC, sharedVpc=HOST | {"deployers": ["user:a@example.com"]})
    assert where == "sharedVpc.deployers"
    assert "unknown key. Hint: did you mean 'vertex-training:deployers'?" in told
