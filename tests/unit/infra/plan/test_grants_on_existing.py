"""Grants on what others own are printed, and on what exists in the own project made."""

import shlex

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import external_report, planned, stack
from vertex_training.images import pinned
from vertex_training.plan.stack_grants import derived_grants, owned_by_others
from vertex_training.settings.model import Image

SHARED = {
    "buckets": {
        "ours": {"existing": "acme-shared"},
        "theirs": {"existing": "acme-data", "project": "acme-data-1"},
    },
    "secrets": {"key": {"existing": "projects/acme-keys-1/secrets/wandb"}},
    "serviceAccounts": {
        "trainer": {"reads": ["theirs"], "writes": ["ours"], "secrets": ["key"]},
        "guest": {
            "existing": "guest-1@acme-people.iam.gserviceaccount.com",
            "reads": ["ours"],
            "writes": ["theirs"],
        },
    },
}
TRAINER = "serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
GUEST = "serviceAccount:guest-1@acme-people.iam.gserviceaccount.com"
AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"


def test_what_is_of_another_project_is_told_by_its_name():
    assert owned_by_others(stack(**SHARED)) == {
        ("buckets", "theirs"): "acme-data-1",
        ("secrets", "key"): "acme-keys-1",
        ("serviceAccounts", "guest"): "acme-people",
    }


def test_each_owner_is_told_exactly_the_grants_on_what_is_his():
    text = external_report(planned(**SHARED))
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("gcloud")]
    assert [tuple(command[-4:]) for command in commands] == [
        (name, f"--project={project}", f"--member={member}", f"--role={role}")
        for name, project, member, role in [
            ("gs://acme-data", "acme-data-1", TRAINER, "roles/storage.objectViewer"),
            ("wandb", "acme-keys-1", TRAINER, "roles/secretmanager.secretAccessor"),
            ("gs://acme-data", "acme-data-1", GUEST, "roles/storage.objectUser"),
            (GUEST.partition(":")[2], "acme-people", "group:ml@example.com",
             "roles/iam.serviceAccountUser"),
            (GUEST.partition(":")[2], "acme-people", AGENT,
             "roles/iam.serviceAccountTokenCreator"),
        ]
    ]  # fmt: skip
    assert "disableCrossProjectServiceAccountUsage" in text


def test_references_name_what_exists():
    references = planned(**SHARED).references
    assert references["buckets.theirs"] == "gs://acme-data"
    assert references["secrets.key"] == "projects/acme-keys-1/secrets/wandb"
    assert references["serviceAccounts.guest"] == "guest-1@acme-people.iam.gserviceaccount.com"


def test_names_of_ones_own_reach_every_reference():
    found = planned(
        buckets={"data": {"name": "acme-datasets"}},
        secrets={"key": {"name": "WANDB_KEY"}},
        serviceAccounts={"trainer": {"name": "ml-trainer", "reads": ["data"]}},
    )
    assert found.references["buckets.data.mount"] == "/gcs/acme-datasets"
    assert found.references["secrets.key"] == "projects/acme-ml-prod/secrets/WANDB_KEY"
    address = "ml-trainer@acme-ml-prod.iam.gserviceaccount.com"
    assert found.references["serviceAccounts.trainer"] == address


def test_who_builds_into_a_repository_of_another_project_is_told_to_its_owner():
    path = "projects/acme-images/locations/us/repositories/shared"
    settings = stack(registry={"existing": path})
    assert settings.names.image("titanic") == "us-docker.pkg.dev/acme-images/shared/titanic"
    assert settings.key_for("registry") is None
    image = Image.model_validate({"context": "jobs/titanic"})
    building = settings.model_copy(
        update={"images": {"titanic": image}, "builders": ["group:builders@example.com"]}
    )
    found = [
        (each.role, each.member, each.resource)
        for each in derived_grants(building)
        if not each.ours
    ]
    assert found == [
        (
            "roles/artifactregistry.writer",
            "serviceAccount:image-build-prod@acme-ml-prod.iam.gserviceaccount.com",
            path,
        ),
        ("roles/artifactregistry.reader", "group:builders@example.com", path),
    ]


def test_a_repository_of_the_own_project_is_granted_on_and_not_made():
    path = "projects/acme-ml-dev/locations/us-central1/repositories/shared"
    made = registered("dev", registry={"existing": path})
    assert "registry-docker" not in made
    on = {
        (inputs["repository"], inputs["role"])
        for type_, inputs in made.values()
        if type_ == "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
    }
    assert on == {("shared", "roles/artifactregistry.writer")}
    elsewhere_path = path.replace("acme-ml-dev", "acme-images")
    made = registered("dev", registry={"existing": elsewhere_path})
    types = {type_ for type_, _ in made.values()}
    assert not any("artifactregistry/repositoryIamMember" in type_ for type_ in types)


def test_an_existing_repository_keeps_the_digests_of_the_stacks_that_use_it(tmp_path):
    digest = f"sha256:{'a' * 64}"
    (tmp_path / "Pulumi.guest.yaml").write_text(
        "config:\n  gcp:project: acme-guest\n  gcp:region: us-central1\n"
        "  vertex-training:registry: {existing: projects/acme-ml-prod/locations/us-central1/"
        "repositories/training-prod}\n"
        f"  vertex-training:images: {{titanic: {{digest: '{digest}'}}}}\n"
    )
    own = stack().names.repository()
    assert pinned.digests_in(own, pinned.records(tmp_path)) == (digest,)
