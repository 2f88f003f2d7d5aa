"""The program under Pulumi's mocks: what is registered, nothing more and nothing less."""

import subprocess
import sys

import pulumi
import pytest

from tests.fixture_project import PROJECT, ROOT
from tests.unit.infra.recorder import Recorder, grants, registered, settings
from vertex_training import program
from vertex_training.errors import ConfigError
from vertex_training.naming import BASIC_ROLES, deployer
from vertex_training.plan import grants as grants_table
from vertex_training.stack import with_packages


def test_an_account_gets_exactly_the_rights_it_asks_for():
    of_others = (BUILD, *READERS)
    of_jobs = {grant for grant in grants(registered("dev")) if grant[0] not in of_others}
    trainer = "serviceAccount:trainer-dev@acme-ml-dev.iam.gserviceaccount.com"
    assert of_jobs == {
        (trainer, "roles/storage.objectViewer", "acme-ml-dev-data-dev"),
        (trainer, "roles/storage.objectUser", "acme-ml-dev-artifacts-dev"),
        (
            trainer,
            "roles/secretmanager.secretAccessor",
            "projects/acme-ml-dev/secrets/wandb-api-key-dev",
        ),
        (trainer, "roles/logging.logWriter", "acme-ml-dev"),
        *(
            (
                member,
                "roles/iam.serviceAccountUser",
                "projects/acme-ml-dev/serviceAccounts/trainer-dev@acme-ml-dev.iam.gserviceaccount.com",
            )
            for member in ("group:ml-engineers@example.com", deployer("acme-ml-dev", "dev"))
        ),
    }


BUILD = "serviceAccount:image-build-dev@acme-ml-dev.iam.gserviceaccount.com"
#: CI's identities of previews and plans, which look up images.
READERS = tuple(
    f"serviceAccount:ci-{role}-dev@acme-ml-dev.iam.gserviceaccount.com"
    for role in ("preview", "plan")
)


def test_previews_and_plans_of_ci_read_the_repository_and_nothing_else_of_the_stack():
    assert {grant for grant in grants(registered("dev")) if grant[0] in READERS} == {
        (reader, "roles/artifactregistry.reader", "training-dev") for reader in READERS
    }


def test_images_are_built_by_an_account_with_three_grants_none_wider_than_it_must_be():
    assert {grant for grant in grants(registered("dev")) if grant[0] == BUILD} == {
        (BUILD, "roles/logging.logWriter", "acme-ml-dev"),
        (BUILD, "roles/storage.objectViewer", "acme-ml-dev-staging-dev"),
        (BUILD, "roles/artifactregistry.writer", "training-dev"),
    }


def test_a_stack_that_builds_no_image_has_no_account_for_it_and_no_such_api():
    without = registered("dev", images={}, builders=["group:ml@example.com"], jobs={})
    assert "apis-cloudbuild" in registered("dev")
    assert not {name for name in without if "images" in name or "cloudbuild" in name}


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


def test_an_account_that_writes_a_bucket_is_not_granted_reading_it_again():
    account = {"trainer": {"reads": ["data", "artifacts"], "writes": ["artifacts"]}}
    roles = {
        role
        for _, role, place in grants(registered("dev", serviceAccounts=account))
        if "artifacts" in place
    }
    assert roles == {"roles/storage.objectUser"}


def test_only_accounts_whose_jobs_fetch_packages_may_read_the_staging_bucket():
    accounts = {
        "trainer": {"reads": ["data"], "writes": ["artifacts"]},
        "watcher": {"reads": ["data"]},
    }
    readers = {
        who
        for who, _, place in grants(registered("local", serviceAccounts=accounts))
        if "staging" in place
    }
    assert readers == {"serviceAccount:trainer-local@local-training.iam.gserviceaccount.com"}


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


def test_production_grants_its_network_and_reservation_and_nothing_wider():
    agent = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
    found = {(t, i["role"], i["project"]) for t, i in registered("prod").values()
             if i.get("member") == agent}  # fmt: skip
    assert found == {
        (grants_table.ON_PROJECT, "roles/compute.networkAdmin", "acme-ml-prod"),
        (grants_table.ON_PROJECT, "roles/compute.viewer", "acme-ml-prod"),
        (grants_table.ON_PROJECT, "roles/dns.peer", "acme-ml-prod"),
        (grants_table.ON_PROJECT, "roles/dns.peer", "acme-net-prod"),
        (grants_table.ON_SUBNET, "roles/compute.networkUser", "acme-net-prod"),
    }


