"""The program under Pulumi's mocks: what is registered, nothing more and nothing less."""

import subprocess
import sys

import pulumi
import pytest

from tests.fixture_project import PROJECT, ROOT
from tests.unit.infra.recorder import Recorder, grants, registered, settings
from vertex_training import program
from vertex_training.errors import ConfigError
from vertex_training.naming import BASIC_ROLES
from vertex_training.plan import grants as grants_table
from vertex_training.stack import with_packages

BUILD = "serviceAccount:image-build-dev@acme-ml-dev.iam.gserviceaccount.com"


def test_a_builder_starts_builds_as_that_account_and_changes_no_code_of_jobs():
    member = "group:builders@example.com"
    found = registered("dev", builders=[member, member])
    account = "projects/acme-ml-dev/serviceAccounts/" + BUILD.removeprefix("serviceAccount:")
    assert {grant for grant in grants(found) if grant[0] == member} == {
        (member, "roles/cloudbuild.builds.editor", "acme-ml-dev"),
        (member, "roles/logging.viewer", "acme-ml-dev"),
        (member, "roles/storage.objectViewer", "acme-ml-dev-staging-dev"),
        (member, "roles/storage.objectCreator", "acme-ml-dev-staging-dev"),
        (member, "roles/artifactregistry.reader", "training-dev"),
        (member, "roles/iam.serviceAccountUser", account),
    }
    _, adding = found[f"images-builder-adds-{member}"]
    assert adding["condition"]["expression"] == (
        "resource.name.startsWith('projects/_/buckets/acme-ml-dev-staging-dev/objects/images/')"
    )


@pytest.mark.parametrize("stack", ["local", "dev", "prod", "peering"])
def test_every_grant_has_its_reason_and_the_narrowest_place_there_is(stack):
    resources = registered(stack).values()
    made = [(t, i["role"], i["member"]) for t, i in resources if t.lower().endswith("iammember")]
    assert made
    for type_, role, member in made:
        grant = grants_table.find(type_, role)
        assert grant is not None, f"{type_} {role} is not in infra/vertex_training/plan/grants.py"
        assert grant.narrowest or type_ != grants_table.ON_PROJECT
        assert role not in BASIC_ROLES
        assert member not in ("allUsers", "allAuthenticatedUsers")


def test_no_grant_reaches_the_control_bucket():
    for stack in ("local", "dev", "prod"):
        assert not [place for _, _, place in grants(registered(stack)) if "control" in place]


def test_the_clean_up_keeps_what_a_stack_file_pins():
    digests = {name: "sha256:" + number * 64 for name, number in (("titanic", "4"), ("x", "5"))}
    images = {name: {"digest": digest} for name, digest in digests.items()}
    resources = registered("prod", images=images, jobs={"one": {"file": "jobs/titanic-image.yaml"}})
    *_, kept = resources["registry-docker"][1]["cleanupPolicies"]
    assert kept["action"] == "KEEP"
    assert kept["condition"] == {"versionNamePrefixes": sorted(digests.values())}


def test_a_stack_over_its_limits_registers_nothing():
    over = settings("dev", limits={"maxUsdPerJob": 0.01, "regions": ["us-east1"]})
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, "vertex-training", "dev")
    with pytest.raises(ConfigError) as failed:
        program.deploy(with_packages(over, PROJECT))
    rules = {problem.rule for problem in failed.value.problems}
    assert rules == {"limit-job-cost", "limit-region"}
    assert recorder.registered == {}


def test_a_program_without_networks_and_reservations_does_not_load_compute_engines_types():
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
