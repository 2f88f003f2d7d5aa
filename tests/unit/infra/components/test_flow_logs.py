"""What a subnetwork records of its traffic."""

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import PSC


def test_flow_logs_name_the_machines_and_networks_of_both_ends():
    found = registered("dev", network=PSC, jobs={})
    [subnet] = [i for type_, i in found.values() if type_ == "gcp:compute/subnetwork:Subnetwork"]
    assert subnet["logConfig"]["metadata"] == "INCLUDE_ALL_METADATA"
