"""Tests jobs in networks on the local cloud, with the real engine: create, use, change, destroy.

The local cloud keeps what is in use, so that a destroy in another order would fail: a connection
while a job runs on it, a range in a connection, a subnetwork under an attachment, a network under
anything.
"""

import pytest

from localgcp.inventory.store import project_number
from localgcp.inventory.vpc import (
    ADDRESS,
    ATTACHMENT,
    CONNECTION,
    HOST_PROJECT,
    NETWORK,
    SERVICE_PROJECT,
    SUBNETWORK,
)
from localgcp.vertex.records import JobState
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PEERED = {"network": "${network.name}", "reservedIpRanges": ["${network.ranges.workers}"]}
INTERFACE = {"pscInterfaceConfig": "${network.interface}"}


@pytest.fixture(scope="module")
def swapped(checkout):
    """Yield the stack that begins with peering and changes to a PSC interface."""
    return SmallStack(checkout, "swapped")


def test_peered_stack_is_unchanged_while_its_job_runs(swapped):
    swapped.write(
        {"busy": job_file(**PEERED)},
        network={
            "mode": "peering",
            "ranges": {"workers": {"prefixLength": 18}},
            "exportCustomRoutes": True,
        },
    )
    swapped.up()
    [job] = swapped.jobs()
    swapped.is_settled()
    assert job.spec["network"].startswith(f"projects/{swapped.number}/global/networks/")
    assert swapped.states() == [JobState.RUNNING]
    assert CONNECTION in swapped.left().values()
    swapped.comes_back()


def test_change_to_a_psc_interface_shows_replacements_and_leaves_no_orphan(swapped):
    swapped.write(
        {"busy": job_file(**INTERFACE)},
        network={"mode": "psc", "subnet": {"range": "10.20.0.0/26"}},
    )
    plan = swapped.plan()
    swapped.up()
    made, gone, replaced = (
        {name for op, name in plan if op == wanted} for wanted in ("create", "delete", "replace")
    )
    assert replaced == {"training-busy"}
    assert {"network-subnet", "network-psc-attachment"} <= made
    assert {
        "network-peering-workers",
        "network-peering-connection",
        "network-peering-routes",
    } <= gone
    assert swapped.states() == [JobState.CANCELLED, JobState.RUNNING]
    assert not {CONNECTION, ADDRESS} & set(swapped.left().values())
    swapped.is_settled()


def test_destroy_cancels_a_running_job_and_leaves_nothing(swapped):
    swapped.pulumi("destroy -y --skip-preview")
    assert swapped.states() == [JobState.CANCELLED, JobState.CANCELLED]
    assert swapped.left() == {}


def test_peered_stack_is_destroyed_while_its_job_runs(checkout):
    """Deletes the job, then the connection that it used, then the range and the network."""
    stack = SmallStack(checkout, "peered")
    ranges = {"workers": {"prefixLength": 18, "address": "10.64.0.0"}}
    stack.write({"busy": job_file(**PEERED)}, network={"mode": "peering", "ranges": ranges})
    stack.up()
    assert stack.states() == [JobState.RUNNING]
    stack.pulumi("destroy -y --skip-preview")
    assert stack.states() == [JobState.CANCELLED]
    assert stack.left() == {}


def test_stack_in_a_shared_network_uses_two_projects(checkout):
    stack = SmallStack(checkout, "shared")
    host = f"{stack.project}-host"
    shared = {
        "hostProject": host,
        "hostProjectNumber": project_number(host),
        "enableHost": True,
    }
    stack.write(
        {"busy": job_file(**INTERFACE)},
        sharedVpc=shared,
        network={
            "mode": "psc",
            "subnet": {"range": "10.30.0.0/26"},
            "dnsPeering": {"corp": {"domain": "corp.example.com."}},
        },
    )
    stack.up()
    stack.is_settled()
    assert stack.states() == [JobState.RUNNING]
    kinds = {each.type for each in stack.store.list(project=host)}
    assert {NETWORK, SUBNETWORK, HOST_PROJECT, SERVICE_PROJECT} <= kinds
    assert ATTACHMENT in stack.left().values()
    there = stack.checkout.left(host)
    stack.comes_back()
    assert stack.checkout.left(host) == there
    stack.pulumi("destroy -y --skip-preview")
    assert stack.states() == [JobState.CANCELLED]
    assert stack.left() == {}
    assert stack.checkout.left(host) == {}