def test_no_grant_reaches_the_control_bucket():
    for stack in ("local", "dev", "prod"):
        assert not [place for _, _, place in grants(registered(stack)) if "control" in place]


@pytest.mark.parametrize("stack", ["local", "dev", "prod"])
def test_every_bucket_is_regional_and_closed(stack):
    buckets = [i for t, i in registered(stack).values() if t == "gcp:storage/bucket:Bucket"]
    assert len(buckets) == 4
    for bucket in buckets:
        assert bucket["uniformBucketLevelAccess"] is True
        assert bucket["publicAccessPrevention"] == "enforced"
        assert bucket["location"] == "US-CENTRAL1"
        assert bucket["versioning"] == {"enabled": True}


def test_only_what_a_rehearsal_makes_can_be_thrown_away():
    for stack in ("dev", "prod"):
        for type_, inputs in registered(stack).values():
            assert not (type_ == "gcp:storage/bucket:Bucket" and inputs["forceDestroy"])


def test_tags_are_immutable_in_prod():
    _, repository = registered("prod")["registry-docker"]
    assert repository["dockerConfig"] == {"immutableTags": True}


def test_images_of_prod_are_scanned_and_the_api_for_it_is_on_nowhere_else():
    _, repository = registered("prod")["registry-docker"]
    assert repository["vulnerabilityScanningConfig"] == {"enablementConfig": "INHERITED"}
    assert "apis-containerscanning" in registered("prod")
    assert "apis-containerscanning" not in registered("dev")
    _, off = registered("dev", registry={"scanning": False})["registry-docker"]
    assert off["vulnerabilityScanningConfig"] == {"enablementConfig": "DISABLED"}
    assert "vulnerabilityScanningConfig" not in registered("dev")["registry-docker"][1]


def test_the_clean_up_keeps_what_a_stack_file_pins():
    digests = {name: "sha256:" + number * 64 for name, number in (("titanic", "4"), ("x", "5"))}
    images = {name: {"digest": digest} for name, digest in digests.items()}
    resources = registered("prod", images=images, jobs={"one": {"file": "jobs/titanic-image.yaml"}})
    *_, kept = resources["registry-docker"][1]["cleanupPolicies"]
    assert kept["action"] == "KEEP"
    assert kept["condition"] == {"versionNamePrefixes": sorted(digests.values())}


def test_secrets_are_containers_without_a_value():
    types = {type_ for type_, _ in registered("prod").values()}
    assert "gcp:secretmanager/secret:Secret" in types
    assert "gcp:secretmanager/secretVersion:SecretVersion" not in types


def test_the_secret_manager_api_is_on_only_where_there_are_secrets():
    account = {"trainer": {"reads": ["data"], "writes": ["artifacts"]}}
    without = registered("dev", secrets={}, serviceAccounts=account)
    assert "apis-secretmanager" in registered("dev")
    assert "apis-secretmanager" not in without


def test_a_job_is_registered_with_its_whole_request_known():
    _, job = registered("dev")["training-titanic"]
    assert job["submission"]["project"] == "acme-ml-dev"
    assert "gs://acme-ml-dev-artifacts-dev/titanic/" + job["requestId"] in job["request"]
    assert "${" not in job["request"]


def test_a_wrong_job_file_registers_nothing(tmp_path):
    (tmp_path / "bad.yaml").write_text(
        "workerPoolSpec: []\nscheduling: {timeout: 1h}\nuseSpot: yes\n"
    )
    config = settings("dev").model_copy(update={"packages": {}})
    job = config.jobs["titanic"].model_copy(update={"file": "bad.yaml"})
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, "vertex-training", "dev")
    wrong = with_packages(config.model_copy(update={"jobs": {"a": job, "b": job}}), tmp_path)
    with pytest.raises(ConfigError) as failed:
        program.deploy(wrong)
    assert len(failed.value.problems) == 8  # four in each, the missing account among them
    assert recorder.registered == {}


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
