"""Job files of a stack are judged together, with what the stack grants."""

import pytest

from vertex_training import program
from vertex_training.errors import ConfigError
from vertex_training.stack import from_raw

JOB = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/OUT"}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    containerSpec: {imageUri: "${images.trainer}", args: ["--data=${buckets.data}"]}
"""


def stack(root, **changes):
    raw = {
        "stack": "dev",
        "project": "acme-ml-dev",
        "region": "us-central1",
        "projectNumber": "210987654321",
        "buckets": {"data": {}, "artifacts": {}},
        "serviceAccounts": {"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
        "images": {"trainer": {"digest": "sha256:" + "a" * 64}},
        "jobs": {"one": {"file": "one.yaml"}, "two": {"file": "two.yaml"}},
    }
    return from_raw(raw | changes, root)


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "one.yaml").write_text(JOB.replace("OUT", "one"))
    (tmp_path / "two.yaml").write_text(JOB.replace("OUT", "two"))
    return tmp_path


def rules(checkout, **changes):
    verdicts = stack(checkout, **changes).check_jobs()
    return {key: [problem.rule for problem in v.errors] for key, v in verdicts.items()}


def test_right_jobs_become_requests(checkout):
    assert rules(checkout) == {"one": [], "two": []}
    requests = program.read_jobs(stack(checkout))
    assert "gs://acme-ml-dev-artifacts-dev/one" in requests["one"].body


def test_two_jobs_that_write_to_one_directory_are_both_wrong(checkout):
    (checkout / "two.yaml").write_text(JOB.replace("OUT", "one/"))
    assert rules(checkout) == {"one": ["output-shared"], "two": ["output-shared"]}


def test_a_directory_for_every_submission_is_never_shared(checkout):
    for name in ("one", "two"):
        (checkout / f"{name}.yaml").write_text(JOB.replace("OUT", "${job.requestId}"))
    assert rules(checkout) == {"one": [], "two": []}


def test_an_account_without_the_right_to_read_or_write_is_wrong(checkout):
    account = {"trainer": {"reads": ["artifacts"]}}
    found = rules(checkout, serviceAccounts=account)
    assert sorted(found["one"]) == ["account-reads", "account-writes"]


def test_mistakes_of_all_files_are_told_together(checkout):
    (checkout / "one.yaml").write_text("useSpot: yes\n")
    (checkout / "two.yaml").write_text("scheduling: {timeout: 24h}\n")
    with pytest.raises(ConfigError) as failed:
        program.read_jobs(stack(checkout))
    files = {problem.location.file for problem in failed.value.problems}
    assert files == {"one.yaml", "two.yaml"}


def test_agents_pull_images_of_jobs_on_vertex_and_accounts_those_of_jobs_on_batch(checkout):
    image = "us-central1-docker.pkg.dev/acme-images/{}/x@sha256:" + "a" * 64
    for name in ("one", "two"):
        text = JOB.replace("OUT", name).replace("${images.trainer}", image.format(name))
        (checkout / f"{name}.yaml").write_text(f"scheduling: {{timeout: 3600s}}\n{text}")
    jobs = {"one": {"file": "one.yaml"}, "two": {"file": "two.yaml", "backend": "batch"}}
    found = stack(checkout, jobs=jobs)
    requests = {key: result.request for key, result in found.check_jobs().items()}
    place = "projects/acme-images/locations/us-central1/repositories"
    pulls = "roles/artifactregistry.reader"
    assert {
        (grant.member.removeprefix("serviceAccount:").partition(".")[0], grant.role, grant.place)
        for grant in found.job_grants(requests)
    } == {
        ("service-210987654321@gcp-sa-aiplatform", pulls, f"{place}/one"),
        ("service-210987654321@gcp-sa-aiplatform-cc", pulls, f"{place}/one"),
        ("trainer-dev@acme-ml-dev", pulls, f"{place}/two"),
        ("trainer-dev@acme-ml-dev", "roles/batch.agentReporter", "projects/acme-ml-dev"),
    }


def test_a_default_of_jobs_that_names_what_is_not_there_is_told(checkout):
    with pytest.raises(ConfigError) as failed:
        stack(checkout, jobDefaults={"serviceAccount": "${serviceAccounts.trainr}"})
    assert failed.value.report() == (
        "1 mistake; nothing was changed.\n"
        "Pulumi.dev.yaml: vertex-training:jobDefaults.serviceAccount: names what this stack does "
        "not have (got ${serviceAccounts.trainr}). Hint: did you mean 'serviceAccounts.trainer'?"
    )
