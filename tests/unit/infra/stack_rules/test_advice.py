"""What would surprise the owner of a stack is a warning with a place, and stops nothing."""

from tests.unit.infra.stacks import H100, PEERING, PSC, stack
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


def test_a_reservation_that_no_job_names_is_pointed_out(tmp_path):
    [line] = told(tmp_path, reservations={"h100": H100})
    assert "reservations.h100: no job of this stack names it, and it is paid for" in line


def test_a_warning_stands_at_its_line_in_the_stack_file(tmp_path):
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "config:\n  vertex-training:network:\n    mode: psc\n    nat: true\n"
    )
    [line] = told(tmp_path, network=PSC | {"nat": True})
    assert line.startswith("Pulumi.prod.yaml:4:5: vertex-training:network.nat: does not serve")
