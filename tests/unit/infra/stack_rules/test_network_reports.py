"""Rules of networks, each with both sides of its limit: path, what is wrong, value and hint."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, PSC, rows, unjudged
from vertex_training.stack_rules import advice, network

OWN = "projects/acme-ml-prod/global/networks/ours"
THEIRS = "projects/acme-other/global/networks/theirs"
ATTACHMENT = "projects/acme-x/regions/us-central1/networkAttachments/a"
ALLOW = {"nfs": {"destinationRanges": ["10.9.0.0/24"]}}
FEWER = "give address and prefixLength of the range, or the subnet"
UNKNOWN = ("network.allow", "the addresses of the machines of jobs are not known here", "", FEWER)


def peering(**wanted: Any) -> dict[str, Any]:
    return {"mode": "peering", "ranges": {"workers": wanted or {"prefixLength": 16}}}


def told(given: dict[str, Any], **more: Any) -> list[tuple[str, str, str, str]]:
    return rows(network.problems(unjudged(network=given, **more)))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"nat": True, "allow": {}, "importCustomRoutes": True, "avoid": ["10.0.0.0/8"]}, [
            (f"network.{key}", "says nothing in mode none", "",
             "mode: peering or mode: psc; docs/networks.md compares them")
            for key in ("allow", "avoid", "importCustomRoutes", "nat")]),
        # The machines of jobs.
        (peering(existing="r") | {"existing": OWN, "allow": ALLOW}, [UNKNOWN]),
        (peering(existing="r", prefixLength=16, address="10.0.0.0")
         | {"existing": OWN, "allow": ALLOW}, []),
        (PSC | {"allow": ALLOW}, []),
        # Networks of other projects.
        (PSC | {"existing": THEIRS, "attachment": {"existing": ATTACHMENT}}, []),
        (peering(existing="r") | {"existing": THEIRS, "attachment": {"existing": ATTACHMENT}}, [
            ("network.attachment", "is for mode psc", "mode: peering", "remove it"),
            ("network.existing", "a network of another project can be used by a Shared VPC only",
             THEIRS, "sharedVpc: {hostProject: acme-other, hostProjectNumber: …}"),
            ("network.existing",
             "the number of its project is not known, and jobs name a network by it", THEIRS,
             "sharedVpc.hostProjectNumber says it")]),
        # Subnets.
        (PSC | {"subnet": {"range": "10.20.0.0/29"}}, [
            ("network.subnet.range", "is smaller than a /28", "10.20.0.0/29",
             "take a /28 or larger")]),
        (peering() | {"nat": True}, [
            ("network.nat", "is for a subnet's machines", "", "subnet: {range: 10.20.0.0/26}")]),
        ({"mode": "psc"}, [
            ("network", "needs a subnet for its attachment", "",
             "subnet: {range: 10.20.0.0/26}")]),
        ({"mode": "psc", "attachment": {
            "existing": ATTACHMENT.replace("us-central1", "us-east1")}}, [
            ("network.attachment.existing", "is not in the stack's region us-central1",
             ATTACHMENT.replace("us-central1", "us-east1"), "name one of that region")]),
        # Ranges.
        (peering(prefixLength=20), [
            ("network.ranges.workers.prefixLength", "is too small for training", "/20",
             "16 is recommended")]),
        ({"mode": "peering"}, [
            ("network", "peering needs a range of addresses for the machines of jobs", "",
             "ranges: {workers: {prefixLength: 16}}, or {workers: {existing: NAME}}")]),
        (peering(address="10.0.0.0"), [
            ("network.ranges.workers", "has neither prefixLength nor existing", "",
             "prefixLength: 16")]),
        (peering(prefixLength=16, address="10.1.128.0"), [
            ("network.ranges.workers.address", "is not where a /16 begins", "10.1.128.0",
             "begin at a multiple of its size")]),
        # Routes of a connection that somebody else has made.
        (peering(existing="r") | {"existing": OWN, "exportCustomRoutes": True,
                                  "importCustomRoutes": True}, [
            ("network.exportCustomRoutes", "the connection of existing ranges is somebody else's",
             "", "its owner sets this")]),
    ],
)  # fmt: skip
def test_what_a_network_cannot_be(given: dict[str, Any], found: Any) -> None:
    assert told(given) == found


@pytest.mark.parametrize(
    ("given", "overlaps"),
    [
        ({"a": ("10.0.0.0", 17), "b": ("10.0.128.0", 17)}, []),
        ({"a": ("10.0.0.0", 17), "b": ("10.0.0.0", 16)}, [
            ("network.ranges.b.address",
             "overlaps 10.0.0.0/17 (of network.ranges.a.address)", "10.0.0.0/16")]),
        ({"a": ("10.9.0.0", 16)}, []),
        # What no machine has, and what training itself has; the others matter for interfaces.
        ({"a": ("100.64.0.0", 16)}, []),
        ({"a": ("10.9.0.0", None)}, []),
    ],
)  # fmt: skip
def test_blocks_that_touch_do_not_overlap(given: Any, overlaps: Any) -> None:
    ranges = {
        key: {"address": address, "prefixLength": prefix, "existing": f"r-{key}"}
        for key, (address, prefix) in given.items()
    }
    wanted = {"mode": "peering", "existing": OWN, "ranges": ranges, "avoid": ["10.8.255.0/24"]}
    hint = "choose other addresses"
    assert told(wanted) == [(*row, hint) for row in overlaps]


def test_names_of_what_is_made_are_those_that_compute_engine_takes() -> None:
    stack = "s" * 40
    given = {"mode": "peering", "ranges": {"workers": {"prefixLength": 16}}, "allow": ALLOW}
    assert told(given, stack=stack) == []
    long = {"mode": "peering", "ranges": {"r" * 40: {"prefixLength": 16}}, "allow": {
        "a" * 40: ALLOW["nfs"]}}  # fmt: skip
    refuses = "makes a name that Compute Engine refuses"
    found = [row[:3] for row in told(long, stack=stack)]
    assert found == [
        (f"network.ranges.{'r' * 40}", refuses, f"training-{'r' * 40}-{stack}"),
        (f"network.allow.{'a' * 40}", refuses, f"training-{stack}-{'a' * 40}"),
    ]
    named = {"mode": "peering", "ranges": {"r" * 40: {"prefixLength": 16, "name": "short"}}}
    assert told(named, stack=stack) == []
    formerly = {"mode": "peering", "ranges": {"r" * 40: {"prefixLength": 16, "formerly": "r"}}}
    assert told(formerly, stack=stack) == []


LEFT = "would make something in a host project that manageHost: false leaves alone"
THERE = "name what is there by existing, or ask its owner"


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (PSC, ["existing", "subnet.range"]),
        (PSC | {"existing": HOST_NETWORK}, ["subnet.range"]),
        ({"mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}, []),
        ({"mode": "psc", "existing": HOST_NETWORK, "nat": True,
          "subnet": {"existing": HOST_SUBNET, "range": "10.20.0.0/26"}, "allow": ALLOW},
         ["nat", "allow"]),
        ({"mode": "peering", "existing": HOST_NETWORK,
          "ranges": {"a": {"existing": "r"}, "b": {"prefixLength": 16}}}, ["ranges.b"]),
    ],
)  # fmt: skip
def test_what_would_be_made_in_a_host_of_others(given: dict[str, Any], paths: list[str]) -> None:
    assert told(given, sharedVpc=HOST | {"manageHost": False}) == [
        (f"network.{path}", LEFT, "", THERE) for path in paths
    ]
    assert told(given, sharedVpc=HOST) == []


def test_a_host_is_another_project_with_another_number() -> None:
    same = {"hostProject": "acme-ml-prod", "hostProjectNumber": "109876543210"}
    hint = "gcloud projects describe acme-ml-prod --format='value(projectNumber)'"
    assert told(PSC, sharedVpc=same) == [
        (
            "sharedVpc.hostProject", "must be another project than where jobs run", "acme-ml-prod",
            "or remove sharedVpc",
        ),
        (
            "sharedVpc.hostProjectNumber", "is the number of the project where jobs run",
            "109876543210", hint,
        ),
    ]  # fmt: skip
    assert told({}, sharedVpc=HOST) == [
        ("sharedVpc", "says nothing without a network", "", "network: {mode: psc, …}")
    ]


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (peering(prefixLength=18), []),
        (peering(prefixLength=19), ["ranges.workers.prefixLength"]),
        (peering(prefixLength=16, address="10.0.0.0"), []),
        (peering(prefixLength=16, address="11.0.0.0"), ["ranges.workers.address"]),
        (peering(prefixLength=16, address="11.0.0.0", existing="r"), []),
        (PSC | {"nat": True}, ["nat"]),
    ],
)
def test_what_is_valid_and_surprises(given: dict[str, Any], paths: list[str]) -> None:
    found = advice.warnings(unjudged(network=given), {}, {})
    assert [path for path, *_ in rows(found)] == [f"network.{path}" for path in paths]
    assert {each.level for each in found} <= {"warning"}
