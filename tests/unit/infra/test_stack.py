"""Job files of a stack are judged together, with what the stack grants."""

import pytest

from vertex_training.errors import ConfigError
from vertex_training.stack import from_raw, load

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


def test_what_the_stack_file_grants_by_itself_is_not_granted_to_a_job_again(checkout):
    image = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/x@sha256:" + "a" * 64
    text = JOB.replace("OUT", "one").replace("${images.trainer}", image)
    (checkout / "one.yaml").write_text(f"scheduling: {{timeout: 3600s}}\n{text}")
    pulls, reports = "roles/artifactregistry.reader", "roles/batch.agentReporter"
    trainer = "serviceAccount:trainer-dev@acme-ml-dev.iam.gserviceaccount.com"

    def granted(roles, **sections):
        accounts = {"trainer": {"reads": ["data"], "writes": ["artifacts"], "roles": roles}}
        jobs = {"one": {"file": "one.yaml", "backend": "batch"}}
        found = stack(checkout, jobs=jobs, serviceAccounts=accounts, **sections)
        requests = {key: result.request for key, result in found.check_jobs().items()}
        return [(grant.role, grant.member) for grant in found.job_grants(requests)]

    assert granted({}) == [(reports, trainer), (pulls, trainer)]
    assert granted({"acme-ml-test": [reports]}) == [(reports, trainer), (pulls, trainer)]
    assert granted({"acme-ml-dev": [reports]}) == [(pulls, trainer)]
    members = {pulls: [trainer], "roles/artifactregistry.writer": [trainer]}
    assert granted({}, registry={"members": members}) == [(reports, trainer)]


def test_a_default_of_jobs_that_names_what_is_not_there_is_told(checkout):
    with pytest.raises(ConfigError) as failed:
        stack(checkout, jobDefaults={"serviceAccount": "${serviceAccounts.trainr}"})
    assert failed.value.report() == (
        "1 mistake; nothing was changed.\n"
        "Pulumi.dev.yaml: vertex-training:jobDefaults.serviceAccount: names what this stack does "
        "not have (got ${serviceAccounts.trainr}). Hint: did you mean 'serviceAccounts.trainer'?"
    )


STACK_FILE = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:packages:
    code: {path: code}
  vertex-training:images:
    trainer:
      context: trainer
      digest: sha256:DIGEST
      buildArgs: {HUB_TOKEN: hf_TOKEN}
""".replace("DIGEST", "a" * 64).replace("TOKEN}", "a1B2" * 8 + "}")


def said(problems):
    """Level, place, path and first words of each."""
    return [(each.level, str(each.location), each.path[1:], each.what[:24]) for each in problems]


def test_what_leaves_is_told_at_the_file_and_what_stands_in_the_stack_file_there(tmp_path):
    for folder in ("trainer", "code"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "large.py").write_bytes(b"#" * (2**20 + 1))
    (tmp_path / "trainer" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "trainer" / "a.env").write_text("password=hunter2hunter2\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK_FILE)
    found = load(tmp_path, "dev")
    token = ("trainer", "buildArgs", "HUB_TOKEN")
    assert said(found.leaving_warnings()) == [
        ("warning", "trainer/a.env:1", (), "looks like a secret, and"),
        ("note", "Pulumi.dev.yaml", (), "not scanned for secrets:"),
        ("warning", "Pulumi.dev.yaml:11:19", token, "looks like a secret"),
        ("note", "Pulumi.dev.yaml:9:7", ("trainer", "context"), "not scanned for secrets:"),
    ]
    assert said(found.image_warnings()) == [
        ("warning", "Pulumi.dev.yaml:9:7", ("trainer", "context"), "the stack file does not "),
    ]
    assert [each.path[0] for each in found.image_warnings()] == ["vertex-training:images"]


def test_digests_that_any_stack_pins_in_the_repository_are_known(tmp_path):
    digests = {name: f"sha256:{name * 64}" for name in "abcd"}
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  gcp:project: acme-ml-dev\n  gcp:region: us-central1\n"
        f"  vertex-training:images: {{trainer: {{digest: {digests['c']}}}}}\n"
    )
    place = "projects/acme-ml-dev/locations/us-central1/repositories"
    for name, digest in (("dev", digests["b"]), ("other", digests["d"])):
        (tmp_path / f"Pulumi.{name}-2.yaml").write_text(
            "config:\n  gcp:project: acme-ml-prod\n  gcp:region: us-central1\n"
            f"  vertex-training:registry: {{existing: {place}/training-{name}}}\n"
            f"  vertex-training:images: {{trainer: {{digest: {digest}}}}}\n"
        )
    images = {"trainer": {"digest": digests["a"]}}
    assert stack(tmp_path, images=images, jobs={}).pinned_digests == [digests["a"], digests["b"]]


def test_an_agent_alone_pulls_the_image_of_a_model_from_another_project(checkout):
    image = f"us-central1-docker.pkg.dev/acme-images/serve/x@sha256:{'a' * 64}"
    found = stack(checkout, models={"one": {"run": [1], "container": image}})
    assert [(each.member, each.role, each.place) for each in found.job_grants({})] == [
        (
            "serviceAccount:service-210987654321@gcp-sa-aiplatform.iam.gserviceaccount.com",
            "roles/artifactregistry.reader",
            "projects/acme-images/locations/us-central1/repositories/serve",
        )
    ]
