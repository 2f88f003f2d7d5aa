"""Names, owners and rights of a network follow from the settings."""

import dataclasses

import pytest

from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, PEERING, PSC, planned, unjudged
from vertex_training.plan import grants
from vertex_training.plan.network import NetworkPlan, network_grants, plan_network
from vertex_training.settings.network import SharedVpc

AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"


def rights(**changes):
    stack = planned(**changes)
    found = network_grants(stack.declared, stack.network)
    return {(r.role.rsplit(".", 1)[1], r.place, r.member, r.ours) for r in found}


def test_a_stack_without_a_network_has_no_plan_and_needs_no_right():
    assert planned().network is None
    assert rights() == set()


def test_a_peered_network_is_named_by_number_and_its_ranges_by_name():
    plan = planned(network=PEERING).network
    assert plan.references == {
        "network.name": "projects/109876543210/global/networks/training-prod",
        "network.ranges.workers": "training-workers-prod",
    }
    assert rights(network=PEERING) == set()


def test_a_shared_network_is_named_by_the_hosts_number():
    plan = planned(network=PEERING | {"existing": HOST_NETWORK}, sharedVpc=HOST).network
    assert plan.path == "projects/345678901234/global/networks/production"
    assert plan.id == HOST_NETWORK
    by_number = "projects/345678901234/global/networks/production"
    again = planned(network=PEERING | {"existing": by_number}, sharedVpc=HOST).network
    assert (again.path, again.id) == (plan.path, plan.id)


def test_an_interface_is_the_whole_message_with_dns_peering():
    given = {
        "corp": {"domain": "corp.example.com."},
        "lab": {"domain": "lab.", "targetProject": "acme-lab", "targetNetwork": "lab"},
    }
    plan = planned(network=PSC | {"dnsPeering": given}, sharedVpc=HOST).network
    attachment = "projects/acme-ml-prod/regions/us-central1/networkAttachments/training-prod"
    assert plan.references == {
        "network.attachment": attachment,
        "network.interface": {
            "networkAttachment": attachment,
            "dnsPeeringConfigs": [
                {
                    "domain": "corp.example.com.",
                    "targetProject": "acme-net-prod",
                    "targetNetwork": "training-prod",
                },
                {"domain": "lab.", "targetProject": "acme-lab", "targetNetwork": "lab"},
            ],
        },
    }


def test_without_dns_peering_an_interface_names_its_attachment_only():
    plan = planned(network=PSC).network
    assert set(plan.interface) == {"networkAttachment"}


def test_the_agent_may_connect_to_an_attachment_of_the_own_project():
    assert rights(network=PSC) == {("networkAdmin", "projects/acme-ml-prod", AGENT, True)}


def test_in_a_shared_vpc_agent_submitters_and_deployers_use_the_subnet_only():
    deployers = ["serviceAccount:ci@acme-ci.iam.gserviceaccount.com"]
    subnet = "projects/acme-net-prod/regions/us-central1/subnetworks/training-prod"
    assert rights(network=PSC, sharedVpc=HOST, deployers=deployers) == {
        ("networkAdmin", "projects/acme-ml-prod", AGENT, True),
        ("networkUser", subnet, AGENT, True),
        ("networkUser", subnet, "group:ml@example.com", True),
        ("networkUser", subnet, "serviceAccount:ci@acme-ci.iam.gserviceaccount.com", True),
    }


def test_a_peered_network_without_a_subnet_leaves_the_host_project_as_the_narrowest_place():
    network = {"existing": HOST_NETWORK, **PEERING}
    assert {place for _, place, _, _ in rights(network=network, sharedVpc=HOST)} == {
        "projects/acme-net-prod"
    }
    with_subnet = network | {"subnet": {"existing": HOST_SUBNET}}
    assert {place for _, place, _, _ in rights(network=with_subnet, sharedVpc=HOST)} == {
        HOST_SUBNET
    }


def test_what_is_in_projects_of_others_is_theirs_to_grant():
    network = {
        "mode": "psc",
        "existing": HOST_NETWORK,
        "subnet": {"existing": HOST_SUBNET},
        "dnsPeering": {"corp": {"domain": "corp.example.com."}},
    }
    found = rights(network=network, sharedVpc=HOST | {"manageHost": False})
    assert {(role, place) for role, place, _, ours in found if not ours} == {
        ("networkUser", HOST_SUBNET),
        ("peer", "projects/acme-net-prod"),
    }
    assert {(role, place) for role, place, _, ours in found if ours} == {
        ("networkAdmin", "projects/acme-ml-prod"),
        ("peer", "projects/acme-ml-prod"),
    }


def test_every_right_has_its_reason_and_a_key_of_its_own():
    network = PSC | {"dnsPeering": {"corp": {"domain": "corp.example.com."}}}
    stack = planned(network=network, sharedVpc=HOST)
    found = network_grants(stack.declared, stack.network)
    assert all(grants.reason(right.type, right.role) for right in found)
    assert len({right.key for right in found}) == len(found)


def plan(**changes):
    """The plan of the small stack with these changes, whatever its rules say."""
    return plan_network(unjudged(**changes))


