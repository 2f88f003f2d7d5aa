"""What would surprise the owner of a stack is a warning with a place, and stops nothing."""

import pytest

from tests.unit.infra.stacks import H100, HOST, HOST_NETWORK, HOST_SUBNET, PEERING, PSC, stack
from vertex_training.stack import Stack


def told(tmp_path, **changes):
    found = Stack(stack(**changes), tmp_path, {}).warnings({})
    assert all(problem.level == "warning" for problem in found)
    return [str(problem) for problem in found]


def test_a_plain_stack_surprises_nobody(tmp_path):
    assert told(tmp_path) == []
    assert told(tmp_path, network=PSC) == []
    assert told(tmp_path, network=PEERING) == []


def test_nat_does_not_serve_jobs(tmp_path):
    [line] = told(tmp_path, network=PSC | {"nat": True})
    assert line.startswith("Pulumi.prod.yaml: vertex-training:network.nat: does not serve jobs")


def test_a_range_below_googles_table_is_pointed_out(tmp_path):
    [line] = told(tmp_path, network=PEERING | {"ranges": {"workers": {"prefixLength": 19}}})
    assert "network.ranges.workers.prefixLength: is smaller than any range" in line


def test_public_addresses_in_a_network_of_ones_own_are_pointed_out(tmp_path):
    subnet = PSC | {"subnet": {"range": "8.8.8.0/26"}}
    [line] = told(tmp_path, network=subnet)
    assert "network.subnet.range: are public addresses: machines here no longer reach" in line
    ranges = {"workers": {"prefixLength": 16, "address": "11.0.0.0"}}
    [line] = told(tmp_path, network=PEERING | {"ranges": ranges})
    assert "network.ranges.workers.address: are public addresses" in line
    existing = {
        "existing": HOST_NETWORK,
        "subnet": {"existing": HOST_SUBNET, "range": "8.8.8.0/26"},
    }
    assert told(tmp_path, network=PSC | existing, sharedVpc=HOST) == []


def test_a_region_that_the_catalogue_lacks_is_pointed_out(tmp_path):
    [line] = told(tmp_path, region="us-central9")
    assert "region: runs no training jobs, as far as this release knows (got us-central9)" in line


@pytest.mark.parametrize(
    ("role", "meant"),
    [
        ("roles/storage.objectVewer", "roles/storage.objectViewer"),
        ("roles/storge.objectViewer", "roles/storage.objectViewer"),
        ("roles/Storage.objectViewer", "roles/storage.objectViewer"),
    ],
)
def test_a_role_that_is_no_predefined_one_is_pointed_out(tmp_path, role, meant):
    member = {role: ["group:a@example.com"]}
    lines = told(
        tmp_path,
        buckets={"data": {"members": member}},
        serviceAccounts={
            "trainer": {"roles": {"acme-other-1": [role]}, "datasets": {"acme-dw.d": [role]}}
        },
    )
    assert len(lines) == 3
    for line in lines:
        assert f"no predefined role of Google's that this release knows (got {role})" in line
        assert line.endswith(f"Hint: did you mean '{meant}'?")


def test_a_role_that_is_like_several_is_looked_up(tmp_path):
    member = {"roles/storage.objectReader": ["group:a@example.com"]}
    [line] = told(tmp_path, buckets={"data": {"members": member}})
    assert line.endswith("Hint: https://docs.cloud.google.com/iam/docs/roles-permissions/storage")


@pytest.mark.parametrize(
    "role",
    [
        "roles/storage.objectViewer",
        "roles/storage.legacyBucketReader",
        "roles/run.invoker",
        "roles/bigquerydatapolicy.maskedReader",
        "projects/acme-ml-prod/roles/storge.objectVewer",
    ],
)
def test_a_role_that_is_one_or_cannot_be_judged_surprises_nobody(tmp_path, role):
    assert told(tmp_path, buckets={"data": {"members": {role: ["group:a@example.com"]}}}) == []


def test_a_reservation_that_no_job_names_is_pointed_out(tmp_path):
    [line] = told(tmp_path, reservations={"h100": H100})
    assert "reservations.h100: no job of this stack names it, and it is paid for" in line


def test_a_warning_stands_at_its_line_in_the_stack_file(tmp_path):
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "config:\n  vertex-training:network:\n    mode: psc\n    nat: true\n"
    )
    [line] = told(tmp_path, network=PSC | {"nat": True})
    assert line.startswith("Pulumi.prod.yaml:4:5: vertex-training:network.nat: does not serve")
