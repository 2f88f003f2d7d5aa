"""Contradictions in a stack's network are told before anything is made."""

import pytest

from tests.unit.infra.stacks import HOST_SUBNET, PEERING, PSC, refused

OTHER = "projects/acme-other/global/networks/theirs"


@pytest.mark.parametrize(
    ("network", "path", "text"),
    [
        ({"subnet": {"range": "10.0.0.0/24"}}, "network.subnet", "says nothing in mode none"),
        (PSC | {"ranges": {"a": {"prefixLength": 16}}}, "network.ranges", "is for mode peering"),
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
