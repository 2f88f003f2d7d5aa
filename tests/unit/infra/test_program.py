"""The program under Pulumi's mocks: what is registered, nothing more and nothing less."""

import subprocess
import sys

import pulumi
import pytest

from tests.fixture_project import PROJECT, ROOT
from tests.unit.infra.recorder import Recorder, grants, registered, settings
from vertex_training import program
from vertex_training.catalog.resource_types import ON_PROJECT
from vertex_training.errors import ConfigError
from vertex_training.naming import BASIC_ROLES
from vertex_training.plan import grants as grants_table
from vertex_training.stack import with_packages


@pytest.mark.parametrize("stack", ["local", "dev", "prod", "peering"])
def test_every_grant_has_a_reason_and_the_narrowest_place(stack):
    resources = registered(stack).values()
    made = [(t, i["role"], i["member"]) for t, i in resources if t.lower().endswith("iammember")]
    assert made
    for type_, role, member in made:
        grant = grants_table.find(type_, role)
        assert grant is not None, f"{type_} {role} is not in infra/vertex_training/plan/grants.py"
        assert grant.narrowest or type_ != ON_PROJECT
        assert role not in BASIC_ROLES
        assert member not in ("allUsers", "allAuthenticatedUsers")


def test_no_grant_reaches_the_control_bucket():
    for stack in ("local", "dev", "prod"):
        assert not [place for _, _, place in grants(registered(stack)) if "control" in place]


def test_stack_over_its_limits_registers_nothing():
    over = settings("dev", limits={"maxUsdPerJob": 0.01, "regions": ["us-east1"]})
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, "vertex-training", "dev")
    with pytest.raises(ConfigError) as failed:
        program.deploy(with_packages(over, PROJECT))
    rules = {problem.rule for problem in failed.value.problems}
    assert rules == {"limit-job-cost", "limit-region"}
    assert recorder.registered == {}


def test_program_without_networks_does_not_load_types_of_compute_engine():
    """They are two thirds of what a program imports, at every preview and every ``up``."""
    code = (
        "import sys\n"
        "from tests.unit.infra.recorder import registered\n"
        "assert registered('local')\n"
        "sys.exit('pulumi_gcp.compute._inputs' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
