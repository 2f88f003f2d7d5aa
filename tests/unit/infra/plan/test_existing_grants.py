"""Grants on what others own are printed, and on what exists in the own project made."""

import shlex

from infra.plan.existing_grants import elsewhere
from tests.unit.infra.stacks import planned, stack

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
    assert elsewhere(stack(**SHARED)) == {
        ("buckets", "theirs"): "acme-data-1",
        ("secrets", "key"): "acme-keys-1",
        ("serviceAccounts", "guest"): "acme-people",
    }


def test_each_owner_is_told_exactly_the_grants_on_what_is_his():
    text = planned(**SHARED).external_grants({})
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
