"""Names, owners and rights of a network follow from the settings."""

from tests.unit.infra.stacks import HOST, HOST_NETWORK, PEERING, planned, unjudged
from vertex_training.plan.network import network_grants, plan_network


def rights(**changes):
    stack = planned(**changes)
    found = network_grants(stack.declared, stack.network)
    return {(r.role.rsplit(".", 1)[1], r.place, r.member, r.ours) for r in found}


def test_a_shared_network_is_named_by_the_hosts_number():
    plan = planned(network=PEERING | {"existing": HOST_NETWORK}, sharedVpc=HOST).network
    assert plan.path == "projects/345678901234/global/networks/production"
    assert plan.id == HOST_NETWORK
    by_number = "projects/345678901234/global/networks/production"
    again = planned(network=PEERING | {"existing": by_number}, sharedVpc=HOST).network
    assert (again.path, again.id) == (plan.path, plan.id)


def plan(**changes):
    """The plan of the small stack with these changes, whatever its rules say."""
    return plan_network(unjudged(**changes))