OWN = NetworkPlan(
    mode="peering",
    project="acme-ml-prod",
    name="training-prod",
    path="projects/109876543210/global/networks/training-prod",
    subnet="",
    attachment="",
    ranges={},
    dns_peering=(),
    host=None,
)
ATTACHMENT = "projects/acme-ml-prod/regions/us-central1/networkAttachments/training-prod"
SUBNET = "projects/{}/regions/us-central1/subnetworks/training-prod"
THEIRS = "projects/acme-lab/regions/us-central1/networkAttachments/lab"
LAB = "projects/acme-lab/global/networks/lab"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"network": {"mode": "peering"}}, OWN),
        (
            {
                "network": {
                    "mode": "peering",
                    "ranges": {
                        "workers": {"prefixLength": 16},
                        "more": {"prefixLength": 16, "name": "mine"},
                        "theirs": {"existing": "theirs"},
                    },
                }
            },
            dataclasses.replace(
                OWN,
                ranges={"workers": "training-workers-prod", "more": "mine", "theirs": "theirs"},
            ),
        ),
        (
            {"network": PSC},
            dataclasses.replace(
                OWN, mode="psc", subnet=SUBNET.format("acme-ml-prod"), attachment=ATTACHMENT
            ),
        ),
        # Nobody told the number of a project that is neither the stack's nor the host's.
        (
            {"network": {"mode": "psc", "existing": LAB, "subnet": {"existing": HOST_SUBNET}}},
            dataclasses.replace(
                OWN, mode="psc", project="acme-lab", name="lab", path="", subnet=HOST_SUBNET,
                attachment=ATTACHMENT,
            ),
        ),
        (
            {"network": {"mode": "peering", "existing": "projects/77/global/networks/lab"}},
            dataclasses.replace(
                OWN, project="77", name="lab", path="projects/77/global/networks/lab"
            ),
        ),
        (
            {
                "network": {
                    "mode": "peering",
                    "existing": "projects/109876543210/global/networks/lab",
                }
            },
            dataclasses.replace(
                OWN, name="lab", path="projects/109876543210/global/networks/lab"
            ),
        ),
        (
            {"network": {**PSC, "attachment": {"existing": THEIRS}}, "sharedVpc": HOST},
            dataclasses.replace(
                OWN,
                mode="psc",
                project="acme-net-prod",
                path="projects/345678901234/global/networks/training-prod",
                subnet=SUBNET.format("acme-net-prod"),
                attachment=THEIRS,
                host=SharedVpc.model_validate(HOST),
            ),
        ),
        (
            {"network": {**PSC, "dnsPeering": {"a": {"domain": "a."}}}},
            dataclasses.replace(
                OWN,
                mode="psc",
                subnet=SUBNET.format("acme-ml-prod"),
                attachment=ATTACHMENT,
                dns_peering=(
                    {
                        "domain": "a.",
                        "targetProject": "acme-ml-prod",
                        "targetNetwork": "training-prod",
                    },
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_the_whole_plan_of_a_network(changes, expected):
    assert plan(**changes) == expected


def test_jobs_name_a_network_by_its_path_or_by_its_attachment():
    assert plan(network={"mode": "none"}) is None
    assert plan(network={"mode": "peering"}).references == {
        "network.name": "projects/109876543210/global/networks/training-prod"
    }
    assert OWN.id == "projects/acme-ml-prod/global/networks/training-prod"


def test_a_network_of_a_host_whose_members_submit_twice_is_used_by_each_once():
    stack = unjudged(network=PSC, sharedVpc=HOST, deployers=["group:ml@example.com"])
    found = network_grants(stack, plan_network(stack))
    assert [grant.key for grant in found] == [
        "attaches",
        "uses-agent",
        "uses-group:ml@example.com",
    ]
    assert {grant.ours for grant in found} == {True}


@pytest.mark.parametrize(
    ("number", "manages", "project", "ours"),
    [
        ("109876543210", False, "acme-ml-prod", True),
        ("345678901234", True, "acme-net-prod", True),
        ("345678901234", False, "acme-net-prod", False),
        ("456789012345", True, "456789012345", False),
    ],
)
def test_a_number_in_a_name_stands_for_its_project(number, manages, project, ours):
    here = f"projects/{number}/regions/us-central1"
    network = {
        "mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": f"{here}/subnetworks/s"},
        "attachment": {"existing": f"{here}/networkAttachments/a"},
    }  # fmt: skip
    stack = unjudged(network=network, sharedVpc=HOST | {"manageHost": manages})
    found = network_grants(stack, plan_network(stack))
    assert [(grant.key, grant.project, grant.ours) for grant in found] == [
        (key, project, ours) for key in ("attaches", "uses-agent", "uses-group:ml@example.com")
    ]


@pytest.mark.parametrize(
    ("subnet", "type_", "project"),
    [
        ("projects/acme-else/regions/us-central1/subnetworks/s", grants.ON_SUBNET, "acme-else"),
        ("", grants.ON_PROJECT, "acme-net-prod"),
    ],
)
def test_a_subnet_is_used_in_its_own_project(subnet, type_, project):
    stack = unjudged(network=PSC, sharedVpc=HOST, submitters=["group:a@example.com"])
    plan = dataclasses.replace(plan_network(stack), subnet=subnet)
    found = [grant for grant in network_grants(stack, plan) if grant.key.startswith("uses-")]
    rows = [(g.key, g.type, g.role, g.member, g.project, g.resource) for g in found]
    assert rows == [
        ("uses-agent", type_, grants.NETWORK_USER, AGENT, project, subnet),
        ("uses-group:a@example.com", type_, grants.NETWORK_USER, "group:a@example.com", project,
         subnet),
    ]  # fmt: skip
    assert {grant.ours for grant in found} == {project == "acme-net-prod"}
